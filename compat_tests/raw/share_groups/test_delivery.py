"""How often a record is delivered: locks that run out, the limit of deliveries, poison apart from its batch, limits of locks."""

from __future__ import annotations

import time

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.share_groups.conftest import Configure, Fill, MakeConsumer
from ottla.compat_tests.raw.share_groups.wire_share import (
    RECORD_LIMIT,
    ShareConsumer,
    accept,
    reject,
    release,
    renew,
)
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: locks and delivery counts"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
NONE, NOT_HELD = ErrorCode.NONE, ErrorCode.INVALID_RECORD_STATE
LOCK_MS = 1500


def test_a_lock_that_runs_out(make_consumer: MakeConsumer, ten: str, configure: Configure) -> None:
    configure(record_lock_duration_ms=LOCK_MS)
    a, b = make_consumer(ten), make_consumer(ten)
    response = a.raw_fetch()
    assert response.acquisition_lock_timeout_ms == LOCK_MS
    begun = time.monotonic()
    assert b.look() == []
    assert b.gather(10) == dict.fromkeys(range(10), 2)
    assert time.monotonic() - begun > (LOCK_MS - 300) / 1000
    assert a.acknowledge(accept(0, 9)) == NOT_HELD
    assert b.acknowledge(accept(0, 9)) == NONE


def test_a_lock_of_what_is_not_acknowledged(make_consumer: MakeConsumer, ten: str, configure: Configure) -> None:
    configure(record_lock_duration_ms=LOCK_MS)
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(accept(2, 3), reject(5)) == NONE
    assert a.gather(7) == dict.fromkeys((0, 1, 4, 6, 7, 8, 9), 2)


def test_a_renewed_lock(make_consumer: MakeConsumer, ten: str, configure: Configure) -> None:
    configure(record_lock_duration_ms=3000)
    a, b = make_consumer(ten), make_consumer(ten)
    a.take()
    assert b.look(max_wait_ms=1500) == []
    assert a.acknowledge(renew(0, 3), is_renew_ack=True) == NONE
    assert b.gather(6) == dict.fromkeys(range(4, 10), 2)
    assert a.acknowledge(accept(0, 3)) == NONE
    assert b.acknowledge(accept(4, 9)) == NONE
    assert b.look() == []


def released(consumer: ShareConsumer, times: int, last: int = 9) -> None:
    """Take the records from the first one on, and release them, a few times."""
    for count in range(1, times + 1):
        assert consumer.take() == [(0, last, count)]
        assert consumer.acknowledge(release(0, last)) == NONE


def test_the_limit_of_deliveries(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, 1)
    a = make_consumer(topic)
    released(a, 5, last=0)
    assert a.look() == []
    fill(topic, 1)
    assert a.take() == [(1, 1, 1)]


def test_the_limit_of_a_group(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill, configure: Configure
) -> None:
    configure(delivery_count_limit=2)
    topic = make_topic()
    fill(topic, 1)
    a = make_consumer(topic)
    released(a, 2, last=0)
    assert a.look() == []


def test_a_lock_that_runs_out_at_the_limit(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill, configure: Configure
) -> None:
    configure(record_lock_duration_ms=1000, delivery_count_limit=2)
    topic = make_topic()
    fill(topic, 1)
    a = make_consumer(topic)
    assert a.take() == [(0, 0, 1)]
    assert a.take() == [(0, 0, 2)]
    fill(topic, 1)
    assert a.take() == [(1, 1, 1)]
    assert a.acknowledge(accept(1)) == NONE
    assert a.look(max_wait_ms=1500) == []


def test_the_end_of_a_session_counts(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, 1)
    a = make_consumer(topic)
    for count in range(1, 6):
        assert a.take() == [(0, 0, count)]
        assert a.close() == NONE
    assert a.look() == []


def test_last_deliveries_are_of_one_record(make_consumer: MakeConsumer, ten: str, configure: Configure) -> None:
    # A record that kills its consumer takes no other along.
    configure(delivery_count_limit=3)
    a = make_consumer(ten)
    released(a, 2)
    for offset in range(3):
        assert a.take() == [(offset, offset, 3)]
        assert a.acknowledge(release(offset) if offset == 1 else accept(offset)) == NONE
    assert a.take() == [(3, 3, 3)]


def test_a_limit_of_two_isolates_nothing(make_consumer: MakeConsumer, ten: str, configure: Configure) -> None:
    configure(delivery_count_limit=2)
    a = make_consumer(ten)
    released(a, 2)
    assert a.look() == []


@pytest.mark.parametrize(("limit", "whole"), [(4, 2), (5, 3), (6, 3), (7, 4), (10, 5)])
def test_half_of_a_batch(make_consumer: MakeConsumer, ten: str, configure: Configure, limit: int, whole: int) -> None:
    # From half of the limit on, half of a batch is delivered, and nothing beside it; then a quarter …
    configure(delivery_count_limit=limit)
    a = make_consumer(ten)
    released(a, whole)
    assert a.take() == [(0, 4, whole + 1)]
    assert a.take() == [(5, 9, whole + 1)]


def test_smaller_and_smaller(make_consumer: MakeConsumer, ten: str, configure: Configure, fill: Fill) -> None:
    configure(delivery_count_limit=6)
    a = make_consumer(ten)
    released(a, 3)
    fill(ten, 2)
    assert a.take() == [(0, 4, 4)]
    assert a.acknowledge(release(0, 4)) == NONE
    assert a.take() == [(0, 1, 5)]
    assert a.acknowledge(release(0, 1)) == NONE
    assert a.take() == [(0, 0, 6)]
    assert a.take() == [(1, 1, 6)]
    assert a.take() == [(2, 3, 5)]
    assert a.take() == [(4, 4, 5), (5, 5, 4)]
    assert a.take() == [(6, 9, 4)]
    assert a.take() == [(10, 11, 1)]


def test_half_of_a_batch_counts_what_a_limit_of_records_left(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill, configure: Configure
) -> None:
    configure(delivery_count_limit=6)
    topic = make_topic()
    fill(topic, 8)
    a = make_consumer(topic)
    for count in (1, 2, 3):
        assert a.take(max_records=2, share_acquire_mode=RECORD_LIMIT) == [(0, 1, count)]
        assert a.acknowledge(release(0, 1)) == NONE
    assert a.take() == [(0, 1, 4), (2, 3, 1)]


def test_what_is_halved_comes_with_nothing_before_it(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill, configure: Configure
) -> None:
    configure(delivery_count_limit=6)
    topic = make_topic()
    fill(topic, 5, 5)
    a, b = make_consumer(topic), make_consumer(topic)
    assert a.take(max_records=1) == [(0, 4, 1)]
    for count in (1, 2, 3):
        assert b.take() == [(5, 9, count)]
        assert b.acknowledge(release(5, 9)) == NONE
    assert a.acknowledge(release(0, 4)) == NONE
    assert a.take() == [(0, 4, 2)]
    assert b.take() == [(5, 6, 4)]
    assert b.take() == [(7, 8, 4)]
    assert b.take() == [(9, 9, 4)]


def test_what_is_halved_comes_with_all_after_as_many_others(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill, configure: Configure
) -> None:
    configure(delivery_count_limit=5)
    topic = make_topic()
    fill(topic, 4)
    a = make_consumer(topic)
    a.take()
    assert a.take(release(0, 3)) == [(0, 3, 2)]
    assert a.take(release(1, 3)) == [(1, 3, 3)]
    # Two of four come with one that was delivered twice; of none that comes after two the others are left out.
    assert a.acknowledge(release(0, 3)) == ErrorCode.NONE
    assert a.take() == [(0, 0, 3), (1, 1, 4)]
    topic = make_topic()
    fill(topic, 4)
    b = make_consumer(topic)
    b.take()
    assert b.take(release(0, 3)) == [(0, 3, 2)]
    assert b.take(release(2, 3)) == [(2, 3, 3)]
    assert b.acknowledge(release(0, 3)) == ErrorCode.NONE
    assert b.take() == [(0, 1, 3), (2, 3, 4)]


def test_rejected_records_are_not_delivered_again(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(reject(0, 9)) == NONE
    assert a.look() == []


def test_the_limit_of_locks(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill, configure: Configure
) -> None:
    configure(partition_max_record_locks=100)
    topic = make_topic()
    fill(topic, *[30] * 5)
    a, b = make_consumer(topic), make_consumer(topic)
    # A fetch may go beyond the limit by a batch.
    assert a.take() == [(0, 119, 1)]
    assert b.look() == []
    # It counts from the start, finished ones as well.
    assert a.acknowledge(accept(60, 89)) == NONE
    assert b.look() == []
    assert a.acknowledge(accept(0, 29)) == NONE
    assert b.take() == [(120, 149, 1)]
    assert b.look() == []


def test_what_comes_back_is_delivered_first(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, 5, 5, 5)
    a = make_consumer(topic)
    assert a.take(max_records=10) == [(0, 9, 1)]
    assert a.acknowledge(release(3), release(7, 8)) == NONE
    assert a.take() == [(3, 3, 2), (7, 8, 2), (10, 14, 1)]
    assert a.look() == []


def delete_records(wire: Connection, topic: str, offset: int) -> None:
    """Move the log's start."""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=20_000)
    assert wire.call(request, 2).topics[0].partitions[0].error_code == NONE


def test_the_log_begins_later(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill, wire: Connection
) -> None:
    topic = make_topic()
    fill(topic, 5, 5, 5)
    a = make_consumer(topic)
    assert a.take(max_records=1) == [(0, 4, 1)]
    assert a.acknowledge(release(0, 4)) == NONE
    delete_records(wire, topic, 10)
    assert a.take() == [(10, 14, 1)]
    assert a.look() == []


def test_the_log_begins_later_than_what_is_held(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill, wire: Connection
) -> None:
    topic = make_topic()
    fill(topic, 5, 5, 5)
    a = make_consumer(topic)
    assert a.take(max_records=10) == [(0, 9, 1)]
    delete_records(wire, topic, 7)
    assert a.acknowledge(accept(0, 1)) == NONE
    assert a.acknowledge(release(2, 9)) == NONE
    assert a.gather(8) == {7: 2, 8: 2, 9: 2} | dict.fromkeys(range(10, 15), 1)
    assert a.look() == []
