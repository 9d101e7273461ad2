"""Apache Kafka's own kafka-dump-log reads every file, and reads in them what was written."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, archived_classes
from ottla.log.partition_log import PartitionLog
from ottla.wire.records import Record, build_batch

pytestmark = pytest.mark.slow

SETTINGS = {"segment_bytes": 12_000, "index_interval_bytes": 400}
CODECS = ("NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD")

Dump = Callable[..., str]


@pytest.fixture(scope="module")
def dump(kafka_jars: Path) -> Dump:
    """``dump(files, *options)``: what kafka-dump-log prints."""
    command = ["java", *SHORT_LIVED, *archived_classes(), "-cp", f"{kafka_jars}/*", MAIN_CLASSES["dump-log"]]

    def run(files: list[Path], *options: str, has_gaps: bool = False) -> str:
        names = ",".join(map(str, files))
        done = subprocess.run([*command, *options, "--files", names], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        # The tool takes every file that does not begin with offset 0 for one with a gap.
        gap = r"\d+" if has_gaps else "-1"
        complaints = re.sub(rf"Non-consecutive offsets in \S+\n(\s+(-1|{gap}) is followed by \d+\n)+", "", done.stderr)
        assert complaints.strip() == ""
        return done.stdout

    return run


def fill(world, log: PartitionLog, seed: int) -> list[Record]:
    """Append all kinds of batches; the records as they must come out."""
    rng = random.Random(seed)
    written: list[Record] = []
    sequences = {1: 0, 2: 0}
    for n in range(150):
        records = [
            Record(
                timestamp=world.clock.now + n * 10 + rng.randint(-300, 300),
                key=rng.choice([None, b"", b"key%d" % rng.randint(0, 99)]),
                value=rng.choice([None, b"", rng.randbytes(rng.randint(0, 300)).hex().encode()]),
                headers=[("header", b"h")] * rng.randint(0, 2),
            )
            for _ in range(rng.randint(1, 6))
        ]
        header = {"compression": n % 5}
        if producer_id := n % 3:
            header |= {"producer_id": producer_id, "producer_epoch": 3, "base_sequence": sequences[producer_id]}
            sequences[producer_id] += len(records)
        base = log.append_as_leader(build_batch(records, **header), n // 50, world.clock.now).first_offset
        for offset, record in enumerate(records, base):
            record.offset = offset
        written += records
    log.high_watermark = log.log_end_offset
    return written


def files(world, suffix: str) -> list[Path]:
    return [Path(world.path) / "t-0" / name for name in world.files() if name.endswith(suffix)]


def check(world, dump: Dump, records: list[Record]) -> None:
    """Every record is there, and every index entry is right, by Kafka's own judgement."""
    printed = dump(files(world, ".log"), "--deep-iteration", "--print-data-log")
    found = re.findall(
        r"^\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+)", printed, re.MULTILINE
    )
    assert [tuple(map(int, row)) for row in found] == [
        (r.offset, r.timestamp, -1 if r.key is None else len(r.key), -1 if r.value is None else len(r.value))
        for r in records
    ]
    assert "isvalid: false" not in printed
    indexes = files(world, "index")
    accepted = re.findall(r"(passed sanity check|is empty)\.", dump(indexes, "--index-sanity-check"))
    assert len(accepted) == len(indexes)
    printed = dump(indexes)
    assert "Mismatches" not in printed
    assert printed.count("position:") > 20
    assert printed.count("timestamp:") > 10


async def test_after_a_clean_stop(os_world, dump):
    log = await os_world.log(**SETTINGS)
    records = fill(os_world, log, 1)
    await os_world.managers[-1].stop()
    assert len(files(os_world, ".log")) > 3
    check(os_world, dump, records)
    printed = dump(files(os_world, ".snapshot"))
    last = {
        int(match[1]): (int(match[2]), int(match[3]))
        for match in re.finditer(r"producerId: (\d+) producerEpoch: (\d+) .* lastSequence: (\d+)", printed)
    }
    assert last == {p.producer_id: (p.producer_epoch, p.last_sequence) for p in log.active_producers()}
    assert len(last) == 2


async def test_while_it_is_being_written(os_world, dump):
    log = await os_world.log(**SETTINGS)
    check(os_world, dump, fill(os_world, log, 2))


async def test_after_recovery(os_world, dump):
    log = await os_world.log(**SETTINGS)
    records = fill(os_world, log, 3)
    os_world.kill()
    with open(log.segments[-1].path, "r+b") as file:
        file.truncate(log.segments[-1].size - 1)
    log = await os_world.log(**SETTINGS)
    os_world.append(log, "after")
    records = [record for record in records if record.offset < log.log_end_offset - 1]
    records.append(Record(offset=log.log_end_offset - 1, timestamp=os_world.clock.now, value=b"after"))
    await os_world.managers[-1].stop()
    check(os_world, dump, records)


async def test_after_truncation_and_retention(os_world, dump):
    log = await os_world.log(**SETTINGS)
    records = fill(os_world, log, 4)
    log.truncate_to(records[-60].offset)
    log.high_watermark = log.log_end_offset
    log.delete_records_before(log.segments[1].base_offset)
    log.delete_old_segments(0)
    end = log.log_end_offset
    kept = [r for r in records if log.segments[0].base_offset <= r.offset < end]
    await os_world.managers[-1].stop()
    printed = dump(files(os_world, ".log"), "--deep-iteration")
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", printed, re.MULTILINE)]
    assert offsets == [r.offset for r in kept][: len(offsets)]
    assert len(kept) - len(offsets) < 6, "only the batch that held the offset is gone whole"
    check(os_world, dump, kept[: len(offsets)])


async def test_compacted_log(os_world, dump):
    """Shortened batches of every codec, tombstones with a horizon, headers without records."""
    world = os_world
    log = await world.log(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, **SETTINGS)
    for n in range(200):
        header = {"compression": n % 5}
        if n == 100:
            header |= {"producer_id": 9, "producer_epoch": 0, "base_sequence": 5}
        world.append(log, *[(f"k{(n * 7 + m) % 40}", None if n % 9 == m else "x" * 100) for m in range(4)], **header)
    while await world.managers[-1].cleaner.clean_dirtiest():
        pass
    assert log.cleaned_offset == log.segments[-1].base_offset > 0
    kept = [record for segment in log.segments for _, batch in segment.scan(0) for record in batch.records()]
    indexes = [path for path in files(world, "index") if path.with_suffix(".log").exists()]
    done = dump(files(world, ".log"), "--deep-iteration", has_gaps=True)
    assert re.findall(r"^\| offset: (\d+)", done, re.MULTILINE) == [str(record.offset) for record in kept]
    assert "isvalid: false" not in done
    assert re.search(r"deleteHorizonMs: OptionalLong\[\d+\]", done)
    assert re.search(r"count: 0 baseSequence: 5 lastSequence: 8 producerId: 9 ", done)
    accepted = re.findall(r"(passed sanity check|is empty)\.", dump(indexes, "--index-sanity-check"))
    assert len(accepted) == len(indexes)
