"""Partitions whose last stable offset stands still before the high watermark, and for how long, by readings of all partitions.

By the offset, not by the time of the transaction's last record, which its producer sets: one that copies old records is no hung
one.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.partitions import TopicPartition
from .checks import HELD_WARNING_MS, HeldPartition

_STALE_MS = 120_000


class HeldPartitions:
    """``note`` takes a reading; ``at`` tells what is held."""

    def __init__(self) -> None:
        self._held: dict[TopicPartition, tuple[int, int]] = {}
        """Last stable offset, and since when (ms) it is that."""
        self._since_ms: int | None = None
        self._noted_ms = 0

    def note(self, now_ms: int, held: Mapping[TopicPartition, int]) -> None:
        """The last stable offsets that are below the high watermark."""
        if self._since_ms is None or now_ms - self._noted_ms > _STALE_MS:
            self._since_ms, self._held = now_ms, {}
        before = self._held
        self._held = {
            key: before[key] if key in before and before[key][0] == offset else (offset, now_ms)
            for key, offset in held.items()
        }
        self._noted_ms = now_ms

    def at(self, now_ms: int) -> list[HeldPartition]:
        """What was held in the last reading, and is for all that is known."""
        return [HeldPartition(*key, now_ms - since) for key, (_, since) in self._held.items()]

    def why_unknown(self, now_ms: int) -> str:
        """Why they are not known; empty if they are."""
        if self._since_ms is None or now_ms - self._noted_ms > _STALE_MS:
            return "last stable offsets were not read in the last minutes"
        if now_ms - self._since_ms < HELD_WARNING_MS:
            return f"it takes {HELD_WARNING_MS // 60_000} min to detect them"
        return ""
