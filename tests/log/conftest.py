"""Logs on a disk in memory and on the real one, with a clock that the test sets and workers that run inline."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from ottla.base.seams import InlineWorkers
from ottla.log.disk import Disk, OsDisk
from ottla.log.log_manager import LogManager
from ottla.log.memory_disk import MemoryDisk
from ottla.log.partition_log import AppendResult, PartitionLog
from ottla.log.settings import LogManagerSettings, LogSettings
from ottla.wire.control_records import ControlRecordType, EndTransactionMarker, build_end_marker_batch
from ottla.wire.records import Record, RecordBatch, build_batch, iter_batches

ROOT = Path(__file__).parents[2]
TOPIC_ID = bytes(range(16))


class SetClock:
    """Wall time that the test sets."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    def elapsed(self) -> float:
        return self.now_ms() / 1000


_worlds: list[World] = []


@pytest.fixture(autouse=True)
def _descriptors_go_with_the_test() -> Iterator[None]:
    yield
    for world in _worlds:
        world.close()
    _worlds.clear()


class HeldWorkers:
    """Workers whose jobs wait for ``release``: before their work (``before``), or after it."""

    def __init__(self, *, before: bool) -> None:
        self.release = trio.Event()
        self.jobs = 0
        self._before = before

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        self.jobs += 1
        if self._before:
            await self.release.wait()
        result = function(*args)
        await self.release.wait()
        return result


class World:
    """A log directory on some disk, and the managers that are started on it one after the other."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.more_paths: list[str] = []
        self.clock = SetClock()
        self.managers: list[LogManager] = []
        _worlds.append(self)

    async def start(self, *, broker_id: int = 1, manager: dict[str, Any] | None = None, **settings: Any) -> LogManager:
        """A started manager; keyword arguments are attributes of LogSettings."""
        started = self.take(broker_id=broker_id, manager=manager, **settings)
        await started.load()
        return started

    def take(self, *, broker_id: int = 1, manager: dict[str, Any] | None = None, **settings: Any) -> LogManager:
        """A manager whose folders are taken, and whose logs are not open yet."""
        started = LogManager(
            self.disk,
            [self.path, *self.more_paths],
            LogSettings(settings),
            LogManagerSettings(manager),
            self.clock,
            InlineWorkers(),
            random.Random(5),
        )
        self.managers.append(started)
        started.take(broker_id)
        return started

    async def log(self, topic: str = "t", partition: int = 0, **settings: Any) -> PartitionLog:
        """The log of a partition, under a manager of its own."""
        return (await self.start(**settings)).get_or_create(topic, partition, TOPIC_ID)

    def kill(self) -> None:
        """End the last manager as kill -9 would: nothing is written, descriptors and the lock are released."""
        assert any(part._lock is not None for part in self.managers[-1]._folders)
        self._let_go(self.managers[-1])

    def close(self) -> None:
        """Close every descriptor that is still open."""
        for manager in self.managers:
            self._let_go(manager)

    @staticmethod
    def _let_go(manager: LogManager) -> None:
        for part in manager._folders:
            for partition_log in part.logs.values():
                for segment in partition_log.segments:
                    segment.file.pins = 0
            part.release()

    def files(self, folder: str = "t-0") -> list[str]:
        return self.disk.names(f"{self.path}/{folder}")

    def batch(self, values: Sequence[Any] = ("a",), *, timestamp: int | None = None, **header: Any) -> bytearray:
        """One batch; a value is a str, a (key, value) pair or a Record."""
        records = []
        for value in values:
            if isinstance(value, Record):
                records.append(value)
                continue
            key, text = value if isinstance(value, tuple) else (None, value)
            records.append(
                Record(
                    timestamp=self.clock.now if timestamp is None else timestamp,
                    key=None if key is None else key.encode(),
                    value=None if text is None else text.encode(),
                )
            )
        return build_batch(records, **header)

    def append(self, log: PartitionLog, *values: Any, epoch: int = 0, **header: Any) -> AppendResult:
        """Append one batch and let the high watermark follow, as a leader without followers does."""
        result = log.append_as_leader(self.batch(values or ("a",), **header), epoch, self.clock.now)
        log.high_watermark = log.log_end_offset
        return result

    def abort(self, log: PartitionLog, producer_id: int, epoch: int = 0) -> None:
        """End the producer's transaction in this log with an abort marker."""
        marker = build_end_marker_batch(
            EndTransactionMarker(ControlRecordType.ABORT, 0),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp=self.clock.now,
        )
        log.append_end_marker(marker, epoch, self.clock.now)


def batches(log: PartitionLog, offset: int | None = None, up_to: int | None = None) -> list[RecordBatch]:
    """The batches from an offset on, read slice by slice."""
    offset = log.log_start_offset if offset is None else offset
    up_to = log.log_end_offset if up_to is None else up_to
    found: list[RecordBatch] = []
    while (piece := log.read(offset, 1 << 20, up_to=up_to, at_least_one=True)) is not None:
        data = piece.read()
        piece.release()
        found += iter_batches(data)
        offset = found[-1].next_offset
    return found


def values(log: PartitionLog, offset: int | None = None) -> list[tuple[int, str]]:
    """(offset, value) of every record from an offset on."""
    start = log.log_start_offset if offset is None else offset
    records = [record for batch in batches(log, offset) for record in batch.records()]
    return [(r.offset, (r.value or b"").decode()) for r in records if r.offset >= start]


@pytest.fixture
def read_batches() -> Any:
    """``read_batches(log, offset=None, up_to=None)``"""
    return batches


@pytest.fixture
def read_values() -> Any:
    """``read_values(log, offset=None)``"""
    return values


@pytest.fixture
def held_workers() -> Any:
    """``held_workers(log, before=False)``: the log's workers from now on; they wait for ``release``."""

    def hold(log: PartitionLog, *, before: bool = False) -> HeldWorkers:
        log.folder.workers = workers = HeldWorkers(before=before)
        return workers

    return hold


@pytest.fixture
def memory_world() -> World:
    return World(MemoryDisk(now_ms=lambda: 0), "data")


@pytest.fixture
def os_world(tmp_path: Path) -> World:
    return World(OsDisk(), str(tmp_path / "data"))


@pytest.fixture(params=["memory", "os"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A world on a disk in memory, and one on the real disk."""
    return World(MemoryDisk(), "data") if request.param == "memory" else World(OsDisk(), str(tmp_path / "data"))


@pytest.fixture
def make_world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``make_world("memory" | "os")``: a new world each time."""

    def make(kind: str) -> World:
        if kind == "memory":
            return World(MemoryDisk(), "data")
        return World(OsDisk(), str(tmp_path_factory.mktemp("world")))

    return make


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The folder with the jars of Apache Kafka's server and tools, fetched if need be."""
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if missing and os.environ.get("CI") != "true":
        pytest.skip(f"Apache Kafka's tools need {' and '.join(missing)} on the PATH")
    fetch = ["sh", str(ROOT / "tools/fetch_jars.sh"), "kafka"]
    done = subprocess.run(fetch, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"jars could not be fetched: {done.stderr}", pytrace=False)
    return ROOT / ".jars" / "kafka-tools-4.3.1"
