"""The disk of a broker that can be killed without ending its process.

After ``die`` every change raises ``Killed``, so that nothing that the broker's tasks still do while they end reaches the files:
what it had written before stays, as after the kill of a process, and there is no mark of a clean stop. ``release`` closes what
the kernel would close.
"""

from __future__ import annotations

from ..log.disk import Bytes, Lock, OpenFile, OsDisk


class Killed(BaseException):
    """The broker was killed. A BaseException, so that no handler of exceptions in the broker goes on."""


class MortalDisk(OsDisk):
    """The disk of one node, from its start to its end. ``sharers``: how many nodes share the process's descriptors."""

    def __init__(self, sharers: int, *, is_synced: bool = True) -> None:
        self.is_dead = False
        self.is_synced = is_synced
        """If False, nothing waits until it is on stable storage, because the files go with the process."""
        self._sharers = sharers
        self._open: set[OpenFile | Lock] = set()

    def die(self) -> None:
        """Refuse every change from now on. A write that is going on in a thread is finished."""
        self.is_dead = True

    def release(self) -> None:
        """Close all open files and release the locks, once no task of the broker is left."""
        for each in list(self._open):
            each.close()

    def check(self) -> None:
        if self.is_dead:
            raise Killed

    def max_open_files(self) -> int:
        return super().max_open_files() // self._sharers

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        self.check()
        file = _MortalFile(super().open(path, create=create), self)
        self._open.add(file)
        return file

    def lock(self, path: str) -> Lock:
        self.check()
        lock = super().lock(path)
        self._open.add(lock)
        return lock

    def closed(self, file: OpenFile) -> None:
        """Forget a file that its user has closed."""
        self._open.discard(file)

    def write_file(self, path: str, data: Bytes, *, sync: bool = True, sync_name: bool = True) -> None:
        self.check()
        super().write_file(path, data, sync=sync and self.is_synced, sync_name=sync_name)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self.check()
        super().set_modified_ms(path, modified_ms)

    def rename(self, source: str, target: str) -> None:
        self.check()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self.check()
        super().remove(path)

    def make_dir(self, path: str) -> None:
        self.check()
        super().make_dir(path)

    def remove_dir(self, path: str) -> None:
        self.check()
        super().remove_dir(path)

    def sync_dir(self, path: str) -> None:
        self.check()
        if self.is_synced:
            super().sync_dir(path)


class _MortalFile:
    """An open file of a ``MortalDisk``."""

    def __init__(self, file: OpenFile, disk: MortalDisk) -> None:
        self._file = file
        self._disk = disk
        self.fileno = file.fileno
        self.size = file.size
        self.read = file.read

    def write(self, data: Bytes, position: int) -> None:
        self._disk.check()
        self._file.write(data, position)

    def truncate(self, size: int) -> None:
        self._disk.check()
        self._file.truncate(size)

    def sync(self) -> None:
        self._disk.check()
        if self._disk.is_synced:
            self._file.sync()

    def close(self) -> None:
        self._file.close()
        self._disk.closed(self)
