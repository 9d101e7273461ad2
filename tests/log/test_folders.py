"""Several log directories: where a log is made, a folder that fails, and logs that move from one to another."""

from __future__ import annotations

import errno
import random

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.log.log_copy import CopyAborted, LogCopy
from ottla.log.log_directories import LogStartError
from ottla.wire.records import Record

CLUSTER = "abcdefghijklmnopqrstuv"
TOPIC_ID = bytes(range(16))
SECOND = "second"


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)


def in_second(path: str) -> bool:
    return path.startswith(SECOND)


@pytest.fixture
def two(world, tmp_path):
    """A world with two log directories."""
    world.more_paths = [SECOND if world.path == "data" else str(tmp_path / SECOND)]
    return world


@pytest.fixture
def two_in_memory(memory_world):
    memory_world.more_paths = [SECOND]
    return memory_world


def folder_of(manager, topic: str, partition: int) -> int:
    return manager.folders.index(manager.get(topic, partition).folder)


def partition_folders(world, path: str) -> list[str]:
    return [name for name in world.disk.names(path) if "-" in name and world.disk.is_dir(f"{path}/{name}")]


async def moved(copy: LogCopy) -> None:
    """Fill a future log to the end."""
    while await copy.step():
        pass
    assert copy.finish()


async def move(manager, log, folder) -> None:
    """Move a log to another folder; its partition's log is another object afterwards."""
    await moved(LogCopy(log, manager.create_future(log, folder)))
    manager.replace_with_future(log.topic, log.partition)


# --- placement --------------------------------------------------------------------------------------------------------


async def test_new_log_goes_where_the_fewest_are(two):
    manager = await two.start()
    for number in range(5):
        manager.get_or_create("t", number, TOPIC_ID)
    assert [folder_of(manager, "t", number) for number in range(5)] == [0, 1, 0, 1, 0]
    for number in (0, 2):
        manager.delete("t", number)
    for number in (5, 6):
        manager.get_or_create("t", number, TOPIC_ID)
    assert [folder_of(manager, "t", number) for number in (5, 6)] == [0, 0]


async def test_log_stays_in_its_folder_though_it_was_never_written(two):
    manager = await two.start()
    for number in range(3):
        manager.get_or_create("t", number, TOPIC_ID)
    manager.delete("t", 0)
    await manager.stop()
    manager = await two.start()
    assert [folder_of(manager, "t", number) for number in (1, 2)] == [1, 0]


async def test_preferred_folder(two):
    manager = await two.start()
    manager.prefer("t", 0, manager.folders[1])
    manager.get_or_create("t", 0, TOPIC_ID)
    manager.get_or_create("t", 1, TOPIC_ID)
    assert (folder_of(manager, "t", 0), folder_of(manager, "t", 1)) == (1, 0)
    manager.delete("t", 0)
    manager.get_or_create("u", 0, TOPIC_ID)
    manager.get_or_create("t", 0, TOPIC_ID)
    assert folder_of(manager, "t", 0) == 0, "it is remembered for once"


# --- start and stop ---------------------------------------------------------------------------------------------------


async def test_each_folder_has_its_own_files(two, read_values):
    manager = await two.start()
    await manager.identify(1, CLUSTER)
    for number in range(2):
        two.append(manager.get_or_create("t", number, TOPIC_ID), f"{number}")
    await manager.stop()
    for number, path in enumerate([two.path, *two.more_paths]):
        names = two.disk.names(path)
        assert {".kafka_cleanshutdown", "meta.properties", f"t-{number}"} <= set(names)
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            assert two.disk.read_file(f"{path}/{name}").decode() == f"0\n1\nt {number} 1\n"
        assert f"cluster.id={CLUSTER}" in two.disk.read_file(f"{path}/meta.properties").decode()
    manager = await two.start()
    assert [read_values(manager.get("t", number)) for number in range(2)] == [[(0, "0")], [(0, "1")]]


async def test_folder_that_is_added_later(two):
    added, two.more_paths = two.more_paths, []
    manager = await two.start()
    await manager.identify(1, CLUSTER)
    two.append(manager.get_or_create("t", 0, TOPIC_ID))
    await manager.stop()
    two.more_paths = added
    manager = await two.start()
    assert manager.cluster_id == CLUSTER
    await manager.identify(1, CLUSTER)
    assert CLUSTER in two.disk.read_file(f"{added[0]}/meta.properties").decode()
    manager.get_or_create("t", 1, TOPIC_ID)
    assert folder_of(manager, "t", 1) == 1


async def test_folders_of_two_clusters(two):
    for path, cluster in ((two.path, CLUSTER), (two.more_paths[0], "another")):
        two.disk.make_dir(path)
        two.disk.write_file(f"{path}/meta.properties", f"version=0\nbroker.id=1\ncluster.id={cluster}\n".encode())
    with pytest.raises(
        LogStartError, match=rf"Invalid cluster\.id in: .*meta\.properties\. Expected {CLUSTER}, but read another"
    ):
        await two.start()
    await two.managers[-1].stop()


async def test_one_folder_in_use(two):
    await two.start()
    other, two.path = two.path, two.path + "-other"
    with pytest.raises(LogStartError, match="in use"):
        await two.start()
    await two.managers[-1].stop()
    assert two.disk.lock(f"{two.path}/.lock"), "the folder that was free is let go of"
    two.path = other


async def test_partition_in_two_folders(two):
    manager = await two.start()
    two.append(manager.get_or_create("t", 0, TOPIC_ID))
    two.append(manager.get_or_create("t", 1, TOPIC_ID))
    await manager.stop()
    two.disk.rename(f"{two.more_paths[0]}/t-1", f"{two.more_paths[0]}/t-0")
    with pytest.raises(LogStartError, match="t-0 is in two log directories"):
        await two.start()
    await two.managers[-1].stop()


async def test_unclean_folder_is_recovered_and_the_clean_one_is_not(two, read_values, caplog):
    manager = await two.start()
    for number in range(2):
        two.append(manager.get_or_create("t", number, TOPIC_ID), f"{number}")
    await manager.stop()
    two.disk.remove(f"{two.more_paths[0]}/.kafka_cleanshutdown")
    caplog.clear()
    manager = await two.start()
    assert "not stopped cleanly" in caplog.text
    assert [(log.partition, log.recovery_point, log.log_end_offset) for log in manager.logs()] == [(0, 1, 1), (1, 1, 1)]
    assert f"{two.path} was not" not in caplog.text
    assert read_values(manager.get("t", 1)) == [(0, "1")]


# --- failure ----------------------------------------------------------------------------------------------------------


async def test_failed_folder_goes_and_the_other_serves(two_in_memory, read_values):
    world = two_in_memory
    manager = await world.start()
    failed = []
    manager.offline_listeners.append(failed.append)
    logs = [manager.get_or_create("t", number, TOPIC_ID) for number in range(2)]
    for log in logs:
        world.append(log, "a")
    world.disk.fail("write", where=in_second)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        world.append(logs[1], "b")
    assert failed == [manager.folders[1]]
    assert (manager.has_offline_log_dir, manager.is_offline) == (True, False)
    assert manager.get("t", 1) is None
    assert list(manager.logs_in(manager.folders[1])) == []
    world.append(logs[0], "b")
    assert read_values(logs[0]) == [(0, "a"), (1, "b")]
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        manager.get_or_create("t", 1, TOPIC_ID, is_new=False)
    manager.get_or_create("t", 2, TOPIC_ID)
    manager.get_or_create("t", 3, TOPIC_ID)
    assert (folder_of(manager, "t", 2), folder_of(manager, "t", 3)) == (0, 0)
    await manager.stop()
    assert ".kafka_cleanshutdown" in world.disk.names(world.path)
    assert ".kafka_cleanshutdown" not in world.disk.names(SECOND)
    world.disk.heal()
    manager = await world.start()
    assert read_values(manager.get("t", 1)) == [(0, "a")]


async def test_flush_of_a_log_whose_folder_has_failed_is_refused(two_in_memory):
    world = two_in_memory
    manager = await world.start()
    log = [manager.get_or_create("t", number, TOPIC_ID) for number in range(2)][1]
    world.append(log, "a")
    manager.folders[1].fail("gone", OSError(errno.EIO, "gone"))
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        await log.flush()


async def test_new_log_where_the_first_choice_fails(two_in_memory):
    world = two_in_memory
    manager = await world.start()
    manager.get_or_create("t", 0, TOPIC_ID)
    world.disk.fail("open", where=lambda path: path.startswith(f"{SECOND}/t-1"))
    manager.get_or_create("t", 1, TOPIC_ID)
    assert folder_of(manager, "t", 1) == 0
    assert manager.folders[1].is_offline


async def test_log_that_could_not_be_made_does_not_stand_in_the_way_of_its_successor(two_in_memory, read_values):
    world = two_in_memory
    manager = await world.start()
    first = f"{world.path}/t-0"
    world.disk.fail("open", where=lambda path: path.startswith(first) and path.endswith(".log"))
    world.append(manager.get_or_create("t", 0, TOPIC_ID))
    assert (folder_of(manager, "t", 0), partition_folders(world, world.path)) == (1, ["t-0"])
    world.disk.heal()
    world.kill()
    manager = await world.start()
    assert (folder_of(manager, "t", 0), read_values(manager.get("t", 0))) == (1, [(0, "a")])
    assert not world.disk.exists(first)


async def test_folder_that_cannot_be_read_at_the_start(two_in_memory, read_values):
    world = two_in_memory
    manager = await world.start()
    for number in range(2):
        world.append(manager.get_or_create("t", number, TOPIC_ID), f"{number}")
    await manager.stop()
    world.disk.fail("read", where=in_second)
    manager = await world.start()
    assert manager.has_offline_log_dir
    assert read_values(manager.get("t", 0)) == [(0, "0")]
    assert manager.get("t", 1) is None
    await manager.stop()
    world.disk.fail("read")
    with pytest.raises(LogStartError, match=r"data cannot be used.*second cannot be used"):
        await world.start()


# --- moves ------------------------------------------------------------------------------------------------------------


def filled(world, manager, log, records: int = 30):
    for number in range(records):
        world.append(log, f"{number}", epoch=number // 10, producer_id=7, producer_epoch=0, base_sequence=number)


async def test_move(two, read_values, read_batches):
    manager = await two.start(segment_bytes=500)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    filled(two, manager, log)
    log.delete_records_before(3)
    records = read_values(log)
    copy = LogCopy(log, manager.create_future(log, manager.folders[1]))
    assert await copy.step()
    two.append(log, "meanwhile", producer_id=7, producer_epoch=0, base_sequence=30)
    await moved(copy)
    new = manager.replace_with_future("t", 0)
    assert manager.get("t", 0) is new
    assert (folder_of(manager, "t", 0), manager.future("t", 0)) == (1, None)
    assert read_values(new) == [*records, (30, "meanwhile")]
    assert (new.log_start_offset, new.high_watermark) == (3, 31)
    assert new.size == sum(batch.size for batch in read_batches(new))
    assert new.leader_epochs.entries() == log.leader_epochs.entries()
    assert two.append(new, "meanwhile", producer_id=7, producer_epoch=0, base_sequence=30).is_duplicate
    assert partition_folders(two, two.more_paths[0]) == ["t-0"]
    assert [name.endswith("-delete") for name in partition_folders(two, two.path)] == [True]
    two.append(new, "after", producer_id=7, producer_epoch=0, base_sequence=31)
    await manager.stop()
    manager = await two.start(segment_bytes=500)
    assert read_values(manager.get("t", 0)) == [*records, (30, "meanwhile"), (31, "after")]
    assert manager.get("t", 0).log_start_offset == 3


async def test_slices_of_the_old_log_stay_good(two):
    manager = await two.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    two.append(log, "a" * 100)
    piece = log.read(0, 1000, up_to=1, at_least_one=True)
    await move(manager, log, manager.folders[1])
    assert b"a" * 100 in piece.read()
    piece.release()


async def test_reader_of_the_old_log_finds_its_files(two, read_values):
    manager = await two.start(segment_bytes=200)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    filled(two, manager, log, 5)
    await move(manager, log, manager.folders[1])
    assert [offset for offset, _ in read_values(log)] == list(range(5))
    assert not manager.has_offline_log_dir


async def test_log_that_was_never_written_moves_too(two):
    manager = await two.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    await move(manager, log, manager.folders[1])
    await manager.stop()
    manager = await two.start()
    assert folder_of(manager, "t", 0) == 1


async def test_open_transaction_moves(two):
    manager = await two.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for producer_id in (1, 2):
        verification = log.producer_state.begin_verification(producer_id, 0, 0, two.clock.now)
        log.producer_state.confirm(producer_id, verification)
        two.append(
            log, f"{producer_id}", producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
        )
    two.abort(log, 1)
    log.high_watermark = log.log_end_offset
    await move(manager, log, manager.folders[1])
    new = manager.get("t", 0)
    assert new.last_stable_offset == log.last_stable_offset == 1
    assert [entry.producer_id for entry in new.segments[0].aborted.entries()] == [1]
    two.abort(new, 2)
    new.high_watermark = new.log_end_offset
    assert new.last_stable_offset == new.log_end_offset


async def test_gaps_of_a_compacted_log(two, read_values):
    manager = await two.start(cleanup_policy=["compact"], segment_bytes=300, min_cleanable_dirty_ratio=0.0)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for number in range(20):
        two.append(log, Record(timestamp=two.clock.now, key=b"k%d" % (number % 3), value=b"%d" % number))
    while await manager.cleaner.clean_dirtiest():
        pass
    records = read_values(log)
    assert len(records) < 20
    await move(manager, log, manager.folders[1])
    assert read_values(manager.get("t", 0)) == records
    assert manager.get("t", 0).cleaned_offset == log.cleaned_offset
    two.kill()
    manager = await two.start(cleanup_policy=["compact"])
    assert read_values(manager.get("t", 0)) == records
    assert manager.get("t", 0).log_end_offset == 20


async def test_what_was_durable_is_durable_after_a_move(two_in_memory, read_values):
    world = two_in_memory
    manager = await world.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    filled(world, manager, log)
    await log.flush()
    await move(manager, log, manager.folders[1])
    new = manager.get("t", 0)
    assert new.recovery_point == 30
    world.kill()
    world.disk.crash(random.Random(3))
    manager = await world.start()
    assert [offset for offset, _ in read_values(manager.get("t", 0))] == list(range(30))


@pytest.mark.parametrize("steps", [0, 1, 100])
async def test_restart_in_the_middle_of_a_move(two, read_values, steps):
    manager = await two.start(segment_bytes=500)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    filled(two, manager, log)
    copy = LogCopy(log, manager.create_future(log, manager.folders[1]))
    for _ in range(steps):
        await copy.step()
    done = copy.future.log_end_offset
    two.kill()
    manager = await two.start(segment_bytes=500)
    log, future = manager.get("t", 0), manager.future("t", 0)
    assert (log.log_end_offset, future.log_end_offset, future.topic_id) == (30, done, TOPIC_ID)
    await moved(LogCopy(log, future))
    assert read_values(manager.replace_with_future("t", 0)) == read_values(log)


async def test_future_log_that_is_ahead_after_a_crash_is_cut(two_in_memory, read_values):
    world = two_in_memory
    manager = await world.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    filled(world, manager, log, 10)
    future = manager.create_future(log, manager.folders[1])
    await moved(LogCopy(log, future))
    await future.flush()
    log.truncate_to(4)
    world.kill()
    manager = await world.start()
    copy = LogCopy(manager.get("t", 0), manager.future("t", 0))
    assert copy.future.log_end_offset == 4
    world.append(copy.current, "new")
    await moved(copy)
    assert read_values(copy.future)[-1] == (4, "new")


@pytest.mark.parametrize("seed", range(30))
async def test_crash_at_the_swap_leaves_one_whole_log(two_in_memory, read_values, seed):
    world = two_in_memory
    rng = random.Random(seed)
    manager = await world.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    filled(world, manager, log)
    await log.flush()
    copy = LogCopy(log, manager.create_future(log, manager.folders[1]))
    await moved(copy)
    renames = 0

    def fails_at(path: str) -> bool:
        nonlocal renames
        renames += 1
        return renames > seed % 5

    world.disk.fail("rename" if seed % 2 else "sync", where=fails_at)
    try:
        manager.replace_with_future("t", 0)
    except KafkaError as error:
        assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    world.disk.heal()
    world.kill()
    world.disk.crash(rng)
    manager = await world.start()
    assert [offset for offset, _ in read_values(manager.get("t", 0))] == list(range(30))


async def test_failure_of_the_new_folder_leaves_the_old_log(two_in_memory, read_values):
    world = two_in_memory
    manager = await world.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    filled(world, manager, log, 5)
    await moved(LogCopy(log, manager.create_future(log, manager.folders[1])))
    world.disk.fail("rename", where=in_second)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        manager.replace_with_future("t", 0)
    assert manager.folders[1].is_offline
    assert manager.get("t", 0) is log
    world.append(log, "still", producer_id=7, producer_epoch=0, base_sequence=5)
    assert partition_folders(world, world.path) == ["t-0"]
    world.disk.heal()
    await manager.stop()
    manager = await world.start()
    assert read_values(manager.get("t", 0))[-1] == (5, "still")


async def test_deletion_ends_a_move(two):
    manager = await two.start(file_delete_delay_ms=0)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    filled(two, manager, log, 5)
    copy = LogCopy(log, manager.create_future(log, manager.folders[1]))
    manager.delete("t", 0)
    with pytest.raises(CopyAborted):
        await copy.step()
    assert manager.future("t", 0) is None
    two.kill()
    manager = await two.start()
    assert list(manager.logs()) == []
    assert manager.future("t", 0) is None


async def test_damaged_batch_is_not_copied(two):
    manager = await two.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    filled(two, manager, log, 5)
    file = two.disk.open(log.segments[0].path)
    file.write(b"\xff", log.size - 3)
    file.close()
    copy = LogCopy(log, manager.create_future(log, manager.folders[1]))
    with refused(ErrorCode.CORRUPT_MESSAGE):
        await copy.step()
    assert copy.future.log_end_offset == 4


async def test_no_move_while_a_folder_is_offline(memory_world):
    world = memory_world
    world.more_paths = [SECOND, "third"]
    manager = await world.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    manager.folders[2].fail("gone", OSError(errno.EIO, "gone"))
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        manager.create_future(log, manager.folders[1])
    assert not manager.folders[1].is_offline


async def test_name_too_long_for_a_future_log(two):
    manager = await two.start()
    log = manager.get_or_create("t" * 220, 0, TOPIC_ID)
    with refused(ErrorCode.INVALID_TOPIC_EXCEPTION):
        manager.create_future(log, manager.folders[1])
