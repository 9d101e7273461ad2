"""Compaction of logs on a disk: what becomes of their records and files, when it happens, and who notices."""

from __future__ import annotations

import pytest
import trio

from ottla.base.errors import KafkaError
from ottla.log.cleanable import find_cleanable
from ottla.log.log_cleaner import IoThrottle, LogCleaner
from ottla.log.settings import LogCleanerSettings
from ottla.wire.records import Record

SETTINGS = {
    "cleanup_policy": ("compact",),
    "segment_bytes": 400,
    "index_interval_bytes": 0,
    "min_cleanable_dirty_ratio": 0.0,
    "retention_ms": -1,
}


async def compacted(world, **settings):
    return await world.log(**(SETTINGS | settings))


async def clean(world, **settings):
    """Clean once; whether there was anything to clean."""
    manager = world.managers[-1]
    cleaner = LogCleaner(manager.logs(), LogCleanerSettings(settings)) if settings else manager.cleaner
    return await cleaner.clean_dirtiest()


def fill(world, log, count=30, keys=4, start=0, **header):
    for n in range(start, start + count):
        world.append(log, (f"k{n % keys}", f"{n}" + "x" * 40), **header)


def newest(records):
    """What must be left of (offset, key, value)s."""
    last = {key: offset for offset, key, _ in records}
    return [record for record in records if last[record[1]] == record[0]]


@pytest.fixture
def read_pairs(read_batches):
    def read(log):
        records = [record for batch in read_batches(log) for record in batch.records()]
        return [(r.offset, r.key.decode(), None if r.value is None else r.value.decode()) for r in records]

    return read


async def test_newest_record_of_each_key_stays(world, read_pairs, caplog):
    caplog.set_level("DEBUG")
    log = await compacted(world)
    fill(world, log)
    before = read_pairs(log)
    active = log.segments[-1].base_offset
    assert len(log.segments) > 4
    assert await clean(world)
    expected = newest([r for r in before if r[0] < active]) + [r for r in before if r[0] >= active]
    assert read_pairs(log) == expected
    assert (log.log_start_offset, log.log_end_offset, log.cleaned_offset) == (0, 30, active)
    assert log.size == sum(segment.size for segment in log.segments)
    said = [record.getMessage() for record in caplog.records]
    assert f"{log.directory} can be compacted from offset 0 to {active}; of its bytes 100 % are new" in said
    assert not await clean(world), "nothing new"


async def test_survives_a_restart(world, read_pairs):
    log = await compacted(world)
    fill(world, log, producer_id=-1)
    await clean(world)
    found, offset = read_pairs(log), log.cleaned_offset
    await world.managers[-1].stop()
    log = await compacted(world)
    assert (read_pairs(log), log.cleaned_offset) == (found, offset)
    text = world.disk.read_file(f"{world.path}/cleaner-offset-checkpoint").decode()
    assert text == f"0\n1\nt 0 {offset}\n"
    world.kill()
    log = await compacted(world)
    assert (read_pairs(log), log.log_end_offset) == (found, 30)


async def test_small_segments_become_one(world, read_pairs):
    log = await compacted(world, segment_bytes=1000)
    fill(world, log, 80)
    await clean(world)
    fill(world, log, 20, start=80)
    before = read_pairs(log)
    count = len(log.segments)
    await clean(world)
    assert len(log.segments) < count
    assert {r[1]: r for r in read_pairs(log)} == {r[1]: r for r in before}
    assert all(segment.size <= 1000 for segment in log.segments)
    ends = [segment.base_offset for segment in log.segments[1:]]
    assert [segment.next_offset for segment in log.segments[:-1]] == ends


async def test_reading_in_the_gaps(world, read_batches):
    """From any offset on, a reader gets the first record that is left at or after it."""
    log = await compacted(world)
    fill(world, log, 60, keys=3)
    await clean(world)
    offsets = [record.offset for batch in read_batches(log) for record in batch.records()]
    for start in range(60):
        found = [record.offset for batch in read_batches(log, start) for record in batch.records()]
        assert [offset for offset in found if offset >= start] == [offset for offset in offsets if offset >= start]


async def test_reader_keeps_the_old_file(world):
    log = await compacted(world)
    fill(world, log)
    piece = log.read(0, 1 << 20, up_to=30, at_least_one=True)
    data = piece.read()
    await clean(world)
    assert piece.read() == data
    piece.release()


async def test_time_lookup_while_compaction_goes_on(os_world):
    log = await compacted(os_world)
    for n in range(30):
        os_world.append(log, (f"k{n % 7}", "x" * 40), timestamp=os_world.clock.now + n)
    found = {}

    async def look(n):
        found[n] = await log.offset_for_timestamp(os_world.clock.now + n, 30)

    async with trio.open_nursery() as nursery:
        for n in range(30):
            nursery.start_soon(look, n)
            if n == 15:
                nursery.start_soon(clean, os_world)
    assert all(found[n][0] >= n and found[n][1] == os_world.clock.now + found[n][0] for n in range(30))
    assert await log.offset_for_timestamp(os_world.clock.now + 29, 30) == (29, os_world.clock.now + 29, 0)


async def test_old_files_go_after_their_delay(world):
    log = await compacted(world, file_delete_delay_ms=1000)
    fill(world, log)
    await clean(world)
    deleted = [name for name in world.files() if name.endswith(".deleted")]
    assert f"{0:020d}.log.deleted" in deleted
    folder = world.managers[-1].folders[0]
    assert len(folder.timers) == len(deleted)
    for _, _, remove in folder.timers:
        remove()
    assert not any(name.endswith((".deleted", ".swap", ".cleaned")) for name in world.files())
    bases = {f"{segment.base_offset:020d}" for segment in log.segments}
    assert {name[:20] for name in world.files() if name.endswith((".log", ".index"))} == bases


async def test_snapshots_of_segments_that_are_gone(world):
    log = await compacted(world, segment_bytes=1000)
    fill(world, log, 80)
    await clean(world)
    fill(world, log, 20, start=80)
    await clean(world)
    bases = [segment.base_offset for segment in log.segments if segment.base_offset]
    assert log.producer_state.snapshots == bases


# --- what may be cleaned ----------------------------------------------------------------------------------------------


async def test_not_above_the_high_watermark(world, read_pairs):
    log = await compacted(world)
    fill(world, log)
    log.high_watermark = log.segments[3].base_offset + 1
    before = read_pairs(log)
    limit = log.segments[3].base_offset
    await clean(world)
    assert log.cleaned_offset == limit
    assert [r for r in read_pairs(log) if r[0] >= limit] == [r for r in before if r[0] >= limit]


async def test_not_above_an_open_transaction(world):
    log = await compacted(world)
    fill(world, log, 10)
    first = log.log_end_offset
    transaction = {"producer_id": 8, "producer_epoch": 0, "is_transactional": True}
    log.append_as_leader(
        world.batch([("k0", "open")], base_sequence=0, **transaction), 0, world.clock.now, internal=True
    )
    fill(world, log, 20)
    assert log.last_stable_offset == first
    await clean(world)
    assert log.cleaned_offset <= first
    world.abort(log, 8)
    log.high_watermark = log.log_end_offset
    fill(world, log, 10)
    assert await clean(world)
    assert log.cleaned_offset > first


async def test_aborted_records_go_and_their_index_follows(world, read_pairs):
    log = await compacted(world)
    transaction = {"producer_id": 8, "producer_epoch": 0, "is_transactional": True}
    fill(world, log, 6)
    batch = world.batch([("k0", "aborted"), ("new", "aborted")], base_sequence=0, **transaction)
    log.append_as_leader(batch, 0, world.clock.now, internal=True)
    world.abort(log, 8)
    fill(world, log, 20, keys=3)
    log.producer_state.expire(world.clock.now + 10_000, 1)
    active = log.segments[-1].base_offset
    marker = [entry for segment in log.segments for entry in segment.aborted.entries()]
    assert [entry.first_offset for entry in marker] == [6]
    await clean(world)
    assert not [r for r in read_pairs(log) if r[2] == "aborted"]
    assert ("k3" in [r[1] for r in read_pairs(log)]) and active == log.cleaned_offset
    assert [entry for segment in log.segments for entry in segment.aborted.entries()] == marker, (
        "its marker is still there"
    )
    assert any(name.endswith(".txnindex") for name in world.files())
    fill(world, log, 10)
    await clean(world)
    assert [entry for segment in log.segments for entry in segment.aborted.entries()] == []
    assert not any(name.endswith(".txnindex") for name in world.files())


async def test_producers_survive(world):
    """The last batch of a producer keeps its header, so that the next start knows its sequence numbers."""
    log = await compacted(world)
    header = {"producer_id": 8, "producer_epoch": 3}
    for n in range(5):
        world.append(log, ("k", f"{n}" + "x" * 100), base_sequence=n, **header)
    fill(world, log, 20, keys=1)
    world.append(log, ("k", "x" * 100))
    await clean(world)
    world.kill()
    for name in world.files():
        if name.endswith(".snapshot"):
            world.disk.remove(f"{world.path}/t-0/{name}")
    log = await compacted(world)
    (state,) = log.active_producers()
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (8, 3, 4)
    assert world.append(log, ("k", "4" + "x" * 100), base_sequence=4, **header).is_duplicate


@pytest.mark.parametrize("uncommitted", [1, 6])
async def test_producers_survive_a_truncation_after_it(world, uncommitted):
    """Their last committed batch keeps its header, though there were others behind it, which were truncated."""
    log = await compacted(world)
    header = {"producer_id": 8, "producer_epoch": 3}
    for n in range(5):
        world.append(log, ("k0", f"{n}" + "x" * 100), base_sequence=n, **header)
    fill(world, log, 20, keys=1)
    world.append(log, ("k", "x" * 100))
    committed = log.high_watermark
    for n in range(5, 5 + uncommitted):
        log.append_as_leader(world.batch([("k", f"{n}")], base_sequence=n, **header), 0, world.clock.now)
    await clean(world)
    log.truncate_to(committed)
    world.kill()
    for name in world.files():
        if name.endswith(".snapshot"):
            world.disk.remove(f"{world.path}/t-0/{name}")
    log = await compacted(world)
    (state,) = log.active_producers()
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (8, 3, 4)


async def test_min_compaction_lag(world):
    log = await compacted(world, min_compaction_lag_ms=1000)
    start = world.clock.now
    for n in range(30):
        world.append(log, (f"k{n % 4}", "x" * 40), timestamp=start + 100 * n)
    world.clock.now = start + 1500
    await clean(world)
    young = next(segment for segment in log.segments if segment.indexes.largest_timestamp() > start + 500)
    assert log.cleaned_offset == young.base_offset > 0
    world.clock.now = start + 10_000
    await clean(world)
    assert log.cleaned_offset == log.segments[-1].base_offset


async def test_min_compaction_lag_of_records_without_time(memory_world):
    """They are as young as the last write to their file."""
    world = memory_world
    start = now = world.clock.now
    world.disk.now_ms = lambda: now
    log = await compacted(world, min_compaction_lag_ms=1000)
    for n in range(30):
        world.append(log, (f"k{n % 4}", "x" * 40), timestamp=-1)
    world.clock.now = now = start + 999
    assert not await clean(world)
    world.clock.now = now = start + 1000
    assert await clean(world)


async def test_dirty_ratio(world):
    log = await compacted(world, min_cleanable_dirty_ratio=0.5)
    fill(world, log, 40, keys=40)
    assert await clean(world)
    fill(world, log, 10, keys=40, start=40)
    assert find_cleanable(log, world.clock.now) is None
    fill(world, log, 50, keys=50, start=50)
    assert await clean(world)


async def test_max_compaction_lag(world):
    log = await compacted(world, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000, segment_ms=100_000)
    fill(world, log, 20)
    assert not await clean(world)
    world.clock.now += 5001
    assert await clean(world)
    base = log.segments[-1].base_offset
    world.append(log, ("k0", "late"), timestamp=world.clock.now)
    assert log.segments[-1].base_offset > base, "the active segment does not wait any longer either"


async def test_only_compacted_logs(world):
    log = await compacted(world, cleanup_policy=("delete",))
    fill(world, log)
    assert not await clean(world)


async def test_compacted_and_deleted(memory_world, read_pairs):
    world = memory_world
    log = await compacted(world, cleanup_policy=("compact", "delete"), retention_ms=1000)
    fill(world, log)
    world.clock.now += 2000
    world.append(log, ("k0", "new"), timestamp=world.clock.now)
    cleaner = world.managers[-1].cleaner
    assert await cleaner.clean_dirtiest()
    await cleaner._delete_old_segments()
    assert [r for r in read_pairs(log) if r[0] < 30 and r[0] < log.segments[-1].base_offset] == []
    assert read_pairs(log)[-1] == (30, "k0", "new")
    assert log.log_start_offset == log.segments[0].base_offset > 0


async def test_log_that_is_only_compacted_keeps_old_records(world):
    log = await compacted(world, retention_ms=1000, retention_bytes=1)
    fill(world, log)
    world.clock.now += 10_000
    assert log.delete_old_segments(world.clock.now) == 0


# --- how it is done ---------------------------------------------------------------------------------------------------


async def test_map_that_is_too_small(world, read_pairs, monkeypatch):
    """Cleaning goes as far as the keys have room, and the next one goes on."""
    log = await compacted(world)
    fill(world, log, 60, keys=30)
    before = read_pairs(log)
    active = log.segments[-1].base_offset
    monkeypatch.setattr("ottla.log.log_cleaner._MIN_MAP_BYTES", 240)
    settings = LogCleanerSettings({"log_cleaner_dedupe_buffer_size": 240})
    cleaner = LogCleaner(world.managers[-1].logs(), settings)
    reached = []
    while await cleaner.clean_dirtiest():
        reached.append(log.cleaned_offset)
    assert reached[0] == 6
    assert reached == sorted(set(reached))
    assert reached[-1] == active
    assert read_pairs(log) == newest([r for r in before if r[0] < active]) + [r for r in before if r[0] >= active]


async def test_dirtiest_first(world):
    manager = await world.start(**SETTINGS)
    less, more = (manager.get_or_create(name, 0, bytes(16)) for name in ("less", "more"))
    for log, count in ((less, 30), (more, 30)):
        fill(world, log, count, keys=30)
    await manager.cleaner.clean_dirtiest()
    await manager.cleaner.clean_dirtiest()
    fill(world, less, 10)
    fill(world, more, 40)
    await manager.cleaner.clean_dirtiest()
    assert more.cleaned_offset == more.segments[-1].base_offset
    assert less.cleaned_offset < less.segments[-1].base_offset


async def test_damaged_record(world, read_pairs, caplog):
    """It is reported, nothing is changed, and other logs go on."""
    manager = await world.start(**SETTINGS)
    bad, good = (manager.get_or_create(name, 0, bytes(16)) for name in ("bad", "good"))
    for log in (bad, good):
        fill(world, log)
    file = bad.segments[1].file.open()
    file.write(bytes([file.read(1, 100)[0] ^ 1]), 100)
    size = bad.size
    while await manager.cleaner.clean_dirtiest():
        pass
    assert "bad-0 cannot be compacted" in caplog.text
    assert bad.size == size
    assert good.cleaned_offset == good.segments[-1].base_offset
    assert not any(name.endswith((".cleaned", ".swap")) for name in world.files("bad-0"))
    assert not manager.is_offline


async def test_io_error(memory_world):
    log = await compacted(memory_world)
    fill(memory_world, log)
    memory_world.disk.fail("sync", where=lambda path: path.endswith(".cleaned"))
    await clean(memory_world)
    assert memory_world.managers[-1].is_offline
    with pytest.raises(KafkaError, match="offline"):
        log.read(0, 100, up_to=30, at_least_one=True)


@pytest.mark.parametrize(("operation", "suffix"), [("rename", ".cleaned"), ("rename", ".swap"), ("sync", "")])
async def test_io_error_at_the_swap(memory_world, operation, suffix):
    """The old segments are closed by then, which is no reason to take it for a change of the log."""
    log = await compacted(memory_world)
    fill(memory_world, log)
    memory_world.disk.fail(operation, where=lambda path: path.endswith(suffix or log.directory))
    assert not await memory_world.managers[-1].cleaner.clean_dirtiest()
    assert memory_world.managers[-1].is_offline


@pytest.mark.parametrize("change", ["truncate", "truncate fully", "delete", "retention"])
async def test_change_while_cleaning(world, read_pairs, change):
    """A log that changes while it is being cleaned is left as the change made it."""
    log = await compacted(world, file_delete_delay_ms=0)
    fill(world, log, 60)
    manager = world.managers[-1]
    cut = log.segments[3].base_offset
    done = trio.Event()

    class Throttle:
        count = 0

        async def took(self, nbytes):
            self.count += 1
            if self.count == len(log.segments) + 2:  # the map is full, and the first groups are under way
                if change == "truncate":
                    log.truncate_to(cut)
                elif change == "truncate fully":
                    log.truncate_fully_and_start_at(100)
                elif change == "delete":
                    manager.delete("t", 0)
                else:
                    log.delete_records_before(log.segments[5].base_offset)
                    log.delete_old_segments(world.clock.now)
                done.set()

    manager.cleaner._throttle = Throttle()
    await clean(world)
    assert done.is_set()
    assert not manager.is_offline
    if change == "delete":
        assert manager.get("t", 0) is None
        assert len([name for name in world.disk.names(world.path) if name.endswith("-delete")]) == 1
        return
    assert not any(name.endswith((".cleaned", ".swap")) for name in world.files())
    end = {"truncate": cut, "truncate fully": 100, "retention": 60}[change]
    assert log.log_end_offset == end
    assert (log.cleaned_offset or 0) <= end
    fill(world, log, 20)
    while await clean(world):
        pass
    last = {r[1]: r for r in read_pairs(log)}
    assert {key: record[0] for key, record in last.items()} == {f"k{n % 4}": end + n for n in range(16, 20)}


async def test_truncation_lowers_the_checkpoint(world):
    log = await compacted(world)
    fill(world, log)
    await clean(world)
    cut = log.segments[2].base_offset
    log.truncate_to(cut)
    assert log.cleaned_offset == cut
    text = world.disk.read_file(f"{world.path}/cleaner-offset-checkpoint").decode()
    assert text == f"0\n1\nt 0 {cut}\n"


async def test_checkpoint_beyond_the_log(world):
    log = await compacted(world)
    fill(world, log)
    log.cleaned_offset = 1000
    assert await clean(world)
    assert log.cleaned_offset == log.segments[-1].base_offset


async def test_background(autojump_clock, world, read_pairs):
    manager = await world.start(**SETTINGS)
    log = manager.get_or_create("t", 0, bytes(16))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(manager.run)
        fill(world, log)
        await trio.sleep(60)
        assert log.cleaned_offset == log.segments[-1].base_offset
        nursery.cancel_scope.cancel()


async def test_disabled(world):
    manager = await world.start(**SETTINGS)
    cleaner = LogCleaner(manager.logs(), LogCleanerSettings({"log_cleaner_enable": False}))
    with trio.fail_after(1):
        await cleaner.run()


async def test_throttle(autojump_clock):
    throttle = IoThrottle(1000)
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(throttle.took, 2500)
    assert trio.current_time() - start == pytest.approx(10)


async def test_file_times_stay(os_world):
    """Records without timestamps are as old as their file."""
    log = await compacted(os_world)
    for n in range(30):
        os_world.append(log, Record(key=b"k%d" % (n % 4), value=b"x" * 40, timestamp=-1))
    paths = [segment.path for segment in log.segments]
    for path in paths:
        os_world.disk.set_modified_ms(path, 1_600_000_000_000)
    await clean(os_world)
    assert os_world.disk.modified_ms(log.segments[0].path) == 1_600_000_000_000


async def test_more_and_fewer_threads_while_it_runs(autojump_clock, world):
    """With one thread slowed down to a crawl, a second log waits; with two it does not."""
    first = await compacted(world)
    fill(world, first)
    manager = world.managers[-1]
    second = manager.get_or_create("other", 0, bytes(16), first.settings)
    cleaner = LogCleaner(manager.logs(), LogCleanerSettings({"log_cleaner_io_max_bytes_per_second": 0.001}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cleaner.run)
        await trio.sleep(1)
        assert cleaner.in_progress == {first}
        fill(world, second)
        await trio.sleep(60)
        assert cleaner.in_progress == {first}
        cleaner.update_settings(
            LogCleanerSettings({"log_cleaner_io_max_bytes_per_second": 0.001, "log_cleaner_threads": 2})
        )
        await trio.sleep(60)
        assert cleaner.in_progress == {first, second}
        nursery.cancel_scope.cancel()
