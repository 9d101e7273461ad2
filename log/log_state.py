"""The state of a log found at startup, with which a ``PartitionLog`` begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .leader_epochs import LeaderEpochCache
from .producer_state import ProducerStateManager
from .segment import LogSegment


@dataclass(slots=True)
class LogState:
    """The parts of a ``PartitionLog``, with offsets as there."""

    producer_state: ProducerStateManager
    topic_id: bytes | None = None
    """None where no file says it."""
    segments: Sequence[LogSegment] = ()
    leader_epochs: LeaderEpochCache = field(default_factory=LeaderEpochCache)
    log_start_offset: int = 0
    high_watermark: int = 0
    recovery_point: int = 0
    cleaned_offset: int | None = None
