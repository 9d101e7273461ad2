"""``Disk``, the file system interface through which the broker opens, reads, writes and renames every file.

``OsDisk`` is the machine's file system; ``memory_disk.MemoryDisk`` is a simulated one that can crash, tear, fill up and
fail. Paths are strings joined with ``/``. Positions and sizes are bytes. All calls block and raise ``OSError``.

Durability follows POSIX: bytes are safe after ``OpenFile.sync``, a name is safe after ``sync_dir`` of its folder, and
``write_file`` leaves either the old content or the new one, whatever happens in between.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from typing import ClassVar, Protocol

from ..base.system_calls import descriptor_limit, sync_all, sync_data

FILE_MODE = 0o600
DIR_MODE = 0o700

Bytes = bytes | bytearray | memoryview


class OpenFile(Protocol):
    """One open file, read and written at given positions."""

    def fileno(self) -> int:
        """The descriptor, or -1 where there is none."""
        ...

    def size(self) -> int: ...

    def read(self, nbytes: int, position: int) -> bytes:
        """At most ``nbytes`` bytes; fewer only at the end of the file."""
        ...

    def write(self, data: Bytes, position: int) -> None:
        """Write all of ``data``. After an OSError any prefix of it may be in the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes, or fill it with zeros up to there."""
        ...

    def sync(self) -> None:
        """Return once the file's bytes are on stable storage."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    """A held lock file; the lock ends with ``close`` or with the process."""

    def close(self) -> None: ...


class Disk(Protocol):
    """A file system."""

    def max_open_files(self) -> int:
        """How many files the logs of a folder may keep open."""
        ...

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        """Open for reading and writing. ``create`` makes a missing file; without it FileNotFoundError."""
        ...

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, data: Bytes, *, sync: bool = True, sync_name: bool = True) -> None:
        """Replace the whole file atomically (``path.tmp`` and rename); durable on return.

        With ``sync_name`` False its folder is left for the caller to sync, with ``sync`` False the content, too.
        """
        ...

    def names(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def file_size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None: ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder; an existing target file is replaced."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when it is not there."""
        ...

    def make_dir(self, path: str) -> None:
        """Make a folder and its parents; nothing happens when it is there."""
        ...

    def remove_dir(self, path: str) -> None:
        """Remove a folder with all in it; nothing happens when it is not there."""
        ...

    def sync_dir(self, path: str) -> None:
        """Return once the names in the folder are on stable storage."""
        ...

    def lock(self, path: str) -> Lock:
        """Take the lock file, making it if need be. Raises BlockingIOError when another process holds it."""
        ...

    def space(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the volume that holds ``path``."""
        ...


def join(folder: str, name: str) -> str:
    """The path of ``name`` in ``folder``."""
    return f"{folder}/{name}"


class OsFile:
    """An open file of the operating system."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def read(self, nbytes: int, position: int) -> bytes:
        data = os.pread(self._fd, nbytes, position)
        if len(data) == nbytes or not data:
            return data
        parts = [data]
        got = len(data)
        while got < nbytes and (data := os.pread(self._fd, nbytes - got, position + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def write(self, data: Bytes, position: int) -> None:
        written = os.pwrite(self._fd, data, position)
        if written != len(data):
            rest = memoryview(data)
            while written < len(rest):
                written += os.pwrite(self._fd, rest[written:], position + written)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        sync_data(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class OsLock:
    """A POSIX record lock, as the JVM takes it, so that Ottla and Apache Kafka keep each other out.

    Such a lock knows processes only, and ends when the process closes *any* descriptor of the file; so the paths locked
    by this process are kept here and looked at before the file is opened. A shared lock, which excludes only exclusive
    ones, opens the file for reading and does not create it.
    """

    _held: ClassVar[set[str]] = set()

    def __init__(self, path: str, *, shared: bool = False) -> None:
        self._path = os.path.realpath(path)
        if self._path in self._held:
            raise BlockingIOError(errno.EAGAIN, "the lock is held by this process", path)
        flags = os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT
        self._fd = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.lockf(self._fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise BlockingIOError(errno.EAGAIN, "the lock is held by another process", path) from None
        self._held.add(self._path)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._held.discard(self._path)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, FILE_MODE)


class OsDisk:
    """The machine's file system. What is made here only its owner can read: it holds records, credentials and tokens."""

    def max_open_files(self) -> int:
        return descriptor_limit() // 2

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        return OsFile(os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), FILE_MODE))

    def read_file(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_file(self, path: str, data: Bytes, *, sync: bool = True, sync_name: bool = True) -> None:
        temporary = path + ".tmp"
        with open(temporary, "wb", buffering=0, opener=_open_private) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            if sync:
                sync_data(file.fileno())
        os.replace(temporary, path)
        if sync and sync_name:
            self.sync_dir(os.path.dirname(path))

    def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def file_size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

    def make_dir(self, path: str) -> None:
        os.makedirs(path, DIR_MODE, exist_ok=True)

    def remove_dir(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def sync_dir(self, path: str) -> None:
        fd = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync_all(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> Lock:
        return OsLock(path)

    def space(self, path: str) -> tuple[int, int]:
        stat = os.statvfs(path)
        return stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize
