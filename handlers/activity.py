"""The last writes and reads of a connection, for views of the broker; bounded, and gone with the connection.

It is noted on the way of every Produce and Fetch, by plain stores: nothing is called for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..replication.delayed_fetch import FetchedPartition

MOST_PARTITIONS = 1000
"""Of so many partitions a connection's writes are remembered, and as many of its last Fetch."""


class Activity:
    """The activity of one connection."""

    __slots__ = ("fetched", "produced")

    def __init__(self) -> None:
        self.produced: dict[tuple[str, int], tuple[int, int, int]] = {}
        """The last batch by topic and partition: when it came (ms since the epoch), its first offset, and its producer's id.

        The id is -1 where the producer is not idempotent.
        """
        self.fetched: Iterable[FetchedPartition] = ()
        """The partitions of the last Fetch of a consumer, as they change."""

    def last_fetched(self) -> list[FetchedPartition]:
        """The first partitions of the last Fetch."""
        return list(islice(self.fetched, MOST_PARTITIONS))
