"""Maps offsets of the source to offsets of the target, for one partition, in a form that fits into an offset's metadata.

A *run* is a range of offsets without a gap in either cluster: ``length`` records from ``source`` on are at ``target`` and
after it. Compaction and transactions leave gaps in the source, and each of the mirror's transactions leaves one in the target.
Only some of the old runs are kept: the first in each quarter of an octave of the distance from the end.
So translation is exact near the end; far from it, it may be early by up to half of the distance. It is never too late.

The text is the source topic's id and the runs, separated by spaces: ``5f0c… 0:100:0 100:50:101``. It has at most
``TEXT_LIMIT`` bytes; brokers accept 4096 (``offset.metadata.max.bytes``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

TEXT_LIMIT = 4000
KEPT_EXACTLY = 16
_THIN_ABOVE = 256
_BUCKET_BITS = 3


class OffsetRun(NamedTuple):
    """Records that were copied in one piece: ``length`` of them, from offset ``source`` on, to the offsets from ``target`` on."""

    source: int
    length: int
    target: int


class MirrorOffsetMap:
    """The map of one partition from offsets of the source to those of the target."""

    def __init__(self, topic_id: str, runs: Sequence[OffsetRun] = ()) -> None:
        self.topic_id = topic_id
        """Of the source's topic. A topic that was created again has another one."""
        self.runs = list(runs)
        """Oldest first."""

    @classmethod
    def parse(cls, text: str) -> MirrorOffsetMap:
        """Read the map from an offset's metadata. Raises ValueError when it is something else."""
        # confluent-kafka also sends the zero at the end of a C string.
        topic_id, *runs = text.rstrip("\0").split(" ")
        return cls(topic_id, [OffsetRun(*map(int, run.split(":"))) for run in runs])

    def text(self) -> str:
        """The text for an offset's metadata. The oldest runs are omitted if it would be too long."""
        runs = [":".join(map(str, run)) for run in _thinned(self.runs)]
        size = len(self.topic_id) + sum(len(run) + 1 for run in runs)
        while size > TEXT_LIMIT:
            size -= len(runs.pop(0)) + 1
        return " ".join([self.topic_id, *runs])

    @property
    def next_source(self) -> int:
        """The first offset of the source that is not mirrored yet; 0 if nothing is mirrored."""
        return self.runs[-1].source + self.runs[-1].length if self.runs else 0

    def add(self, sources: Sequence[int], first_target: int, last_target: int) -> None:
        """Note that the records at these offsets of the source, ascending, were copied to ``first_target`` to ``last_target``."""
        if last_target - first_target != len(sources) - 1:
            # Another producer has written between them, so only the ends are known.
            self.runs += [OffsetRun(sources[0], 1, first_target), OffsetRun(sources[-1], 1, last_target)]
            return
        start = 0
        for index in range(1, len(sources) + 1):
            if index == len(sources) or sources[index] != sources[index - 1] + 1:
                self.runs.append(OffsetRun(sources[start], index - start, first_target + start))
                start = index
                if len(self.runs) > _THIN_ABOVE:
                    self.runs = _thinned(self.runs)

    def translate(self, source: int) -> int | None:
        """The target's offset for a group that is to read ``source`` next: that record's, or an earlier one's.

        None when it is before all runs that were kept.
        """
        index = bisect_right(self.runs, source, key=lambda run: run.source) - 1
        if index < 0:
            return None
        run = self.runs[index]
        return run.target + min(source - run.source, run.length)


def _thinned(runs: list[OffsetRun]) -> list[OffsetRun]:
    """The first run of each bucket of distances from the end, and the newest runs.

    The first, because it stays the first while the end moves on: so runs are kept as they get older.
    """
    if len(runs) <= KEPT_EXACTLY:
        return runs
    end = runs[-1].source + runs[-1].length
    kept = []
    last = None
    for run in runs[:-KEPT_EXACTLY]:
        distance = end - run.source
        shift = max(distance.bit_length() - _BUCKET_BITS, 0)
        if (shift, distance >> shift) != last:
            last = shift, distance >> shift
            kept.append(run)
    return kept + runs[-KEPT_EXACTLY:]
