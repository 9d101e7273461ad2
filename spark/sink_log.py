"""``_spark_metadata``: Spark's own list of the valid files in a folder that a streaming query writes.

A list is a line ``v1`` and a line of JSON for each file. ``7`` lists the files of micro-batch 7; at a fixed interval of batches
a list like ``9.compact`` has the files of all batches up to 9. The files that count are those in the newest ``.compact`` and in
the lists after it. Spark reads only these files and ignores all others; so replacing the newest ``.compact`` atomically
changes atomically which files count.

This must not be done while a query writes to the folder, because it makes its next ``.compact`` from the one before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from .files import File, Files
from .query import JobError

FOLDER = "_spark_metadata"
_COMPACT = ".compact"
_VERSION = "v1"


@dataclass(frozen=True)
class SinkFileStatus:
    """A file that counts."""

    path: str
    size: int
    is_replaceable: bool
    """Whether it is in the newest ``.compact``, so that it can be replaced by another file."""


class Folders(Protocol):
    """The operations on files that reading the lists needs."""

    def exists(self, path: str) -> bool: ...

    def names(self, folder: str) -> list[str]: ...

    def read(self, path: str) -> str: ...


class SinkLog:
    """The lists of one output folder."""

    def __init__(self, files: Folders, output: str) -> None:
        self._files = files
        self._folder = f"{output.rstrip('/')}/{FOLDER}"

    def exists(self) -> bool:
        """Whether a streaming query has written here."""
        return self._files.exists(self._folder)

    def listed(self) -> list[SinkFileStatus]:
        """Every file that counts."""
        compact, after = self._lists()
        found = [_listed(line, is_replaceable=True) for line in (self._lines(compact) if compact else [])]
        return found + [_listed(line, is_replaceable=False) for name in after for line in self._lines(name)]

    def replace(self, files: Files, old: Iterable[SinkFileStatus], new: Iterable[File]) -> None:
        """Make the new files count instead of the old ones, all of which must be replaceable; atomic."""
        compact, _ = self._lists()
        assert compact is not None, "nothing is replaceable"
        gone = {file.path for file in old}
        kept = [line for line in self._lines(compact) if _listed(line, is_replaceable=True).path not in gone]
        lines = [_VERSION, *kept, *(json.dumps(_entry(file), separators=(",", ":")) for file in new)]
        files.replace(f"{self._folder}/{compact}", "\n".join(lines))

    def _lists(self) -> tuple[str | None, list[str]]:
        """The name of the newest ``.compact``, and those of the batches after it."""
        names = self._files.names(self._folder)
        compacts = [int(stem) for name in names if (stem := name.removesuffix(_COMPACT)) != name and stem.isdigit()]
        newest = max(compacts, default=-1)
        after = sorted(int(name) for name in names if name.isdigit() and int(name) > newest)
        return f"{newest}{_COMPACT}" if compacts else None, [str(number) for number in after]

    def _lines(self, name: str) -> list[str]:
        version, *lines = self._files.read(f"{self._folder}/{name}").splitlines()
        if version != _VERSION:
            raise JobError(f"{self._folder}/{name} is written in {version}, and only {_VERSION} is known")
        return lines


def _listed(line: str, *, is_replaceable: bool) -> SinkFileStatus:
    entry = json.loads(line)
    return SinkFileStatus(unquote(urlsplit(entry["path"]).path), entry["size"], is_replaceable)


def _entry(file: File) -> dict[str, Any]:
    return {
        "path": file.uri,
        "size": file.size,
        "isDir": False,
        "modificationTime": file.modified_ms,
        "blockReplication": file.replication,
        "blockSize": file.block_size,
        "action": "add",
    }


class LocalFolder:
    """Folders on this machine's disks, without Spark."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return os.path.exists(path)

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if it does not exist."""
        return os.listdir(folder) if os.path.exists(folder) else []

    def read(self, path: str) -> str:
        """The content of a text file."""
        return Path(path).read_text(encoding="utf-8")


def archive_files(output: str) -> list[str]:
    """The Parquet files that count in an archive on this machine, for readers other than Spark. Raises JobError."""
    log = SinkLog(LocalFolder(), output)
    if not log.exists():
        raise JobError(f"{output} is not an archive: it has no {FOLDER}")
    return [file.path for file in log.listed()]
