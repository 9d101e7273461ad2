"""Probes of a fault as clients see it: each partition's next acknowledgement, and the first topic created.

Probes ask all the time and wait for nothing else, so that what is measured is the cluster's time and not a client's back-off. An
acknowledged record has a number of its own, which is looked for at the end.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import confluent_kafka

from ottla.compat_tests.wire_client import Connection

from .wire import ANSWER_S, create_topic, metadata, send_produce

_LOOK_S = 0.01
_PACE_S = 0.005
_READ_S = 120.0
_topics = itertools.count(1)


class Acknowledged(NamedTuple):
    """A record that was acknowledged, and when (``time.monotonic``)."""

    time: float
    partition: int
    offset: int
    number: int


class _Prober:
    """A thread that works until ``end``."""

    def __init__(self) -> None:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            with contextlib.suppress(OSError, EOFError, AssertionError):
                self.work()
            time.sleep(_LOOK_S)

    def work(self) -> None:
        """Work until the end, or an error of a socket, after which it is called again."""


class LeaderWatch(_Prober):
    """Asks one of the brokers who leads. ``address_of`` has what it knows, by partition."""

    def __init__(self, address: str, topic: str) -> None:
        super().__init__()
        self._address, self._topic = address, topic
        self.epochs: dict[int, tuple[int, str]] = {}
        """The leader epoch of a partition and the leader's address, which is empty where nobody leads."""

    def work(self) -> None:
        with contextlib.closing(Connection(self._address, ANSWER_S)) as connection:
            while not self._is_over.is_set():
                told = metadata(connection, self._topic)
                addresses = {broker.node_id: f"{broker.host}:{broker.port}" for broker in told.brokers}
                for each in told.topics[0].partitions:
                    self.epochs[each.partition_index] = each.leader_epoch, addresses.get(each.leader_id, "")
                time.sleep(_LOOK_S)


class AckProbe(_Prober):
    """Writes a record after the other to one partition, at the leader that any of the watches knows."""

    def __init__(self, topic: str, partition: int, watches: Sequence[LeaderWatch]) -> None:
        super().__init__()
        self.topic, self.partition = topic, partition
        self._watches = watches
        self._numbers = itertools.count(1)
        self.acknowledged: list[Acknowledged] = []

    def _leader(self) -> str:
        """The leader of the highest epoch that a broker tells of."""
        return max((watch.epochs.get(self.partition, (-1, "")) for watch in self._watches), default=(-1, ""))[1]

    def work(self) -> None:
        leader = self._leader()
        if not leader:
            return
        with contextlib.closing(Connection(leader, ANSWER_S)) as connection:
            while not self._is_over.is_set() and self._leader() == leader:
                if not self._write(connection, leader):
                    return
                time.sleep(_PACE_S)

    def _write(self, connection: Connection, leader: str) -> bool:
        """Whether a record is acknowledged; it is given up when another leads."""
        number = next(self._numbers)
        send_produce(connection, self.topic, [(self.partition, number)])
        while connection.is_silent(_LOOK_S):
            if self._is_over.is_set() or self._leader() != leader:
                return False
        answer = connection.receive().responses[0].partition_responses[0]
        if answer.error_code:
            return False
        self.acknowledged.append(Acknowledged(time.monotonic(), self.partition, answer.base_offset, number))
        return True

    def first_after(self, moment: float) -> float | None:
        """When the first record was acknowledged that was so after a moment."""
        newest = itertools.takewhile(lambda each: each.time > moment, reversed(self.acknowledged[:]))
        return min((each.time for each in newest), default=None)


class CreateProbe(_Prober):
    """Creates a topic at one broker, again and again, until it is created. ``done`` is when."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self.done: float | None = None
        self.errors: list[str] = []

    def work(self) -> None:
        while not self._is_over.is_set() and self.done is None:
            error = create_topic(self._address, f"created-{next(_topics)}", limit_s=ANSWER_S)
            if error == "NONE":
                self.done = time.monotonic()
            else:
                self.errors.append(error)


@contextlib.contextmanager
def working(probes: Sequence[_Prober]) -> Iterator[None]:
    """A context in which probes work."""
    for probe in probes:
        probe.start()
    try:
        yield
    finally:
        for probe in probes:
            probe.end()


def lost(bootstrap: str, topic: str, partitions: int, acknowledged: Sequence[Acknowledged]) -> list[str]:
    """The acknowledged records that are not where they were acknowledged, as text."""
    found = _read(bootstrap, topic, partitions)
    wrong = []
    for each in acknowledged:
        there = found.get((each.partition, each.offset))
        if there != each.number:
            wrong.append(f"{topic}-{each.partition} at {each.offset}: {each.number} was acknowledged, {there} is there")
    return wrong


def _read(bootstrap: str, topic: str, partitions: int) -> dict[tuple[int, int], int]:
    """The numbers by partition and offset. Raises TimeoutError."""
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": "audit", "auto.offset.reset": "error"}
    settings |= {"enable.partition.eof": True, "log_level": 0}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
    found: dict[tuple[int, int], int] = {}
    ended: set[int] = set()
    deadline = time.monotonic() + _READ_S
    with contextlib.closing(consumer):
        while len(ended) < partitions:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} cannot be read to its end")
            for message in consumer.consume(1000, timeout=0.2):
                error = message.error()
                if error is None:
                    found[message.partition(), message.offset()] = int(message.value())
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                elif error.code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET:
                    raise AssertionError(f"{topic}-{message.partition()} does not begin at 0: {error.str()}")
    return found
