"""What fetches acquire: batches, limits of records, the two acquire modes, what other members hold."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.requests import batch, produce
from ottla.compat_tests.raw.share_groups.conftest import Fill, MakeConsumer
from ottla.compat_tests.raw.share_groups.wire_share import (
    BATCH_OPTIMIZED,
    BRIEFLY_MS,
    NOTHING,
    RECORD_LIMIT,
    UNTIL_THERE_ARE_MS,
    Fetched,
    accept,
    batches_of,
    fetched,
    release,
)
from ottla.compat_tests.wire_client import Connection
from ottla.wire.records import iter_complete_batches

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: acquired records"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]


def test_one_batch(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    assert a.look() == []
    assert a.acknowledge(accept(0, 9)) == ErrorCode.NONE
    assert a.look() == []


def test_whole_batches_are_sent(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    response = a.raw_fetch(max_records=3, share_acquire_mode=RECORD_LIMIT)
    ((partition,),) = [topic.partitions for topic in response.responses]
    assert batches_of(partition) == [(0, 9)]
    assert response.acquisition_lock_timeout_ms == 30_000
    assert a.take(max_records=3, share_acquire_mode=RECORD_LIMIT) == [(3, 5, 1)]


def test_the_limit_of_records_is_soft(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, 4, 4, 4)
    a = make_consumer(topic)
    assert a.take(max_records=5) == [(0, 7, 1)]
    assert a.take(max_records=1) == [(8, 11, 1)]


def test_a_release(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    assert a.acknowledge(accept(0, 2), release(3, 9)) == ErrorCode.NONE
    assert a.take() == [(3, 9, 2)]


@pytest.mark.parametrize("version", [1, 2])
def test_modes(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill, version: int) -> None:
    topic = make_topic()
    fill(topic, 4, 4, 4)
    a = make_consumer(topic)
    response = a.raw_fetch(version=version, max_records=1, share_acquire_mode=BATCH_OPTIMIZED, max_wait_ms=5000)
    ((partition,),) = [each.partitions for each in response.responses]
    assert (acquired(partition), batches_of(partition)) == ([(0, 3, 1)], [(0, 3)])


def acquired(partition: Any) -> list[tuple[int, int, int]]:
    """What was acquired of a partition of a response."""
    return fetched(partition).acquired


def test_the_limit_of_records_is_exact_in_its_mode(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill
) -> None:
    topic = make_topic()
    fill(topic, 4, 4, 4)
    a, b = make_consumer(topic), make_consumer(topic)
    limited = {"share_acquire_mode": RECORD_LIMIT}
    assert a.take(max_records=3, **limited) == [(0, 2, 1)]
    assert b.gather(3, max_records=3, **limited) == {3: 1, 4: 1, 5: 1}
    assert a.gather(6, max_records=100, **limited) == dict.fromkeys(range(6, 12), 1)
    assert a.acknowledge(release(1), release(7, 10)) == ErrorCode.NONE
    assert a.gather(3, max_records=3, **limited) == {1: 2, 7: 2, 8: 2}
    assert b.gather(2, max_records=100, **limited) == {9: 2, 10: 2}


def test_the_rest_of_a_batch_belongs_to_what_was_acquired_of_it(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill
) -> None:
    topic = make_topic()
    fill(topic, 8)
    a = make_consumer(topic)
    assert a.take(max_records=3, share_acquire_mode=RECORD_LIMIT) == [(0, 2, 1)]
    assert a.acknowledge(release(0, 2)) == ErrorCode.NONE
    assert a.take(max_records=1) == [(0, 2, 2), (3, 7, 1)]


def test_new_records_come_with_what_came_back(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, 6)
    a = make_consumer(topic)
    assert a.take() == [(0, 5, 1)]
    fill(topic, 4, 4)
    assert a.acknowledge(release(1)) == ErrorCode.NONE
    assert a.take(max_records=3) == [(1, 1, 2), (6, 9, 1)]


def test_batch_size_cuts_what_is_acquired(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, 4, 4, 4, 4)
    a = make_consumer(topic)
    assert a.take(batch_size=5) == [(0, 7, 1), (8, 15, 1)]
    fill(topic, 4, 4)
    assert a.take(batch_size=1) == [(16, 19, 1), (20, 23, 1)]
    # What has been acquired once keeps its limits.
    assert a.acknowledge(release(0, 23)) == ErrorCode.NONE
    assert a.take(batch_size=1) == [(0, 7, 2), (8, 15, 2), (16, 19, 2), (20, 23, 2)]


def test_max_bytes(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, 4, 4, 4)
    a = make_consumer(topic)
    assert a.take(max_bytes=1) == [(0, 3, 1)]  # one batch may exceed it
    assert a.take(max_bytes=100) == [(4, 7, 1)]


def test_no_records_wanted(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    assert a.fetch(max_records=0, max_wait_ms=BRIEFLY_MS) == NOTHING
    assert a.fetch(max_records=-1, max_wait_ms=BRIEFLY_MS) == NOTHING
    assert a.take() == [(0, 9, 1)]


def test_members_share_a_partition(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, *[1] * 10)
    consumers = [make_consumer(topic) for _ in range(3)]
    found = [each.take(max_records=2) for each in consumers]
    assert found == [[(0, 1, 1)], [(2, 3, 1)], [(4, 5, 1)]]
    assert consumers[0].take() == [(6, 9, 1)]


def test_new_records_wake_a_fetch(make_consumer: MakeConsumer, topic: str, fill: Fill) -> None:
    a = make_consumer(topic)
    assert a.look() == []
    begun = time.monotonic()
    a.send_fetch()
    fill(topic, 3)
    assert a.receive_fetch() == Fetched([(0, 2, 1)])
    assert time.monotonic() - begun < UNTIL_THERE_ARE_MS / 2000


def test_a_release_wakes_a_fetch(make_consumer: MakeConsumer, ten: str) -> None:
    a, b = make_consumer(ten), make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    assert b.look() == []
    begun = time.monotonic()
    b.send_fetch()
    # Kafka 4.3.1 looks at fetches that wait before an acknowledgement is written, so it is the next one that wakes them.
    assert a.acknowledge(release(4, 5)) == ErrorCode.NONE
    assert a.acknowledge(accept(6)) == ErrorCode.NONE
    assert b.receive_fetch() == Fetched([(4, 5, 2)])
    assert time.monotonic() - begun < UNTIL_THERE_ARE_MS / 2000


def test_a_fetch_that_waits_ends(make_consumer: MakeConsumer, topic: str) -> None:
    a = make_consumer(topic)
    begun = time.monotonic()
    assert a.fetch(max_wait_ms=700) == NOTHING
    assert 0.6 < time.monotonic() - begun < 5


def test_several_partitions_in_turn(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic(3)
    for partition in range(3):
        fill(topic, 2, 2, partition=partition)
    a = make_consumer(topic)
    seen: dict[int, int] = {}
    while sum(seen.values()) < 12:
        for partition, found in a.fetch_all(add=range(3), max_records=2).items():
            assert isinstance(found, Fetched)
            seen[partition] = seen.get(partition, 0) + sum(last - first + 1 for first, last, _ in found.acquired)
    assert seen == {0: 4, 1: 4, 2: 4}


def test_compressed_and_empty_batches(make_consumer: MakeConsumer, topic: str, wire: Connection) -> None:
    for content in (batch(b"a", b"b", compression=1), batch(b"c", compression=4)):
        assert produce(wire, topic, content).error_code == ErrorCode.NONE
    a = make_consumer(topic)
    response = a.raw_fetch(max_wait_ms=5000)
    ((partition,),) = [each.partitions for each in response.responses]
    assert acquired(partition) == [(0, 2, 1)]
    values = [record.value for each in iter_complete_batches(partition.records) for record in each.records()]
    assert values == [b"a", b"b", b"c"]
