"""The transaction index of a segment: the aborted transactions whose abort marker is in it (KIP-98).

File (``<base offset>.txnindex``), made with its first entry; entries of 34 bytes, big-endian, in order of ``last_offset``::

     0 version int16 (0)
     2 producer_id int64
    10 first_offset int64         of the transaction's first record in this partition
    18 last_offset int64          of the abort marker
    26 last_stable_offset int64   of the partition once the marker was there

A consumer that reads committed records gets the entries that overlap what it reads, and drops the records they name.
Entries of later segments may overlap too; an entry whose ``last_stable_offset`` is at or above the end of what is read
says that none after it does.

An entry belongs to a marker that is in the log already, so readers see it whether it could be written or not. One that could
not, since the process had no descriptor left, is written with the next one, at the latest when the segment is sealed or the
log closed; an unclean start rebuilds the entries of the active segment.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from .disk import Bytes
from .files import TRANSACTION_INDEX_SUFFIX
from .offset_index import CorruptIndexError
from .segment_file import SegmentFile

_ENTRY = Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size
_VERSION = 0


class AbortedTxn(NamedTuple):
    """One entry."""

    producer_id: int
    first_offset: int
    """That of the transaction's first record in this partition."""
    last_offset: int
    """That of the abort marker."""
    last_stable_offset: int
    """That of the partition once the marker was there."""


def encode_aborted(entry: AbortedTxn) -> bytes:
    return _ENTRY.pack(_VERSION, *entry)


def decode_transaction_index(data: Bytes, base_offset: int) -> list[AbortedTxn]:
    """Read a file. Raises CorruptIndexError."""
    if len(data) % ENTRY_SIZE:
        raise CorruptIndexError(f"{len(data)} bytes are not a multiple of {ENTRY_SIZE}")
    entries = []
    last = base_offset - 1
    for version, *fields in _ENTRY.iter_unpack(data):
        entry = AbortedTxn(*fields)
        if version > _VERSION:
            raise CorruptIndexError(f"version {version} is unknown")
        if entry.last_offset <= last:
            raise CorruptIndexError(f"the marker at {entry.last_offset} does not come after {last}")
        last = entry.last_offset
        entries.append(entry)
    return entries


def collect_aborted(entries: Iterable[AbortedTxn], start: int, end: int, found: list[AbortedTxn]) -> bool:
    """Add those that overlap the offsets [start, end) to ``found``; True when no later entry can."""
    for entry in entries:
        if entry.last_offset >= start and entry.first_offset < end:
            found.append(entry)
        if entry.last_stable_offset >= end:
            return True
    return False


class TransactionIndex:
    """The entries of one segment, read from the file when first needed."""

    __slots__ = ("_file", "_pending", "_written")

    def __init__(self, file: SegmentFile) -> None:
        self._file = file
        self._written: list[AbortedTxn] | None = None
        self._pending: list[AbortedTxn] = []  # the last ones, which are not in the file yet

    @property
    def path(self) -> str:
        return self._file.path_of(TRANSACTION_INDEX_SUFFIX)

    def entries(self) -> list[AbortedTxn]:
        """The transactions whose abort marker is in the segment. Raises OSError."""
        return self._read() + self._pending if self._pending else self._read()

    def _read(self) -> list[AbortedTxn]:
        if self._written is None:
            try:
                self._written = decode_transaction_index(self._file.disk.read_file(self.path), self._file.base_offset)
            except FileNotFoundError:
                self._written = []
            except CorruptIndexError as error:
                raise OSError(errno.EIO, str(error), self.path) from error
        return self._written

    def append(self, entry: AbortedTxn) -> None:
        """Take up an entry and write it. Raises OSError; it is among ``entries`` anyway."""
        self._pending.append(entry)
        self.write()

    def write(self) -> None:
        """Write the entries that are not in the file yet. Raises OSError."""
        if not self._pending:
            return
        written = self._read()
        file = self._file.disk.open(self.path, create=True)
        try:
            file.write(b"".join(map(encode_aborted, self._pending)), len(written) * ENTRY_SIZE)
        finally:
            file.close()
        written += self._pending
        self._pending = []

    def sync(self) -> None:
        """Return once the entries are on stable storage; the name of the file is the caller's to sync. Raises OSError."""
        self.write()
        if self._read():
            file = self._file.disk.open(self.path)
            try:
                file.sync()
            finally:
                file.close()

    def clear(self) -> None:
        """Start over without entries. Raises OSError."""
        self._file.disk.remove(self.path)
        self._written = []
        self._pending = []

    def drop(self) -> None:
        """Forget the entries that are in the file, to be read again when needed; an empty list is kept, it saves the read."""
        self._written = self._written and None

    def truncate_to(self, offset: int) -> None:
        """Forget the entries whose marker is at or above ``offset``. Raises OSError."""
        written = self._read()
        kept = [entry for entry in written if entry.last_offset < offset]
        if len(kept) < len(written):
            file = self._file.disk.open(self.path)
            try:
                file.truncate(len(kept) * ENTRY_SIZE)
            finally:
                file.close()
            self._written = kept
        self._pending = [entry for entry in self._pending if entry.last_offset < offset]
