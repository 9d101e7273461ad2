"""How a partition's leadership follows the brokers that are alive. Pure.

Two cases go beyond an election after a loss. A leader that registered again after the partition's state was written has
been away, even if nobody noticed: it goes on leading, under a new leader epoch, so that clients and followers can tell
what it wrote before from what it writes now (a crash may have cut its log). A partition that was never led gets its first
leader; that is also how the creation of a topic is finished when a controller died in the middle of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.partitions import NO_LEADER
from .context import LiveBroker, PartitionState
from .election import Election, elect_first, elect_offline, isr_without
from .znodes import LeaderState


def next_state(
    partition: PartitionState, brokers: Mapping[int, LiveBroker], controller_epoch: int, *, unclean_allowed: bool
) -> LeaderState | None:
    """The state that the partition should change to, None when it is right as it is."""
    state = partition.state
    replicas = partition.assignment.replicas
    if state is None:
        first = elect_first(replicas, brokers)
        return None if first is None else LeaderState(first.leader, 0, first.isr, controller_epoch)
    leader = brokers.get(state.leader)
    if leader is not None and leader.epoch < partition.modified_zxid:
        isr = tuple(replica for replica in state.isr if replica in brokers)
        return None if isr == state.isr else LeaderState(state.leader, state.leader_epoch + 1, isr, controller_epoch)
    if leader is not None and state.leader in state.isr:
        elected: Election | None = Election(state.leader, tuple(r for r in state.isr if r in brokers))
    else:
        elected = elect_offline(replicas, state.isr, brokers, unclean_allowed=unclean_allowed)
    if elected is not None:
        return LeaderState(elected.leader, state.leader_epoch + 1, elected.isr, controller_epoch)
    gone = [replica for replica in state.isr if replica not in brokers]
    waiting = LeaderState(NO_LEADER, state.leader_epoch + 1, isr_without(state.isr, gone), controller_epoch)
    return None if state.leader == NO_LEADER and waiting.isr == state.isr else waiting
