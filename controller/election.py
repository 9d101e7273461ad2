"""Who leads a partition. Pure functions of replicas, in-sync replicas and live brokers; the rules are Kafka's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

LEADER_DURING_DELETE = -2
EPOCH_DURING_DELETE = -2


class Election(NamedTuple):
    """The outcome: the leader, the in-sync replicas under it, and whether records may have been lost (KIP-704)."""

    leader: int
    isr: tuple[int, ...]
    unclean: bool = False


def elect_first(replicas: Sequence[int], live: Collection[int]) -> Election | None:
    """For a partition that never had a leader: the first live replica, with all live ones in sync."""
    isr = tuple(replica for replica in replicas if replica in live)
    return Election(isr[0], isr) if isr else None


def elect_offline(
    replicas: Sequence[int], isr: Sequence[int], live: Collection[int], *, unclean_allowed: bool
) -> Election | None:
    """For a partition whose leader is gone: the first live replica in sync, else any live one where that is allowed.

    None when nobody may lead; the partition then waits for a replica to come back.
    """
    for replica in replicas:
        if replica in live and replica in isr:
            return Election(replica, tuple(r for r in isr if r in live))
    if unclean_allowed:
        for replica in replicas:
            if replica in live:
                return Election(replica, (replica,), unclean=True)
    return None


def isr_without(isr: Sequence[int], gone: Collection[int]) -> tuple[int, ...]:
    """The in-sync replicas without brokers that are gone; the last one stays, since only it has every record."""
    left = tuple(replica for replica in isr if replica not in gone)
    return left or tuple(isr[-1:])
