"""The state of a log found at startup, with which a ``PartitionLog`` begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .leader_epochs import LeaderEpochCache
from .producer_state import ProducerStateManager
from .segment import LogSegment


@dataclass(slots=True)
class LogState:
    """Offsets as in PartitionLog; ``topic_id`` is None where no file says it."""

    producer_state: ProducerStateManager
    topic_id: bytes | None = None
    segments: Sequence[LogSegment] = ()
    leader_epochs: LeaderEpochCache = field(default_factory=LeaderEpochCache)
    log_start_offset: int = 0
    high_watermark: int = 0
    recovery_point: int = 0
    cleaned_offset: int | None = None
