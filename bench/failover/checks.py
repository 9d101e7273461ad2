"""Checks of the records after a run: none is lost or duplicated, and all are in order.

Every acknowledged record is in its partition, none is there twice, and numbers ascend. A group has read every record in order;
after a rebalance it may go back to the last committed offset. A transaction is there as a whole or not at all.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping

import confluent_kafka

from .loads import PARTITIONS, ConfluentTransactions, GroupLoad, ProducerLoad

Logs = Mapping[int, list[int]]
_READ_S = 120.0


def read_all(bootstrap: str, topic: str) -> Logs:
    """The committed numbers in each partition of a topic."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checks",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    logs: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in logs])
    at_end: set[int] = set()
    deadline = time.monotonic() + _READ_S
    try:
        while len(at_end) < PARTITIONS:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} cannot be read to its end")
            for message in consumer.consume(1000, timeout=0.2):
                error = message.error()
                if error is None:
                    logs[message.partition()].append(int(message.value()))
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    at_end.add(message.partition())
                else:
                    raise confluent_kafka.KafkaException(error)
    finally:
        consumer.close()
    return logs


def wrong_in_log(producer: ProducerLoad, logs: Logs) -> list[str]:
    """Records that are lost, doubled or reordered, as lines of text."""
    wrong = []
    for partition, numbers in logs.items():
        for one, other in itertools.pairwise(numbers):
            if one >= other:
                wrong.append(f"{producer.topic}-{partition}: {other} comes after {one}")
    present = {(partition, number) for partition, numbers in logs.items() for number in numbers}
    lost = [ack for ack in producer.acks if (ack.partition, ack.number) not in present]
    if lost:
        wrong.append(f"{producer.topic}: {len(lost)} lost that were acknowledged, the first {lost[0]}")
    if isinstance(producer, ConfluentTransactions):
        committed = {number for _, number in present}
        wrong += [
            f"{producer.topic}: only a part of the transaction from {first} on is there"
            for first in range(0, max(committed, default=-1) + 1, PARTITIONS)
            if len(committed.intersection(range(first, first + PARTITIONS))) not in (0, PARTITIONS)
        ]
    return wrong


def wrong_in_group(group: GroupLoad, logs: Logs) -> list[str]:
    """Records that a group has not read, or read in another order, as lines of text."""
    wrong = []
    for partition, numbers in logs.items():
        once = list(dict.fromkeys(group.read[partition]))
        if once != numbers:
            missing = len(set(numbers) - set(once))
            wrong.append(
                f"{group.name} of {group.topic}-{partition}: {missing} of {len(numbers)} not read, or read out of order"
            )
    return wrong


def has_read(group: GroupLoad, logs: Logs) -> bool:
    """Whether the group has read to the end of each partition."""
    return all(not numbers or numbers[-1] in group.read[partition][-1:] for partition, numbers in logs.items())
