"""The data for ``bench.console``: many topics with two records each, groups that have read some, a topic of many records."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

BENCH = "bench"
SEARCHED = "many"
WIDE = "wide"
WIDE_PARTITIONS = 500
EVERYTHING = "everything"
"""A group with offsets in every topic."""
_LIMIT_S = 600.0
_AT_ONCE = 500
_BATCH = 10_000
_TOPICS_OF_A_GROUP = 9


def _connected(port: int) -> Connection:
    return Connection(f"127.0.0.1:{port}", _LIMIT_S)


def _create(client: Connection, topics: Sequence[CreatableTopic]) -> None:
    answer = client.call(CreateTopicsRequest(topics=[*topics], timeout_ms=int(_LIMIT_S * 1000)), 5)
    wrong = [topic for topic in answer.topics if topic.error_code]
    if wrong:
        raise RuntimeError(f"CreateTopics: {wrong[0]}")


def _topic(name: str, partitions: int = 1) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)


def topic_name(number: int) -> str:
    return f"topic-{number:05}"


def make_many(port: int, topics: int, groups: int) -> None:
    """Create topics and groups, a topic for a load, one with many partitions, and the group ``EVERYTHING``."""
    client = _connected(port)
    _make_topics(client, topics)
    _commit_groups(client, topics, groups)
    client.close()


def _make_topics(client: Connection, count: int) -> None:
    """Create ``count`` topics of one partition, with two records each; one for the load, and one with many partitions."""
    _create(client, [_topic(BENCH), _topic(WIDE, WIDE_PARTITIONS)])
    names = [topic_name(number) for number in range(count)]
    now = time.time_ns() // 1_000_000
    data = [PartitionProduceData(index=0, records=build_batch([Record(timestamp=now, value=b"x" * 100)] * 2))]
    for start in range(0, count, _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        _create(client, [_topic(name) for name in some])
        topics = [TopicProduceData(name=name, partition_data=data) for name in some]
        client.call(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics), 8)


def _commit_groups(client: Connection, topics: int, groups: int) -> None:
    """Commit offset 1 for groups in nine topics each, and for ``EVERYTHING`` in all topics, also the one with many partitions."""
    for number in range(groups):
        some = [(number * _TOPICS_OF_A_GROUP + place) % topics for place in range(_TOPICS_OF_A_GROUP)]
        _commit(client, f"group-{number:04}", [(topic_name(each), 1) for each in some])
    for start in range(0, topics, _AT_ONCE):
        some = [*range(start, min(start + _AT_ONCE, topics))]
        _commit(client, EVERYTHING, [(topic_name(each), 1) for each in some])
    _commit(client, EVERYTHING, [(WIDE, WIDE_PARTITIONS)])


def _commit(client: Connection, group: str, topics: Sequence[tuple[str, int]]) -> None:
    """Commit offset 1 in the given number of partitions of each topic."""
    asked = [
        OffsetCommitRequestTopic(
            name=name,
            partitions=[OffsetCommitRequestPartition(partition_index=n, committed_offset=1) for n in range(partitions)],
        )
        for name, partitions in topics
    ]
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline:
        answer = client.call(OffsetCommitRequest(group_id=group, topics=asked), 8)
        if not any(partition.error_code for topic in answer.topics for partition in topic.partitions):
            return
        client.call(FindCoordinatorRequest(key=group), 3)  # which creates __consumer_offsets
        time.sleep(0.1)
    raise RuntimeError(f"{group} has no coordinator")


def make_searched(port: int, records: int) -> None:
    """Create a topic of one partition with this many records, in full batches."""
    client = _connected(port)
    _create(client, [_topic(BENCH), _topic(SEARCHED)])
    now = time.time_ns() // 1_000_000
    batch = build_batch([Record(timestamp=now, value=b"value %06d " % number * 4) for number in range(_BATCH)])
    topics = [TopicProduceData(name=SEARCHED, partition_data=[PartitionProduceData(index=0, records=batch)])]
    for _ in range(0, records, _BATCH):
        answer = client.call(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics), 8)
        if code := answer.responses[0].partition_responses[0].error_code:
            raise RuntimeError(f"Produce: error {code}")
    client.close()
