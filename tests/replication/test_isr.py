"""The in-sync replicas: who joins and who falls out, and how far the high watermark goes meanwhile.

The controller's answers are given by hand; how they come is in test_alter_partition.
"""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.log.memory_disk import MemoryDisk
from ottla.replication.isr import CommittedPartitionState, PendingExpand, PendingIsr, PendingRecovery, PendingShrink
from ottla.wire.messages.write_txn_markers import WritableTxnMarker
from ottla.wire.records import Record, build_batch

from .helpers.fetches import CountedBytes
from .helpers.replicas import LAG_SECONDS, ME, NOW_MS, OTHER, THIRD, Replicas, batch, refused, replicas

ALL = (ME, OTHER, THIRD)


def append(world: Replicas, count: int = 1, acks: int = -1) -> None:
    for _ in range(count):
        world.partition.append(batch(), NOW_MS, acks=acks)


def state(world: Replicas) -> CommittedPartitionState | PendingIsr:
    assert world.partition.leader is not None
    return world.partition.leader.isr


def pending(world: Replicas) -> PendingIsr:
    """The change that was submitted last."""
    change = state(world)
    assert not isinstance(change, CommittedPartitionState)
    assert world.submitted.changed[-1] is world.partition
    return change


def confirm(world: Replicas) -> None:
    """The controller does what it was asked for."""
    change, partition = pending(world), world.partition
    partition.isr_changed(change, change.proposed, partition.leader_epoch, partition.partition_epoch + 1)


def high_watermark(world: Replicas) -> int:
    return world.partition.log.high_watermark


# --- the high watermark -----------------------------------------------------------------------------------------------


async def test_it_is_the_lowest_end_of_those_in_sync() -> None:
    async with replicas() as world:
        world.lead(isr=ALL, replicas=ALL)
        append(world, 3)
        world.fetched(OTHER, 3)
        assert high_watermark(world) == 0
        world.fetched(THIRD, 1)
        assert high_watermark(world) == 1
        world.fetched(THIRD, 3)
        assert high_watermark(world) == 3


async def test_it_never_goes_back() -> None:
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        append(world, 3)
        world.fetched(OTHER, 3)
        world.fetched(OTHER, 1)
        assert high_watermark(world) == 3


async def test_a_follower_out_of_sync_does_not_hold_it_up() -> None:
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=ALL)
        append(world, 3)
        world.fetched(OTHER, 3)
        append(world, 1)
        world.fetched(THIRD, 1)
        world.fetched(OTHER, 4)
        assert high_watermark(world) == 4


async def test_one_that_is_about_to_join_holds_it_up_while_it_is_alive(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        world.lead(isr=(ME,), replicas=(ME, OTHER))
        world.live(ME)  # it cannot join yet
        append(world)
        world.fetched(OTHER, 1)  # caught up from now on
        world.live(ME, OTHER)
        append(world)
        assert high_watermark(world) == 1
        world.live(ME)
        world.partition.check_followers()
        assert high_watermark(world) == 2
        world.live(ME, OTHER)
        append(world)
        assert high_watermark(world) == 2
        await trio.sleep(LAG_SECONDS + 1)
        world.partition.check_followers()
        assert high_watermark(world) == 3


@pytest.mark.parametrize("number", [2, 3])
async def test_it_stands_still_below_min_insync_replicas(number: int) -> None:
    async with replicas(min_insync_replicas=2) as world:
        world.lead(isr=(ME,), replicas=ALL[:number])
        append(world, acks=1)
        assert high_watermark(world) == 0
        world.fetched(OTHER, 1)
        assert high_watermark(world) == 0  # the change is not confirmed yet
        confirm(world)
        assert high_watermark(world) == 1


async def test_a_lone_replica_is_enough_whatever_is_wanted() -> None:
    async with replicas(min_insync_replicas=2) as world:
        world.lead()
        append(world)
        assert high_watermark(world) == 1


async def test_the_new_leader_notes_where_its_epoch_begins() -> None:
    async with replicas() as world:
        world.lead(OTHER, 0, replicas=ALL)
        world.lead(ME, 1, isr=ALL, replicas=ALL)
        append(world, 2)
        world.lead(ME, 4, isr=ALL, replicas=ALL)
        assert world.partition.log.leader_epochs.entries() == [(1, 0), (4, 2)]
        # A follower that was further under epoch 3 learns where to cut.
        assert world.partition.log.end_offset_for_epoch(3) == (1, 2)


# --- acks=all ---------------------------------------------------------------------------------------------------------


async def test_coordinators_and_markers_need_enough_in_sync_too() -> None:
    async with replicas(min_insync_replicas=2) as world:
        world.lead(isr=(ME,), replicas=(ME, OTHER))
        with refused(ErrorCode.NOT_ENOUGH_REPLICAS):
            world.partition.append(batch(), NOW_MS, internal=True)
        with refused(ErrorCode.NOT_ENOUGH_REPLICAS):
            world.partition.append_end_marker(WritableTxnMarker(producer_id=7, transaction_result=True), NOW_MS)
        assert world.partition.log.log_end_offset == 0


async def test_too_few_in_sync_after_the_append(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas(min_insync_replicas=2) as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        content = build_batch([Record(timestamp=NOW_MS)], producer_id=7, producer_epoch=0, base_sequence=0)
        written = world.partition.append(bytes(content), NOW_MS)
        codes = []

        async def wait() -> None:
            try:
                await world.partition.wait_for_high_watermark(written.last_offset + 1, 60)
            except KafkaError as error:
                codes.append(error.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            world.fetched(OTHER, 1)
            world.lead(epoch=1, isr=(ME,), replicas=(ME, OTHER))
        assert codes == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
        # Sent again while they are too few it is refused; then it is found to be there already, and waited for.
        with refused(ErrorCode.NOT_ENOUGH_REPLICAS):
            world.partition.append(bytes(content), NOW_MS)
        world.lead(epoch=2, isr=(ME, OTHER), replicas=(ME, OTHER))
        again = world.partition.append(bytes(content), NOW_MS)
        assert (again.is_duplicate, again.first_offset) == (True, 0)
        await world.partition.wait_for_high_watermark(again.last_offset + 1, 60)


# --- joining ----------------------------------------------------------------------------------------------------------


async def test_a_follower_joins_with_all_that_is_committed() -> None:
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=ALL)
        append(world, 3)
        world.fetched(OTHER, 2)
        world.fetched(THIRD, 1)
        assert isinstance(state(world), CommittedPartitionState)
        world.fetched(THIRD, 2)
        assert (pending(world).isr, pending(world).proposed) == ((ME, OTHER), ALL)
        assert isinstance(pending(world), PendingExpand)


async def test_a_follower_needs_what_the_leader_had_when_it_was_elected() -> None:
    async with replicas() as world:
        world.lead(epoch=0, isr=(ME, OTHER), replicas=ALL)
        append(world, 2)
        world.lead(epoch=1, isr=(ME, OTHER), replicas=ALL)
        world.fetched(THIRD, 1)  # at the high watermark and beyond, but the leader before may have acknowledged 2
        assert isinstance(state(world), CommittedPartitionState)
        world.fetched(THIRD, 2)
        assert isinstance(state(world), PendingExpand)


async def test_a_dead_follower_does_not_join() -> None:
    async with replicas() as world:
        world.lead(isr=(ME,), replicas=(ME, OTHER))
        world.live(ME)
        world.fetched(OTHER, 0)
        assert isinstance(state(world), CommittedPartitionState)


@pytest.mark.parametrize("led", [False, True], ids=["followed", "led"])
async def test_a_follower_that_the_controller_took_out_is_not_proposed_at_once(
    led: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """It was drained, and goes on fetching; the controller takes it in again once it was restarted."""
    async with replicas() as world:
        world.lead(OTHER if led else ME, isr=(ME, OTHER), replicas=(ME, OTHER))
        world.lead(epoch=1, isr=(ME,), replicas=(ME, OTHER))
        world.fetched(OTHER, 0, broker_epoch=5)
        append(world)
        assert (high_watermark(world), world.submitted.changed) == (1, []), "nobody waits for it either"
        await trio.sleep(0.5)
        world.fetched(OTHER, 1, broker_epoch=5)
        world.partition.isr_refused(pending(world))
        world.fetched(OTHER, 1, broker_epoch=5)
        assert isinstance(state(world), CommittedPartitionState)
        world.fetched(OTHER, 1, broker_epoch=6)
        assert isinstance(state(world), PendingExpand)


async def test_from_its_proposal_on_a_joining_follower_counts_for_the_watermark_but_not_for_min_isr() -> None:
    async with replicas(min_insync_replicas=2) as world:
        world.lead(isr=(ME,), replicas=(ME, OTHER))
        world.fetched(OTHER, 0)
        assert isinstance(state(world), PendingExpand)
        with refused(ErrorCode.NOT_ENOUGH_REPLICAS):
            append(world)
        confirm(world)
        append(world)
        assert high_watermark(world) == 0
        world.fetched(OTHER, 1)
        assert high_watermark(world) == 1


async def test_a_proposal_holds_the_watermark_up_though_the_follower_lags(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with replicas() as world:
        world.lead(isr=(ME,), replicas=(ME, OTHER))
        world.fetched(OTHER, 0)
        append(world)
        await trio.sleep(LAG_SECONDS + 1)
        world.partition.check_followers()  # one change at a time, so it is not dropped either
        assert (high_watermark(world), isinstance(state(world), PendingExpand)) == (0, True)
        world.partition.isr_refused(pending(world))
        world.partition.check_followers()
        assert (high_watermark(world), world.partition.isr) == (1, (ME,))


# --- falling out ------------------------------------------------------------------------------------------------------


async def test_nobody_waits_for_a_follower_that_was_refused(autojump_clock: trio.testing.MockClock) -> None:
    """Its broker may be about to stop, and not fetch again before it has left the cluster."""
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=ALL)
        world.fetched(THIRD, 0)
        append(world)
        world.fetched(OTHER, 1)
        assert high_watermark(world) == 0
        world.partition.isr_refused(pending(world))
        assert high_watermark(world) == 1
        append(world)
        world.fetched(OTHER, 2)
        assert high_watermark(world) == 2
        # However long it takes to stop.
        await trio.sleep(1)
        append(world)
        world.fetched(OTHER, 3)
        assert high_watermark(world) == 3
        # If it fetches on it is asked for again, and waited for so that it can catch up.
        world.fetched(THIRD, 2)
        append(world)
        world.fetched(OTHER, 4)
        assert high_watermark(world) == 3
        world.fetched(THIRD, 4)
        assert isinstance(state(world), PendingExpand)
        assert high_watermark(world) == 4


async def test_a_follower_that_lags_falls_out(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        world.lead(isr=ALL, replicas=ALL)
        append(world, 2)
        world.fetched(OTHER, 2)
        await trio.sleep(LAG_SECONDS)
        world.partition.check_followers()
        assert isinstance(state(world), CommittedPartitionState)
        await trio.sleep(1)
        world.partition.check_followers()
        assert isinstance(pending(world), PendingShrink)
        assert pending(world).proposed == (ME, OTHER)  # OTHER has all there is, however long ago it asked
        assert high_watermark(world) == 0  # THIRD may still be elected
        confirm(world)
        assert (high_watermark(world), world.partition.isr) == (2, (ME, OTHER))


async def test_a_follower_that_is_always_a_little_behind_stays(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        for offset in range(8):
            append(world)
            world.fetched(OTHER, offset)  # what there was at its fetch before
            await trio.sleep(LAG_SECONDS / 2)
        world.partition.check_followers()
        assert isinstance(state(world), CommittedPartitionState)
        for _ in range(4):
            append(world)
            world.fetched(OTHER, 7)  # now it stands still, though it asks
            await trio.sleep(LAG_SECONDS / 2)
        world.partition.check_followers()
        assert isinstance(state(world), PendingShrink)


async def test_after_an_election_those_in_sync_have_time_to_show_it(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        world.lead(OTHER, 0, replicas=ALL)
        await trio.sleep(10 * LAG_SECONDS)
        world.lead(ME, 1, isr=ALL, replicas=ALL)
        append(world)
        await trio.sleep(LAG_SECONDS)
        world.partition.check_followers()
        assert isinstance(state(world), CommittedPartitionState)
        await trio.sleep(1)
        world.partition.check_followers()
        assert pending(world).proposed == (ME,)


async def test_followers_are_looked_at_twice_per_lag(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world, trio.open_nursery() as nursery:
        nursery.start_soon(world.manager.run)
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        append(world)
        await trio.sleep(LAG_SECONDS + 1)
        assert isinstance(state(world), CommittedPartitionState)
        await trio.sleep(LAG_SECONDS / 2)
        assert isinstance(state(world), PendingShrink)
        nursery.cancel_scope.cancel()


# --- the controller's word --------------------------------------------------------------------------------------------


async def test_a_state_of_the_controller_makes_a_change_void() -> None:
    async with replicas() as world:
        world.lead(isr=(ME,), replicas=(ME, OTHER))
        world.fetched(OTHER, 0)
        change = pending(world)
        world.lead(epoch=1, isr=(ME,), replicas=(ME, OTHER))
        world.partition.isr_changed(change, (ME, OTHER), 0, 1)
        world.partition.isr_refused(change)
        assert (world.partition.isr, world.partition.partition_epoch) == ((ME,), 1)


async def test_the_answer_to_a_change_before_says_nothing_of_the_next_one() -> None:
    async with replicas() as world:
        world.lead(isr=(ME,), replicas=ALL)
        world.fetched(OTHER, 0)
        before = pending(world)
        world.partition.isr_refused(before)
        world.fetched(THIRD, 0)
        world.partition.isr_changed(before, (ME, OTHER), 0, 1)
        world.partition.isr_refused(before)
        assert (pending(world).proposed, world.partition.isr) == ((ME, THIRD), (ME,))


@pytest.mark.parametrize(("epochs", "isr"), [((0, 0), (ME, OTHER)), ((0, 5), (ME, OTHER)), ((1, 5), (ME,))])
async def test_an_answer_counts_by_its_epochs(epochs: tuple[int, int], isr: tuple[int, ...]) -> None:
    async with replicas() as world:
        world.lead(isr=(ME,), replicas=(ME, OTHER))
        world.fetched(OTHER, 0)
        world.partition.isr_changed(pending(world), (ME, OTHER), *epochs)
        assert world.partition.isr == isr


async def test_a_leader_that_was_elected_uncleanly_says_that_it_goes_on() -> None:
    async with replicas() as world:
        world.lead(isr=(ME,), replicas=(ME, OTHER), is_recovering=True)
        assert isinstance(pending(world), PendingRecovery)
        assert pending(world).proposed == (ME,)
        append(world)
        assert high_watermark(world) == 1
        confirm(world)
        world.fetched(OTHER, 1)
        assert isinstance(pending(world), PendingExpand)


# --- broker epochs, low watermark -------------------------------------------------------------------------------------


async def test_an_earlier_life_of_a_follower_is_refused() -> None:
    async with replicas() as world:
        world.lead(isr=(ME,), replicas=(ME, OTHER))
        world.fetched(OTHER, 0, broker_epoch=7)
        with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
            world.fetched(OTHER, 0, broker_epoch=6)
        world.fetched(OTHER, 0, broker_epoch=8)
        world.fetched(OTHER, 0)  # an older peer, which says nothing


async def test_the_low_watermark_is_that_of_all_live_replicas(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        world.lead(isr=ALL, replicas=ALL)
        append(world, 3)
        for follower in (OTHER, THIRD):
            world.fetched(follower, 3)
        world.partition.log.delete_records_before(2)
        assert world.partition.low_watermark == 0
        with refused(ErrorCode.REQUEST_TIMED_OUT):
            await world.partition.wait_for_low_watermark(2, 30)
        assert trio.current_time() == 30
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.partition.wait_for_low_watermark, 2, 3600)
            await trio.testing.wait_all_tasks_blocked()
            world.fetched(OTHER, 3, log_start=2)
            await trio.testing.wait_all_tasks_blocked()
            assert len(world.partition.low_watermark_waiters) == 1
            world.live(ME, OTHER)
            world.fetched(OTHER, 3, log_start=2)
        assert world.partition.low_watermark == 2


async def test_a_disk_that_fails_while_the_watermark_moves_is_no_error_of_the_change() -> None:
    """Who takes the controller's answer goes on with the partitions of other folders."""
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        partition = world.partition
        for _ in range(3):
            partition.append(batch(), NOW_MS)
        world.fetched(OTHER, 1)
        assert partition.leader is not None
        change = PendingShrink((ME, OTHER), (OTHER,))
        partition.leader.isr = change
        watch = CountedBytes(1)
        partition.fetches.consumers.add(watch)
        folder = partition.log.folder
        assert isinstance(folder.disk, MemoryDisk)
        world.live(ME)
        folder.disk.fail("read")
        partition.isr_changed(change, (ME,), 0, 1)
        assert folder.is_offline
        assert not watch.is_waiting
