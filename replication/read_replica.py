"""The choice of the replica that a consumer reads from (``replica.selector.class``, KIP-392).

The leader decides it with each fetch of a consumer that says in which rack it is. A replica counts if it is in sync, as the
controller has confirmed, has the offset that is asked for, and is reached at the listener the consumer uses
(ReplicaManager.findPreferredReadReplica). Of those in the consumer's rack the leader goes before the others, and they by how
far they have come (RackAwareReplicaSelector). The replica chosen may be a little behind; there the consumer waits.
"""

from __future__ import annotations

from collections.abc import Mapping

from .leader import FollowerProgress, LeaderRole
from .metadata_cache import BrokerNode

LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class ConsumerRack:
    """Where a consumer is: its rack, and the live brokers at its listener by id."""

    __slots__ = ("_nodes", "_rack")

    def __init__(self, rack: str, nodes: Mapping[int, BrokerNode]) -> None:
        self._rack = rack
        self._nodes = nodes

    def preferred_replica(self, leader_id: int, leader: LeaderRole, offset: int) -> int | None:
        """The follower in the consumer's rack that it reads ``offset`` from, None where that is the leader."""
        if self._is_here(leader_id):
            return None
        near = [
            follower
            for follower in leader.followers.values()
            if self._is_here(follower.broker_id)
            and follower.broker_id in leader.isr.isr
            and follower.log_start_offset <= offset <= follower.log_end_offset
        ]
        return max(near, key=_order).broker_id if near else None

    def _is_here(self, broker_id: int) -> bool:
        node = self._nodes.get(broker_id)
        return node is not None and node.rack == self._rack


def _order(follower: FollowerProgress) -> tuple[int, float, int]:
    """As Kafka's ReplicaView.comparator: by log end, then by when it was last caught up, then by id."""
    return follower.log_end_offset, follower.last_caught_up, follower.broker_id
