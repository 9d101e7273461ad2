"""A read-only ``Disk`` over the machine's file system, for tools that only read: every write is refused."""

from __future__ import annotations

import errno
import os
from typing import NoReturn

from .disk import Bytes, Lock, OpenFile, OsDisk, OsFile, OsLock


class ReadOnlyDisk(OsDisk):
    """An ``OsDisk`` that changes nothing: calls that would change a file raise PermissionError; its files refuse writes."""

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        if create:
            _refuse(path)
        return OsFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def lock(self, path: str) -> Lock:
        """Keep brokers out while it is held; the file must be there. Raises BlockingIOError, FileNotFoundError."""
        return OsLock(path, shared=True)

    def write_file(self, path: str, data: Bytes, *, sync: bool = True, sync_name: bool = True) -> None:
        _refuse(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        _refuse(path)

    def rename(self, source: str, target: str) -> None:
        _refuse(source)

    def remove(self, path: str) -> None:
        _refuse(path)

    def make_dir(self, path: str) -> None:
        _refuse(path)

    def remove_dir(self, path: str) -> None:
        _refuse(path)


def _refuse(path: str) -> NoReturn:
    raise PermissionError(errno.EROFS, "nothing is written here", path)
