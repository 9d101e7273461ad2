"""Change tracking for a fetch: the partitions that changed since they were read, and the wait for more bytes.

A fetch session has one ``DelayedFetch`` for as long as it lives; a fetch without a session has one of its own. So a fetch
costs what has changed, not what its session holds.

Rules:

- ``changed`` has the partitions that the next reading must look at, in the order of their turns. A partition leaves it when it is
  read and *rests*: it was read to its end, the answer says all that there is to say, and the partition tells of its next change.
  Whatever was answered with records or an error, or was not read because the answer was full, stays in it.
- A partition has the fetches to tell in ``Partition.fetches``. It tells each of any change of
  what an answer says: bytes, watermarks, the start of the log, leader, epoch, in-sync replicas, its own end. Who was told hears
  no more until it has read again, unless a request of its waits for more bytes.
- What a leader notes of a follower that rests (``FollowerProgress``) comes from the time of the session's last fetch. Only a
  replica in sync, as the controller has confirmed, rests: of any other each fetch may change who is in sync.

The resting partitions of a session are counted as fetched with each fetch of it; the partition learns the number late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from ..base.wakeup import Wakeup
from ..wire.messages.fetch import FetchPartition
from .leader import FollowerProgress
from .partition import Partition


class DelayedFetch:
    """The changed partitions of one session, or of one fetch."""

    __slots__ = (
        "_terms",
        "_wakeup",
        "changed",
        "fetched_at",
        "fetches",
        "is_followers",
        "is_watching",
        "missing",
        "read_committed",
    )

    def __init__(self, *, is_followers: bool = False, read_committed: bool = False) -> None:
        self.is_followers = is_followers
        self.is_watching = False
        """Whether a partition may know of it."""
        self.read_committed = read_committed
        """Whether only stable bytes count."""
        self.changed: dict[FetchedPartition, None] = {}
        """The partitions to read next, in the order of their turns."""
        self.missing = 0
        """How many bytes the waiting fetch lacks; 0 while none waits."""
        self.fetched_at = 0.0
        """When a follower fetched last, by ``trio.current_time``; 0 for a consumer."""
        self.fetches = 0
        """How many fetches there were."""
        self._wakeup: Wakeup | None = None
        self._terms: object = None

    def begin(self, terms: object, everything: Iterable[FetchedPartition]) -> None:
        """A fetch of ``everything`` begins. Under other ``terms`` than the last one's all of it is to be read again.

        An earlier fetch of the session that still waits ends its wait: the client has given it up.
        """
        if self.missing > 0:
            self.wake()
        if terms != self._terms:
            if self.fetches:
                for fetched in everything:
                    fetched.on_change(0)
            self._terms = terms
        self.fetches += 1
        if self.is_followers:
            self.fetched_at = trio.current_time()

    def note(self, fetched: FetchedPartition, visible: int) -> bool:
        """A partition has changed, by ``visible`` bytes; returns whether the fetch waits for more of them."""
        self.changed[fetched] = None
        if self.missing <= 0:
            return False
        self.missing -= visible
        if self.missing > 0:
            return True
        assert self._wakeup is not None
        self._wakeup.set()
        return False

    def wake(self) -> None:
        """End the wait: there is an answer, or nothing to wait for."""
        if self.missing > 0:
            assert self._wakeup is not None
            self.missing = 0
            self._wakeup.set()

    def expect(self, count: int, on_enough: Callable[[], None] | None = None) -> None:
        """Count the bytes that become visible from now on, up to ``count``, for ``wait``.

        ``on_enough`` is called in the step that ends the wait before its time.
        """
        self.missing = count
        self._wakeup = Wakeup(on_enough)

    async def wait(self, seconds: float) -> None:
        """Return when the bytes are there, something else ends the wait, the client has gone, or ``seconds`` are over."""
        wakeup = self._wakeup
        assert wakeup is not None
        try:
            await wakeup.wait(seconds)
        finally:
            # Not if a later fetch of the session has begun to wait before this task ran: the count is that fetch's.
            if self._wakeup is wakeup:
                self.missing = 0


class FetchedPartition:
    """One partition of a fetch: what is asked, and what the last response of the session said."""

    __slots__ = (
        "_progress",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "news",
        "number",
        "parked_since",
        "partition",
        "sent_error",
        "sent_high_watermark",
        "sent_last_stable_offset",
        "sent_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: bytes, asked: FetchPartition, news: DelayedFetch) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.number = asked.partition
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset
        self.news = news
        """Where its changes are noted."""
        news.changed[self] = None
        self.partition: Partition | None = None
        """The partition that was found; None before it is read, and after an error."""
        self.sent_high_watermark = self.sent_last_stable_offset = self.sent_log_start_offset = -1
        self.sent_error = 0
        self._progress: FollowerProgress | None = None
        self.parked_since = -1
        """The number of the fetch that read it to its end; -1 while it has news."""

    def ask(self, asked: FetchPartition) -> None:
        """Note what a request asks of this partition, which is to be read therefore."""
        if self.parked_since >= 0:
            self._unpark()
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset
        self.news.changed[self] = None

    def watch(self) -> None:
        """Be told of the partition's next change."""
        assert self.partition is not None
        self.news.is_watching = True
        fetches = self.partition.fetches
        (fetches.followers if self.news.is_followers else fetches.consumers).add(self)

    def rest(self, progress: FollowerProgress | None) -> None:
        """Not to be read before the partition changes. ``progress`` is that of the follower whose fetch it is."""
        self.parked_since = self.news.fetches
        if progress is not None:
            self._progress = progress
            progress.park_in(self.news)
        self.watch()

    # --- as a FetchWatch ----------------------------------------------------------------------------------------------

    @property
    def owner(self) -> DelayedFetch:
        return self.news

    @property
    def is_waiting(self) -> bool:
        return self.news.missing > 0

    @property
    def reads_committed(self) -> bool:
        return self.news.read_committed

    @property
    def uncounted(self) -> int:
        return self.news.fetches - self.parked_since if self.parked_since >= 0 else 0

    def on_change(self, visible: int) -> bool:
        if self.parked_since >= 0:
            self._unpark()
        return self.news.note(self, visible)

    def on_end(self) -> None:
        if self.parked_since >= 0:
            self._unpark()
        self.news.note(self, 0)
        self.news.wake()

    def _unpark(self) -> None:
        assert self.partition is not None
        self.partition.counted_fetches += self.news.fetches - self.parked_since
        self.parked_since = -1
        if self._progress is not None:
            self._progress.settle()
            self._progress = None

    def clear_partition(self) -> None:
        """It could not be read."""
        self._stop_watching()
        self.partition = None

    def leave(self) -> None:
        """It is not fetched any more."""
        if self.parked_since >= 0:
            self._unpark()
        self._stop_watching()
        self.news.changed.pop(self, None)

    def _stop_watching(self) -> None:
        if self.partition is not None:
            self.partition.fetches.consumers.discard(self)
            self.partition.fetches.followers.discard(self)
