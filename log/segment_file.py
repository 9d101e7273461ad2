"""The record batch file of a segment: its name, its file descriptor, and the pins of its readers.

The file is opened when first used, and its folder may close it again when too many are open. A *pinned* file keeps its
descriptor, even when the segment is deleted meanwhile: once closed, its number may be that of another file, whose bytes
would then be sent.

Batches lie end to end. Nothing before ``size`` ever changes but by a truncation; bytes in the file behind ``size`` are
the rest of a write that failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..wire.records import RecordBatch
from .disk import Disk, OpenFile, join
from .files import LOG_SUFFIX, file_name
from .log_directory import LogDirectory
from .scan import scan_batches


class SegmentFile:
    """The file of one segment's record batches."""

    __slots__ = (
        "base_offset",
        "directory",
        "folder",
        "is_closed",
        "open_file",
        "pins",
        "positions",
        "size",
        "suffix",
        "was_used",
    )

    def __init__(self, folder: LogDirectory, directory: str, base_offset: int) -> None:
        """No file is touched."""
        self.folder = folder
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = ""
        """Follows the names of all files of the segment while a cleaning makes it; empty otherwise."""
        self.size = 0
        """Bytes of whole batches."""
        self.open_file: OpenFile | None = None
        self.pins = 0
        """The readers that need the descriptor to stay open."""
        self.was_used = False
        """Whether it was used since the log directory last looked for files to close."""
        self.is_closed = False
        """Whether the segment is given up; the descriptor goes with the last pin."""
        self.positions: dict[int, int] | None = None
        """Where sequential readers will go on, by offset, so that these need no search; forgotten with the descriptor."""

    @property
    def disk(self) -> Disk:
        return self.folder.disk

    @property
    def path(self) -> str:
        return self.path_of(LOG_SUFFIX)

    def path_of(self, suffix: str) -> str:
        """The path of the segment's file of another kind."""
        return join(self.directory, file_name(self.base_offset, suffix) + self.suffix)

    def create(self) -> None:
        """Make the file, empty. Raises OSError."""
        self.open_file = self.folder.disk.open(self.path, create=True)
        self.folder.opened(self)
        self.open_file.truncate(0)

    def open(self) -> OpenFile:
        """The open file. Raises OSError."""
        self.was_used = True
        if self.open_file is None:
            self.open_file = self.folder.disk.open(self.path)
            self.folder.opened(self)
        return self.open_file

    def scan(self, start: int) -> Iterator[tuple[int, RecordBatch]]:
        """``scan_batches`` from the position ``start`` to the end. Raises OSError at once, KafkaError later."""
        return scan_batches(self.open(), start, self.size)

    # --- closing ------------------------------------------------------------------------------------------------------

    def close_file(self) -> None:
        """Close the descriptor, which the folder does not count any more."""
        assert self.pins == 0
        if self.open_file is not None:
            self.open_file.close()
            self.open_file = None
        self.positions = None

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep the descriptor open in the block."""
        self.pins += 1
        try:
            yield
        finally:
            self.unpin()

    def unpin(self) -> None:
        """Take back one of ``pins``, which keep the descriptor open."""
        self.pins -= 1
        if self.pins == 0 and self.is_closed:
            self._close_now()

    def close(self) -> None:
        """Close the file, now or with the last pin."""
        self.is_closed = True
        if self.pins == 0:
            self._close_now()

    def _close_now(self) -> None:
        if self.open_file is not None:
            self.folder.closed(self)
            self.close_file()
