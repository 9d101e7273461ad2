"""Clients that read: members of groups, of both libraries and both isolation levels, which leave and rejoin at times."""

from __future__ import annotations

import contextlib
import random
import struct
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import confluent_kafka
import kafka

from ottla.compat_tests.session import eventually

from .clients import BACKOFF_MS, LIBRDKAFKA, TOPICS, Client, partitions_of
from .history import Act, Partition, Read, Recorder, Type

_POLL_S = 0.2
_MOST = 500
_LIFE_S = (15.0, 60.0)
GROUP_SESSION_S = 6.0
_COMMIT_MS = 1000


class Member(Client):
    """A member of ``group``, which reads ``topics``. With ``rack`` it reads from the replica in that rack."""

    def __init__(
        self,
        name: str,
        bootstrap: str,
        recorder: Recorder,
        *,
        group: str,
        isolation: str,
        seed: int,
        topics: Sequence[str] = TOPICS,
        rack: str = "",
    ) -> None:
        super().__init__(name, bootstrap, recorder)
        self.group = group
        self.isolation = isolation
        self.topics = topics
        self.rack = rack
        self.is_settled = False
        """Whether it stays until the end: no member leaves while a group has to read to the end."""
        self._rng = random.Random(f"{seed} {name}")

    def work(self, process: str) -> None:
        until = time.monotonic() + self._rng.uniform(*_LIFE_S)
        self.read(process, until)

    def goes_on(self, until: float) -> bool:
        """Whether this consumer goes on."""
        return not self.is_over and (self.is_settled or time.monotonic() < until)

    def read(self, process: str, until: float) -> None:
        """Read, as long as ``goes_on``."""
        raise NotImplementedError

    def assigned(self, process: str, generation: int, partitions: Sequence[Partition]) -> None:
        """Record an assignment."""
        told = {"group": self.group, "generation": generation, "partitions": tuple(partitions)}
        self.recorder.add(process, Type.OK, Act.ASSIGN, **told)

    def revoked(self, process: str, partitions: Sequence[Partition]) -> None:
        """Record the end of an assignment."""
        self.recorder.add(process, Type.OK, Act.REVOKE, group=self.group, partitions=tuple(partitions))


class KafkaPythonMember(Member):
    """kafka-python accepts metadata with older leader epochs than it has, from brokers that were cut off. A former leader does
    not know the epoch that it has read, and it would start again from the beginning. So it is closed instead and replaced by one
    that continues from the group's committed offsets, which must exist (``begin_group``).
    """

    def read(self, process: str, until: float) -> None:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap.split(","),
            group_id=self.group,
            client_rack=self.rack,
            isolation_level=self.isolation,
            auto_offset_reset="none",
            auto_commit_interval_ms=_COMMIT_MS,
            session_timeout_ms=int(GROUP_SESSION_S * 1000),
            heartbeat_interval_ms=1500,
            request_timeout_ms=15_000,
            reconnect_backoff_max_ms=BACKOFF_MS,
        )
        consumer.subscribe(list(self.topics), listener=_Listener(self, process, consumer))
        try:
            # Version 3.0.12 forgets that it is joining if it learns of partitions meanwhile (docs/troubleshooting.md).
            while self.goes_on(until) and not all(map(consumer.partitions_for_topic, self.topics)):
                pass
            while self.goes_on(until):
                for at, messages in consumer.poll(timeout_ms=int(_POLL_S * 1000), max_records=_MOST).items():
                    reads = tuple(Read(message.offset, int(message.value)) for message in messages)
                    recorded(self.recorder, process, Partition(at.topic, at.partition), self.isolation, reads)
        finally:
            consumer.close(timeout_ms=5000)


class _Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, member: Member, process: str, consumer: Any) -> None:
        self._member = member
        self._process = process
        self._consumer = consumer

    def on_partitions_assigned(self, assigned: Any) -> None:
        generation = self._consumer._coordinator.generation().generation_id
        self._member.assigned(self._process, generation, [Partition(*each) for each in sorted(assigned)])

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._member.revoked(self._process, [Partition(*each) for each in sorted(revoked)])


class ConfluentMember(Member):
    def read(self, process: str, until: float) -> None:
        consumer = ConfluentReader(self, process)
        with contextlib.closing(consumer):
            while self.goes_on(until):
                consumer.poll()


def begin_group(bootstrap: str, group: str) -> None:
    """Commit the beginning of every partition for a group without members. Raises AssertionError when that fails."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    partitions = [partition for topic in TOPICS for partition in partitions_of(topic)]
    offsets = [confluent_kafka.TopicPartition(*each, 0) for each in partitions]

    def is_committed() -> bool:
        with contextlib.suppress(confluent_kafka.KafkaException):  # there is no coordinator of the group yet
            consumer.commit(offsets=offsets, asynchronous=False)
            return True
        return False

    try:
        eventually(is_committed)
    finally:
        consumer.close()


class ConfluentReader:
    """A consumer of confluent-kafka in a member's group, which records what it reads.

    Messages are consumed one by one, because rebalance callbacks are called between two of them. Offsets are stored here
    explicitly: otherwise the library would also count the end markers that it passes when it is closed, and commit offsets
    after messages that it has not returned.
    """

    def __init__(self, member: Member, process: str, **settings: Any) -> None:
        self._member = member
        self._process = process
        self._taken: dict[Partition, list[Read]] = defaultdict(list)
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": member.bootstrap,
                "group.id": member.group,
                "client.rack": member.rack,
                "isolation.level": member.isolation,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": _COMMIT_MS,
                "enable.auto.offset.store": False,
                "session.timeout.ms": int(GROUP_SESSION_S * 1000),
                "heartbeat.interval.ms": 1500,
                **LIBRDKAFKA,
                "topic.metadata.refresh.interval.ms": 5000,
                "error_cb": member.failed,
                "log_level": 0,
                **settings,
            }
        )
        self.consumer.subscribe(list(member.topics), on_assign=self._assigned, on_revoke=self._revoked)

    def poll(self) -> dict[Partition, list[Read]]:
        """The messages within a short time, without those of an assignment that has ended meanwhile."""
        message = self.consumer.poll(_POLL_S)
        count = 0
        while message is not None:
            if message.error() is None:
                at = Partition(message.topic(), message.partition())
                self._taken[at].append(Read(message.offset(), int(message.value())))
            else:
                self._member.failed(message.error())
            count += 1
            message = self.consumer.poll(0) if count < _MOST else None
        return self._flush()

    def _flush(self) -> dict[Partition, list[Read]]:
        taken, self._taken = self._taken, defaultdict(list)
        for partition, reads in taken.items():
            recorded(self._member.recorder, self._process, partition, self._member.isolation, tuple(reads))
            position = confluent_kafka.TopicPartition(*partition, reads[-1].offset + 1)
            with contextlib.suppress(confluent_kafka.KafkaException):  # the partition was revoked meanwhile
                self.consumer.store_offsets(offsets=[position])
        return taken

    def _assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:
        self._flush()
        generation = generation_of(consumer)
        self._member.assigned(self._process, generation, [Partition(each.topic, each.partition) for each in partitions])

    def _revoked(self, consumer: Any, partitions: Sequence[Any]) -> None:
        self._flush()
        self._member.revoked(self._process, [Partition(each.topic, each.partition) for each in partitions])

    def close(self) -> None:
        """Leave the group."""
        self.consumer.close()
        self._flush()


_METADATA = b"CGMDv2:"


def generation_of(consumer: Any) -> int:
    """The group generation of a consumer of confluent-kafka, from its group metadata (librdkafka's own format)."""
    metadata = consumer.consumer_group_metadata()
    assert isinstance(metadata, bytes) and metadata.startswith(_METADATA), metadata
    return int(struct.unpack_from("=i", metadata, len(_METADATA))[0])


def recorded(recorder: Recorder, process: str, partition: Partition, isolation: str, reads: tuple[Read, ...]) -> None:
    """Record a poll of one partition."""
    recorder.add(process, Type.OK, Act.POLL, partition=partition, isolation=isolation, reads=reads)
