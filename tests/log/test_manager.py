"""The folder as a whole: whose it is, checkpoints, deletion, flushes, failures, and the stop."""

from __future__ import annotations

import errno
import logging
import re

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.log.log_directories import LogStartError
from ottla.wire.schema import uuid_to_text

CLUSTER = "abcdefghijklmnopqrstuv"


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)


def text(world, name: str) -> str:
    return world.disk.read_file(f"{world.path}/{name}").decode()


# --- identity ---------------------------------------------------------------------------------------------------------


async def test_meta_properties_of_zookeeper_mode(world):
    manager = await world.start(broker_id=5)
    assert manager.cluster_id is None
    await manager.identify(5, CLUSTER)
    assert text(world, "meta.properties") == f"version=0\nbroker.id=5\ncluster.id={CLUSTER}\n"
    await manager.stop()
    again = await world.start(broker_id=5)
    assert again.cluster_id == CLUSTER
    with pytest.raises(LogStartError, match=CLUSTER):
        await again.identify(5, "another")


async def test_meta_properties_of_kraft_and_of_kafka_with_its_comments(world):
    world.disk.make_dir(world.path)
    directory_id = "nYt1jCRIqbKuPBvnxfZ46w"
    content = (
        f"#\n#Sat Nov 21 07:46:22 UTC 2026\nnode.id=5\nversion=1\ncluster.id={CLUSTER}\ndirectory.id={directory_id}\n"
    )
    world.disk.write_file(f"{world.path}/meta.properties", content.encode())
    manager = await world.start(broker_id=5)
    await manager.identify(5, CLUSTER)
    assert text(world, "meta.properties") == content


async def test_folder_of_another_broker(world):
    manager = await world.start(broker_id=5)
    await manager.identify(5, CLUSTER)
    await manager.stop()
    with pytest.raises(LogStartError, match=r"Stored node id 5 doesn't match previous node id 6"):
        await world.start(broker_id=6)


async def test_folder_in_use(world):
    await world.start()
    with pytest.raises(LogStartError, match="in use"):
        await world.start()
    await world.managers[0].stop()
    await world.start()


async def test_folder_that_cannot_be_made(os_world, tmp_path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(LogStartError, match="cannot be used"):
        await os_world.start()


# --- checkpoints and deletion -----------------------------------------------------------------------------------------


async def test_checkpoints_of_a_stop(world):
    manager = await world.start()
    for topic, records in (("a-b", 3), ("c", 2)):
        log = manager.get_or_create(topic, 1, bytes(16))
        for _ in range(records):
            world.append(log)
    manager.get_or_create("never", 0, bytes(16))
    await manager.stop()
    expected = {"0", "2", "a-b 1 3", "c 1 2"}
    assert set(text(world, "recovery-point-offset-checkpoint").splitlines()) == expected
    assert set(text(world, "replication-offset-checkpoint").splitlines()) == expected
    assert text(world, "log-start-offset-checkpoint") == "0\n0\n"
    assert text(world, ".kafka_cleanshutdown") == '{"version":0,"brokerEpoch":-1}'
    again = await world.start()
    assert {(log.topic, log.partition, log.log_end_offset) for log in again.logs()} == {("a-b", 1, 3), ("c", 1, 2)}


async def test_checkpoints_are_those_of_open_logs(world):
    """A cluster's metadata log is in the same folder, and may be cut before the others are open or when they are closed."""
    log = await world.log()
    for value in ("a", "b", "c"):
        world.append(log, value)
    log.high_watermark = 3
    log.delete_records_before(2)
    log.update_cleaned_offset(1)
    manager = world.managers[-1]
    await manager.stop()
    names = (
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        "cleaner-offset-checkpoint",
    )
    kept = {name: text(world, name) for name in names}
    assert all("t 0" in content for content in kept.values())
    manager.folders[0].checkpoint_now()
    assert {name: text(world, name) for name in names} == kept
    world.take().folders[0].checkpoint_now()
    assert {name: text(world, name) for name in names} == kept


async def test_leader_epoch_checkpoint(world):
    log = await world.log()
    for epoch in (2, 2, 5):
        world.append(log, epoch=epoch)
    await world.managers[-1].stop()
    assert text(world, "t-0/leader-epoch-checkpoint") == "0\n2\n2 0\n5 2\n"
    log = await world.log()
    assert [log.end_offset_for_epoch(e) for e in (-1, 1, 2, 3, 5, 6)] == [
        (-1, -1), (1, 0), (2, 2), (2, 2), (5, 3), (-1, -1),
    ]  # fmt: skip
    assert [log.epoch_for_offset(offset) for offset in (0, 1, 2, 3)] == [2, 2, 5, 5]


async def test_new_leader_epoch_without_records(world):
    log = await world.log()
    log.become_leader(3)
    assert log.latest_epoch == 3
    world.append(log, epoch=3)
    log.become_leader(4)
    assert log.leader_epochs.entries() == [(3, 0), (4, 1)]
    log.become_leader(6)
    assert log.leader_epochs.entries() == [(3, 0), (6, 1)]
    assert log.end_offset_for_epoch(3) == (3, 1)


async def test_deleted_log_starts_anew(world):
    manager = await world.start(file_delete_delay_ms=0)
    log = manager.get_or_create("t", 0, b"a" * 16)
    for _ in range(5):
        world.append(log)
    log.delete_records_before(4)
    await manager.write_checkpoints()
    manager.delete("t", 0)
    assert manager.get("t", 0) is None
    assert [n for n in world.disk.names(world.path) if n.startswith("t-0.") and n.endswith("-delete")] != []
    new = manager.get_or_create("t", 0, b"b" * 16)
    world.append(new, "fresh")
    assert "t 0" not in text(world, "log-start-offset-checkpoint"), "or the next start would take the new log's records"
    world.kill()
    again = await world.start()
    assert (again.get("t", 0).log_start_offset, again.get("t", 0).log_end_offset) == (0, 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(again.run)
        with trio.fail_after(20):
            while any(name.endswith("-delete") for name in world.disk.names(world.path)):
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


async def test_log_of_an_earlier_topic_of_the_same_name(world):
    manager = await world.start()
    world.append(manager.get_or_create("t", 0, b"a" * 16))
    await manager.stop()
    manager = await world.start()
    assert manager.get_or_create("t", 0, b"a" * 16).log_end_offset == 1
    new = manager.get_or_create("t", 0, b"b" * 16)
    assert new.log_end_offset == 0
    world.append(new)
    assert uuid_to_text(b"b" * 16) in text(world, "t-0/partition.metadata")


async def test_log_of_another_topic_id_is_set_aside_and_never_removed(world, caplog):
    """As Kafka does with a stray log: the id may be wrong because the folder, or the cluster's state, is another one."""
    manager = await world.start(file_delete_delay_ms=0)
    world.append(manager.get_or_create("t", 0, b"a" * 16), "kept")
    await manager.stop()
    segment = world.disk.read_file(f"{world.path}/t-0/{0:020d}.log")
    manager = await world.start(file_delete_delay_ms=0)
    world.append(manager.get_or_create("t", 0, b"b" * 16), "new")
    (stray,) = (name for name in world.disk.names(world.path) if name.endswith("-stray"))
    assert re.fullmatch(r"t-0\.[0-9a-f]{32}-stray", stray)
    await manager.stop()
    for _ in range(2):
        caplog.clear()
        manager = await world.start(file_delete_delay_ms=0)
        assert [line for line in caplog.messages if stray in line] == [
            f"{world.path}/{stray} was set aside because it is of no topic of this cluster, and is left alone"
        ]
        log = manager.get_or_create("t", 0, b"b" * 16)
        assert log.log_end_offset == 1
        manager.delete("t", 0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(manager.run)
            with trio.fail_after(20):
                while any(name.endswith("-delete") for name in world.disk.names(world.path)):
                    await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        assert world.disk.read_file(f"{world.path}/{stray}/{0:020d}.log") == segment
        world.append(manager.get_or_create("t", 0, b"b" * 16), "new")
        await manager.stop()


async def test_folder_that_a_crash_left_without_a_segment_is_removed(memory_world, read_values):
    world = memory_world
    log = await world.log()
    world.append(log)
    world.disk.fail("open", where=lambda path: path.endswith("7.log"))
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.truncate_fully_and_start_at(7)
    world.disk.heal()
    world.kill()
    manager = await world.start()
    assert manager.get("t", 0) is None
    assert "t-0" not in world.disk.names(world.path), "or it stays when the partition was deleted or moved meanwhile"
    world.append(manager.get_or_create("t", 0), "fresh")
    world.kill()
    manager = await world.start()
    assert read_values(manager.get("t", 0)) == [(0, "fresh")]


async def test_lost_partition_metadata_is_written_again(world):
    manager = await world.start()
    world.append(manager.get_or_create("t", 0, b"a" * 16))
    await manager.stop()
    world.disk.write_file(f"{world.path}/t-0/partition.metadata", b"")
    manager = await world.start()
    assert manager.get_or_create("t", 0, b"a" * 16).log_end_offset == 1
    assert uuid_to_text(b"a" * 16) in text(world, "t-0/partition.metadata")


async def test_other_folders_are_left_alone(world):
    world.disk.make_dir(f"{world.path}/__cluster_state")
    world.disk.make_dir(f"{world.path}/lost+found")
    world.disk.make_dir(f"{world.path}/topic-x")
    manager = await world.start()
    assert list(manager.logs()) == []
    await manager.stop()
    assert {"__cluster_state", "lost+found", "topic-x"} <= set(world.disk.names(world.path))


# --- flush ------------------------------------------------------------------------------------------------------------


async def test_flush_by_number_of_records(world):
    manager = await world.start(flush_messages=3)
    log = manager.get_or_create("t", 0, bytes(16))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(manager.run)
        assert [world.append(log).flush_due for _ in range(4)] == [False, False, True, True]
        await log.flush()
        assert log.recovery_point == 4
        assert not world.append(log).flush_due
        world.append(log)
        world.append(log)
        await trio.testing.wait_all_tasks_blocked()
        assert log.recovery_point == 7, "in the background too"
        nursery.cancel_scope.cancel()


async def test_flush_by_time(world):
    manager = await world.start(flush_ms=20)
    log = manager.get_or_create("t", 0, bytes(16))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(manager.run)
        for end in (1, 2):
            world.append(log)
            assert log.recovery_point == end - 1
            with trio.fail_after(20):
                while log.recovery_point < end:
                    await trio.sleep(0.005)
        nursery.cancel_scope.cancel()


async def test_rolled_segments_are_flushed(world):
    manager = await world.start(segment_bytes=400)
    log = manager.get_or_create("t", 0, bytes(16))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(manager.run)
        for _ in range(7):
            world.append(log, "x" * 100)
        await trio.testing.wait_all_tasks_blocked()
        assert log.recovery_point == log.segments[-1].base_offset == 6
        nursery.cancel_scope.cancel()


async def test_truncation_during_a_flush_is_not_undone(world, held_workers):
    log = await world.log()
    for _ in range(6):
        world.append(log)
    workers = held_workers(log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.flush)
        await trio.testing.wait_all_tasks_blocked()
        log.truncate_to(2)
        for _ in range(6):
            world.append(log, "other")
        workers.release.set()
    assert (log.recovery_point, workers.jobs) == (8, 2), "what was written meanwhile is flushed again"


async def test_flushes_at_the_same_time(world, held_workers):
    log = await world.log()
    world.append(log)
    workers = held_workers(log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.flush)
        await trio.testing.wait_all_tasks_blocked()
        world.append(log)
        nursery.start_soon(log.flush)
        await trio.testing.wait_all_tasks_blocked()
        assert log.recovery_point == 0
        workers.release.set()
    assert log.recovery_point == 2


async def test_segment_deleted_during_a_flush_is_closed_after_it(world, held_workers):
    log = await world.log(segment_bytes=200, retention_ms=0)
    for _ in range(4):
        world.append(log, "x" * 100, timestamp=1)
    first = log.segments[0]
    workers = held_workers(log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.flush)
        await trio.testing.wait_all_tasks_blocked()
        assert log.delete_old_segments(world.clock.now) == 4
        assert first.file.open_file is not None
        workers.release.set()
    assert first.file.open_file is None
    assert log.recovery_point == 4


# --- truncation -------------------------------------------------------------------------------------------------------


async def test_truncation_inside_a_batch_leaves_no_gap(world, read_values):
    """A start takes a gap between segments for damage, and would remove what is behind it."""
    log = await world.log()
    world.append(log, "kept")
    world.append(log, "cut", "cut")
    log.truncate_to(2)
    assert log.log_end_offset == 1
    log.roll()
    world.append(log, "after")
    world.kill()
    assert read_values(await world.log()) == [(0, "kept"), (1, "after")]


@pytest.mark.parametrize("offset", [0, 1, 5, 6, 7, 12, 13])
async def test_truncate(world, read_values, offset):
    log = await world.log(segment_bytes=400, index_interval_bytes=0)
    for n in range(13):
        world.append(log, f"{n}" + "x" * 100, epoch=n // 4)
    await log.flush()
    records = read_values(log)
    log.truncate_to(offset)
    assert read_values(log) == records[:offset]
    assert (log.log_end_offset, log.recovery_point) == (offset, offset)
    assert log.high_watermark <= offset
    assert log.latest_epoch == (offset - 1) // 4
    world.append(log, "new", epoch=9)
    assert read_values(log) == [*records[:offset], (offset, "new")]
    world.kill()
    log = await world.log(segment_bytes=400)
    assert read_values(log) == [*records[:offset], (offset, "new")]


@pytest.mark.parametrize("offset", [0, 3, 5, 100])
async def test_start_anew(world, read_values, offset):
    log = await world.log(segment_bytes=400)
    for _ in range(5):
        world.append(log, "x" * 100, producer_id=1, producer_epoch=0, base_sequence=log.log_end_offset)
    log.truncate_fully_and_start_at(offset)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark, log.size) == (offset,) * 3 + (0,)
    assert log.active_producers() == []
    assert world.append(log, "new").first_offset == offset
    await world.managers[-1].stop()
    log = await world.log(segment_bytes=400)
    assert read_values(log) == [(offset, "new")]
    assert log.log_start_offset == offset


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_full_disk(memory_world, read_values, caplog):
    world = memory_world
    manager = await world.start()
    offline = []
    manager.offline_listeners.append(offline.append)
    log = manager.get_or_create("t", 0, bytes(16))
    world.append(log, "a")
    world.append(log, "b")
    size = log.size
    world.disk.capacity = (
        (world.disk.capacity or 0)
        + sum(world.disk.file_size(f"{world.path}/t-0/{name}") for name in world.files())
        + 100
    )
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        world.append(log, "x" * 10_000)
    assert (log.log_end_offset, log.size) == (2, size)
    assert world.disk.file_size(f"{world.path}/t-0/{0:020d}.log") == size, "the part that fitted is cut off again"
    assert manager.is_offline
    assert offline == [manager.folders[0]]
    assert "No space left on device" in caplog.text
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        world.append(log, "small")
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.read(0, 1000, up_to=2, at_least_one=True)
    world.disk.capacity = None
    await manager.stop()
    assert ".kafka_cleanshutdown" not in world.disk.names(world.path)
    log = await world.log()
    assert read_values(log) == [(0, "a"), (1, "b")]


@pytest.mark.parametrize("operation", ["write", "sync", "open", "rename"])
async def test_io_error_never_leaves_a_clean_mark(memory_world, read_values, operation, caplog):
    world = memory_world
    manager = await world.start(segment_bytes=200)
    log = manager.get_or_create("t", 0, bytes(16))
    world.append(log, "a" * 100)
    await log.flush()
    world.disk.fail(operation, errno.EIO)
    try:
        for _ in range(3):
            world.append(log, "b" * 100)
        await log.flush()
    except KafkaError as error:
        assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    await manager.stop()
    assert manager.is_offline
    assert "Input/output error" in caplog.text
    world.disk.heal()
    assert ".kafka_cleanshutdown" not in world.disk.names(world.path)
    log = await world.log(segment_bytes=200)
    assert read_values(log)[0] == (0, "a" * 100)


async def test_read_error_takes_the_folder_offline(memory_world):
    world = memory_world
    log = await world.log()
    for _ in range(3):
        world.append(log)
    world.disk.fail("read")
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.read(1, 1000, up_to=3, at_least_one=True)
    assert world.managers[-1].is_offline


async def test_out_of_descriptors_fails_one_operation_only(memory_world, read_values):
    world = memory_world
    manager = await world.start(segment_bytes=200)
    log = manager.get_or_create("t", 0, bytes(16))
    for code in (errno.EMFILE, errno.ENFILE):
        world.disk.fail("open", code)
        for _ in range(2):
            with refused(ErrorCode.KAFKA_STORAGE_ERROR):
                world.append(log, "x" * 130)
        world.disk.heal()
        world.append(log, "y" * 130)
    assert not manager.is_offline
    await manager.stop()
    assert read_values(await world.log()) == [(0, "y" * 130), (1, "y" * 130)]


async def test_failed_flush_acknowledges_nothing(memory_world):
    world = memory_world
    log = await world.log()
    world.append(log)
    world.disk.fail("sync")
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        await log.flush()
    assert log.recovery_point == 0


async def test_start_fails_on_a_log_that_cannot_be_read(memory_world):
    world = memory_world
    log = await world.log()
    world.append(log)
    world.kill()
    world.disk.fail("read", where=lambda path: path.endswith(".log"))
    with pytest.raises(LogStartError, match="Input/output error"):
        await world.start()
    await world.managers[-1].stop()
    world.disk.heal()
    assert ".kafka_cleanshutdown" not in world.disk.names(world.path)
    assert (await world.log()).log_end_offset == 1


async def test_deletion_during_a_flush(world, caplog):
    caplog.set_level(logging.ERROR)
    manager = await world.start(segment_bytes=200)
    log = manager.get_or_create("t", 0, bytes(16))
    for _ in range(5):
        world.append(log, "x" * 100)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.flush)
        nursery.start_soon(manager.write_checkpoints)
        manager.delete("t", 0)
    assert not manager.is_offline
    assert caplog.text == ""
