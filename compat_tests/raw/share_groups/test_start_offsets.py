"""Where a group begins in a partition, and what that is kept for; partitions without a state."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.requests import batch, produce
from ottla.compat_tests.raw.share_groups.conftest import Configure, Fill, MakeConsumer, MakeGroup
from ottla.compat_tests.raw.share_groups.wire_share import BRIEFLY_MS, Fetched, ShareConsumer, accept
from ottla.compat_tests.wire_client import Connection

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: start offsets"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]


@pytest.fixture
def reader(make_group: MakeGroup, ten: str) -> ShareConsumer:
    """Of a group that has no setting yet."""
    group = make_group(ten)
    group.initialize(ten)
    return group.consumer("A", ten)


def test_latest_is_the_default(reader: ShareConsumer, ten: str, fill: Fill) -> None:
    assert reader.look() == []
    fill(ten, 2)
    assert reader.take() == [(10, 11, 1)]


def test_latest_is_the_end_at_the_first_fetch(reader: ShareConsumer, ten: str, fill: Fill) -> None:
    fill(ten, 2)
    assert reader.look() == []
    fill(ten, 2)
    assert reader.take() == [(12, 13, 1)]


def test_earliest(reader: ShareConsumer, configure: Configure) -> None:
    configure(auto_offset_reset="earliest")
    assert reader.take() == [(0, 9, 1)]


@pytest.mark.parametrize(("duration", "first"), [("PT1H", 2), ("PT3H30M", 1), ("P1D", 0), ("PT1M", None)])
def test_by_duration(
    make_group: MakeGroup,
    make_topic: TopicMaker,
    wire: Connection,
    configure: Configure,
    duration: str,
    first: int | None,
) -> None:
    topic = make_topic()
    now_ms = time.time_ns() // 1_000_000
    for hours in (4, 3, 0.5):
        produce(wire, topic, batch(b"record", timestamp_ms=int(now_ms - hours * 3_600_000)))
    configure(auto_offset_reset=f"by_duration:{duration}")
    group = make_group(topic)
    group.initialize(topic)
    reader = group.consumer("A", topic)
    if first is None:  # there is no offset for that time yet
        assert reader.fetch(max_wait_ms=BRIEFLY_MS) == Fetched([], ErrorCode.OFFSET_NOT_AVAILABLE)
        produce(wire, topic, batch(b"record", timestamp_ms=now_ms))
    assert reader.take()[0][0] == (3 if first is None else first)


def test_a_later_setting_changes_nothing(reader: ShareConsumer, ten: str, configure: Configure, fill: Fill) -> None:
    assert reader.look() == []
    configure(auto_offset_reset="earliest")
    assert reader.close() == ErrorCode.NONE
    assert reader.look() == []
    fill(ten, 1)
    assert reader.take() == [(10, 10, 1)]


def test_a_partition_without_a_state(make_group: MakeGroup, ten: str, configure: Configure) -> None:
    configure(auto_offset_reset="earliest")
    group = make_group(ten)
    reader = group.consumer("A", ten)
    # Kafka 4.3.1 has no better error for it.
    for _ in range(2):
        assert reader.fetch(max_wait_ms=BRIEFLY_MS) == Fetched([], ErrorCode.UNKNOWN_SERVER_ERROR)
    group.initialize(ten)
    assert reader.take() == [(0, 9, 1)]


def test_groups_do_not_see_each_other(
    make_consumer: MakeConsumer, ten: str, make_group: MakeGroup, connections: Callable[[], Connection]
) -> None:
    a = make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    other = make_group(ten)
    other.group_id += "-other"
    other.initialize(ten)
    reader = other.consumer("A", ten, connections())
    assert reader.look() == []  # its own default is latest
    assert a.acknowledge(accept(0, 9)) == ErrorCode.NONE
