"""The files of the journal, in one directory of a ``Disk``."""

from __future__ import annotations

import os

from ....log.disk import Disk, OpenFile, join


class DiskStateFiles:
    """``journal.StateFiles`` on a disk. The file appended to stays open."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._open: dict[str, tuple[OpenFile, int]] = {}
        if not disk.is_dir(folder):
            disk.make_dir(folder)
            disk.sync_dir(os.path.dirname(folder))

    def read(self, name: str) -> bytes | None:
        path = join(self._folder, name)
        return self._disk.read_file(path) if self._disk.exists(path) else None

    def append(self, name: str, data: bytes) -> None:
        file, size = self._file(name)
        file.write(data, size)
        file.sync()
        self._open[name] = (file, size + len(data))

    def truncate(self, name: str, size: int) -> None:
        file, _ = self._file(name)
        file.truncate(size)
        file.sync()
        self._open[name] = (file, size)

    def replace(self, name: str, data: bytes) -> None:
        self._disk.write_file(join(self._folder, name), data)

    def close(self) -> None:
        for file, _ in self._open.values():
            file.close()
        self._open.clear()

    def _file(self, name: str) -> tuple[OpenFile, int]:
        """The open file and its size; a new one gets its name synced, or a crash would lose all of it."""
        opened = self._open.get(name)
        if opened is None:
            path = join(self._folder, name)
            is_new = not self._disk.exists(path)
            file = self._disk.open(path, create=True)
            if is_new:
                self._disk.sync_dir(self._folder)
            opened = self._open[name] = (file, file.size())
        return opened
