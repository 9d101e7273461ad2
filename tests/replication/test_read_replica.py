"""Consumers that read from a follower (KIP-392): whom the leader sends there, and what they find there.

On real logs in a simulated disk; the test plays the other brokers. With stock clients: tests/testing/test_read_replica.py.
"""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.config import Config
from ottla.base.errors import ErrorCode
from ottla.base.settings import SettingError
from ottla.replication.follower import FollowerAction, position_of, process_partition_data
from ottla.replication.metadata_cache import BrokerNode
from ottla.replication.read_replica import ConsumerRack
from ottla.replication.settings import ReplicationSettings
from ottla.wire.control_records import ControlRecordType, EndTransactionMarker, build_end_marker_batch
from ottla.wire.messages.fetch import PartitionData
from ottla.wire.records import Record, build_batch

from .helpers.fetches import reads, result_of
from .helpers.replicas import LAG_SECONDS, ME, NOW_MS, OTHER, THIRD, Replicas, batch, replicas

FOURTH = 4
ALL = (ME, OTHER, THIRD, FOURTH)


def nodes(**racks: int | tuple[int, ...]) -> dict[int, BrokerNode]:
    """The brokers by rack; those that are not named are not alive."""
    ids = {rack: each if isinstance(each, tuple) else (each,) for rack, each in racks.items()}
    return {broker_id: BrokerNode(broker_id, "host", 9092, rack) for rack, here in ids.items() for broker_id in here}


async def fetch(world: Replicas, offset: int, rack: ConsumerRack | None = None, epoch: int = -1) -> PartitionData:
    reading = reads(world, offset=offset, asked={"current_leader_epoch": epoch}, or_follower=True, rack=rack)
    await reading.read_all()
    result = result_of(reading)
    if result.records:
        result.records.release()  # type: ignore[union-attr]
    return result


def lead(world: Replicas, isr: tuple[int, ...] = ALL, epoch: int = 0) -> None:
    assert world.lead(epoch=epoch, isr=isr, replicas=ALL) == ErrorCode.NONE


# --- whom the leader sends elsewhere ----------------------------------------------------------------------------------


async def test_a_consumer_is_sent_to_the_replica_in_its_rack_and_gets_no_records() -> None:
    async with replicas() as world:
        lead(world)
        world.partition.append(batch(), NOW_MS)
        for follower in (OTHER, THIRD, FOURTH):
            world.fetched(follower, 1)
        everywhere = nodes(a=ME, b=OTHER, c=(THIRD, FOURTH))
        away = await fetch(world, 0, ConsumerRack("b", everywhere))
        assert (away.preferred_read_replica, away.records, away.error_code) == (OTHER, b"", 0)
        assert (away.high_watermark, away.log_start_offset, away.last_stable_offset) == (1, 0, 1)
        for rack in ("a", "nowhere"):
            here = await fetch(world, 0, ConsumerRack(rack, everywhere))
            assert here.preferred_read_replica == -1
            assert here.records


async def test_a_leader_in_the_rack_goes_before_a_follower_there() -> None:
    async with replicas() as world:
        lead(world)
        world.partition.append(batch(), NOW_MS)
        world.fetched(OTHER, 1)
        assert (await fetch(world, 0, ConsumerRack("a", nodes(a=(ME, OTHER))))).preferred_read_replica == -1


async def test_only_a_live_replica_in_sync_that_has_the_offset() -> None:
    async with replicas() as world:
        lead(world, isr=(ME, OTHER, THIRD))
        for _ in range(3):
            world.partition.append(batch(), NOW_MS)
        world.fetched(OTHER, 2)
        world.fetched(THIRD, 3, log_start=1)
        world.fetched(FOURTH, 1)  # not in sync
        everywhere = nodes(b=OTHER, c=THIRD, d=FOURTH)

        async def chosen(rack: str, offset: int) -> int:
            return (await fetch(world, offset, ConsumerRack(rack, everywhere))).preferred_read_replica

        assert [await chosen("b", offset) for offset in (0, 1, 2, 3)] == [OTHER, OTHER, OTHER, -1]
        assert [await chosen("c", offset) for offset in (0, 1, 2, 3)] == [-1, THIRD, THIRD, THIRD]
        assert await chosen("d", 0) == -1
        del everywhere[OTHER]  # its session at the store has ended
        assert await chosen("b", 0) == -1


async def test_of_several_the_one_that_has_most_then_the_one_that_was_caught_up_last(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with replicas() as world:
        lead(world)
        here = ConsumerRack("b", nodes(b=(OTHER, THIRD, FOURTH)))
        for follower in (FOURTH, OTHER, THIRD):
            await trio.sleep(1)
            world.fetched(follower, 0)
        assert (await fetch(world, 0, here)).preferred_read_replica == THIRD
        world.partition.append(batch(), NOW_MS)
        world.fetched(OTHER, 1)
        assert (await fetch(world, 0, here)).preferred_read_replica == OTHER


async def test_another_leader_epoch_is_said_before_another_replica() -> None:
    async with replicas() as world:
        lead(world, epoch=3)
        world.fetched(OTHER, 0)
        here = ConsumerRack("b", nodes(b=OTHER))
        assert (await fetch(world, 0, here, epoch=2)).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (await fetch(world, 0, here, epoch=4)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert (await fetch(world, 0, here, epoch=3)).preferred_read_replica == OTHER


async def test_who_is_sent_elsewhere_does_not_wait() -> None:
    async with replicas() as world:
        lead(world)
        world.fetched(OTHER, 0)
        reading = reads(world, or_follower=True, rack=ConsumerRack("b", nodes(b=OTHER)), min_bytes=1 << 20)
        await reading.read_all()
        assert reading.enough


# --- what a follower serves -------------------------------------------------------------------------------------------


def follow(world: Replicas, epoch: int = 0) -> None:
    assert world.lead(OTHER, epoch, isr=ALL, replicas=ALL) == ErrorCode.NONE


def take(world: Replicas, high_watermark: int, *batches: bytearray, log_start: int = 0) -> None:
    """The leader's answer to the follower's next fetch."""
    partition = world.partition
    for offset, each in enumerate(batches, partition.log.log_end_offset):
        each[0:8] = offset.to_bytes(8, "big")
        each[12:16] = partition.leader_epoch.to_bytes(4, "big")
    answer = PartitionData(high_watermark=high_watermark, log_start_offset=log_start, records=bytes(b"".join(batches)))
    assert process_partition_data(partition, position_of(partition), answer) is FollowerAction.FETCH


async def test_a_follower_serves_what_it_knows_to_be_committed() -> None:
    async with replicas() as world:
        follow(world)
        take(world, 1, batch(), batch())
        found = await fetch(world, 0)
        assert (found.error_code, found.high_watermark, found.preferred_read_replica) == (0, 1, -1)
        assert found.records
        # Committed at the leader, perhaps, but not as far as this one knows: to be waited for.
        assert [(await fetch(world, offset)).error_code for offset in (1, 2)] == [0, 0]
        assert [(await fetch(world, offset)).records for offset in (1, 2)] == [b"", b""]
        # By this a consumer goes back to the leader.
        assert (await fetch(world, 3)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        take(world, 2, log_start=1)
        assert (await fetch(world, 0)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_follower_serves_under_the_present_leader_epoch_only() -> None:
    async with replicas() as world:
        follow(world, epoch=5)
        codes = [(await fetch(world, 0, epoch=epoch)).error_code for epoch in (-1, 4, 5, 6)]
        assert codes == [0, ErrorCode.FENCED_LEADER_EPOCH, 0, ErrorCode.UNKNOWN_LEADER_EPOCH]


async def test_a_consumer_that_knows_nothing_of_followers_is_not_served_by_one() -> None:
    async with replicas() as world:
        follow(world)
        reading = reads(world)
        await reading.read_all()
        assert result_of(reading).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_follower_leaves_open_and_aborted_transactions_out() -> None:
    async with replicas() as world:
        follow(world)
        records = [Record(timestamp=NOW_MS, value=b"x")]
        take(world, 1, build_batch(records, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True))

        async def committed() -> PartitionData:
            reading = reads(world, or_follower=True, isolation=1)
            await reading.read_all()
            result = result_of(reading)
            if result.records:
                result.records.release()  # type: ignore[union-attr]
            return result

        found = await committed()
        assert (found.last_stable_offset, found.records) == (0, b"")
        abort = EndTransactionMarker(ControlRecordType.ABORT, 0)
        take(world, 1, build_end_marker_batch(abort, producer_id=7, producer_epoch=0, timestamp=NOW_MS))
        # The marker is not committed itself.
        found = await committed()
        assert (found.last_stable_offset, found.records) == (0, b"")
        take(world, 2)
        found = await committed()
        assert found.last_stable_offset == 2
        assert found.records
        assert [(each.producer_id, each.first_offset) for each in found.aborted_transactions or []] == [(7, 0)]


@pytest.mark.parametrize("change", ["watermark", "epoch", "stopped", "leader"])
async def test_who_waits_at_a_follower_hears_of_it(autojump_clock: trio.testing.MockClock, change: str) -> None:
    async with replicas() as world, trio.open_nursery() as nursery:
        follow(world)
        take(world, 0, batch())
        reading = reads(world, asked={"current_leader_epoch": 0}, or_follower=True)
        started = trio.current_time()

        async def wait() -> None:
            await reading.read_all()
            assert not reading.enough
            await reading.wait_for_more(LAG_SECONDS, trio.lowlevel.checkpoint)

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        expected = ErrorCode.FENCED_LEADER_EPOCH
        if change == "watermark":
            take(world, 1)
            expected = ErrorCode.NONE
        elif change == "epoch":
            follow(world, epoch=1)
        elif change == "stopped":
            world.stop(delete=True)
            expected = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            lead(world, epoch=1)
        await trio.testing.wait_all_tasks_blocked()
        result = result_of(reading)
        assert result.error_code == expected
        if change == "watermark":
            assert result.records
            result.records.release()  # type: ignore[union-attr]
        assert trio.current_time() == started


async def test_one_that_waits_for_more_bytes_than_come_at_first(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world, trio.open_nursery() as nursery:
        follow(world)
        reading = reads(world, or_follower=True, min_bytes=2 * len(batch()))
        done = trio.Event()

        async def wait() -> None:
            await reading.read_all()
            await reading.wait_for_more(LAG_SECONDS, trio.lowlevel.checkpoint)
            done.set()

        nursery.start_soon(wait)
        for high_watermark in (0, 1):
            await trio.testing.wait_all_tasks_blocked()
            take(world, high_watermark, batch())
            await trio.testing.wait_all_tasks_blocked()
            assert not done.is_set()
        take(world, 2)
        await trio.testing.wait_all_tasks_blocked()
        assert done.is_set()
        result_of(reading).records.release()  # type: ignore[union-attr]


# --- the setting ------------------------------------------------------------------------------------------------------


def test_other_classes_are_refused() -> None:
    name = "replica.selector.class"
    for known in ("LeaderSelector", "RackAwareReplicaSelector"):
        Config({name: f"org.apache.kafka.common.replica.{known}"}).settings(ReplicationSettings)
    with pytest.raises(SettingError, match=r"classes cannot be loaded; there are .*RackAwareReplicaSelector"):
        Config({name: "com.example.Nearest"}).settings(ReplicationSettings)
