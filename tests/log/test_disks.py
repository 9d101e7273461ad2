"""Both disks behave alike; and what the one in memory loses in a crash."""

from __future__ import annotations

import errno
import random
import subprocess
import sys

import pytest

from ottla.log.disk import OsDisk
from ottla.log.memory_disk import MemoryDisk


@pytest.fixture(params=["memory", "os"])
def disk_and_folder(request, tmp_path):
    disk = MemoryDisk() if request.param == "memory" else OsDisk()
    folder = str(tmp_path / "folder")
    disk.make_dir(folder)
    return disk, folder


def test_read_write_truncate(disk_and_folder):
    disk, folder = disk_and_folder
    path = f"{folder}/file"
    with pytest.raises(FileNotFoundError):
        disk.open(path)
    file = disk.open(path, create=True)
    file.write(b"hello world", 0)
    file.write(memoryview(b"W"), 6)
    assert file.read(100, 6) == b"World"
    assert file.read(3, 0) == b"hel"
    assert file.read(3, 50) == b""
    file.truncate(5)
    assert (file.size(), disk.file_size(path)) == (5, 5)
    file.truncate(7)
    assert disk.read_file(path) == b"hello\0\0"
    file.write(b"x", 9)
    assert disk.read_file(path) == b"hello\0\0\0\0x"
    file.sync()
    file.close()
    assert disk.open(path, create=True).size() == 10


def test_names(disk_and_folder):
    disk, folder = disk_and_folder
    for name in ("b", "a"):
        disk.write_file(f"{folder}/{name}", name.encode())
    disk.make_dir(f"{folder}/sub/deeper")
    disk.make_dir(f"{folder}/sub/deeper")
    disk.write_file(f"{folder}/sub/deeper/c", b"c")
    assert disk.names(folder) == ["a", "b", "sub"]
    assert [disk.is_dir(f"{folder}/{name}") for name in ("a", "sub", "none")] == [False, True, False]
    assert [disk.exists(f"{folder}/{name}") for name in ("a", "sub", "none")] == [True, True, False]
    disk.rename(f"{folder}/a", f"{folder}/b")
    disk.rename(f"{folder}/sub", f"{folder}/moved")
    assert disk.names(folder) == ["b", "moved"]
    assert disk.read_file(f"{folder}/b") == b"a"
    assert disk.read_file(f"{folder}/moved/deeper/c") == b"c"
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{folder}/none", f"{folder}/b")
    disk.remove(f"{folder}/b")
    disk.remove(f"{folder}/b")
    disk.remove_dir(f"{folder}/moved")
    disk.remove_dir(f"{folder}/moved")
    assert disk.names(folder) == []
    with pytest.raises(FileNotFoundError):
        disk.names(f"{folder}/none")
    with pytest.raises(FileNotFoundError):
        disk.read_file(f"{folder}/none")
    with pytest.raises(FileNotFoundError):
        disk.open(f"{folder}/none/x", create=True)


def test_write_file_replaces_and_leaves_no_trace(disk_and_folder):
    disk, folder = disk_and_folder
    for data in (b"long content", b"short", b""):
        for sync in (True, False):
            disk.write_file(f"{folder}/file", data, sync=sync)
            assert disk.read_file(f"{folder}/file") == data
    assert disk.names(folder) == ["file"]


def test_open_file_survives_its_name(disk_and_folder):
    disk, folder = disk_and_folder
    file = disk.open(f"{folder}/a", create=True)
    file.write(b"one", 0)
    disk.rename(f"{folder}/a", f"{folder}/b")
    file.write(b"two", 3)
    disk.remove(f"{folder}/b")
    assert file.read(10, 0) == b"onetwo"


def test_lock(disk_and_folder):
    disk, folder = disk_and_folder
    lock = disk.lock(f"{folder}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{folder}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{folder}/.lock")
    lock.close()
    lock.close()
    disk.lock(f"{folder}/.lock").close()


def test_lock_keeps_other_processes_out(tmp_path):
    lock = OsDisk().lock(str(tmp_path / ".lock"))
    take = "import sys; from ottla.log.disk import OsDisk; OsDisk().lock(sys.argv[1])"
    command = [sys.executable, "-c", take, str(tmp_path / ".lock")]
    assert b"BlockingIOError" in subprocess.run(command, capture_output=True, check=False).stderr
    lock.close()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_space(disk_and_folder):
    disk, folder = disk_and_folder
    total, usable = disk.space(folder)
    assert total >= usable > 0


def crashed(seed: int, prepare) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir("d")
    disk.sync_dir("")
    prepare(disk)
    disk.crash(random.Random(seed))
    return disk


def test_synced_bytes_survive_and_the_rest_is_a_prefix_perhaps_with_zeros():
    def prepare(disk):
        file = disk.open("d/f", create=True)
        file.write(b"safe", 0)
        file.sync()
        disk.sync_dir("d")
        file.write(b"abc", 4)
        file.write(b"def", 7)

    contents = {crashed(seed, prepare).read_file("d/f") for seed in range(300)}
    assert b"safe" in contents
    assert b"safeabcdef" in contents
    assert b"safeab" in contents
    assert b"safea\0\0" in contents
    for content in contents:
        assert content.startswith(b"safe")
        assert b"safeabcdef".startswith(content.rstrip(b"\0"))


def test_names_survive_from_the_first_on_up_to_some_point():
    def prepare(disk):
        for name in ("a", "b", "c"):
            disk.write_file(f"d/{name}", b"x", sync=name == "a")
        disk.rename("d/a", "d/z")

    seen = {tuple(n for n in crashed(seed, prepare).names("d") if not n.endswith(".tmp")) for seed in range(300)}
    assert seen == {("a",), ("a", "b"), ("a", "b", "c"), ("b", "c", "z")}


def test_write_file_with_a_sync_is_all_or_nothing():
    def prepare(disk):
        disk.write_file("d/f", b"old")
        file = disk.open("d/g", create=True)
        file.write(b"x", 0)

    for seed in range(50):
        assert crashed(seed, prepare).read_file("d/f") == b"old"


def test_write_file_without_a_sync_may_lose_its_content():
    contents = {crashed(seed, lambda d: d.write_file("d/f", b"new", sync=False)).exists("d/f") for seed in range(50)}
    assert contents == {True, False}


def test_descriptors_and_locks_die_with_the_crash():
    disk = MemoryDisk()
    disk.make_dir("d")
    file = disk.open("d/f", create=True)
    disk.lock("d/.lock")
    disk.sync_dir("d")
    disk.crash(random.Random(1))
    for use in (lambda: file.read(1, 0), lambda: file.write(b"x", 0), file.sync):
        with pytest.raises(OSError, match="closed"):
            use()
    disk.lock("d/.lock")


def test_full_disk_takes_what_fits():
    disk = MemoryDisk(capacity=10)
    disk.make_dir("d")
    file = disk.open("d/f", create=True)
    file.write(b"12345678", 0)
    with pytest.raises(OSError, match="No space") as caught:
        file.write(b"abcd", 8)
    assert caught.value.errno == errno.ENOSPC
    assert disk.read_file("d/f") == b"12345678ab"
    file.write(b"xx", 0)
    assert disk.space("d") == (10, 0)


def test_faults_on_chosen_paths():
    disk = MemoryDisk()
    disk.make_dir("d")
    disk.fail("write", where=lambda path: path.endswith("bad"))
    disk.open("d/good", create=True).write(b"x", 0)
    with pytest.raises(OSError, match="Input/output"):
        disk.open("d/bad", create=True).write(b"x", 0)
    disk.heal()
    disk.open("d/bad").write(b"x", 0)
