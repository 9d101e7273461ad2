"""The leader's view of the in-sync replicas (ISR): committed, or with a change that the controller has yet to confirm.

Rules (KIP-497; Kafka's Partition.PartitionState):

- ``isr`` is what the controller has confirmed. It decides whether ``min.insync.replicas`` is met.
- ``maximal_isr`` is every replica that may be in sync once the change under way has ended, whichever way it ends. It decides how
  far the high watermark goes: each replica that the controller might elect, before or after the change, must have what is
  committed.
- One change at a time. It ends with the controller's response or with another state from the controller. A response counts only
  while its change is the current state, so changes are compared by identity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class CommittedPartitionState:
    """No change is under way."""

    isr: tuple[int, ...]

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return self.isr


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class PendingExpand:
    """A follower has caught up, and is to join. The controller may have taken it in already."""

    isr: tuple[int, ...]
    joining: int
    """The follower's broker."""
    broker_epoch: int
    """The epoch under which that broker caught up (-1: unknown); after a restart it may have lost records."""

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return (*self.isr, self.joining)

    @property
    def proposed(self) -> tuple[int, ...]:
        return self.maximal_isr


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class PendingShrink:
    """Replicas have fallen behind, and are to leave."""

    isr: tuple[int, ...]
    leaving: Collection[int]
    """Until the controller has confirmed it, it may still elect one of these."""

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return self.isr

    @property
    def proposed(self) -> tuple[int, ...]:
        return tuple(replica for replica in self.isr if replica not in self.leaving)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class PendingRecovery:
    """An unclean election made this broker the leader; the controller is told that it goes on from what it has (KIP-704)."""

    isr: tuple[int, ...]

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return self.isr

    @property
    def proposed(self) -> tuple[int, ...]:
        return self.isr


PendingIsr = PendingExpand | PendingShrink | PendingRecovery
IsrState = CommittedPartitionState | PendingIsr
