"""A disk in memory whose process dies at a chosen operation: before it, and nothing after it happens."""

from __future__ import annotations

import random

from ottla.log.disk import OpenFile
from ottla.log.memory_disk import MemoryDisk


class DiedError(Exception):
    """The process is no more."""


class DyingDisk(MemoryDisk):
    """``operations`` counts what changes something; with ``dies_at`` the process dies instead of that one."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0
        self.dies_at: int | None = None

    def check(self, operation: str, path: str) -> None:
        if operation not in ("read", "open"):
            self._count()
        super().check(operation, path)

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        if create and not self.exists(path):
            self._count()
        return super().open(path, create=create)

    def make_dir(self, path: str) -> None:
        self._count()
        super().make_dir(path)

    def _count(self) -> None:
        if self.dies_at is not None and self.operations >= self.dies_at:
            raise DiedError
        self.operations += 1

    def restart(self, power_lost: random.Random | None) -> None:
        """What the next process finds; ``power_lost`` chooses what is left of what was not synced."""
        self.dies_at = None
        if power_lost is None:
            self.kill()
        else:
            self.crash(power_lost)

    def settle(self) -> None:
        """Have everything that was done so far survive every crash."""
        for path, inode in self._names.items():
            if inode is not None:
                inode.sync()
            self.sync_dir(path.rsplit("/", 1)[0])
        self.operations = 0

    def copy(self) -> DyingDisk:
        """Another disk with the same files, all of them synced."""
        return DyingDisk.of(self)

    @classmethod
    def of(cls, disk: MemoryDisk) -> DyingDisk:
        """One with the files of another disk, all of them synced."""
        made = cls()
        for path in sorted(disk._names):
            inode = disk._names[path]
            if inode is None:
                made.make_dir(path)
            else:
                made.write_file(path, bytes(inode.data))
        made.settle()
        return made
