"""State shared by the logs of a log directory: disk, online state, open files, and files waiting to be removed.

After the first I/O error in a write or a flush the folder is *offline*: what is on the disk is not known any more, so
every later read and write of its logs fails with KAFKA_STORAGE_ERROR, and the broker will not leave a clean mark.
"""

from __future__ import annotations

import errno
import functools
import heapq
import itertools
import logging
import random
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import trio

from ..base.distribution import Distribution
from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock, Workers
from ..base.wording import explained
from .batch_preparation import BatchPreparation
from .disk import Disk

logger = logging.getLogger(__name__)


class Flushable(Protocol):
    """A log, as what flushes it in the background sees it."""

    folder: LogDirectory
    directory: str

    async def flush(self, *, inactive_only: bool = False) -> None:
        """Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        ...


class Closable(Protocol):
    """Something that holds an open file and can let go of it for a while."""

    was_used: bool
    """Whether the file was used since this was last set to False."""
    pins: int
    """The readers that need the file to stay open."""

    def close_file(self) -> None: ...


class LogDirectory:
    """One entry of ``log.dirs``."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        clock: Clock,
        workers: Workers,
        *,
        randomness: random.Random | None = None,
    ) -> None:
        self.disk = disk
        self.path = path
        self.clock = clock
        self.workers = workers
        self.batch_preparation = BatchPreparation(workers)
        self.randomness = randomness or random.Random()
        self.max_open_files = disk.max_open_files()
        self.failure: Exception | None = None
        """The first I/O error, which took the log directory offline."""
        self.on_offline: Callable[[LogDirectory], None] | None = None
        """Called once, with the log directory, when it fails."""
        self.enqueue_flush: Callable[[Flushable, bool], None] | None = None
        """Called with a log to have it flushed in the background; True for its inactive segments only."""
        self.write_checkpoints: Callable[[], None] | None = None
        """Writes the checkpoints at once. Raises OSError."""
        self.flush_times = Distribution()
        """Durations of its logs' flushes in ms."""
        self.deleted_logs = 0
        """How many logs were deleted since the start."""
        self.checkpointed_deletions = 0
        """So many of the first ``deleted_logs`` have no entry in the checkpoints any more."""
        self.checkpoint_wanted = trio.Event()
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        """A heap of (when by trio's clock, ticket, what to call)."""
        self.timers_changed = trio.Event()
        self._ticket = itertools.count()
        self._open: OrderedDict[Closable, None] = OrderedDict()  # the one opened, or found in use, longest ago first

    @property
    def is_offline(self) -> bool:
        return self.failure is not None

    def check_online(self) -> None:
        """Raise KafkaError(KAFKA_STORAGE_ERROR) when the folder has failed."""
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory {self.path} is offline: {self.failure}")

    def fail(self, what: str, error: Exception, *, is_half_done: bool = False) -> KafkaError:
        """Take the folder offline; returns the error to raise.

        Running out of descriptors is temporary and fails only the one operation, unless something is half done.
        """
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE) and not is_half_done:
            logger.warning("%s: %s", what, explained(error))
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what}: {error}")
        if self.failure is None:
            self.failure = error
            logger.error("%s: %s. The log directory %s is offline from now on.", what, explained(error), self.path)
            if self.on_offline is not None:
                self.on_offline(self)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what}: {error}")

    def log_failed(self, what: str, error: Exception) -> None:
        """Say that something could not be done; as an error only where the folder's own failure does not explain it."""
        logger.log(logging.INFO if self.is_offline else logging.ERROR, "%s: %s", what, error)

    def opened(self, holder: Closable) -> None:
        """Count an opened file; when there are too many, one that was not used recently is closed first."""
        # Two rounds at most: the first may find every file in use, and only takes ``was_used`` from it.
        for _ in range(2 * len(self._open)):
            if len(self._open) < self.max_open_files:
                break
            oldest = next(iter(self._open))
            if oldest.was_used or oldest.pins:
                oldest.was_used = False
                self._open.move_to_end(oldest)
            else:
                del self._open[oldest]
                oldest.close_file()
        self._open[holder] = None

    def closed(self, holder: Closable) -> None:
        """Forget a file that was closed for another reason than its age."""
        del self._open[holder]

    def call_later(self, delay_ms: int, function: Callable[[], None]) -> None:
        """Call ``function`` after ``delay_ms``, while the broker's housekeeping runs."""
        heapq.heappush(self.timers, (trio.current_time() + delay_ms / 1000, next(self._ticket), function))
        self.timers_changed.set()

    def delete_later(self, path: str, delay_ms: int) -> None:
        """Remove a file or folder, which already carries its deletion suffix, after ``delay_ms``."""
        self.call_later(delay_ms, functools.partial(self.delete_now, path))

    def delete_now(self, path: str) -> None:
        """Remove a file or folder; an error is only logged, since the next start removes the rest."""
        try:
            if self.disk.is_dir(path):
                self.disk.remove_dir(path)
            else:
                self.disk.remove(path)
        except OSError as error:
            logger.warning("cannot remove %s: %s", path, error)

    def checkpoint_soon(self) -> None:
        """Have the checkpoints written soon rather than at the next interval."""
        self.checkpoint_wanted.set()

    def checkpoint_now(self) -> None:
        """Write the checkpoints before going on, because what they say is about to be wrong. Raises OSError."""
        if self.write_checkpoints is not None:
            self.write_checkpoints()

    def starting_log(self) -> None:
        """Called before the first file of a new log is made: no checkpoint may speak of one deleted before."""
        if self.checkpointed_deletions != self.deleted_logs:
            self.checkpoint_now()
