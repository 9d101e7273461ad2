"""The embedded store: what was answered survives, a torn tail does not hurt, damage is told, watches fire once."""

from __future__ import annotations

import contextlib
import errno
import itertools
import random
from pathlib import Path

import pytest
import trio

from ottla.base.errors import KafkaError
from ottla.base.seams import InlineWorkers, SystemClock, TrioWorkers
from ottla.controller.zookeeper.store import journal
from ottla.controller.zookeeper.store.cluster_store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    EventType,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
    Set,
    StoreFailedError,
    WatchEvent,
    create,
    ensure_paths,
)
from ottla.controller.zookeeper.store.journal import StateFiles
from ottla.controller.zookeeper.store.state_files import DiskStateFiles
from ottla.log.disk import OsDisk
from ottla.log.memory_disk import MemoryDisk
from ottla.tests.zookeeper_double import embedded_store
from ottla.tests.zookeeper_double.embedded_store import EmbeddedSession, EmbeddedStore


async def open_store(folder: Path | None = None) -> EmbeddedStore:
    files = DiskStateFiles(OsDisk(), str(folder)) if folder is not None else None
    store = EmbeddedStore(SystemClock(), InlineWorkers(), files)
    await store.open()
    return store


async def fill(folder: Path, count: int = 3) -> None:
    session = (await open_store(folder)).session()
    for i in range(count):
        await session.multi([Create(f"/n{i}", b"%d" % i), Set(f"/n{i}", b"\xff%d" % i)])


async def names(folder: Path) -> list[str]:
    return sorted(await (await open_store(folder)).session().children("/"))


async def test_everything_answered_is_there_after_a_restart(tmp_path: Path) -> None:
    await fill(tmp_path)
    session = (await open_store(tmp_path)).session()
    node = await session.get("/n2")
    assert node.data == b"\xff2"
    assert (node.stat.version, node.stat.czxid, node.stat.mzxid) == (1, 3, 3)
    with pytest.raises(BadVersionError):
        await session.multi([Set("/n2", b"", version=0)])


async def test_ephemeral_nodes_end_with_the_process_and_zxids_go_on(tmp_path: Path) -> None:
    session = (await open_store(tmp_path)).session()
    await session.multi([Create("/gone", ephemeral=True)])
    first = (await session.get("/gone")).stat.czxid
    session = (await open_store(tmp_path)).session()
    assert await session.exists("/gone") is None
    await session.multi([Create("/gone", ephemeral=True)])
    assert (await session.get("/gone")).stat.czxid > first
    assert await names(tmp_path) == []


@pytest.mark.parametrize("cut", [1, 7, 9, 20])
async def test_a_torn_tail_is_cut_and_writing_goes_on(tmp_path: Path, cut: int) -> None:
    await fill(tmp_path)
    path = tmp_path / journal.JOURNAL
    path.write_bytes(path.read_bytes()[:-cut])
    session = (await open_store(tmp_path)).session()
    assert sorted(await session.children("/")) == ["n0", "n1"]
    await session.multi([Create("/again")])
    assert await names(tmp_path) == ["again", "n0", "n1"]


async def test_bytes_that_were_never_synced_are_cut(tmp_path: Path) -> None:
    await fill(tmp_path)
    path = tmp_path / journal.JOURNAL
    path.write_bytes(path.read_bytes() + bytes(500))
    assert await names(tmp_path) == ["n0", "n1", "n2"]
    assert not path.read_bytes().endswith(bytes(8))


async def test_damage_before_the_tail_is_told_and_nothing_is_touched(tmp_path: Path) -> None:
    await fill(tmp_path)
    path = tmp_path / journal.JOURNAL
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(KafkaError, match="journal: damaged at byte 0"):
        await open_store(tmp_path)
    assert path.read_bytes() == data


async def test_a_damaged_snapshot_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_store, "SNAPSHOT_AFTER_BYTES", 100)
    await fill(tmp_path, 5)
    path = tmp_path / journal.SNAPSHOT
    data = path.read_bytes()
    path.write_bytes(data[:-3])
    with pytest.raises(KafkaError, match="snapshot"):
        await open_store(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(KafkaError, match="snapshot"):
        await open_store(tmp_path)


async def test_a_snapshot_takes_the_place_of_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_store, "SNAPSHOT_AFTER_BYTES", 2000)
    session = (await open_store(tmp_path)).session()
    await session.multi([Create("/q"), Create("/q/n_", sequence=True), Create("/q/value", b"0")])
    for i in range(1, 200):
        await session.multi([Set("/q/value", b"%d" % i)])
    assert (tmp_path / journal.JOURNAL).stat().st_size < 4000
    session = (await open_store(tmp_path)).session()
    assert (await session.get("/q/value")).data == b"199"
    assert (await session.get("/q/value")).stat.version == 199
    assert await session.multi([Create("/q/n_", sequence=True)]) == ["/q/n_0000000002"]


async def test_a_crash_between_snapshot_and_emptying_the_journal_does_no_harm(tmp_path: Path) -> None:
    await fill(tmp_path)
    store = await open_store(tmp_path)
    tree = await store.sync()
    (tmp_path / journal.SNAPSHOT).write_bytes(journal.encode_snapshot(tree))
    assert await names(tmp_path) == ["n0", "n1", "n2"]


async def test_after_any_crash_what_was_answered_is_there_and_nothing_is_half_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Power goes at some operation of the disk, over many seeds, with snapshots in between."""
    monkeypatch.setattr(embedded_store, "SNAPSHOT_AFTER_BYTES", 3000)
    starts_cut_short = 0
    for seed in range(150):
        disk, rng = MemoryDisk(), random.Random(seed)
        certain: dict[str, bytes] = {}
        for _ in range(4):
            cut_power_after(disk, rng.randrange(60))
            store = None
            try:
                files = DiskStateFiles(disk, "/data/state")
                store = EmbeddedStore(SystemClock(), InlineWorkers(), files)
                await store.open()
            except OSError:
                starts_cut_short += 1
            else:
                session = store.session()
                nodes = {name: (await session.get("/" + name)).data for name in await session.children("/")}
                assert certain.items() <= nodes.items()
                assert all(name.replace("a", "b") in nodes for name in nodes if name.startswith("a"))
                certain = await write_pairs(session, rng, nodes)
            disk.heal()
            disk.crash(rng)
    assert starts_cut_short < 300


def cut_power_after(disk: MemoryDisk, operations: int) -> None:
    """Let so many operations through, and no further one."""
    left = itertools.count(operations, -1)
    for operation in ("write", "sync", "truncate", "rename", "open"):
        disk.fail(operation, where=lambda path: next(left) <= 0)


async def write_pairs(session: EmbeddedSession, rng: random.Random, nodes: dict[str, bytes]) -> dict[str, bytes]:
    """Make pairs of nodes from several tasks until the power goes; what is certain to be there."""
    certain = dict(nodes)

    async def write(number: int) -> None:
        data = rng.randbytes(rng.randrange(200))
        with contextlib.suppress(StoreFailedError):
            await session.multi([Create(f"/a{number}", data), Create(f"/b{number}", data)])
            certain[f"a{number}"] = certain[f"b{number}"] = data

    number = len(nodes)
    for _ in range(8):
        async with trio.open_nursery() as nursery:
            for _ in range(rng.randrange(1, 4)):
                nursery.start_soon(write, number)
                number += 1
    return certain


async def test_writers_that_meet_share_a_sync(tmp_path: Path) -> None:
    class CountingFiles(DiskStateFiles):
        appends = 0

        def append(self, name: str, data: bytes) -> None:
            self.appends += 1
            super().append(name, data)

    files = CountingFiles(OsDisk(), str(tmp_path))
    store = EmbeddedStore(SystemClock(), TrioWorkers(), files)
    await store.open()
    session = store.session()
    async with trio.open_nursery() as nursery:
        for i in range(50):
            nursery.start_soon(create, session, f"/n{i}")
    assert files.appends < 10
    assert len(await names(tmp_path)) == 50


class FailingFiles(DiskStateFiles):
    """A disk that fills up."""

    is_full = False

    def append(self, name: str, data: bytes) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(name, data)


async def test_a_full_disk_answers_nothing_any_more(tmp_path: Path) -> None:
    files = FailingFiles(OsDisk(), str(tmp_path))
    assert isinstance(files, DiskStateFiles)
    store = EmbeddedStore(SystemClock(), InlineWorkers(), files)
    await store.open()
    failures: list[OSError] = []
    store.on_failure = failures.append
    session = store.session()
    await create(session, "/kept")
    files.is_full = True
    for _ in range(2):
        with pytest.raises(StoreFailedError, match="No space left"):
            await create(session, "/lost")
    with pytest.raises(StoreFailedError):
        await session.get("/lost")
    await session.close()
    assert await names(tmp_path) == ["kept"]
    assert [error.errno for error in failures] == [errno.ENOSPC], "the owner of the store is told once"


async def test_a_cancelled_writer_leaves_the_others_unharmed(tmp_path: Path) -> None:
    store = EmbeddedStore(SystemClock(), TrioWorkers(), DiskStateFiles(OsDisk(), str(tmp_path)))
    await store.open()
    session = store.session()
    async with trio.open_nursery() as nursery:
        for i in range(20):
            nursery.start_soon(create, session, f"/n{i}")
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    await create(session, "/last")
    there = sorted(await session.children("/"))
    assert "last" in there
    assert await names(tmp_path) == there


async def test_a_data_watch_fires_once_at_the_next_change() -> None:
    session = (await open_store()).session()
    events: list[WatchEvent] = []
    await create(session, "/a")
    await session.get("/a", events.append)
    await session.multi([Set("/a", b"1")])
    await session.multi([Set("/a", b"2")])
    assert events == [WatchEvent(EventType.CHANGED, "/a")]
    heard: list[WatchEvent] = []
    watch = heard.append
    await session.get("/a", watch)
    await session.exists("/a", watch)
    await session.children("/a", watch)
    await session.multi([Delete("/a")])
    assert heard == [WatchEvent(EventType.DELETED, "/a")]
    await session.exists("/b", events.append)
    await create(session, "/b")
    assert events[1:] == [WatchEvent(EventType.CREATED, "/b")]


async def test_a_child_watch_fires_at_names_not_at_data() -> None:
    store = await open_store()
    session, other = store.session(), store.session()
    events: list[WatchEvent] = []
    await session.multi([Create("/a"), Create("/a/x")])
    await session.children("/a", events.append)
    await other.multi([Set("/a/x", b"1"), Set("/a", b"1")])
    assert events == []
    await other.multi([Delete("/a/x")])
    assert events == [WatchEvent(EventType.CHILDREN, "/a")]
    await session.children("/a", events.append)
    await other.multi([Delete("/a")])
    assert events[1:] == [WatchEvent(EventType.DELETED, "/a")]


async def test_no_watch_without_a_node() -> None:
    session = (await open_store()).session()
    events: list[WatchEvent] = []
    with pytest.raises(NoNodeError):
        await session.get("/a", events.append)
    with pytest.raises(NoNodeError):
        await session.children("/a", events.append)
    await create(session, "/a")
    assert events == []


async def test_an_expired_session_loses_its_nodes_and_hears_of_it() -> None:
    store = await open_store()
    session, other = store.session(), store.session()
    events: list[WatchEvent] = []
    seen: list[WatchEvent] = []
    await session.multi([Create("/mine", ephemeral=True)])
    await session.get("/mine", events.append)
    await other.exists("/mine", seen.append)
    await session.expire()
    assert events == [WatchEvent(EventType.SESSION_EXPIRED, "")]
    assert seen == [WatchEvent(EventType.DELETED, "/mine")]
    assert await other.exists("/mine") is None
    for call in (session.exists("/"), session.multi([Create("/x")])):
        with pytest.raises(SessionExpiredError):
            await call


async def test_get_many_keeps_the_order() -> None:
    session = (await open_store()).session()
    await session.multi([Create("/a", b"a"), Create("/b", b"b")])
    found = await session.get_many(["/b", "/none", "/a"])
    assert [node and node.data for node in found] == [b"b", None, b"a"]


async def test_ensure_paths_makes_what_is_missing() -> None:
    session = (await open_store()).session()
    await create(session, "/a", b"kept")
    await ensure_paths(session, ["/a", "/a/b", "/a/b/c"])
    await ensure_paths(session, ["/a", "/a/b", "/a/b/c"])
    assert (await session.get("/a")).data == b"kept"
    assert await session.children("/a/b") == ["c"]


async def test_a_check_fences_a_multi() -> None:
    session = (await open_store()).session()
    await create(session, "/epoch", b"1")
    await session.multi([Check("/epoch", 0), Create("/a")])
    await session.multi([Set("/epoch", b"2")])
    with pytest.raises(BadVersionError):
        await session.multi([Check("/epoch", 0), Create("/b")])
    with pytest.raises(NodeExistsError):
        await session.multi([Check("/epoch", 1), Create("/a")])


def test_the_real_files_are_state_files(tmp_path: Path) -> None:
    files: StateFiles = DiskStateFiles(OsDisk(), str(tmp_path / "state"))
    assert files.read("journal") is None
    files.append("journal", b"abc")
    files.append("journal", b"def")
    files.truncate("journal", 4)
    files.append("journal", b"x")
    assert files.read("journal") == b"abcdx"
    assert isinstance(EmbeddedStore(SystemClock()).session(), EmbeddedSession)
