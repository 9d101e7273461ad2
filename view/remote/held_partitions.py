"""Partitions whose last stable offset stands still before the high watermark, as two readings or more tell."""

from __future__ import annotations

from collections.abc import Mapping

from ...base.partitions import TopicPartition
from ..checks import HELD_WARNING_MS, HeldPartition
from ..pace import Pace
from .rows import NO_ENDS, PartitionOffsets
from .topic_requests import Offset

_STALE_MS = 120_000


class HeldPartitions:
    """``note`` takes a reading of last stable offsets; ``rows`` has the partitions that are held now."""

    def __init__(self) -> None:
        self.rows: list[HeldPartition] = []
        self.partitions = 0
        """The number of partitions in the last reading."""
        self._held: dict[TopicPartition, tuple[int, int]] = {}
        """Last stable offset, and since when (ms) it is that."""
        self._since_ms: int | None = None
        self._noted_ms = 0

    async def note(
        self,
        now_ms: int,
        stable: Mapping[TopicPartition, Offset],
        ends: Mapping[TopicPartition, PartitionOffsets],
        pace: Pace,
    ) -> None:
        """``ends`` were read before ``stable``, so that what was written between the two holds nothing."""
        is_another = self._since_ms is None or now_ms - self._noted_ms > _STALE_MS
        before = {} if is_another else self._held
        held = {}
        for key, offset in stable.items():
            end = ends.get(key, NO_ENDS).end
            if end is not None and offset.offset < end:
                known = before.get(key)
                held[key] = known if known is not None and known[0] == offset.offset else (offset.offset, now_ms)
            if pace.is_due():
                await pace.rest()
        if is_another:
            self._since_ms = now_ms
        self._held, self._noted_ms, self.partitions = held, now_ms, len(stable)
        self.rows = [HeldPartition(*key, now_ms - since) for key, (_, since) in held.items()]

    def why_unknown(self, now_ms: int) -> str:
        """Why nothing can be told; empty if it can."""
        if self._since_ms is None or now_ms - self._noted_ms > _STALE_MS:
            return "last stable offsets were not read in the last minutes"
        if now_ms - self._since_ms < HELD_WARNING_MS:
            return f"it takes {HELD_WARNING_MS // 60_000} min to tell"
        return ""
