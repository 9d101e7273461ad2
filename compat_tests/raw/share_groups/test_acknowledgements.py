"""Acknowledgements: accept, release, reject, renew and gaps; what is refused; what a repetition does."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.share_groups.conftest import Configure, Fill, MakeConsumer
from ottla.compat_tests.raw.share_groups.wire_share import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Ack,
    Fetched,
    accept,
    reject,
    release,
    renew,
)

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: acknowledgements"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
INVALID, NOT_HELD, NONE = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_RECORD_STATE, ErrorCode.NONE
RENEWING = {"is_renew_ack": True, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}


def test_the_types(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(accept(0, 2), release(3), reject(4), release(5, 6), accept(7, 9)) == NONE
    assert a.take() == [(3, 3, 2), (5, 6, 2)]


def test_a_type_for_each_offset(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(Ack(0, 4, [ACCEPT, RELEASE, REJECT, GAP, RELEASE]), release(7, 9)) == NONE
    assert a.take() == [(1, 1, 2), (4, 4, 2), (7, 9, 2)]
    assert a.acknowledge(release(5, 6)) == NONE
    assert a.take() == [(5, 6, 2)]


def test_gaps_are_not_delivered_again(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(Ack(0, 9, [GAP])) == NONE
    assert a.look() == []
    assert a.close() == NONE
    assert a.look() == []


def test_with_a_fetch(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, 5, 5)
    a = make_consumer(topic)
    assert a.take(max_records=1) == [(0, 4, 1)]
    # What is released may be too late for the same response.
    found = a.take(accept(0, 1), release(2), reject(3, 4))
    if found == [(5, 9, 1)]:
        found = [*a.take(), *found]
    assert found == [(2, 2, 2), (5, 9, 1)]


@pytest.mark.parametrize(
    "acks",
    [
        pytest.param([Ack(3, 2, [ACCEPT])], id="the last before the first"),
        pytest.param([accept(4, 6), accept(2, 3)], id="not in order"),
        pytest.param([accept(0, 4), accept(3, 6)], id="one over another"),
        pytest.param([Ack(0, 2, [])], id="no types"),
        pytest.param([Ack(0, 2, [ACCEPT, ACCEPT])], id="too few types"),
        pytest.param([Ack(0, 2, [ACCEPT] * 4)], id="too many types"),
        pytest.param([Ack(0, 0, [-1])], id="a type below the first"),
        pytest.param([Ack(0, 0, [5])], id="a type beyond the last"),
        pytest.param([renew(0)], id="a renewal that is not announced"),
        pytest.param([accept(10)], id="beyond the end"),
        pytest.param([accept(8, 10)], id="over the end"),
        pytest.param([accept(0, 3), accept(8, 10)], id="one of two over the end"),
        pytest.param([accept(0, 3), Ack(4, 5, [])], id="one of two without types"),
    ],
)
def test_refused(make_consumer: MakeConsumer, ten: str, acks: list[Ack]) -> None:
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(*acks) == INVALID
    assert a.fetch(*acks, max_wait_ms=0) == Fetched([], acknowledged=INVALID)
    assert a.acknowledge(release(0, 9)) == NONE  # nothing was taken of them
    assert a.take() == [(0, 9, 2)]


def test_one_partition_is_all_or_nothing(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(accept(3, 5)) == NONE
    assert a.acknowledge(accept(0, 2), accept(5, 9)) == NOT_HELD
    assert a.acknowledge(release(0, 2), release(6, 9)) == NONE
    assert a.take() == [(0, 2, 2), (6, 9, 2)]


def test_the_same_offset_twice(make_consumer: MakeConsumer, ten: str) -> None:
    # It passes the check of the request, and is no longer acquired when it is met again.
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(accept(0, 3), accept(3, 5)) == NOT_HELD
    assert a.acknowledge(accept(0, 9)) == NONE


def test_repeated(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(accept(3, 5)) == NONE
    assert a.acknowledge(accept(3, 5)) == NOT_HELD
    assert a.acknowledge(accept(0, 2)) == NONE
    # Below the start nothing is known, and all is well.
    for acks in ([accept(0, 2)], [accept(3, 5)], [release(0, 5)]):
        assert a.acknowledge(*acks) == NONE
    assert a.acknowledge(accept(0, 7)) == NONE
    assert a.acknowledge(accept(8, 9)) == NONE


def test_what_is_another_members(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, 5, 5)
    a, b = make_consumer(topic), make_consumer(topic)
    assert a.take(max_records=1) == [(0, 4, 1)]
    assert b.take() == [(5, 9, 1)]
    for acks in ([accept(0, 4)], [release(0)], [accept(4, 5)], [accept(0, 9)]):
        assert b.acknowledge(*acks) == NOT_HELD
    assert a.acknowledge(accept(0, 4)) == NONE
    assert b.acknowledge(accept(5, 9)) == NONE


def test_what_is_available_again(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(release(0, 9)) == NONE
    assert a.acknowledge(accept(0, 9)) == NOT_HELD
    assert a.acknowledge(accept(0)) == NOT_HELD
    assert a.take() == [(0, 9, 2)]


def test_nothing_to_acknowledge(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.take()
    response = a.raw_acknowledge()
    assert (response.error_code, response.responses) == (NONE, [])
    assert response.acquisition_lock_timeout_ms == 30_000


def test_renewals(make_consumer: MakeConsumer, ten: str, configure: Configure) -> None:
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(renew(0, 3), is_renew_ack=True) == NONE
    assert a.acknowledge(Ack(0, 3, [ACCEPT, RELEASE, RENEW, RELEASE]), is_renew_ack=True) == NONE
    assert a.take() == [(1, 1, 2), (3, 3, 2)]
    assert a.acknowledge(renew(0), is_renew_ack=True) == NONE  # below the start
    assert a.acknowledge(Ack(2, 2, [RENEW]), version=1, is_renew_ack=False) == INVALID
    assert a.acknowledge(accept(2), is_renew_ack=True) == NONE
    assert a.acknowledge(renew(2), is_renew_ack=True) == NOT_HELD


def test_a_fetch_that_renews_fetches_nothing(make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill) -> None:
    topic = make_topic()
    fill(topic, 5, 5)
    a = make_consumer(topic)
    assert a.take(max_records=1) == [(0, 4, 1)]
    assert a.look(renew(0, 1), accept(2), **RENEWING) == []
    for name in ("max_wait_ms", "min_bytes", "max_bytes", "max_records"):
        assert a.fetch(renew(0, 1), **{**RENEWING, name: 1}) == INVALID
    assert a.acknowledge(accept(0, 1), release(3, 4)) == NONE
    assert a.take() == [(3, 4, 2), (5, 9, 1)]


def test_renewals_can_be_turned_off(make_consumer: MakeConsumer, ten: str, configure: Configure) -> None:
    configure(renew_acknowledge_enable="false")
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(renew(0, 3), is_renew_ack=True) == NOT_HELD
    assert a.acknowledge(accept(0, 9)) == NONE
