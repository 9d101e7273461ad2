"""Traffic of each topic in the last hour, minute by minute, for topics that had any.

A topic takes about a kilobyte, so 10,000 of them, which is the most, take 10 MB; where there are more, those that were quiet the
longest have no hour.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

MINUTES = 60
MOST_TOPICS = 10_000
_SERIES = 3


class _Hour:
    """The last hour of one topic."""

    __slots__ = ("counts", "minute", "sums")

    def __init__(self, minute: int) -> None:
        self.minute = minute
        """The minute being counted."""
        self.sums = [0, 0, 0]
        """The counts of that minute so far."""
        self.counts = array("f", bytes(4 * _SERIES * MINUTES))
        """A ring with the counts of the minutes before."""

    def go_on(self, minute: int) -> None:
        """Begin another minute; those between were quiet."""
        for between in range(max(self.minute, minute - MINUTES), minute):
            place = between % MINUTES * _SERIES
            counted = self.sums if between == self.minute else (0, 0, 0)
            self.counts[place : place + _SERIES] = array("f", counted)
        self.sums = [0, 0, 0]
        self.minute = minute


class TopicHours:
    """The hours of all topics: ``note`` adds counts, ``of`` a topic returns rates. Minutes are counted from the epoch."""

    def __init__(self, most: int = MOST_TOPICS) -> None:
        self._most = most
        self._topics: dict[str, _Hour] = {}
        self._since: int | None = None

    def __len__(self) -> int:
        return len(self._topics)

    def begin(self, minute: int) -> None:
        """What comes from now on is counted."""
        if self._since is None:
            self._since = minute

    def note(self, topic: str, minute: int, came: Sequence[int]) -> None:
        """So many records came in, bytes in, bytes out."""
        hour = self._topics.get(topic)
        if hour is None:
            hour = self._topics[topic] = _Hour(minute)
            if len(self._topics) > self._most:
                del self._topics[next(iter(self._topics))]
        elif minute > hour.minute:
            hour.go_on(minute)
            self._topics[topic] = self._topics.pop(topic)  # the one that was quiet the longest stands first
        for slot, new in enumerate(came):
            hour.sums[slot] += new

    def forget(self, topic: str) -> None:
        """The topic is gone."""
        self._topics.pop(topic, None)

    def of(self, topic: str, minute: int) -> list[tuple[int, float, float, float]]:
        """The whole minutes before ``minute``, oldest first: its end in ms, and per second records in, bytes in, bytes out."""
        if self._since is None:
            return []
        hour = self._topics.get(topic)
        points = []
        for each in range(max(self._since, minute - MINUTES), minute):
            rates = (0.0, 0.0, 0.0)
            if hour is not None and each == hour.minute:
                rates = (hour.sums[0] / 60, hour.sums[1] / 60, hour.sums[2] / 60)
            elif hour is not None and hour.minute - MINUTES <= each < hour.minute:
                place = each % MINUTES * _SERIES
                rates = (hour.counts[place] / 60, hour.counts[place + 1] / 60, hour.counts[place + 2] / 60)
            points.append(((each + 1) * 60_000, *rates))
        return points
