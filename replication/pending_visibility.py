"""The number of bytes that become readable to waiting fetches when a partition's watermarks advance.

They are looked up in the log only if a fetch waits and they are not known already.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..log.partition_log import PartitionLog
from ..log.transactional_reads import bytes_between

UNKNOWN_SIZE = -1

_MORE_THAN_A_FETCH_ASKS_FOR = 1 << 32


class PendingVisibility:
    """What was appended to a leader's log and is not visible to consumers yet."""

    __slots__ = ("size", "stable_end")

    def __init__(self) -> None:
        self.size = 0
        """The bytes above the high watermark; UNKNOWN_SIZE where they would have to be looked up."""
        self.stable_end = -1
        """The last stable offset while it is below the high watermark, else -1."""

    def newly_stable(self, log: PartitionLog, high_watermark_before: int, *, is_wanted: bool) -> int:
        """How many bytes became stable when the high watermark moved; 0 if not ``is_wanted``.

        For a log with open transactions, or one that had some when it was asked before.
        """
        start = self.stable_end if self.stable_end >= 0 else high_watermark_before
        end = log.last_stable_offset
        self.stable_end = -1 if end == log.high_watermark else end
        return visible_between(log, start, end) if end > start and is_wanted else 0


def visible_between(log: PartitionLog, start: int, end: int) -> int:
    """The bytes of the batches from offset ``start`` to ``end``.

    If they cannot be read, more than any fetch waits for, so that the fetch finds out why: the caller, which has moved the
    watermark, must not fail for it.
    """
    try:
        return bytes_between(log, start, end)
    except KafkaError as error:
        log.folder.log_failed(f"{log.topic}-{log.partition}: committed records cannot be read", error)
        return _MORE_THAN_A_FETCH_ASKS_FOR
