"""Records of transactions in share groups, by the group's isolation level."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.share_groups.conftest import Configure, Fill, MakeConsumer
from ottla.compat_tests.raw.share_groups.wire_share import accept, release
from ottla.compat_tests.raw.transactional import RawProducer
from ottla.compat_tests.wire_client import Connection, Operator

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: transactions"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]


@pytest.fixture
def producer(wire: Connection, group_id: str) -> RawProducer:
    """A producer, ready for its first transaction."""
    return RawProducer(wire, group_id + "-txn").start()


def transaction(producer: RawProducer, topic: str, count: int, *, commit: bool) -> None:
    """A whole one, of a batch; its marker has been written when this returns."""
    producer.begin(topic)
    assert producer.send(topic, *(b"%d" % n for n in range(count))) == ErrorCode.NONE
    assert producer.end(commit=commit) == ErrorCode.NONE


def test_read_uncommitted(make_consumer: MakeConsumer, topic: str, producer: RawProducer, operator: Operator) -> None:
    a = make_consumer(topic)
    producer.begin(topic)
    producer.send(topic, b"1", b"2")
    assert a.take() == [(0, 1, 1)]
    producer.end(commit=False)
    operator.wait_until_ended(topic)
    # A marker is acquired as records are; a consumer acknowledges it as a gap.
    assert a.take() == [(2, 2, 1)]
    transaction(producer, topic, 2, commit=True)
    operator.wait_until_ended(topic)
    assert a.gather(3) == {3: 1, 4: 1, 5: 1}
    assert a.look() == []


def test_read_committed(
    make_consumer: MakeConsumer, topic: str, producer: RawProducer, configure: Configure, operator: Operator, fill: Fill
) -> None:
    configure(isolation_level="read_committed")
    a = make_consumer(topic)
    fill(topic, 2)
    producer.begin(topic)
    producer.send(topic, b"1", b"2")
    fill(topic, 2)
    assert a.take() == [(0, 1, 1)]
    assert a.look() == []  # not beyond the last stable offset
    producer.end(commit=True)
    operator.wait_until_ended(topic)
    assert a.take() == [(2, 6, 1)]
    assert a.look() == []


def test_aborted_records_are_not_delivered(
    make_consumer: MakeConsumer, topic: str, producer: RawProducer, configure: Configure, operator: Operator, fill: Fill
) -> None:
    configure(isolation_level="read_committed")
    a = make_consumer(topic)
    transaction(producer, topic, 3, commit=True)  # 0-2, 3
    operator.wait_until_ended(topic)
    transaction(producer, topic, 2, commit=False)  # 4-5, 6
    operator.wait_until_ended(topic)
    fill(topic, 2)  # 7-8
    transaction(producer, topic, 2, commit=False)  # 9-10, 11
    operator.wait_until_ended(topic)
    assert a.take() == [(0, 3, 1), (6, 8, 1), (11, 11, 1)]  # the markers stay
    assert a.look() == []
    for acks in ([accept(4, 5)], [release(0, 8)]):
        assert a.acknowledge(*acks) == ErrorCode.INVALID_RECORD_STATE
    assert a.acknowledge(release(0, 3), release(6, 8), release(11)) == ErrorCode.NONE
    assert a.take() == [(0, 3, 2), (6, 8, 2), (11, 11, 2)]
