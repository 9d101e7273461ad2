"""Followers of either kind behind leaders of either kind: they truncate, leave the in-sync replicas, and join again."""

from __future__ import annotations

import pytest

from ottla.compat_tests.raw.requests import PRODUCE_VERSION, batch, produce_request
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import topic_metadata

from .helpers.mixed import BOTH, PATIENCE_S, Mixed
from .helpers.on_zookeeper import ZooKeeperMixed

pytestmark = pytest.mark.slow

ATTEMPTS = 4
"""On a busy machine a session ends meanwhile, and leaders are elected."""


def write_unreplicated(mixed: Mixed, broker_id: int, topic: str, *values: bytes) -> None:
    """Write to a leader, which is not to wait for its followers."""
    with mixed.connect(broker_id) as connection:
        for value in values:
            answer = connection.call(produce_request(topic, {0: batch(value)}, acks=1), PRODUCE_VERSION)
            assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("leading", BOTH)
def test_a_killed_leader_truncates_what_its_follower_never_had(
    mixed: Mixed, controller: int, leading: str, topic: str
) -> None:
    leader = mixed.one(leading)
    follower = mixed.one(*[kind for kind in BOTH if kind != leading])
    mixed.create(topic, [leader, follower])
    both = [b"both-%d" % number for number in range(50)]
    lost = [b"lost-%d" % number for number in range(30)]
    mixed.produce(topic, both)
    mixed.cluster.broker(follower).pause()
    try:
        write_unreplicated(mixed, leader, topic, *lost)
    finally:
        mixed.cluster.broker(leader).kill()
        mixed.cluster.broker(follower).resume()
    mixed.wait(topic, {0: follower})
    after = [b"after-%d" % number for number in range(20)]
    mixed.produce(topic, after)
    mixed.cluster.start_broker(leader)
    mixed.wait_isr(topic, [leader, follower])
    eventually(lambda: mixed.segment(leader, topic) == mixed.segment(follower, topic), PATIENCE_S)
    mixed.elect_preferred(topic, 0)
    mixed.wait(topic, {0: leader})
    mixed.produce(topic, [b"led again"])
    values = mixed.read_until(topic, b"led again")
    # The follower asked before it was paused, and may have had the answer when it went on.
    arrived = [value for value in values if value.startswith(b"lost")]
    assert arrived == lost[: len(arrived)] and len(arrived) < len(lost)
    assert values == [*both, *arrived, *after, b"led again"]


@pytest.mark.parametrize("leading", BOTH)
def test_a_follower_that_stands_still_leaves_the_in_sync_replicas_and_joins_again(
    mixed: ZooKeeperMixed, controller: int, leading: str, topic: str
) -> None:
    leader = mixed.one(leading)
    follower = follower_of(mixed, leader, controller)
    for attempt in range(ATTEMPTS):
        sessions = mixed.sessions()
        leader_epoch = stand_still(mixed, f"{topic}-{attempt}", leader, follower)
        if mixed.sessions() == sessions:
            break
    assert leader_epoch == 0, "the leader's own changes, not those of a death"


def follower_of(mixed: Mixed, leader: int, *but: int) -> int:
    """Another broker, of the other kind if there is one."""
    others = [broker_id for broker_id in mixed.ids if broker_id not in (leader, *but)]
    return min(others, key=lambda broker_id: mixed.cluster.kind(broker_id) == mixed.cluster.kind(leader))


def stand_still(mixed: Mixed, topic: str, leader: int, follower: int) -> int:
    """Have a follower do so, for less than its session lasts if the machine has time for it; the leader epoch at the end."""
    mixed.create(topic, mixed.replicas_from(leader))
    mixed.produce(topic, [b"one"])
    mixed.cluster.broker(follower).pause()
    others = [broker_id for broker_id in mixed.ids if broker_id != follower]
    try:
        mixed.produce(topic, [b"two"])  # waits until the follower has left
        eventually(lambda: all(mixed.isr(topic, each) == others for each in others), PATIENCE_S)
    finally:
        mixed.cluster.broker(follower).resume()
    mixed.wait_isr(topic, mixed.ids)
    assert mixed.read(topic, 2) == [b"one", b"two"]
    mixed.wait_same(topic)
    with mixed.connect(leader) as connection:
        (partition,) = topic_metadata(connection, topic).partitions
    epoch: int = partition.leader_epoch
    return epoch


@pytest.mark.parametrize("leading", BOTH)
def test_replicas_catch_up_after_they_were_stopped(mixed: Mixed, controller: int, leading: str, topic: str) -> None:
    leader = mixed.one(leading)
    follower = follower_of(mixed, leader)
    mixed.create(topic, mixed.replicas_from(leader), min_insync_replicas="2")
    mixed.cluster.broker(follower).stop()
    values = [b"%d" % number * 1_000 for number in range(500)]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        mixed.produce(topic, values, **{"compression.type": codec})
    mixed.cluster.start_broker(follower)
    mixed.wait_isr(topic, mixed.ids)
    assert mixed.read(topic, 5 * len(values)) == 5 * values
    mixed.wait_same(topic)
