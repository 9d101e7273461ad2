"""The end of a partition, once shown to a client, is never taken back; and what lies before it can be read.

Spark plans with the end it is told, keeps it in its checkpoint, and takes an earlier one for loss of data: "offset was changed
from A to B". So the broker is asked for it all the time, while it is written to, killed, stopped and started.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests import brokers
from ottla.compat_tests.clients.kafka_python import Client
from ottla.compat_tests.raw.requests import fetch
from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.spark.kafka_format import KafkaFormat, positions, span, value_of
from ottla.compat_tests.wire_client import Connection, Operator, connect
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.client("spark"),
    pytest.mark.capability("ends never go back"),
    pytest.mark.restart,
]
LATEST = -1
COMMITTED = {"kafka.isolation.level": "read_committed"}


@pytest.fixture
def stock(broker_process: brokers.Restartable) -> Iterator[ClientSession]:
    """The client that writes, on the broker that will be killed."""
    session = ClientSession("kafka-python", Client(broker_process.bootstrap))
    yield session
    session.close()


def end(connection: Connection, topic: str, isolation_level: int) -> int | None:
    """What ListOffsets says the end of partition 0 is; None while it has no leader."""
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=LATEST)]
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=wanted)],
    )
    (answer,) = connection.call(request, 9).topics[0].partitions
    return answer.offset if answer.error_code == ErrorCode.NONE else None


def ends(connection: Connection, topic: str) -> dict[str, int | None]:
    """All that a client can take for the end of partition 0."""
    part = fetch(connection, topic, {0: 0})[0]
    is_good = part.error_code == ErrorCode.NONE
    return {
        "latest": end(connection, topic, 0),
        "latest, read_committed": end(connection, topic, 1),
        "high watermark": part.high_watermark if is_good else None,
        "last stable offset": part.last_stable_offset if is_good else None,
    }


class Watcher(threading.Thread):
    """Asks the leader for the ends over and over, on a new connection when the old one breaks, and keeps each that went back.

    A leader that was a follower does not know at first how far its predecessor had come. So long it tells no end (KIP-207),
    and what it says of the high watermark in answers to Fetch is an end for no client.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__()
        self._operator, self._topic = Operator(bootstrap), topic
        self._stopped = threading.Event()
        self.shown: dict[str, int] = {}
        self.went_back: list[tuple[str, int, int]] = []
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._watch()
        except BaseException as error:
            self._failure = error

    def _watch(self) -> None:
        while not self._stopped.wait(0.01):
            try:
                leader = self._operator.leader(self._topic)
                with connect(leader, timeout_s=10) as connection:
                    while self._look(connection) and not self._stopped.wait(0.001):
                        continue
            except (OSError, EOFError, ValueError):  # ValueError: it has no leader
                continue

    def _look(self, connection: Connection) -> bool:
        """Whether this is the leader, and knows the end."""
        found = {name: offset for name, offset in ends(connection, self._topic).items() if offset is not None}
        if "latest" not in found:
            return False
        for name, offset in found.items():
            if offset < self.shown.get(name, 0):
                self.went_back.append((name, self.shown[name], offset))
            self.shown[name] = max(offset, self.shown.get(name, 0))
        return True

    def has_seen_more_than(self, offset: int) -> bool:
        """Whether the end has moved on."""
        if self._failure is not None:
            raise self._failure
        return self.shown.get("latest", 0) > offset

    def stop(self) -> None:
        """No more questions; the error that ended them before, if one has."""
        self._stopped.set()
        self.join()
        if self._failure is not None:
            raise self._failure


def test_over_restarts(
    spark: SparkSession, broker_process: brokers.Restartable, stock: ClientSession, tmp_path: Path
) -> None:
    Operator(broker_process.bootstrap).create_topic("log", 1, {})
    kafka = KafkaFormat(spark, broker_process.bootstrap, tmp_path)
    watcher = Watcher(broker_process.bootstrap, "log")
    watcher.start()
    try:
        producer = stock.producer(idempotent=True)
        written = 0
        for shut_down in (broker_process.kill, broker_process.stop, broker_process.kill):
            seen = watcher.shown.get("latest", 0)
            for _ in range(3000):
                producer.send("log", value_of(0, written), partition=0)
                written += 1
            # In the middle of it: some of them are shown, others on their way or not sent at all.
            eventually(partial(watcher.has_seen_more_than, seen))
            shut_down()
            shown = watcher.shown["latest"]
            broker_process.start()
            in_between = {"startingOffsets": "earliest", "endingOffsets": f'{{"log": {{"0": {shown}}}}}'}
            assert positions(kafka.read(subscribe="log", **in_between)) == span("log", shown)
            producer.flush()
        eventually(lambda: set(watcher.shown.values()) == {written})
    finally:
        watcher.stop()
    assert watcher.went_back == []
    assert positions(kafka.read(subscribe="log", **COMMITTED)) == span("log", written)


def test_an_open_transaction(
    spark: SparkSession, broker_process: brokers.Restartable, stock: ClientSession, tmp_path: Path
) -> None:
    Operator(broker_process.bootstrap).create_topic("log", 1, {})
    kafka = KafkaFormat(spark, broker_process.bootstrap, tmp_path)
    stock.produce("log", [b"before"] * 5)
    producer = stock.producer(transactional_id="open", transaction_timeout_ms=600_000)
    producer.begin()
    for _ in range(3):
        producer.send("log", b"in a transaction", partition=0)
    producer.flush()
    stock.produce("log", [b"behind"] * 2)
    shown = {"latest": 10, "latest, read_committed": 5, "high watermark": 10, "last stable offset": 5}
    for shut_down in (broker_process.kill, broker_process.stop):
        with connect(Operator(broker_process.bootstrap).leader("log")) as connection:
            assert ends(connection, "log") == shown
        shut_down()
        broker_process.start()
        Operator(broker_process.bootstrap).wait_until_ready("log", 1)
    with connect(Operator(broker_process.bootstrap).leader("log")) as connection:
        assert ends(connection, "log") == shown
    assert positions(kafka.read(subscribe="log", **COMMITTED)) == span("log", 5)
    stock.producer(transactional_id="open")  # the successor, who ends what was open
    eventually(
        lambda: positions(kafka.read(subscribe="log", **COMMITTED)) == [*span("log", 5), *span("log", 10, start=8)]
    )
