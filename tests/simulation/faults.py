"""The disk and the clock of a simulated machine, and their faults.

``FaultyDisk`` counts the operations that change something, and at the chosen one it is *dead*: that operation and
every later one raises ``Crashed``, so nothing that the dying process still does reaches the disk. ``revive`` then
leaves what survives the death of a process (with the page cache) or a loss of power.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import trio

from ottla.base.seams import SimulatedClock
from ottla.log.disk import Bytes, Lock, OpenFile
from ottla.log.memory_disk import MemoryDisk
from ottla.wire.batch_layout import BATCH_HEADER_SIZE
from ottla.wire.records import iter_complete_batches

_CRC_COVERED_FROM = 21
CHANGES = frozenset({"write", "truncate", "sync", "rename", "remove", "create", "make_dir"})


class Crashed(BaseException):
    """The process, or its machine, has crashed. Not an Exception, so that nothing in the broker can handle it."""


class FaultyDisk(MemoryDisk):
    """See the module. ``operations`` counts operations that change something, by ``Plan``."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        super().__init__(now_ms=now_ms)
        self.is_dead = False
        self.operations = 0
        self._left = 0
        self._where: Callable[[str], bool] = lambda path: True
        self._on_crash: Callable[[str], None] = lambda what: None

    def crash_at(self, count: int, where: Callable[[str], bool], on_crash: Callable[[str], None]) -> None:
        """Crash at the ``count``-th change from now on whose path ``where`` accepts; 0 cancels that."""
        self._left = count
        self._where = where
        self._on_crash = on_crash

    def die(self, what: str) -> None:
        """Crash now."""
        self.is_dead = True
        self._left = 0
        self._on_crash(what)

    def check(self, operation: str, path: str) -> None:
        if self.is_dead:
            raise Crashed(path)
        super().check(operation, path)
        if operation in CHANGES:
            self.operations += 1
            if self._left and self._where(path):
                self._left -= 1
                if not self._left:
                    self.die(f"{operation} {path}")
                    raise Crashed(path)

    def revive(self, power_lost: random.Random | None) -> None:
        """Come back with what survives a loss of power or, without ``power_lost``, with everything that was written."""
        self.is_dead = False
        self._left = 0
        if power_lost is None:
            self.kill()
        else:
            self.crash(power_lost)

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        if create and not self.exists(path):
            self.check("create", path)
        return super().open(path, create=create)

    def make_dir(self, path: str) -> None:
        if path and not self.exists(path):
            self.check("make_dir", path)
        super().make_dir(path)

    def lock(self, path: str) -> Lock:
        self.check("lock", path)
        return super().lock(path)

    @property
    def used(self) -> int:
        """Bytes in all files."""
        return sum(len(inode.data) for inode in self._names.values() if inode is not None)

    # --- damage at rest -----------------------------------------------------------------------------------------------

    def paths(self) -> list[str]:
        """Every file, sorted."""
        return sorted(path for path in self._names if not self.is_dir(path))

    def paths_in(self, folder: str) -> list[str]:
        """The files of a folder, sorted."""
        below = f"{folder}/"
        return sorted([path for path in self._names if path.startswith(below) and "/" not in path[len(below) :]])

    def content(self, path: str) -> bytes:
        """The bytes of a file, for checks: it does not count as an operation of the machine."""
        return bytes(self._file(path).data)

    def flip_bit(self, path: str, rng: random.Random) -> int | None:
        """Flip one bit that a batch's CRC covers. Returns the batch's base offset, None if there is no batch."""
        data = self._file(path).data
        batches = []
        position = 0
        for batch in iter_complete_batches(bytes(data)):
            batches.append((position, batch.size, batch.base_offset))
            position += batch.size
        if not batches:
            return None
        start, size, base_offset = rng.choice(batches)
        assert size >= BATCH_HEADER_SIZE
        at = start + rng.randrange(_CRC_COVERED_FROM, size)
        inode = self._file(path)
        inode.data[at] ^= 1 << rng.randrange(8)
        inode.sync()
        return base_offset


class JumpingClock(SimulatedClock):
    """Wall time that is set wrong, and right again. It must be made in the loop whose time it follows."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = trio.lowlevel.current_clock().current_time  # called often: this way it is one call, not four

    def now_ms(self) -> int:
        return self.start_ms + int(self.elapsed() * 1000)

    def jump(self, milliseconds: int) -> None:
        self.start_ms += milliseconds


def is_under(folder: str) -> Callable[[str], bool]:
    """For ``crash_at``: paths with ``folder`` in one of their names."""
    return lambda path: folder in os.path.basename(os.path.dirname(path)) or folder in os.path.basename(path)


__all__ = ["Bytes", "Crashed", "FaultyDisk", "JumpingClock", "is_under"]
