"""The process's disk traffic, as Linux tells it."""

from __future__ import annotations

from pathlib import Path

from ottla.broker.metrics.disk_io import DiskIo, disk_io


def test_bytes_of_disks_and_not_of_the_page_cache(tmp_path: Path) -> None:
    file = tmp_path / "io"
    file.write_text("rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n")
    assert disk_io(str(file)) == DiskIo(read=5, written=6)


def test_nothing_where_the_system_does_not_tell(tmp_path: Path) -> None:
    assert disk_io(str(tmp_path / "no such file")) is None
    (tmp_path / "io").write_text("rchar: 1\n")
    assert disk_io(str(tmp_path / "io")) is None
