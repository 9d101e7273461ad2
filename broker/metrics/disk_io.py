"""Bytes that the process has read from and written to disks, on Linux (Kafka's ``LinuxIoMetricsCollector``)."""

from __future__ import annotations

from typing import NamedTuple

_FILE = "/proc/self/io"


class DiskIo(NamedTuple):
    """Bytes since the process began, without what was read from the page cache or is not yet written from it."""

    read: int
    written: int


def disk_io(file: str = _FILE) -> DiskIo | None:
    """Read the counters; None if the system is not Linux, or reading the file is not allowed."""
    try:
        with open(file) as opened:
            counts = dict(line.strip().split(": ", 1) for line in opened if ": " in line)
        return DiskIo(int(counts["read_bytes"]), int(counts["write_bytes"]))
    except (OSError, KeyError, ValueError):
        return None
