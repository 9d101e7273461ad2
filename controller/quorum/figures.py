"""What is told of a broker's place in a quorum: how far its metadata log has come, and whom it follows."""

from __future__ import annotations

from typing import NamedTuple

from ...metadata.types import LogPosition


class QuorumFigures(NamedTuple):
    """``leader_id`` and ``high_watermark`` are -1 while they are not known; ``applied`` is what the broker's image has."""

    leader_id: int
    epoch: int
    high_watermark: int
    log_end_offset: int
    log_end_epoch: int
    applied: LogPosition
    metadata_version: int
