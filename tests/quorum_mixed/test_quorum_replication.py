"""Followers of either kind behind leaders of either kind, in a cluster of KRaft."""

from __future__ import annotations

import itertools

import pytest

from ..mixed.helpers.mixed import BOTH
from ..mixed.test_mixed_replication import (
    follower_of,
    stand_still,
    test_a_killed_leader_truncates_what_its_follower_never_had,
    test_replicas_catch_up_after_they_were_stopped,
)
from .helpers.on_quorum import QuorumMixed

__all__ = [
    "test_a_killed_leader_truncates_what_its_follower_never_had",
    "test_replicas_catch_up_after_they_were_stopped",
]

pytestmark = pytest.mark.slow


def test_either_kind_leads(mixed: QuorumMixed, topic: str) -> None:
    """Followers of both kinds have the same bytes, whatever the leader and the settings of the producer."""
    for leader, is_idempotent in itertools.product(BOTH, (False, True)):
        name = f"{topic}-{leader}-{is_idempotent}"
        mixed.create(name, mixed.replicas_from(mixed.one(leader)))
        values = [b"%d" % number for number in range(200)]
        mixed.produce(name, values, **{"enable.idempotence": is_idempotent})
        assert mixed.read(name, len(values)) == values
        mixed.wait_same(name)
        mixed.wait_isr(name, mixed.ids)


@pytest.mark.parametrize("leading", BOTH)
def test_a_follower_that_stands_still_leaves_the_in_sync_replicas_and_joins_again(
    mixed: QuorumMixed, controller: int, leading: str, topic: str
) -> None:
    leader = mixed.one(leading)
    follower = follower_of(mixed, leader, controller)
    assert stand_still(mixed, topic, leader, follower) == 0, "in-sync replicas change within a leader's epoch"
