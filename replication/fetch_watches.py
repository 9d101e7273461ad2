"""The registry of fetches that have read a partition to its end and are notified of its changes.

A change is whatever an answer to a fetch depends on: bytes, watermarks, the start of the log, leader, epoch, in-sync replicas, or
that the partition is gone. A fetch is told of one change; of the next one when it has read again, or while its request waits for
more bytes. So partitions that nobody reads, and fetches that have something to read, cost a change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class FetchWatch(Protocol):
    """A fetch as the partition sees it."""

    @property
    def owner(self) -> object:
        """The fetch session or the request that fetches several partitions."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits for more bytes, so that their number matters."""
        ...

    @property
    def reads_committed(self) -> bool:
        """Whether it sees nothing above the last stable offset."""
        ...

    @property
    def uncounted(self) -> int:
        """How many requests have fetched the partition since it was read to its end."""
        ...

    def on_change(self, visible: int) -> bool:
        """The partition has changed, and ``visible`` bytes more can be read; returns whether to tell of the next change."""
        ...

    def on_end(self) -> None:
        """The partition is gone, has another leader, or all waits are to end: answer now. Nothing more is told."""
        ...


class FetchWatches:
    """The fetches of one partition."""

    __slots__ = ("consumers", "followers")

    def __init__(self) -> None:
        self.consumers: set[FetchWatch] = set()
        """These wait for what is committed."""
        self.followers: set[FetchWatch] = set()
        """These wait for the end of the log."""

    def __iter__(self) -> Iterator[FetchWatch]:
        yield from self.consumers
        yield from self.followers

    @property
    def is_size_wanted(self) -> bool:
        """Whether a consumer's request counts the bytes that are committed."""
        return any(fetch.is_waiting for fetch in self.consumers)

    def notify_followers(self, appended: int) -> None:
        """The log has changed, by ``appended`` bytes at its end."""
        self.followers = {fetch for fetch in self.followers if fetch.on_change(appended)}

    def notify_consumers(self, committed: int, stable: int) -> None:
        """Watermarks have moved: so many bytes more are committed, and so many stable."""
        self.consumers = {
            fetch for fetch in self.consumers if fetch.on_change(stable if fetch.reads_committed else committed)
        }

    def notify_all(self) -> None:
        """Something else has changed; no bytes have come."""
        if self.followers:
            self.notify_followers(0)
        if self.consumers:
            self.notify_consumers(0, 0)

    def end(self) -> None:
        """End all waits, and tell nobody of anything more."""
        watching = *self.consumers, *self.followers
        self.consumers, self.followers = set(), set()
        for fetch in watching:
            fetch.on_end()
