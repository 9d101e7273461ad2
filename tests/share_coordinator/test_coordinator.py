"""The share coordinator's requests, records and upkeep, on a log in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode, KafkaError
from ottla.share_coordinator.coordinator import no_flush
from ottla.share_coordinator.state import SharePartitionKey, StateBatch
from ottla.wire.messages.share_group_state import ShareSnapshotValue, ShareUpdateValue

from .conftest import KEY, TOPIC, Run, World

SETTING = "share_coordinator_snapshot_update_records_per_snapshot"


@contextlib.contextmanager
def refused(code: ErrorCode) -> Iterator[None]:
    with pytest.raises(KafkaError) as caught:
        yield
    assert caught.value.code is code


def kinds(world: World) -> str:
    """S for each snapshot in the log, u for an update, t for a tombstone."""
    letters = {ShareSnapshotValue: "S", ShareUpdateValue: "u", type(None): "t"}
    return "".join(letters[type(record.value)] for record in world.records())


def same_partition(world: World, count: int) -> list[SharePartitionKey]:
    """Keys of share partitions that one partition of the topic keeps, with ``KEY``."""
    keys = (SharePartitionKey(f"g{number}", TOPIC, 0) for number in range(100_000))
    found = (key for key in keys if world.partition(key) == world.partition())
    return [next(found) for _ in range(count)]


async def test_a_state_from_its_beginning_to_its_end(run: Run) -> None:
    async def test(world: World) -> None:
        assert await world.summary() == (0, 0, -1, -1)
        await world.initialize(state_epoch=5)
        assert await world.summary() == (5, 0, -1, -1)
        state = await world.read(leader_epoch=2)
        assert (state.state_epoch, state.start_offset, state.batches) == (5, -1, ())
        await world.write(StateBatch(0, 2, 2, 1), StateBatch(3, 9, 0, 1), state_epoch=5, leader_epoch=2, start_offset=0)
        await world.write(StateBatch(3, 3, 4, 2), state_epoch=5, leader_epoch=2, start_offset=3, complete=1)
        for _ in range(2):
            state = await world.read(leader_epoch=2)
            assert (state.state_epoch, state.start_offset) == (5, 3)
            assert state.batches == (StateBatch(3, 3, 4, 2), StateBatch(4, 9, 0, 1))
            assert await world.summary() == (5, 2, 3, 1)
            await world.restart()
        await world.delete()
        await world.restart()
        assert await world.summary() == (0, 0, -1, -1)
        await world.delete()  # nothing to do
        assert kinds(world) == "Suuut"

    await run(test)


async def test_to_initialize_again_forgets_the_batches(run: Run) -> None:
    async def test(world: World) -> None:
        await world.initialize(1, 0)
        await world.write(StateBatch(0, 9, 2, 1))
        await world.initialize(2, 100)
        assert (await world.read()).batches == ()
        assert await world.summary() == (2, 0, 100, 0), "of a partition that begins there, none is delivered"
        assert [record.value.snapshot_epoch for record in world.records() if record.value] == [0, 0, 1]

    await run(test)


async def test_older_epochs_are_fenced(run: Run) -> None:
    async def test(world: World) -> None:
        await world.initialize(state_epoch=3)
        await world.read(leader_epoch=7)
        for _ in range(2):
            with refused(ErrorCode.FENCED_STATE_EPOCH):
                await world.initialize(state_epoch=2)
            with refused(ErrorCode.FENCED_LEADER_EPOCH):
                await world.read(leader_epoch=6)
            with refused(ErrorCode.FENCED_LEADER_EPOCH):
                await world.write(state_epoch=2, leader_epoch=6)
            with refused(ErrorCode.FENCED_STATE_EPOCH):
                await world.write(state_epoch=2, leader_epoch=7)
            await world.write(state_epoch=-1, leader_epoch=-1)
            await world.write(state_epoch=4, leader_epoch=8)
            assert (await world.summary())[:2] == (3, 7), "a write takes over neither"
            await world.restart()

    await run(test)


async def test_a_group_that_begins_anew_fences_the_leader_that_reads_again(run: Run) -> None:
    async def test(world: World) -> None:
        await world.initialize(state_epoch=1)
        await world.read(leader_epoch=7)
        await world.initialize(state_epoch=2, start_offset=50)
        with refused(ErrorCode.FENCED_STATE_EPOCH):
            await world.write(state_epoch=1, leader_epoch=7)
        with refused(ErrorCode.FENCED_LEADER_EPOCH):
            await world.read(leader_epoch=6)
        assert (await world.read(leader_epoch=7)).state_epoch == 2

    await run(test)


async def test_what_is_not_there_is_refused(run: Run) -> None:
    async def test(world: World) -> None:
        with refused(ErrorCode.INVALID_REQUEST):
            await world.read()
        with refused(ErrorCode.INVALID_REQUEST):
            await world.write()
        await world.initialize()
        with refused(ErrorCode.INVALID_REQUEST):
            await world.write(StateBatch(5, 4, 0, 1))
        del world.topics[TOPIC]
        for request in (world.initialize, world.read, world.write, world.delete, world.summary):
            with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                await request()
        world.topics[TOPIC] = 3
        for partition, code in ((-1, ErrorCode.INVALID_REQUEST), (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):
            key = SharePartitionKey("g", TOPIC, partition)
            await world.restart(key)
            with refused(code):
                await world.initialize(key=key)
        world.coordinator.stop()
        with refused(ErrorCode.NOT_COORDINATOR):
            await world.initialize()

    await run(test)


@pytest.mark.parametrize(("limit", "written"), [(0, "SSSSSS"), (2, "SuuSuu"), (500, "Suuuuu")])
async def test_a_snapshot_after_so_many_updates(run: Run, limit: int, written: str) -> None:
    async def test(world: World) -> None:
        await world.initialize(start_offset=0)
        for offset in range(5):
            await world.write(StateBatch(offset, offset, 2, 1), complete=offset + 1)
            if offset == 2:
                await world.restart()
        assert kinds(world) == written
        assert (await world.read()).batches == (StateBatch(0, 4, 2, 1),)
        epochs = [record.value.snapshot_epoch for record in world.records() if record.value]
        assert epochs == [written[: number + 1].count("S") - 1 for number in range(6)]

    await run(test, **{SETTING: limit})


async def test_an_update_has_only_what_has_changed(run: Run) -> None:
    async def test(world: World) -> None:
        await world.initialize(start_offset=0)
        await world.write(StateBatch(0, 9, 0, 1))
        await world.write(StateBatch(6, 7, 2, 1), StateBatch(4, 5, 2, 1), start_offset=5, complete=3)
        value = world.records()[-1].value
        assert isinstance(value, ShareUpdateValue)
        assert [(each.first_offset, each.last_offset) for each in value.state_batches] == [(5, 7)]
        assert (value.start_offset, value.delivery_complete_count) == (5, 3)

    await run(test)


async def test_what_is_not_committed_is_not_told(run: Run, autojump_clock: MockClock) -> None:
    async def test(world: World) -> None:
        await world.initialize()
        world.log.held = True
        with refused(ErrorCode.COORDINATOR_NOT_AVAILABLE):
            await world.write(StateBatch(0, 0, 2, 1), start_offset=0)
        read = world.coordinator.read(KEY, -1)
        with trio.move_on_after(1) as waiting:
            await world.coordinator.committed(read, no_flush)
        assert waiting.cancelled_caught
        world.log.release()
        assert (await world.coordinator.committed(read, no_flush)).batches == (StateBatch(0, 0, 2, 1),)

    await run(test)


async def test_a_log_that_refuses_changes_nothing(run: Run) -> None:
    async def test(world: World) -> None:
        await world.initialize(start_offset=0)
        world.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        with refused(ErrorCode.COORDINATOR_NOT_AVAILABLE):
            await world.write(StateBatch(0, 0, 2, 1))
        assert (await world.read()).batches == ()

    await run(test)


# Upkeep


async def test_records_that_no_share_partition_needs_are_deleted(run: Run) -> None:
    async def test(world: World) -> None:
        a, b, c = same_partition(world, 3)
        partition = world.partition()
        for key in (a, b, c):
            await world.initialize(key=key, start_offset=0)  # offsets 0, 1, 2
        for key in (b, a, a, b):
            await world.write(StateBatch(0, 0, 2, 1), key=key)  # 3 to 6: snapshots, as the limit says
        await world.coordinator.prune()
        assert world.log.starts[partition] == 2, "c has no other snapshot"
        await world.delete(c)  # 7
        await world.coordinator.prune()
        assert world.log.starts[partition] == 5, "the newest snapshot of a"
        assert (world.coordinator.last_pruned, world.coordinator.writes) == ({partition: 5}, 4)
        await world.restart(a)
        assert (await world.read(key=a)).batches == (await world.read(key=b)).batches == (StateBatch(0, 0, 2, 1),)
        assert await world.summary(c) == (0, 0, -1, -1)
        await world.delete(a)
        await world.delete(b)
        await world.coordinator.prune()
        assert world.records() == []

    await run(test, **{SETTING: 0})


async def test_a_snapshot_that_may_be_lost_does_not_replace_the_one_before(run: Run, autojump_clock: MockClock) -> None:
    async def test(world: World) -> None:
        await world.initialize(start_offset=0)
        world.log.held = True
        world.coordinator.write(KEY, 1, 0, 0, 0, [StateBatch(0, 0, 2, 1)])
        await world.coordinator.prune()
        assert kinds(world) == "SS"
        world.log.release()
        await world.coordinator.prune()
        assert kinds(world) == "S"

    await run(test, **{SETTING: 0})


async def test_an_idle_share_partition_gets_a_snapshot_once(run: Run, autojump_clock: MockClock) -> None:
    async def test(world: World) -> None:
        idle, busy = same_partition(world, 2)
        world.run()
        await world.initialize(key=idle, start_offset=0)
        await world.write(StateBatch(0, 4, 2, 1), key=idle)
        await trio.sleep(200)
        await world.initialize(key=busy, start_offset=0)
        await trio.sleep(101)
        assert kinds(world)[-2:] == "SS", "the last is of the idle one, whose snapshot is 5 minutes old"
        snapshot = world.records()[-1].value
        assert isinstance(snapshot, ShareSnapshotValue)
        assert (snapshot.snapshot_epoch, len(snapshot.state_batches)) == (1, 1)
        assert snapshot.write_timestamp - snapshot.create_timestamp == 300_000
        await trio.sleep(900)
        assert len(world.records()) == 2, "what was before is deleted"
        end = world.log.ends[world.partition()]
        await trio.sleep(7200)
        assert world.log.ends[world.partition()] == end, "where nothing happens, nothing is written"
        await world.restart(idle)
        assert (await world.read(key=idle)).batches == (StateBatch(0, 4, 2, 1),)

    await run(test)


async def test_share_partitions_of_deleted_topics_are_forgotten(run: Run, autojump_clock: MockClock) -> None:
    async def test(world: World) -> None:
        other = bytes(16)
        world.topics[other] = 1
        (kept,) = same_partition(world, 1)
        keys = (SharePartitionKey(f"h{number}", other, 0) for number in range(100_000))
        gone = next(key for key in keys if world.partition(key) == world.partition())
        world.run()
        await world.initialize(key=kept)
        await world.initialize(key=gone)
        del world.topics[other]
        world.coordinator.topics_deleted()
        await trio.sleep(1)
        assert kinds(world) == "SSt"
        world.topics[other] = 1
        assert await world.summary(gone) == (0, 0, -1, -1)
        assert (await world.summary(kept))[0] == 1

    await run(test)


async def test_another_epoch_of_the_same_leader_goes_on(run: Run) -> None:
    async def test(world: World) -> None:
        await world.initialize()
        pending = world.coordinator.read(KEY, -1)
        await world.coordinator.load(world.partition(), 9)
        assert (await world.coordinator.committed(pending, no_flush)).state_epoch == 1
        world.coordinator.unload(world.partition())
        with refused(ErrorCode.NOT_COORDINATOR):
            await world.coordinator.committed(pending, no_flush)

    await run(test)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not of the form"),
        ("g:AAECAwQFBgcICQoLDA0ODw", "not of the form"),
        (":AAECAwQFBgcICQoLDA0ODw:0", "group id is empty"),
        (" :AAECAwQFBgcICQoLDA0ODw:0", "group id is empty"),
        ("g:t:0", "not a Kafka uuid"),
        ("g:AAECAwQFBgcICQoLDA0ODw:", "not a partition"),
        ("g:AAECAwQFBgcICQoLDA0ODw:x", "not a partition"),
        ("g:AAECAwQFBgcICQoLDA0ODw:9999999999", "not a partition"),
    ],
)
def test_what_is_no_key_of_a_share_partition(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        SharePartitionKey.of(text)


def test_the_key_of_a_share_partition() -> None:
    key = SharePartitionKey("g:1", TOPIC, 12)
    assert key.coordinator_key() == "g:1:AAECAwQFBgcICQoLDA0ODw:12"
    assert SharePartitionKey.of(key.coordinator_key()) == key
