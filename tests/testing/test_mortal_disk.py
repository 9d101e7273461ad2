"""A killed broker's disk: what was written is there, and nothing is changed any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.testing.mortal_disk import Killed, MortalDisk


def test_nothing_is_changed_after_death_and_what_is_there_can_be_used_again(tmp_path: Path) -> None:
    disk = MortalDisk(sharers=2)
    folder, path, lock = (str(tmp_path / name) for name in ("folder", "file", ".lock"))
    disk.lock(lock)
    file = disk.open(path, create=True)
    file.write(b"written", 0)
    disk.die()
    changes: list[Callable[[], object]] = [
        lambda: file.write(b"more", 7),
        lambda: file.truncate(1),
        lambda: file.sync(),
        lambda: disk.open(folder, create=True),
        lambda: disk.write_file(path, b""),
        lambda: disk.set_modified_ms(path, 1),
        lambda: disk.rename(path, folder),
        lambda: disk.remove(path),
        lambda: disk.make_dir(folder),
        lambda: disk.remove_dir(str(tmp_path)),
        lambda: disk.sync_dir(str(tmp_path)),
        lambda: disk.lock(folder),
    ]
    for change in changes:
        with pytest.raises(Killed):
            change()
    assert sorted(each.name for each in tmp_path.iterdir()) == [".lock", "file"]

    another = MortalDisk(sharers=2)
    with pytest.raises(BlockingIOError):
        another.lock(lock)
    disk.release()
    another.lock(lock)
    assert another.read_file(path) == b"written"
    another.release()
