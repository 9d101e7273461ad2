"""What the logs of one data folder share: the disk, its state, its open files, and the files waiting to be removed.

After the first I/O error in a write or a flush the folder is *offline*: nobody knows what is on the disk any more, so
every later read and write of its logs fails with KAFKA_STORAGE_ERROR, and the broker will not leave a clean mark.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock, Workers
from .disk import Disk

logger = logging.getLogger(__name__)


class Closable(Protocol):
    """Something that holds an open file and can let go of it for a while."""

    was_used: bool
    pins: int

    def close_file(self) -> None: ...


class LogFolder:
    """One entry of ``log.dirs``.

    ``on_offline`` is called once, with the folder, when it fails. ``wants_flush`` is called with a log that ought to
    be flushed soon (it has rolled, or ``flush.messages`` is reached).
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        clock: Clock,
        workers: Workers,
        *,
        rng: random.Random | None = None,
        max_open_files: int = 4096,
    ) -> None:
        self.disk = disk
        self.path = path
        self.clock = clock
        self.workers = workers
        self.rng = rng or random.Random()
        self.max_open_files = max_open_files
        self.failure: OSError | None = None
        self.on_offline: Callable[[LogFolder], None] | None = None
        self.wants_flush: Callable[[object], None] | None = None
        self.deletions: deque[tuple[int, str]] = deque()
        self._open: deque[Closable] = deque()

    @property
    def is_offline(self) -> bool:
        return self.failure is not None

    def check_online(self) -> None:
        """Raise KafkaError(KAFKA_STORAGE_ERROR) when the folder has failed."""
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the data folder {self.path} is offline: {self.failure}")

    def fail(self, what: str, error: OSError) -> KafkaError:
        """Take the folder offline; returns the error to raise."""
        if self.failure is None:
            self.failure = error
            logger.error("%s: %s. The data folder %s is offline from now on.", what, error, self.path)
            if self.on_offline is not None:
                self.on_offline(self)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what}: {error}")

    def opened(self, holder: Closable) -> None:
        """Count an opened file, and close one that was not used for longest when there are too many."""
        self._open.append(holder)
        for _ in range(2 * len(self._open)):
            if len(self._open) <= self.max_open_files:
                return
            oldest = self._open.popleft()
            if oldest.was_used or oldest.pins:
                oldest.was_used = False
                self._open.append(oldest)
            else:
                oldest.close_file()

    def closed(self, holder: Closable) -> None:
        """Forget a file that was closed for another reason than its age."""
        self._open.remove(holder)

    def delete_later(self, path: str, delay_ms: int) -> None:
        """Remove a file or folder, which already carries its deletion suffix, after ``delay_ms``."""
        self.deletions.append((self.clock.now_ms() + delay_ms, path))
