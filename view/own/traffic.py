"""Traffic rates by topic and in total, sampled once a second.

The counts are those of ``Partition``. They begin again when a replica comes again, which counts as nothing rather than as less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...replication.partition import Partition
from ..pace import Pace
from ..rows import NO_RATES, TrafficRates
from .topic_hours import TopicHours

_SECONDS = 5.0
"""Over about so long a topic's rates are averaged."""
_NOTHING = 0.005


class _Counts:
    """Of one topic: messages in, bytes in, bytes out so far, and their rates."""

    __slots__ = ("averages", "counts", "turn")

    def __init__(self) -> None:
        self.counts = (0, 0, 0)
        self.averages: tuple[float, ...] = ()
        self.turn = 0


class Traffic:
    """The traffic of all topics: ``of`` a topic returns its rates."""

    def __init__(self) -> None:
        self.total = NO_RATES
        """The rates of all topics together, as of the last look."""
        self.hours = TopicHours()
        """The last hour of each topic."""
        self._minute = 0
        self._topics: dict[str, _Counts] = {}
        self._turn = 0

    def of(self, topic: str) -> TrafficRates:
        found = self._topics.get(topic)
        return TrafficRates(*found.averages) if found is not None and found.averages else NO_RATES

    def __len__(self) -> int:
        return len(self._topics)

    async def look(self, partitions: Iterable[Partition], seconds: float, pace: Pace, minute: int) -> None:
        """Take the counts, ``seconds`` after they were taken last; ``partitions`` are together by topic.

        ``minute`` of the epoch is it in which what came is counted.
        """
        self._turn += 1
        self._minute = minute
        self.hours.begin(minute)
        share = 1 - math.exp(-seconds / _SECONDS)
        came = [0, 0, 0]
        name, messages, bytes_in, bytes_out = "", 0, 0, 0
        for partition in [*partitions]:  # a copy: replicas come and go during ``rest``
            if partition.topic != name:
                self._take(name, (messages, bytes_in, bytes_out), seconds, share, came)
                name, messages, bytes_in, bytes_out = partition.topic, 0, 0, 0
            messages += partition.messages_in
            bytes_in += partition.bytes_in
            bytes_out += partition.bytes_out
            if pace.is_due():
                await pace.rest()
        self._take(name, (messages, bytes_in, bytes_out), seconds, share, came)
        self.total = TrafficRates(*(count / seconds for count in came)) if seconds > 0 else NO_RATES
        if len(self._topics) > 0:
            self._forget()

    def _take(self, name: str, counts: tuple[int, int, int], seconds: float, share: float, came: list[int]) -> None:
        if not name:
            return
        known = self._topics.get(name)
        if known is None:
            known = self._topics[name] = _Counts()
            # At the first look, the counts are from before the view began. Later, all that a new topic has is news.
            known.counts = counts if self._turn == 1 else (0, 0, 0)
        known.turn = self._turn
        if counts == known.counts and not known.averages:
            return
        news = [max(now - before, 0) for now, before in zip(counts, known.counts, strict=True)]
        known.counts = counts
        for slot, new in enumerate(news):
            came[slot] += new
        if any(news):
            self.hours.note(name, self._minute, news)
        if seconds > 0:
            known.averages = _moved(known.averages, [new / seconds for new in news], share)

    def _forget(self) -> None:
        gone = [name for name, known in self._topics.items() if known.turn != self._turn]
        for name in gone:
            del self._topics[name]
            self.hours.forget(name)


def _moved(before: tuple[float, ...], now: list[float], share: float) -> tuple[float, ...]:
    """The averages; none while there is nothing."""
    averages = tuple(old + share * (new - old) for old, new in zip(before or (0.0, 0.0, 0.0), now, strict=True))
    return () if max(averages) < _NOTHING else averages
