"""Stock clients that write and read while brokers fail, with their timed acknowledgements, records and errors.

Every load has its own thread or process and its own topic with ``PARTITIONS`` partitions; records are ascending numbers.
Producers have acks=all, are idempotent, and give up only after two minutes, so that failures of brokers cause no errors.
Times are seconds of ``time.time``, since some come from other processes.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import kafka

from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, java_command

PARTITIONS = 2
_INTERVAL_S = 0.01
_GIVE_UP_MS = 120_000
_STOP_S = 150.0
_BACKOFF_MS = 200
_PATIENCE = {"reconnect.backoff.max.ms": _BACKOFF_MS, "retry.backoff.max.ms": _BACKOFF_MS}
"""The longest time that clients wait before they retry. With their defaults, 1 to 30 s, mainly that would be measured."""
_LIBRDKAFKA_PATIENCE = {**_PATIENCE, "topic.metadata.refresh.interval.ms": _BACKOFF_MS}
"""With this it looks once a second for the leader of a partition whose leader is down, and forgets the new one at once."""


class Ack(NamedTuple):
    """An acknowledged record."""

    time: float
    partition: int
    number: int


class Load(ABC):
    """A client that works from ``start`` to ``stop``; ``errors`` are those that it reported."""

    def __init__(self, name: str, topic: str, bootstrap: str) -> None:
        self.name = name
        self.topic = topic
        self._bootstrap = bootstrap
        self.errors: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Tell it to stop, without waiting."""
        self._is_over.set()

    def stop(self) -> None:
        """Stop it, once all its requests are answered."""
        self.end()
        self._thread.join(_STOP_S)
        if self._thread.is_alive():
            self.errors.append("hangs")

    def _run(self) -> None:
        try:
            self.work()
        except Exception as error:
            self.errors.append(repr(error))

    @abstractmethod
    def work(self) -> None:
        """Work until ``_is_over``."""


class ProducerLoad(Load):
    """``acks`` are in the order in which the client got them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.acks: list[Ack] = []

    def acked(self, partition: int, number: int) -> None:
        self.acks.append(Ack(time.time(), partition, number))


class GroupLoad(Load):
    """The only member of a group. ``read`` has the numbers by partition in the order in which they came."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.read: dict[int, list[int]] = defaultdict(list)


# --- confluent-kafka --------------------------------------------------------------------------------------------------


class ConfluentProducer(ProducerLoad):
    def work(self) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": _GIVE_UP_MS,
                **_LIBRDKAFKA_PATIENCE,
                "log_level": 0,
            }
        )
        number = 0
        while not self._is_over.is_set():
            for partition in range(PARTITIONS):
                producer.produce(self.topic, b"%d" % number, partition=partition, on_delivery=self._delivered)
                number += 1
            producer.poll(_INTERVAL_S)
        producer.flush(_STOP_S)

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is None:
            self.acked(message.partition(), int(message.value()))
        else:
            self.errors.append(str(error))


class ConfluentTransactions(ProducerLoad):
    """One transaction at a time, with a record for each partition; acknowledged by the commit."""

    def work(self) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": self.topic,
                "transaction.timeout.ms": 60_000,
                **_LIBRDKAFKA_PATIENCE,
                "log_level": 0,
            }
        )
        producer.init_transactions(_STOP_S)
        number = 0
        while not self._is_over.is_set():
            numbers = range(number, number + PARTITIONS)
            number += PARTITIONS
            producer.begin_transaction()
            for partition, each in enumerate(numbers):
                producer.produce(self.topic, b"%d" % each, partition=partition)
            try:
                self._commit(producer)
            except confluent_kafka.KafkaException as failure:
                self.errors.append(str(failure))
                if not failure.args[0].txn_requires_abort():
                    raise
                producer.abort_transaction(_STOP_S)
            else:
                for partition, each in enumerate(numbers):
                    self.acked(partition, each)
            self._is_over.wait(_INTERVAL_S)

    def _commit(self, producer: confluent_kafka.Producer) -> None:
        while True:
            try:
                producer.commit_transaction(_STOP_S)
                return
            except confluent_kafka.KafkaException as failure:
                if not failure.args[0].retriable():
                    raise


class ConfluentGroup(GroupLoad):
    def work(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": f"{self.topic}-{self.name}",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                "isolation.level": "read_committed",
                **_LIBRDKAFKA_PATIENCE,
                "log_level": 0,
            }
        )
        consumer.subscribe([self.topic])
        with contextlib.closing(consumer):
            while not self._is_over.is_set():
                for message in consumer.consume(500, timeout=0.2):
                    if message.error() is None:
                        self.read[message.partition()].append(int(message.value()))
                    elif message.error().fatal():
                        self.errors.append(str(message.error()))


# --- kafka-python -----------------------------------------------------------------------------------------------------


class KafkaPythonProducer(ProducerLoad):
    def work(self) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self._bootstrap.split(","),
            acks="all",
            enable_idempotence=True,
            delivery_timeout_ms=_GIVE_UP_MS,
            max_block_ms=_GIVE_UP_MS,
            reconnect_backoff_max_ms=_BACKOFF_MS,
        )
        number = 0
        while not self._is_over.is_set():
            for partition in range(PARTITIONS):
                sent = producer.send(self.topic, b"%d" % number, partition=partition)
                sent.add_callback(self._delivered, number)
                sent.add_errback(lambda error: self.errors.append(repr(error)))
                number += 1
            time.sleep(_INTERVAL_S)
        producer.flush(_STOP_S)
        producer.close()

    def _delivered(self, number: int, written: Any) -> None:
        self.acked(written.partition, number)


class KafkaPythonGroup(GroupLoad):
    def work(self) -> None:
        consumer = kafka.KafkaConsumer(
            self.topic,
            bootstrap_servers=self._bootstrap.split(","),
            group_id=f"{self.topic}-{self.name}",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=500,
            reconnect_backoff_max_ms=_BACKOFF_MS,
        )
        # A client that joins before it knows the partitions joins again once it does. Version 3.0.12 forgets that it is
        # joining if a poll ends meanwhile: it is left without partitions and heartbeats, for good.
        while not self._is_over.is_set() and not consumer.partitions_for_topic(self.topic):
            pass
        while not self._is_over.is_set():
            for messages in consumer.poll(timeout_ms=200).values():
                for message in messages:
                    self.read[message.partition].append(int(message.value))
        consumer.close()


# --- Java -------------------------------------------------------------------------------------------------------------


class JavaProgram(Load):
    """One of Kafka's own test programs, which print lines of JSON about what they do; SIGTERM lets it finish its requests."""

    tool: str

    def __init__(self, name: str, topic: str, bootstrap: str, folder: Path) -> None:
        super().__init__(name, topic, bootstrap)
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    @abstractmethod
    def arguments(self) -> list[str]:
        """The program's arguments in addition to the brokers and the topic."""

    @abstractmethod
    def told(self, line: dict[str, Any]) -> None:
        """Handle a line that the program has printed."""

    def work(self) -> None:
        command = [*java_command(self._folder, *SHORT_LIVED), MAIN_CLASSES[self.tool], "--topic", self.topic]
        command += ["--bootstrap-server", self._bootstrap, *self.arguments()]
        with (self._folder / f"{self.tool}.err").open("wb") as errors:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
            assert self._process.stdout is not None
            for line in self._process.stdout:
                with contextlib.suppress(json.JSONDecodeError):
                    self.told(json.loads(line))
            self._process.wait()
        if not self._is_over.is_set():
            self.errors.append(f"kafka-{self.tool} has ended")

    def end(self) -> None:
        super().end()
        if self._process is not None:
            self._process.terminate()

    def stop(self) -> None:
        super().stop()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class JavaProducer(JavaProgram, ProducerLoad):
    """kafka-verifiable-producer, configured to retry, as a producer does by default."""

    tool = "verifiable-producer"

    def arguments(self) -> list[str]:
        config = self._folder / "producer.properties"
        settings = {"retries": 2147483647, "enable.idempotence": "true", **_PATIENCE}
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        rate = int(PARTITIONS / _INTERVAL_S)
        return ["--acks", "-1", "--throughput", str(rate), "--repeating-keys", "20", "--command-config", str(config)]

    def told(self, line: dict[str, Any]) -> None:
        if line["name"] == "producer_send_success":
            self.acks.append(Ack(line["timestamp"] / 1000, line["partition"], int(line["value"])))
        elif line["name"] == "producer_send_error":
            self.errors.append(line["message"])


class JavaGroup(JavaProgram, GroupLoad):
    """kafka-verifiable-consumer."""

    tool = "verifiable-consumer"

    def arguments(self) -> list[str]:
        return ["--group-id", f"{self.topic}-{self.name}", "--verbose", "--reset-policy", "earliest"]

    def told(self, line: dict[str, Any]) -> None:
        if line["name"] == "record_data":
            self.read[line["partition"]].append(int(line["value"]))
