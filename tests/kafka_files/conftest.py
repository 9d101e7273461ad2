"""Log directories of Apache Kafka and of Ottla, filled with the same requests, and Kafka's tools to look into them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from ottla.base.errors import ErrorCode
from ottla.compat_tests.brokers import BrokerProcess, KafkaProcess, OttlaProcess
from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, java_command
from ottla.compat_tests.raw.requests import produce_request
from ottla.compat_tests.raw.transactional import GROUP, RawProducer, end_offset, find_coordinator
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator, connect
from ottla.log.checkpoints import read_offsets
from ottla.log.disk import OsDisk
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.records import Record, build_batch

ROOT = Path(__file__).parents[2]
START_MS = (int(time.time()) + 7200) * 1000
"""Later than the time of every end marker, which brokers set, so that segments roll at the same offsets everywhere."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SEGMENT_MS = 60_000
BASE_CONFIGS = {
    "segment.ms": str(SEGMENT_MS),
    "index.interval.bytes": "200",
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
}
PROPERTIES = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
}
TOPICS = ("plain", "appended", "trimmed", "transactions", "stock", "compacted")
KAFKA_PROPERTIES = {"log.initial.task.delay.ms": "100"}

Row = tuple[int, tuple[int, int], "bytes | None", "bytes | None", tuple[tuple[str, "bytes | None"], ...]]
"""A consumed record: offset, (timestamp type, timestamp), key, value, headers."""


@dataclass
class Contents:
    """What a stock client reads: rows by isolation level and topic, and the offset in ``stock`` that a group has committed."""

    rows: dict[str, dict[str, list[Row]]]
    committed: dict[str, int]


@dataclass
class Filled:
    """A log directory after a clean stop, and its contents. ``stock`` is a client that has written and can continue."""

    process: BrokerProcess
    contents: Contents
    stock: Producer

    @property
    def data(self) -> Path:
        return self.process.folder / "data"

    def folder(self, topic: str, partition: int = 0) -> Path:
        return self.data / f"{topic}-{partition}"


def read_topics(bootstrap: str, isolation: str) -> dict[str, list[Row]]:
    """Everything that a stock consumer reads from TOPICS, up to their end offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "isolation.level": isolation,
            "check.crcs": True,
        }
    )
    rows: dict[str, list[Row]] = {topic: [] for topic in TOPICS}
    waiting = set(TOPICS)
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in TOPICS])
        deadline = time.monotonic() + 30
        while waiting:
            assert time.monotonic() < deadline, f"the end of {waiting} did not come"
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is None:
                headers = tuple(message.headers() or ())
                row = (message.offset(), message.timestamp(), message.key(), message.value(), headers)
                rows[message.topic()].append(row)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                waiting.discard(message.topic())
        return rows
    finally:
        consumer.close()


def read_committed_offset(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        return consumer.committed([TopicPartition(topic, 0)], timeout=30)[0].offset
    finally:
        consumer.close()


def record(key: bytes | None, value: bytes | None, timestamp: int, *headers: tuple[str, bytes | None]) -> Record:
    return Record(key=key, value=value, timestamp=timestamp, headers=list(headers))


class Filler:
    """Fills the topics of one broker, with the same requests in the same order for every broker."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self.operator = Operator(process.bootstrap)
        self.stock: Producer | None = None

    def create(self, topic: str, **configs: str) -> None:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self.operator.create_topic(topic, 1, BASE_CONFIGS | named)

    def send(self, connection: Connection, topic: str, batch: bytes, transactional_id: str | None = None) -> int:
        """Produce one batch; returns its base offset."""
        version = 9 if transactional_id is None else 11
        response = connection.call(produce_request(topic, {0: batch}, transactional_id=transactional_id), version)
        (answer,) = response.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        return answer.base_offset

    def fill_before_restart(self) -> None:
        """Everything that is written under the first leader epoch."""
        self.create("plain")
        self.create("appended", message_timestamp_type="LogAppendTime")
        self.create("trimmed")
        self.create("transactions")
        self.create("stock")
        self.create(
            "compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="1.0", delete_retention_ms="86400000"
        )
        with connect(self.process.bootstrap) as connection:
            self._plain(connection, range(60))
            for number in range(30):
                self._number(connection, "appended", number, number)
                self._number(connection, "trimmed", number, number // 3)
            self._transactions(connection)
            self._compacted(connection)
            self._delete_records(connection, "trimmed", 40)
        self._stock(0)

    def fill_after_restart(self) -> None:
        """Everything that is written under a later leader epoch, with a transaction that stays open."""
        for topic in TOPICS:
            self.operator.wait_until_ready(topic, 1)
        with connect(self.process.bootstrap) as connection:
            self._plain(connection, range(60, 80))
            self._number(connection, "trimmed", 30, 11)
            self._delete_records(connection, "trimmed", 47)
            self._stock(1)
            self._offsets(connection)
            self._open_transaction(connection)
            self._clean(connection)
        data = self.process.folder / "data" / "trimmed-0"
        eventually(lambda: any(name.endswith(".log.deleted") for name in os.listdir(data)))

    def _plain(self, connection: Connection, numbers: range) -> None:
        """Every codec; headers, nulls and gaps in time; an idempotent producer and an ordinary one."""
        for number in numbers:
            timestamp = START_MS + number * 10_000
            records = [
                record(None if number % 7 == 0 else b"key%d" % n, b"v%d-%d" % (number, n) * 9, timestamp + n)
                for n in range(number % 4 + 1)
            ]
            records[0].headers = [("header", b"%d" % number), ("empty", b""), ("null", None)]
            records.append(record(b"", b"" if number % 2 else None, timestamp + 1))
            header = {"compression": number % 5}
            if number % 3:
                sequence = sum(n % 4 + 2 for n in range(number) if n % 3)
                header |= {"producer_id": 7001, "producer_epoch": 2, "base_sequence": sequence}
            self.send(connection, "plain", build_batch(records, **header))

    def _number(self, connection: Connection, topic: str, number: int, minutes: int) -> None:
        timestamp = START_MS + minutes * SEGMENT_MS * 2
        batch = build_batch([record(b"%d" % number, b"value %d" % number, timestamp)] * 2, compression=number % 5)
        self.send(connection, topic, batch)

    def _transactional(
        self,
        connection: Connection,
        producer: RawProducer,
        topic: str,
        timestamp: int,
        *pairs: tuple[bytes, bytes | None],
    ) -> None:
        sequence = producer.sequences.get((topic, 0), 0)
        batch = build_batch(
            [record(key, value, timestamp) for key, value in pairs],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=True,
            compression=sequence % 5,
        )
        self.send(connection, topic, batch, producer.transactional_id)
        producer.sequences[topic, 0] = sequence + len(pairs)

    def _end(self, connection: Connection, producer: RawProducer, topic: str, *, commit: bool) -> None:
        """End the transaction, and wait for its marker: what is written next comes after it."""
        end = end_offset(connection, topic, committed=False)
        assert producer.end(commit=commit) == ErrorCode.NONE
        eventually(lambda: end_offset(connection, topic, committed=False) > end)

    def _transactions(self, connection: Connection) -> None:
        """Interleaved, committed and aborted, over several segments."""
        first, second = (RawProducer(connection, name).start() for name in ("first", "second"))
        for number in range(12):
            timestamp = START_MS + number * SEGMENT_MS
            first.begin("transactions")
            self._transactional(connection, first, "transactions", timestamp, (b"a", b"first %d" % number))
            if number % 3 == 0:
                second.begin("transactions")
            self._transactional(connection, second, "transactions", timestamp + 1, (b"b", b"second %d" % number))
            self._number(connection, "transactions", number, number // 2)
            self._end(connection, first, "transactions", commit=number % 4 != 1)
            if number % 3 == 2:
                self._end(connection, second, "transactions", commit=number != 5)

    def _open_transaction(self, connection: Connection) -> None:
        third = RawProducer(connection, "third").start(timeout_ms=900_000)
        third.begin("transactions")
        self._transactional(
            connection, third, "transactions", START_MS + 3_000_000, (b"c", b"open"), (b"c", b"open too")
        )
        self._number(connection, "transactions", 99, 25)

    def _compacted(self, connection: Connection) -> None:
        """Repeated keys, tombstones, and transactions, over many segments; cleaning is not allowed yet."""
        cleaned = RawProducer(connection, "cleaned").start()
        for number in range(40):
            timestamp = START_MS + number * SEGMENT_MS // 3
            pairs = [
                (b"k%d" % ((number * 7 + n * 3) % 17), None if (number + n) % 6 == 0 else b"value %d.%d" % (number, n))
                for n in range(3)
            ]
            if number % 4 == 3:
                cleaned.begin("compacted")
                self._transactional(connection, cleaned, "compacted", timestamp, *pairs)
                self._end(connection, cleaned, "compacted", commit=number % 8 == 3)
            else:
                header = {"producer_id": 7002, "producer_epoch": 0, "base_sequence": 0} if number == 10 else {}
                batch = build_batch([record(*pair, timestamp) for pair in pairs], compression=number % 5, **header)
                self.send(connection, "compacted", batch)

    def _clean(self, connection: Connection) -> None:
        """Allow a cleaning, and wait for it; then two more: one finds markers without their records, the other removes them."""
        self._alter(connection, "compacted", {"min.cleanable.dirty.ratio": "0.0"})
        cleaned = self._cleaned_above(0)
        self._alter(connection, "compacted", {"delete.retention.ms": "0"})
        for number in range(3):
            timestamp = START_MS + 3_000_000 + number * SEGMENT_MS // 2 * 3
            self.send(connection, "compacted", build_batch([record(b"late", b"%d" % number, timestamp)]))
            cleaned = self._cleaned_above(cleaned)

    def _cleaned_above(self, offset: int) -> int:
        """Wait until the log is clean up to an offset above this one; returns that offset."""
        eventually(lambda: self._cleaned_offset() > offset)
        return self._cleaned_offset()

    def _cleaned_offset(self) -> int:
        path = self.process.folder / "data" / "cleaner-offset-checkpoint"
        return read_offsets(OsDisk(), str(path)).get(("compacted", 0), 0)

    def _alter(self, connection: Connection, topic: str, configs: Mapping[str, str]) -> None:
        changes = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in configs.items()]
        resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=changes)
        (answer,) = connection.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert answer.error_code == ErrorCode.NONE

    def _delete_records(self, connection: Connection, topic: str, offset: int) -> None:
        part = DeleteRecordsPartition(partition_index=0, offset=offset)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=20_000)
        (answer,) = connection.call(request, 2).topics[0].partitions
        assert answer.error_code == ErrorCode.NONE

    def _stock(self, part: int) -> None:
        """A stock client's idempotent producers, one for each codec; the last one is kept, to continue later."""
        for number, codec in enumerate(CODECS):
            producer = self.stock
            if producer is None or number:
                producer = Producer(
                    {"bootstrap.servers": self.process.bootstrap, "enable.idempotence": True, "compression.type": codec}
                )
            for n in range(50):
                producer.produce(
                    "stock", b"%s %d %d" % (codec.encode(), part, n), b"key %d" % n, headers={"part": b"%d" % part}
                )
            assert producer.flush(30) == 0
            self.stock = producer if self.stock is None else self.stock

    def _offsets(self, connection: Connection) -> None:
        """Offsets of a group that commits directly, and of one that commits in a transaction."""
        consumer = Consumer({"bootstrap.servers": self.process.bootstrap, "group.id": "readers"})

        def commit() -> bool:
            try:
                consumer.commit(offsets=[TopicPartition("stock", 0, 77, "note")], asynchronous=False)
            except KafkaException as failure:
                # librdkafka passes on the error that Apache Kafka returns while it loads the group's partition.
                if failure.args[0].code() != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    raise
                return False
            return True

        eventually(commit)
        consumer.close()
        find_coordinator(connection, GROUP, "exactly-once")
        producer = RawProducer(connection, "with-offsets").start()
        producer.retried(lambda: producer.add_offsets("exactly-once"))
        producer.retried(lambda: producer.commit_offset("exactly-once", "stock", 123))
        assert producer.end(commit=True) == ErrorCode.NONE


def read_everything(bootstrap: str) -> Contents:
    """What a stock client reads."""
    return Contents(
        {isolation: read_topics(bootstrap, isolation) for isolation in ("read_uncommitted", "read_committed")},
        {group: read_committed_offset(bootstrap, group, "stock") for group in ("readers", "exactly-once")},
    )


def fill(process: BrokerProcess) -> Filled:
    """Start the broker, fill it, restart it in the middle, and stop it."""
    filler = Filler(process)
    process.start()
    filler.fill_before_restart()
    process.stop()
    process.start()
    filler.fill_after_restart()
    contents = read_everything(process.bootstrap)
    process.stop()
    assert filler.stock is not None
    return Filled(process, contents, filler.stock)


@pytest.fixture(scope="session")
def fetch_jars() -> Callable[[str, str], Path]:
    """``fetch_jars(set, folder)``: a folder of jars, fetched if need be."""

    def fetch(name: str, folder: str) -> Path:
        missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
        if missing and os.environ.get("CI") != "true":
            pytest.skip(f"Apache Kafka needs {' and '.join(missing)} on the PATH")
        command = ["sh", str(ROOT / "tools/fetch_jars.sh"), name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.fail(f"jars could not be fetched: {done.stderr}", pytrace=False)
        return ROOT / ".jars" / folder

    return fetch


@pytest.fixture(scope="session")
def by_kafka(fetch_jars: Callable[[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Apache Kafka 4.3's folder."""
    fetch_jars("kafka", "kafka-tools-4.3.1")
    process = KafkaProcess(tmp_path_factory.mktemp("kafka"), properties=PROPERTIES | KAFKA_PROPERTIES)
    try:
        yield fill(process)
    finally:
        process.close()


@pytest.fixture(scope="session")
def by_ottla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Ottla's folder."""
    process = OttlaProcess(tmp_path_factory.mktemp("ottla"), properties=PROPERTIES)
    try:
        yield fill(process)
    finally:
        process.close()


@pytest.fixture(scope="session")
def read_all() -> Callable[[str], Contents]:
    """``read_all(bootstrap)``: what a stock client reads there."""
    return read_everything


@pytest.fixture(scope="session")
def kafka_dump_log(
    fetch_jars: Callable[[str, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``kafka_dump_log(files, *options)``: the finished process of Kafka's own tool."""
    fetch_jars("kafka", "kafka-tools-4.3.1")
    command = [*java_command(tmp_path_factory.mktemp("dump"), *SHORT_LIVED, "-Dstdout.encoding=UTF-8")]
    command.append(MAIN_CLASSES["dump-log"])

    def run(files: list[Path], *options: str) -> subprocess.CompletedProcess[str]:
        names = ",".join(map(str, files))
        arguments = [*command, *options, "--files", names]
        return subprocess.run(arguments, capture_output=True, encoding="utf-8", check=False)

    return run
