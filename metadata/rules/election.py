"""Leader election by Kafka's rules: pure functions of replicas, in-sync replicas and live brokers.

Source: PartitionLeaderElectionAlgorithms (PartitionStateMachine.scala) and Election.scala of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import IntEnum
from typing import NamedTuple

LEADER_DURING_DELETE = -2
EPOCH_DURING_DELETE = -2


class ElectionType(IntEnum):
    """As ElectLeaders numbers it."""

    PREFERRED = 0
    UNCLEAN = 1


class Election(NamedTuple):
    """The outcome of an election."""

    leader: int
    isr: tuple[int, ...]
    """The replicas that are in sync under this leader."""
    unclean: bool = False
    """Whether records may have been lost (KIP-704)."""


def elect_first(replicas: Sequence[int], eligible: Collection[int]) -> Election | None:
    """For a partition that never had a leader: the first eligible replica, with all eligible ones in sync."""
    isr = tuple(replica for replica in replicas if replica in eligible)
    return Election(isr[0], isr) if isr else None


def elect_offline(
    replicas: Sequence[int], isr: Sequence[int], eligible: Collection[int], *, unclean_allowed: bool
) -> Election | None:
    """For a partition whose leader is gone: the first eligible replica in sync, else any eligible one where that is allowed.

    None when no replica may lead; the partition then waits for one to come back.
    """
    for replica in replicas:
        if replica in eligible and replica in isr:
            return Election(replica, tuple(r for r in isr if r in eligible))
    if unclean_allowed:
        for replica in replicas:
            if replica in eligible:
                return Election(replica, (replica,), unclean=True)
    return None


def elect_preferred(replicas: Sequence[int], isr: Sequence[int], eligible: Collection[int]) -> Election | None:
    """The first replica, if it is eligible and in sync; the in-sync replicas stay."""
    preferred = replicas[0]
    return Election(preferred, tuple(isr)) if preferred in eligible and preferred in isr else None


def isr_without(isr: Sequence[int], gone: Collection[int]) -> tuple[int, ...]:
    """The in-sync replicas without those that are gone.

    The last one stays, since only it has every record. If all are gone all stay, since each of them has; Kafka removes one
    after the other, keeps the last, and waits for that one.
    """
    return tuple(replica for replica in isr if replica not in gone) or tuple(isr)
