"""What must not grow with the number of segments and partitions: files read at the start and by the upkeep, open files."""

from __future__ import annotations

import pytest


class Touched:
    """The files that are read or opened from now on."""

    def __init__(self, disk) -> None:
        self.paths: list[str] = []
        for operation in ("read", "open"):
            disk.fail(operation, where=self._note)

    def _note(self, path: str) -> bool:
        self.paths.append(path)
        return False

    def segments(self) -> set[str]:
        """Names of segments' files among them."""
        names = {path.rsplit("/", 1)[1] for path in self.paths}
        return {name for name in names if name.endswith((".log", ".index", ".timeindex"))}


async def start_with_many_segments(world):
    manager = await world.start(segment_bytes=200)
    log = manager.get_or_create("t", 0, bytes(16))
    for _ in range(50):
        world.append(log, "x" * 100)
    assert len(log.segments) == 50
    return manager, log


async def test_clean_start_reads_the_last_segment_only(memory_world):
    manager, log = await start_with_many_segments(memory_world)
    last = log.segments[-1].base_offset
    await manager.stop()
    touched = Touched(memory_world.disk)
    await memory_world.start()
    assert touched.segments() == {f"{last:020d}.log", f"{last:020d}.index"}


async def test_recovery_reads_from_the_recovery_point_on(memory_world):
    manager, log = await start_with_many_segments(memory_world)
    await log.flush()
    await manager.write_checkpoints()
    for _ in range(3):
        memory_world.append(log, "x" * 100)
    memory_world.kill()
    touched = Touched(memory_world.disk)
    log = await memory_world.log()
    assert log.log_end_offset == 53
    assert {name[:20] for name in touched.segments()} == {f"{offset:020d}" for offset in range(50, 53)}


async def test_looking_for_old_segments_again_reads_nothing(memory_world):
    manager, _ = await start_with_many_segments(memory_world)
    await manager.stop()
    manager = await memory_world.start(segment_bytes=200)
    await manager.delete_old_segments()
    touched = Touched(memory_world.disk)
    await manager.delete_old_segments()
    assert touched.paths == []
    memory_world.append(manager.get("t", 0), "x", timestamp=memory_world.clock.now + 5)
    assert manager.get("t", 0).segments[-1].indexes.largest_timestamp() == memory_world.clock.now + 5


@pytest.mark.parametrize("folders", [1, 2])
async def test_open_files_are_bounded(memory_world, folders, read_values):
    memory_world.more_paths = ["second", "third"][: folders - 1]
    manager = await memory_world.start()
    for folder in manager.folders:
        folder.max_open_files = 10
    logs = [manager.get_or_create("t", number, bytes(16)) for number in range(60)]
    for _ in range(3):
        for log in logs:
            memory_world.append(log, "x")
        opened = [segment for log in logs for segment in log.segments if segment.file.open_file is not None]
        assert len(opened) <= 10 * folders
    assert all([offset for offset, _ in read_values(log)] == [0, 1, 2] for log in logs)


async def test_descriptors_are_shared_among_the_folders(memory_world):
    memory_world.more_paths = ["second", "third"]
    manager = await memory_world.start()
    assert sum(folder.max_open_files for folder in manager.folders) <= memory_world.disk.max_open_files()
