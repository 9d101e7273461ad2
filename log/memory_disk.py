"""An in-memory file system that loses unsynced data in a crash, for tests and simulated clusters.

What a crash leaves is what POSIX and a journaling file system allow, chosen by the caller's ``random.Random``:

- Of a file's bytes, everything up to its last ``sync``. Later writes and truncations are there up to some point; the
  write at that point may be torn, or its place filled with zeros.
- Of names, everything up to the last ``sync_dir`` of the folder. Later creations, renames and removals, which are
  ordered over the whole disk, are there up to some point.

Descriptors and locks from before the crash are dead. ``capacity`` makes the disk full: a write puts down what fits and
raises ENOSPC. ``fail`` makes an operation raise. Not for several threads: use it with ``InlineWorkers``.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable

from .disk import Bytes, Lock, OpenFile


class _Inode:
    """A file's bytes: as they are, as they were at the last sync, and what was done since."""

    __slots__ = ("changes", "data", "durable", "modified_ms")

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b""
        self.changes: list[tuple[int, bytes | None]] = []  # (position, bytes written), or (size, None) for a truncation
        self.modified_ms = 0

    def change(self, position: int, data: bytes | None) -> None:
        _apply(self.data, position, data)
        self.changes.append((position, data))

    def sync(self) -> None:
        self.durable = bytes(self.data)
        self.changes.clear()

    def crash(self, randomness: random.Random) -> None:
        survivor = bytearray(self.durable)
        survived = randomness.randint(0, len(self.changes))
        for position, data in self.changes[:survived]:
            _apply(survivor, position, data)
        for position, data in self.changes[survived : survived + 1]:
            if data:
                torn = data[: randomness.randint(0, len(data) - 1)]
                _apply(survivor, position, torn + bytes(len(data) - len(torn)) if randomness.random() < 0.5 else torn)
        self.data = survivor
        self.sync()


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del content[position:]
        content.extend(bytes(position - len(content)))
    else:
        content.extend(bytes(max(0, position - len(content))))
        content[position : position + len(data)] = data


_Names = dict[str, _Inode | None]
"""Path -> file, or None for a folder."""


class _MemoryFile:
    __slots__ = ("_disk", "_generation", "_inode", "_path")

    def __init__(self, disk: MemoryDisk, inode: _Inode, path: str) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path
        self._generation = disk.generation

    def _check(self, operation: str) -> None:
        if self._generation != self._disk.generation:
            raise OSError(errno.EBADF, "the descriptor is closed", self._path)
        self._disk.check(operation, self._path)

    def fileno(self) -> int:
        return -1

    def size(self) -> int:
        self._check("read")
        return len(self._inode.data)

    def read(self, nbytes: int, position: int) -> bytes:
        self._check("read")
        return bytes(self._inode.data[position : position + nbytes])

    def write(self, data: Bytes, position: int) -> None:
        self._check("write")
        inode = self._inode
        grows = position + len(data) - len(inode.data)
        room = self._disk.free_bytes()
        inode.modified_ms = self._disk.now_ms()
        if grows > room:
            inode.change(position, bytes(data[: max(0, len(data) - (grows - room))]))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        inode.change(position, bytes(data))

    def truncate(self, size: int) -> None:
        self._check("truncate")
        self._inode.modified_ms = self._disk.now_ms()
        self._inode.change(size, None)

    def sync(self) -> None:
        self._check("sync")
        self._inode.sync()

    def close(self) -> None:
        self._generation = -1


class _MemoryLock:
    def __init__(self, disk: MemoryDisk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._generation = disk.generation

    def close(self) -> None:
        if self._generation == self._disk.generation:
            self._disk.locks.discard(self._path)


class MemoryDisk:
    """A simulated disk; see the module. ``now_ms`` gives the modification times."""

    def __init__(self, *, capacity: int | None = None, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.capacity = capacity
        self.now_ms = now_ms
        self.generation = 0
        """Raised by a crash or a kill; descriptors and locks of an earlier generation are dead."""
        self.locks: set[str] = set()
        self._errors: dict[str, tuple[OSError, Callable[[str], bool]]] = {}
        self._names: _Names = {}
        self._durable: _Names = {}
        self._journal: list[tuple[str, Callable[[_Names], None]]] = []  # folder touched, what happened

    # --- faults -------------------------------------------------------------------------------------------------------

    def fail(self, operation: str, code: int = errno.EIO, *, where: Callable[[str], bool] = lambda path: True) -> None:
        """Make ``read``, ``write``, ``truncate``, ``sync``, ``open``, ``rename`` or ``remove`` fail from now on.

        ``where`` chooses the paths.
        """
        self._errors[operation] = (OSError(code, os.strerror(code)), where)

    def heal(self) -> None:
        """Let every operation succeed again."""
        self._errors.clear()

    def check(self, operation: str, path: str) -> None:
        if self._errors and operation in self._errors:
            error, where = self._errors[operation]
            if where(path):
                raise OSError(error.errno, error.strerror, path)

    def crash(self, randomness: random.Random) -> None:
        """Lose power, and come back with what survives."""
        self.generation += 1
        self.locks.clear()
        for _, happen in self._journal[: randomness.randint(0, len(self._journal))]:
            happen(self._durable)
        self._journal.clear()
        self._names = dict(self._durable)
        for inode in {id(inode): inode for inode in self._names.values() if inode is not None}.values():
            inode.crash(randomness)

    def kill(self) -> None:
        """Kill the process that uses the disk: descriptors and locks go, bytes and names stay."""
        self.generation += 1
        self.locks.clear()

    def free_bytes(self) -> int:
        if self.capacity is None:
            return 1 << 62
        return self.capacity - sum(len(inode.data) for inode in self._names.values() if inode is not None)

    def max_open_files(self) -> int:
        return 1 << 20

    # --- names --------------------------------------------------------------------------------------------------------

    def _happen(self, path: str, change: Callable[[_Names], None]) -> None:
        change(self._names)
        self._journal.append((os.path.dirname(path), change))

    def _file(self, path: str) -> _Inode:
        inode = self._names.get(path)
        if inode is None:
            code = errno.EISDIR if path in self._names else errno.ENOENT
            raise OSError(code, os.strerror(code), path)
        return inode

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        self.check("open", path)
        if create and path not in self._names:
            if os.path.dirname(path) not in self._names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            inode = _Inode()
            inode.modified_ms = self.now_ms()
            self._happen(path, lambda names: names.update({path: inode}))
        return _MemoryFile(self, self._file(path), path)

    def read_file(self, path: str) -> bytes:
        self.check("read", path)
        return bytes(self._file(path).data)

    def write_file(self, path: str, data: Bytes, *, sync: bool = True, sync_name: bool = True) -> None:
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        file.truncate(0)
        file.write(data, 0)
        if sync:
            file.sync()
        file.close()
        self.rename(temporary, path)
        if sync and sync_name:
            self.sync_dir(os.path.dirname(path))

    def names(self, path: str) -> list[str]:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        below = path.rstrip("/") + "/" if path else ""
        found = [name[len(below) :] for name in self._names if name.startswith(below) and name != path]
        return sorted([name for name in found if "/" not in name])

    def exists(self, path: str) -> bool:
        return path in self._names

    def is_dir(self, path: str) -> bool:
        return path in self._names and self._names[path] is None

    def file_size(self, path: str) -> int:
        return len(self._file(path).data)

    def modified_ms(self, path: str) -> int:
        return self._file(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._file(path).modified_ms = modified_ms

    def rename(self, source: str, target: str) -> None:
        self.check("rename", source)
        if source not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)

        def happen(names: _Names) -> None:
            if names.get(source) is not None:  # a file, with nothing below it
                names[target] = names.pop(source)
                return
            for path in [path for path in names if path == source or path.startswith(source + "/")]:
                names[target + path[len(source) :]] = names.pop(path)

        self._happen(target, happen)

    def remove(self, path: str) -> None:
        self.check("remove", path)
        if path in self._names:
            self._happen(path, lambda names: names.__delitem__(path))

    def make_dir(self, path: str) -> None:
        if path and path not in self._names:
            parent = os.path.dirname(path)
            if parent != path:
                self.make_dir(parent)
            self._happen(path, lambda names: names.update({path: None}))

    def remove_dir(self, path: str) -> None:
        self.check("remove", path)

        def happen(names: _Names) -> None:
            for name in [name for name in names if name == path or name.startswith(path + "/")]:
                del names[name]

        self._happen(path, happen)

    def sync_dir(self, path: str) -> None:
        self.check("sync", path)
        last = max((slot for slot, (folder, _) in enumerate(self._journal) if folder == path), default=-1)
        for _, happen in self._journal[: last + 1]:
            happen(self._durable)
        del self._journal[: last + 1]

    def lock(self, path: str) -> Lock:
        if path in self.locks:
            raise BlockingIOError(errno.EAGAIN, "the lock is held", path)
        self.open(path, create=True)
        self.locks.add(path)
        return _MemoryLock(self, path)

    def space(self, path: str) -> tuple[int, int]:
        total = self.capacity if self.capacity is not None else 1 << 40
        return total, min(total, self.free_bytes())
