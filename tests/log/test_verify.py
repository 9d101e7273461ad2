"""Every kind of damage is found and named, and a start does what was said that it would. Nothing is ever written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.log.checkpoints import read_leader_epochs, write_leader_epochs, write_offsets
from ottla.log.disk import OsDisk
from ottla.log.log_copy import LogCopy
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_snapshot import decode_snapshot, encode_snapshot
from ottla.log.read_only_disk import ReadOnlyDisk
from ottla.log.verify.directory import NotADataFolderError, verify_folder
from ottla.wire.records import Record

SETTINGS = {"segment_bytes": 4000, "index_interval_bytes": 300}


async def fill(world) -> PartitionLog:
    """Several segments, two leader epochs, producers, committed and aborted transactions, and an open one."""
    log = await world.log(**SETTINGS)
    await world.managers[-1].identify(1, "a-cluster")
    producers = log.producer_state
    for number in range(60):
        world.clock.now += 1000
        world.append(
            log, *[Record(timestamp=world.clock.now + n, value=b"x" * 100) for n in range(3)], epoch=number // 40
        )
        header = {"producer_id": 5, "producer_epoch": 0, "base_sequence": number * 2}
        world.append(log, "a", "b", epoch=number // 40, **header)
        if number % 10 == 7:
            sequence = number // 10
            producers.confirm(9, producers.begin_verification(9, 0, sequence, world.clock.now))
            world.append(
                log,
                "t",
                epoch=number // 40,
                producer_id=9,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=True,
            )
        if number % 10 == 9 and number < 59:
            world.abort(log, 9, number // 40)
            log.high_watermark = log.log_end_offset
    assert len(log.segments) > 5
    return log


def found(world) -> list[str]:
    """The findings as lines; the folder is as it was afterwards."""
    root = Path(world.path)

    def state() -> dict[str, tuple[int, bytes]]:
        return {str(p): (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in root.rglob("*")}

    before = state()
    lines = [str(finding) for finding in verify_folder(ReadOnlyDisk(), world.path)]
    assert state() == before
    return lines


def folder(world) -> Path:
    return Path(world.path) / "t-0"


def nth(world, suffix: str, number: int) -> Path:
    return sorted(folder(world).glob(f"*{suffix}"))[number]


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


async def stopped(world) -> PartitionLog:
    log = await fill(world)
    await world.managers[-1].stop()
    return log


async def test_nothing_is_wrong(os_world):
    await stopped(os_world)
    assert found(os_world) == []


async def test_after_a_second_stop(os_world):
    await stopped(os_world)
    log = await os_world.log(**SETTINGS)
    os_world.append(log, "more", epoch=1)
    await os_world.managers[-1].stop()
    assert found(os_world) == []


async def test_after_a_crash_only_the_mark_is_missing(os_world):
    log = await fill(os_world)
    await log.flush()
    await os_world.managers[-1].write_checkpoints()
    os_world.kill()
    (line,) = found(os_world)
    assert line.startswith(".kafka_cleanshutdown: it is missing")


async def test_log_on_its_way_to_another_folder(os_world, tmp_path):
    os_world.more_paths = [str(tmp_path / "second")]
    log = await fill(os_world)
    manager = os_world.managers[-1]
    copy = LogCopy(log, manager.create_future(log, manager.folders[1]))
    await copy.step()
    await manager.stop()
    (future,) = (tmp_path / "second").glob("t-0.*-future")
    assert list(verify_folder(ReadOnlyDisk(), str(tmp_path / "second"))) == []
    flip(next(future.glob("*.log")), 100)
    lines = [str(finding) for finding in verify_folder(ReadOnlyDisk(), str(tmp_path / "second"))]
    assert lines[0].startswith(f"{future.name}/00000000000000000000.log: ") and "CRC" in lines[0]


async def test_folder_of_no_broker(os_world, tmp_path):
    """An empty one, too: a path that is wrong is not to pass for a folder that is sound."""
    for content in ("", "README.md", "release-2/notes.txt", "notes-1"):
        other = tmp_path / f"other {content[:4]}"
        (other / content).parent.mkdir(parents=True, exist_ok=True)
        (other / content).write_text("") if content else other.mkdir(exist_ok=True)
        with pytest.raises(NotADataFolderError, match="is not a log directory of a broker"):
            list(verify_folder(ReadOnlyDisk(), str(other)))
    await stopped(os_world)
    with pytest.raises(NotADataFolderError, match="is the directory of one partition"):
        list(verify_folder(ReadOnlyDisk(), str(folder(os_world))))


async def test_folder_that_has_lost_all_but_its_partitions(os_world):
    await stopped(os_world)
    for path in Path(os_world.path).iterdir():
        if path.is_file():
            path.unlink()
    assert [line.split(";")[0] for line in found(os_world)] == [
        "meta.properties: it is missing",
        ".kafka_cleanshutdown: it is missing, so the last stop was not clean",
    ]


async def test_folder_of_a_broker_without_topics(os_world):
    await os_world.start()
    await os_world.managers[-1].identify(1, "a-cluster")
    await os_world.managers[-1].stop()
    assert found(os_world) == []


async def test_a_broker_holds_it(os_world):
    await fill(os_world)
    with pytest.raises(BlockingIOError):
        found(os_world)


async def test_damaged_batch_in_doubt_is_cut(os_world):
    log = await fill(os_world)
    os_world.kill()
    later = len(log.segments) - 3
    flip(nth(os_world, ".log", 2), log.segments[2].size // 2)
    (line,) = [line for line in found(os_world) if "no valid batch" in line]
    log = await os_world.log(**SETTINGS)
    assert f"a start cuts the log at offset {log.log_end_offset} and removes {later} segments behind it" in line
    await os_world.managers[-1].stop()
    assert found(os_world) == []


async def test_damaged_batch_that_is_believed_stays(os_world):
    end = (await stopped(os_world)).log_end_offset
    flip(nth(os_world, ".log", 2), 2000)
    (line,) = found(os_world)
    assert "no valid batch follows: the batch of offsets" in line and "a start leaves it as it is" in line
    assert (await os_world.log(**SETTINGS)).log_end_offset == end


async def test_cut_end_of_a_clean_log(os_world):
    await stopped(os_world)
    path = nth(os_world, ".log", -1)
    path.write_bytes(path.read_bytes()[:-1])
    (line,) = [line for line in found(os_world) if "no valid batch" in line]
    log = await os_world.log(**SETTINGS)
    assert f"a start cuts the log at offset {log.log_end_offset}" in line


async def test_lost_segment(os_world):
    log = await fill(os_world)
    os_world.kill()
    for path in folder(os_world).glob(f"{log.segments[3].base_offset:020d}.*"):
        path.unlink()
    (line,) = [line for line in found(os_world) if "it ends at" in line]
    end = log.segments[3].base_offset
    assert (
        f"it ends at {end}, and the next segment begins at" in line and "a start removes the segments behind it" in line
    )
    assert (await os_world.log(**SETTINGS)).log_end_offset == end


Damage = Callable[..., object]


def overwrite_snapshot(world) -> None:
    path = nth(world, ".snapshot", -1)
    states = decode_snapshot(path.read_bytes())
    states[0].batches[0].last_sequence += 1
    path.write_bytes(encode_snapshot(states))


def swap_in_progress(world) -> None:
    for path in list(folder(world).glob(f"{nth(world, '.log', 1).stem}.*")):
        if path.suffix != ".snapshot":
            path.rename(f"{path}.swap")


def add_epoch(world) -> None:
    path = str(folder(world) / "leader-epoch-checkpoint")
    write_leader_epochs(OsDisk(), path, [*read_leader_epochs(OsDisk(), path), (7, 9999)])


def write_checkpoint(name: str, topic: str, offset: int) -> Damage:
    return lambda world: write_offsets(OsDisk(), f"{world.path}/{name}", {(topic, 0): offset})


DAMAGES: dict[str, tuple[Damage, str]] = {
    "offset index entry": (
        lambda w: flip(nth(w, ".index", 1), 3),
        "names another offset than the batch there; a start believes",
    ),
    "offset index position": (lambda w: flip(nth(w, ".index", 1), 7), "which it names; a start believes"),
    "offset index length": (
        lambda w: nth(w, ".index", 1).write_bytes(b"1234567"),
        "not a multiple of 8; a start rebuilds it when",
    ),
    "offset index missing": (lambda w: nth(w, ".index", 1).unlink(), "it is missing; a start rebuilds it when"),
    "active offset index missing": (lambda w: nth(w, ".index", -1).unlink(), "it is missing; a start rebuilds it"),
    "time index entry": (lambda w: flip(nth(w, ".timeindex", 1), 7), "has another timestamp than its batch"),
    "time index end": (
        lambda w: nth(w, ".timeindex", 1).write_bytes(nth(w, ".timeindex", 1).read_bytes()[:-12]),
        "is not its last; a start believes it",
    ),
    "transaction index entry": (lambda w: flip(nth(w, ".txnindex", 0), 9), "is not in it; a start believes it"),
    "transaction index missing": (lambda w: nth(w, ".txnindex", 0).unlink(), "is not in it; a start believes it"),
    "transaction index length": (
        lambda w: nth(w, ".txnindex", 0).write_bytes(b"123"),
        "multiple of 34; a start rebuilds it",
    ),
    "snapshot": (
        lambda w: flip(nth(w, ".snapshot", -1), 20),
        "its CRC is not that of its bytes; a start continues without it",
    ),
    "snapshot content": (overwrite_snapshot, "has sequence 120 in it, and 119 in the log"),
    "stray index": (
        lambda w: (folder(w) / "00000000000000999999.index").write_bytes(b""),
        "there is no .log file next to it; a start removes it",
    ),
    "leader epochs damaged": (
        lambda w: (folder(w) / "leader-epoch-checkpoint").write_text("0\n7\n"),
        "a start rebuilds it from the batches",
    ),
    "leader epochs wrong": (
        lambda w: write_leader_epochs(OsDisk(), str(folder(w) / "leader-epoch-checkpoint"), [(0, 0)]),
        "is of epoch 1, and 0 by this file; a start believes the file",
    ),
    "leader epochs ahead": (
        add_epoch,
        "begins at 9999, after the end of the log",
    ),
    "leader epochs descend": (
        lambda w: write_leader_epochs(OsDisk(), str(folder(w) / "leader-epoch-checkpoint"), [(1, 0), (0, 200)]),
        "its entries do not ascend",
    ),
    "topic id missing": (lambda w: (folder(w) / "partition.metadata").unlink(), "partition.metadata: it is missing"),
    "topic id damaged": (
        lambda w: (folder(w) / "partition.metadata").write_text("version: 0"),
        "there is no topic id in it",
    ),
    "deleted file": (
        lambda w: (folder(w) / "00000000000000000000.log.deleted").write_bytes(b""),
        "1 file (*.deleted) left of segments that are deleted; a start removes the rest",
    ),
    "unfinished file": (
        lambda w: (folder(w) / "leader-epoch-checkpoint.tmp").write_bytes(b""),
        "it was not written to its end; a start removes it",
    ),
    "unfinished compaction": (
        lambda w: (folder(w) / "00000000000000000000.log.cleaned").write_bytes(b""),
        "its compaction did not come to its end; a start removes it",
    ),
    "swap": (swap_in_progress, "its compaction is done except for its name; a start gives it its name"),
    "deleted folder": (
        lambda w: (Path(w.path) / f"t-1.{'0' * 32}-delete").mkdir(),
        "-delete: it is left of a deletion; a start removes it",
    ),
    "empty folder": (
        lambda w: (Path(w.path) / "t-1").mkdir(),
        "t-1: there is no segment in it; a start renames it to *-delete, to be removed",
    ),
    "checkpoint damaged": (
        lambda w: (Path(w.path) / "replication-offset-checkpoint").write_text("1\n"),
        "replication-offset-checkpoint: version '1' is not 0; a start continues without it",
    ),
    "checkpoint of another": (
        write_checkpoint("recovery-point-offset-checkpoint", "gone", 5),
        "it has an entry for gone-0, which is not here; a start forgets it",
    ),
    "recovery point": (write_checkpoint("recovery-point-offset-checkpoint", "t", 9999), "its recovery point is 9999"),
    "high watermark": (write_checkpoint("replication-offset-checkpoint", "t", 9999), "its high watermark is 9999"),
    "cleaned offset": (
        write_checkpoint("cleaner-offset-checkpoint", "t", 9999),
        "it is compacted up to 9999",
    ),
    "log start offset": (
        write_checkpoint("log-start-offset-checkpoint", "t", 9999),
        "its log start offset is 9999, and it ends at",
    ),
    "meta.properties missing": (
        lambda w: (Path(w.path) / "meta.properties").unlink(),
        "meta.properties: it is missing",
    ),
    "meta.properties damaged": (
        lambda w: (Path(w.path) / "meta.properties").write_text("version=7\n"),
        "version 7 is unknown; a start refuses the directory",
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
async def test_damage_is_found(os_world, kind):
    """One finding each, and, once a start has done what it does, none that the start would have made go."""
    await stopped(os_world)
    damage, expected = DAMAGES[kind]
    damage(os_world)
    lines = found(os_world)
    assert len(lines) == 1, lines
    assert expected in lines[0]
    if "refuses" in lines[0]:
        return
    os_world.managers.clear()
    await os_world.log(**SETTINGS)
    await os_world.managers[-1].identify(1, "a-cluster")
    await os_world.managers[-1].stop()
    # What the upkeep or a reader would do is not done yet.
    is_kept = any(
        words in lines[0] for words in ("believes", "ignores", "when it is first used", "compacted", "-delete")
    )
    assert (found(os_world) != []) == is_kept


async def test_partitions_of_two_topics(os_world):
    manager = (await fill(os_world)).folder
    other = os_world.managers[-1].get_or_create("t", 1, bytes(16)[:-1] + b"x")
    os_world.append(other, "a")
    await os_world.managers[-1].stop()
    (line,) = found(os_world)
    assert line.startswith("t-1/partition.metadata: the topic id is") and not manager.is_offline


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ottla", "verify", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
async def test_command(os_world, tmp_path):
    await fill(os_world)
    held = run(os_world.path)
    assert held.returncode == 2 and "is in use" in held.stderr
    await os_world.managers[-1].stop()
    clean = run(os_world.path)
    assert (clean.returncode, clean.stdout, clean.stderr) == (0, "", "")
    assert run(os_world.path, "--json").stdout == "[]\n"
    shutil.copytree(os_world.path, tmp_path / "copy")
    (tmp_path / "copy/meta.properties").unlink()
    damaged = run(str(tmp_path / "copy"))
    assert damaged.returncode == 1
    assert damaged.stdout == "meta.properties: it is missing; a start adopts the directory and writes it\n"
    (finding,) = json.loads(run(str(tmp_path / "copy"), "--json").stdout)
    assert finding["path"] == "meta.properties" and finding["problem"] == "it is missing"
    assert run(str(tmp_path / "nowhere")).returncode == 2


async def test_indexes_that_kafka_has_allocated(os_world):
    """After a crash of Kafka's the index files of active segments are long, and all zeros behind their entries."""
    log = await stopped(os_world)
    for suffix in (".index", ".timeindex"):
        path = nth(os_world, suffix, -1)
        path.write_bytes(path.read_bytes() + bytes(8 * 12 * 10_000))
    assert found(os_world) == []
    end = log.log_end_offset
    assert (await os_world.log(**SETTINGS)).log_end_offset == end
