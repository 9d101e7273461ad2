"""Whatever is wrong in a folder, a start does with it what ``verify`` said that it would: random damage, and a real start."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ottla.log.checkpoints import read_leader_epochs, write_leader_epochs, write_offsets
from ottla.log.disk import OsDisk
from ottla.log.partition_log import PartitionLog
from ottla.log.read_only_disk import ReadOnlyDisk
from ottla.log.verify.directory import verify_folder
from ottla.log.verify.findings import Finding
from ottla.wire.batch_layout import BATCH_HEADER_SIZE
from ottla.wire.records import Record, iter_batches

SETTINGS = {"segment_bytes": 3000, "index_interval_bytes": 200}
BROKER_FILES = ("recovery-point", "log-start", "replication", "cleaner")
REMOVAL = re.compile(r"cuts the log|removes|empties")


async def fill(world, *, clean: bool) -> None:
    """Segments, epochs, producers, aborted transactions; after a crash, with a recovery point in the middle."""
    log = await world.log(**SETTINGS)
    manager = world.managers[-1]
    await manager.identify(1, "a-cluster")
    producers = log.producer_state
    for number in range(40):
        world.clock.now += 1000
        epoch = number // 15
        world.append(log, *[Record(timestamp=world.clock.now + n, value=b"x" * 90) for n in range(3)], epoch=epoch)
        if number % 10 == 4:
            producers.confirm(9, producers.begin_verification(9, 0, number // 10, world.clock.now))
            header = {"producer_id": 9, "producer_epoch": 0, "base_sequence": number // 10}
            world.append(log, "t", epoch=epoch, is_transactional=True, **header)
        if number % 10 == 8:
            world.abort(log, 9, epoch)
            log.high_watermark = log.log_end_offset
        if number == 22:
            await log.flush()
            await manager.write_checkpoints()
    if clean:
        await manager.stop()
    else:
        world.kill()


def write_at(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def damage_bytes(rng: random.Random, folder: Path) -> None:
    """Somewhere in some file."""
    path = rng.choice([path for path in sorted(folder.iterdir()) if path.stat().st_size])
    size = path.stat().st_size
    position = rng.randrange(size)
    length = min(size - position, rng.choice([1, 4, 50, 400]))
    write_at(path, position, rng.choice([rng.randbytes(length), bytes(length), b"\xff" * length]))


def damage_header(rng: random.Random, folder: Path) -> None:
    """In one of the first fields of a batch: they decide whether it can be stepped over, and where the log ends."""
    path = rng.choice([path for path in sorted(folder.glob("*.log")) if path.stat().st_size])
    at, starts = 0, []
    for batch in iter_batches(path.read_bytes()):
        starts.append(at)
        at += batch.size
    position, length = rng.choice(
        [(0, 8), (8, 4), (12, 4), (16, 1), (17, 4), (23, 4), (27, 16), (BATCH_HEADER_SIZE, 3)]
    )
    start = rng.choice([starts[0], starts[-1], rng.choice(starts)])
    write_at(path, start + position, rng.choice([rng.randbytes(length), bytes(length), b"\x7f" + bytes(length - 1)]))


def damage_length(rng: random.Random, folder: Path) -> None:
    path = rng.choice(sorted(folder.iterdir()))
    data = path.read_bytes()
    if rng.random() < 0.5:
        path.write_bytes(data[: rng.randrange(len(data) + 1)])
    else:
        path.write_bytes(data + rng.choice([rng.randbytes(30), bytes(100)]))


def damage_by_loss(rng: random.Random, folder: Path) -> None:
    """One file, or all of a segment's."""
    path = rng.choice(sorted(folder.iterdir()))
    if rng.random() < 0.5:
        path.unlink()
    else:
        for other in folder.glob(f"{path.stem}.*"):
            other.unlink()


def damage_checkpoint(rng: random.Random, folder: Path) -> None:
    path = folder.parent / f"{rng.choice(BROKER_FILES)}-offset-checkpoint"
    write_offsets(OsDisk(), str(path), {("t", 0): rng.choice([0, 5, 60, 100, 9999])})


def damage_epochs(rng: random.Random, folder: Path) -> None:
    path = str(folder / "leader-epoch-checkpoint")
    if Path(path).exists():
        entries = read_leader_epochs(OsDisk(), path)
        more = [*entries, (7, rng.choice([100, 9999]))]
        write_leader_epochs(OsDisk(), path, rng.choice([more, entries[:-1], entries[:1]]))


DAMAGES: list[Callable[[random.Random, Path], None]] = [
    damage_bytes,
    damage_bytes,
    damage_header,
    damage_header,
    damage_length,
    damage_by_loss,
    damage_checkpoint,
    damage_epochs,
]


def damage(rng: random.Random, folder: Path) -> None:
    """One thing or a few; one that can no longer be done, because of what was done before, is left out."""
    for how in rng.choices(DAMAGES, k=rng.choice([1, 1, 2, 3])):
        try:
            how(rng, folder)
        except Exception as error:  # the files are damaged already
            assert not isinstance(error, AssertionError)


@dataclass
class Folder:
    """The files of the partition, by name, before the start."""

    path: Path
    sizes: dict[str, int]
    segments: list[int]
    epochs: bytes | None


def look(path: Path) -> Folder:
    epochs = path / "leader-epoch-checkpoint"
    return Folder(
        path,
        {file.name: file.stat().st_size for file in path.iterdir()},
        sorted(int(file.stem) for file in path.glob("*.log")),
        epochs.read_bytes() if epochs.exists() else None,
    )


def number_in(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None, text
    return int(found[1])


def check_segments(finding: Finding, log: PartitionLog, before: Folder, name: str, emptied: bool) -> bool:
    """Whether the finding says something of segments; then it has to be what happened."""
    start, after = finding.start, {segment.base_offset: segment.size for segment in log.segments}
    base = int(name.split(".")[0]) if name.endswith((".log", "index")) else -1
    if start.startswith("cuts the log"):
        assert log.log_end_offset == number_in(r"offset (\d+)", start)
        later = [other for other in before.segments if other > base]
        assert bool(later) == ("removes" in start) and not [other for other in later if other in after]
        assert not later or number_in(r"removes (\d+)", start) == len(later)
    elif start == "removes the segment":
        assert after.get(base, 0) == 0 if emptied else base not in after
    elif start == "removes it and all after it":
        assert emptied or not [other for other in after if other >= base]
    elif start == "removes the segments behind it":
        assert emptied or not [other for other in after if other > base]
    elif start.startswith("empties it"):
        assert number_in(r"start offset is (\d+)", finding.problem) == log.log_start_offset == log.log_end_offset
        assert sum(after.values()) == 0
    elif start.startswith("leaves it as it is") or start == "does not look there":
        assert after[base] == before.sizes[name]
    else:
        return False
    return True


def check_small_files(finding: Finding, log: PartitionLog, before: Folder, name: str) -> None:
    """What the finding says of anything but segments is what happened."""
    start, entries = finding.start, log.leader_epochs.entries()
    if start == "drops that epoch":
        assert all(offset < log.log_end_offset for _, offset in entries)
    elif " by this file" in finding.problem:
        offset, epoch, known = map(int, re.findall(r"-?\d+", finding.problem))
        found = log.leader_epochs.epoch_for_offset(offset)
        expected = {known: "believes the file", epoch: "adds that epoch"}
        assert start == expected.get(found, f"takes epoch {found} for it")
    elif start.startswith("takes") and name == "t-0":
        mine = log.recovery_point if "recovery point" in finding.problem else log.high_watermark
        assert start == f"takes {'the end' if mine == log.log_end_offset else mine} for it"
    elif start == "removes it":
        assert not (before.path / name).exists() or name.endswith(".snapshot")  # a stop writes one at the end


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("seed", range(20))
async def test_start_does_what_was_predicted(os_world, tmp_path, seed, clean):
    await fill(os_world, clean=clean)
    template = tmp_path / "template"
    Path(os_world.path).rename(template)
    for step in range(4):
        rng = random.Random(f"{seed} {step}")
        shutil.copytree(template, os_world.path)
        path = Path(os_world.path) / "t-0"
        damage(rng, path)
        before = look(path)
        findings = list(verify_folder(ReadOnlyDisk(), os_world.path))
        os_world.managers.clear()
        log = await os_world.log(**SETTINGS)
        check(findings, log, before)
        await os_world.managers[-1].stop()
        again = {(finding.path, finding.problem) for finding in verify_folder(ReadOnlyDisk(), os_world.path)}
        for finding in findings:
            key = (finding.path, finding.problem)
            if finding.start in ("rebuilds it", "removes the segment", "removes it"):
                assert key not in again
            elif finding.start in ("believes it", "does not look there") or finding.start.startswith("leaves it"):
                assert key in again
        shutil.rmtree(os_world.path)


def check(findings: list[Finding], log: PartitionLog, before: Folder) -> None:
    """All that was said of the partition is so, and nothing else has become of its segments."""
    mine = [(finding, finding.path.removeprefix("t-0/")) for finding in findings if finding.path.startswith("t-0")]
    emptied = any(finding.start.startswith("empties it") for finding, _ in mine)
    for finding, name in mine:
        if not check_segments(finding, log, before, name, emptied):
            check_small_files(finding, log, before, name)
    if not any(REMOVAL.search(finding.start) for finding, name in mine if not name.endswith(".snapshot")):
        assert [segment.base_offset for segment in log.segments] == before.segments
        for segment in log.segments:
            assert segment.size == before.sizes[f"{segment.base_offset:020d}.log"]
