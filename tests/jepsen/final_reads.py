"""Reads everything after all faults: every partition from its beginning, from each replica and with either isolation level.

It also waits until the groups have read to the end.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping

import confluent_kafka

from .clients import TOPICS, partitions_of
from .consumers import recorded
from .history import READ_COMMITTED, READ_UNCOMMITTED, Act, Partition, Read, Recorder, Type
from .system import System

_READ_S = 120.0
_LOOK_S = 0.5

Ends = Mapping[str, Mapping[Partition, int]]
"""By isolation level: the offset after the last record of each partition."""


def read_everything(system: System, recorder: Recorder) -> Ends:
    """Record final reads. Raises TimeoutError when the end of a partition is not reached."""
    ends: dict[str, dict[Partition, int]] = {}
    for machine in system.brokers:
        process = f"final-{machine.number}"
        ends[READ_COMMITTED] = _read(system.bootstrap, recorder, process, READ_COMMITTED, machine.rack)
    ends[READ_UNCOMMITTED] = _read(system.bootstrap, recorder, "final-uncommitted", READ_UNCOMMITTED, "")
    return ends


def _read(bootstrap: str, recorder: Recorder, process: str, isolation: str, rack: str) -> dict[Partition, int]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": process,
            "client.rack": rack,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "log_level": 0,
        }
    )
    partitions = [partition for topic in TOPICS for partition in partitions_of(topic)]
    consumer.assign([confluent_kafka.TopicPartition(*each, 0) for each in partitions])
    behind_last = dict.fromkeys(partitions, 0)
    at_end: set[Partition] = set()
    deadline = time.monotonic() + _READ_S
    try:
        while len(at_end) < len(partitions):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{process} comes to no end of {sorted(set(partitions) - at_end)}")
            reads: dict[Partition, list[Read]] = defaultdict(list)
            ended: dict[Partition, int] = {}
            for message in consumer.consume(1000, timeout=_LOOK_S):
                at = Partition(message.topic(), message.partition())
                error = message.error()
                if error is None:
                    reads[at].append(Read(message.offset(), int(message.value())))
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    ended[at] = message.offset()
                elif not error.retriable():
                    raise TimeoutError(f"{process} cannot read {at}: {error}")
            for at, found in reads.items():
                recorded(recorder, process, at, isolation, tuple(found))
                behind_last[at] = found[-1].offset + 1
            for at in set(ended) - at_end:
                about = {"partition": at, "isolation": isolation, "offset": ended[at]}
                recorder.add(process, Type.OK, Act.FINAL, **about)
                at_end.add(at)
    finally:
        consumer.close()
    return behind_last


def wait_committed(system: System, group: str, ends: Mapping[Partition, int], limit_s: float) -> str | None:
    """Wait until a group has committed these offsets, or later ones. Returns what is missing after ``limit_s``."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": system.bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 0}
    )
    wanted = [confluent_kafka.TopicPartition(*each) for each, end in ends.items() if end > 0]
    deadline = time.monotonic() + limit_s
    missing: str | None = f"group {group} does not tell what it has committed"
    try:
        while missing is not None and time.monotonic() < deadline:
            try:
                committed = consumer.committed(wanted, timeout=10.0)
            except confluent_kafka.KafkaException:
                continue
            behind = {
                str(Partition(each.topic, each.partition)): (each.offset, ends[Partition(each.topic, each.partition)])
                for each in committed
                if each.offset < ends[Partition(each.topic, each.partition)]
            }
            missing = f"group {group} has committed less than there is (committed, end): {behind}" if behind else None
            if missing is not None:
                time.sleep(_LOOK_S)
    finally:
        consumer.close()
    return missing


def ends_of(system: System, topic: str) -> dict[Partition, int]:
    """The end offsets of a topic's partitions. Raises KafkaException."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": system.bootstrap, "group.id": "ends", "log_level": 0})
    try:
        return {
            each: consumer.get_watermark_offsets(confluent_kafka.TopicPartition(*each), timeout=30.0)[1]
            for each in partitions_of(topic)
        }
    finally:
        consumer.close()
