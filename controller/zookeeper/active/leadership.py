"""Transitions of a partition's state when brokers come and go (pure functions).

Each function returns the state to write, or None when the partition is right as it is.

======================  ================================================================================================
``elected_state``       the leader is gone: another one (Kafka: OfflinePartition to OnlinePartition)
``state_without``       replicas are gone: they leave the in-sync replicas, the last one stays (OfflineReplica)
``failed_over_state``   what a new controller finds: replicas are gone, or were away, while there was no controller
``shut_down_state``     a broker is about to stop: another in-sync replica leads, if there is one (controlled shutdown)
======================  ================================================================================================

Each raises the leader epoch by one. A replica is *online* if its broker is registered and its log directory works. It is
*eligible* if it may also lead and be in sync: its broker is not shutting down.

A broker that has registered again has been away. It may have lost what was not synced, if its machine went down; the controller
cannot know. So its replica counts as gone if another in-sync replica was not away, and it stops leading: as a leader it would
make the others cut off records that it has lost. Kafka 3.9 does so for a restart that its controller sees, and ignores one that
no controller saw; of these Ottla's learns by ``known_brokers``. If every in-sync replica was away there is none to prefer.
"""

from __future__ import annotations

from collections.abc import Collection

from ....base.partitions import NO_LEADER
from ....metadata.rules.election import elect_first, elect_offline, isr_without
from ....metadata.types import LeaderState
from ..state.context import PartitionState


def elected_state(
    partition: PartitionState,
    online: Collection[int],
    eligible: Collection[int],
    controller_epoch: int,
    *,
    unclean_allowed: bool,
) -> LeaderState | None:
    """A first leader, or one in place of a leader that is not online; None also when no replica may lead."""
    state, replicas = partition.state, partition.assignment.replicas
    if state is None:
        first = elect_first(replicas, eligible)
        return None if first is None else LeaderState(first.leader, 0, first.isr, controller_epoch)
    if state.leader in online:
        return None
    elected = elect_offline(replicas, state.isr, eligible, unclean_allowed=unclean_allowed)
    if elected is None:
        return None
    is_recovering = state.is_recovering or elected.unclean
    return LeaderState(elected.leader, state.leader_epoch + 1, elected.isr, controller_epoch, is_recovering)


def state_without(state: LeaderState, gone: Collection[int], controller_epoch: int) -> LeaderState | None:
    """Without the replicas that are gone: they do not lead, and leave the in-sync replicas unless those are all gone."""
    leader = NO_LEADER if state.leader in gone else state.leader
    isr = isr_without(state.isr, gone)
    if leader == state.leader and isr == state.isr:
        return None
    return LeaderState(leader, state.leader_epoch + 1, isr, controller_epoch, state.is_recovering)


def failed_over_state(
    state: LeaderState, alive: Collection[int], stayed: Collection[int], controller_epoch: int
) -> LeaderState | None:
    """Without the replicas that are or were away; a leader that was away goes on if all other in-sync replicas are or were, too.

    ``stayed``: the brokers among those ``alive`` that have not been away.
    """
    online = [replica for replica in state.isr if replica in alive]
    # Those that stayed, else all that are alive now: where every in-sync replica was away there is none to prefer.
    left = state_without(state, set(state.isr).difference(set(online).intersection(stayed) or online), controller_epoch)
    if left is None and state.leader in online and state.leader not in stayed:
        # The same leader under a new epoch: its followers compare their logs with its own, which may have lost records.
        return state._replace(leader_epoch=state.leader_epoch + 1, controller_epoch=controller_epoch)
    return left


def shut_down_state(
    partition: PartitionState, eligible: Collection[int], shutting_down: Collection[int], controller_epoch: int
) -> LeaderState | None:
    """Led by another in-sync replica than those on brokers that shut down, which leave; None when there is no such one."""
    state = partition.state
    assert state is not None
    for replica in partition.assignment.replicas:
        if replica in eligible and replica in state.isr:
            isr = tuple(r for r in state.isr if r not in shutting_down)
            return LeaderState(replica, state.leader_epoch + 1, isr, controller_epoch, state.is_recovering)
    return None
