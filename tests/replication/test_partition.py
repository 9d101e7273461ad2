"""A partition: who may append and read, how far the high watermark goes, and what those who wait are told.

On a real log in a simulated disk, with a clock that jumps to the next deadline.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.metadata.delta import TopicDelta
from ottla.wire.messages.write_txn_markers import WritableTxnMarker
from ottla.wire.records import Record, build_batch
from ottla.wire.schema import ZERO_UUID

from ..helpers.told import led, registration, tell
from .helpers.fetches import CountedBytes
from .helpers.replicas import ME, NOW_MS, OTHER, THIRD, TOPIC_ID, batch, refused, replicas

# --- the high watermark -----------------------------------------------------------------------------------------------


async def test_alone_the_high_watermark_is_the_end_of_the_log() -> None:
    async with replicas() as world:
        world.lead()
        partition = world.partition
        assert (partition.log.high_watermark, partition.fetchable_end(0), partition.fetchable_end(1)) == (0, 0, 0)
        result = partition.append(batch(b"a", b"b"), NOW_MS)
        assert (result.first_offset, result.last_offset) == (0, 1)
        assert (partition.log.high_watermark, partition.fetchable_end(0), partition.fetchable_end(1)) == (2, 2, 2)


async def test_what_a_follower_lacks_is_not_committed() -> None:
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        partition = world.partition
        partition.append(batch(), NOW_MS)
        assert (partition.log.log_end_offset, partition.log.high_watermark) == (1, 0)
        assert partition.read(0, 1000, partition.fetchable_end(0), at_least_one=True) is None
        # The follower falls out of sync: what this broker has is now all there is to wait for.
        world.lead(epoch=1, isr=(ME,), replicas=(ME, OTHER))
        assert partition.log.high_watermark == 1


async def test_a_refused_batch_moves_nothing() -> None:
    async with replicas() as world:
        world.lead()
        with refused(ErrorCode.INVALID_RECORD):
            world.partition.append(batch() + batch(), NOW_MS)
        assert (world.partition.log.log_end_offset, world.partition.log.high_watermark) == (0, 0)


async def test_a_duplicate_moves_nothing() -> None:
    async with replicas() as world:
        world.lead()
        content = build_batch([Record(timestamp=NOW_MS)], producer_id=7, producer_epoch=0, base_sequence=0)
        first, again = (world.partition.append(bytes(content), NOW_MS) for _ in range(2))
        assert (first.first_offset, again.first_offset, again.is_duplicate) == (0, 0, True)
        assert world.partition.log.high_watermark == 1


@pytest.mark.parametrize(
    ("needed", "isr", "number", "enough"),
    [(2, (ME,), 2, False), (2, (ME, OTHER), 2, True), (2, (ME,), 1, True), (3, (ME,), 1, True), (3, (ME,), 2, False)],
)
async def test_acks_of_all_need_enough_replicas_in_sync(
    needed: int, isr: tuple[int, ...], number: int, enough: bool
) -> None:
    async with replicas(min_insync_replicas=needed) as world:
        world.lead(isr=isr, replicas=(ME, OTHER)[:number])
        if enough:
            world.partition.append(batch(), NOW_MS, acks=-1)
        else:
            with refused(ErrorCode.NOT_ENOUGH_REPLICAS):
                world.partition.append(batch(), NOW_MS, acks=-1)
        world.partition.append(batch(), NOW_MS, acks=1)
        assert world.partition.log.log_end_offset == 1 + enough


# --- leadership -------------------------------------------------------------------------------------------------------


async def test_only_the_leader_appends_and_answers() -> None:
    async with replicas() as world:
        with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            world.manager.partition("t", 0)
        world.lead(OTHER, isr=(OTHER,), replicas=(ME, OTHER))
        for action in (world.partition.check_leader, lambda: world.partition.append(batch(), NOW_MS)):
            with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
                action()
        world.lead(ME, 1)
        world.partition.check_leader()
        world.partition.append(batch(), NOW_MS)


@pytest.mark.parametrize(
    ("current", "code"),
    [(-1, None), (3, None), (2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
async def test_the_epoch_that_a_client_knows(current: int, code: ErrorCode | None) -> None:
    async with replicas() as world:
        world.lead(epoch=3)
        if code is None:
            world.partition.check_leader(current)
        else:
            with refused(code):
                world.partition.check_leader(current)


async def test_each_batch_has_the_epoch_of_its_leader() -> None:
    async with replicas() as world:
        for epoch in (0, 4):
            world.lead(epoch=epoch)
            world.partition.append(batch(), NOW_MS)
        assert world.partition.log.end_offset_for_epoch(0) == (0, 1)
        assert world.partition.log.end_offset_for_epoch(4) == (4, 2)


async def test_past_decisions_are_refused() -> None:
    async with replicas() as world:
        assert world.lead(epoch=5) == ErrorCode.NONE
        assert world.lead(epoch=4) == ErrorCode.STALE_CONTROLLER_EPOCH
        assert world.lead(epoch=6, topic_id=b"j" * 16) == ErrorCode.INCONSISTENT_TOPIC_ID
        assert world.partition.leader_epoch == 5


async def test_a_state_that_is_known_says_nothing_new() -> None:
    async with replicas() as world:
        assert world.lead(epoch=5, isr=(ME, OTHER), replicas=(ME, OTHER)) == ErrorCode.NONE
        again = world.lead(epoch=5, isr=(ME,), replicas=(ME, OTHER), partition_epoch=6)
        assert again == ErrorCode.STALE_CONTROLLER_EPOCH
        assert world.partition.isr == (ME, OTHER)


async def test_a_partition_epoch_that_is_past_is_passed_over() -> None:
    async with replicas() as world:
        world.lead(epoch=5, isr=(ME, OTHER), replicas=(ME, OTHER), partition_epoch=9)
        assert world.lead(OTHER, 6, replicas=(ME, OTHER), partition_epoch=8) == ErrorCode.NONE
        assert (world.partition.leader_id, world.partition.leader_epoch) == (ME, 5)


async def test_what_is_replicated_elsewhere_is_not_taken() -> None:
    async with replicas() as world:
        assert world.lead(OTHER, replicas=(OTHER,)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            world.manager.partition("t", 0)
        tell(world.metadata, led("t", TOPIC_ID, {0: OTHER}))
        with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
            world.manager.partition("t", 0)


async def test_a_topic_is_given_its_id_without_an_election() -> None:
    async with replicas() as world:
        world.lead(epoch=5, topic_id=ZERO_UUID)
        assert world.lead(epoch=5) == ErrorCode.NONE
        assert (world.partition.topic_id, world.partition.log.topic_id) == (TOPIC_ID, TOPIC_ID)
        assert world.lead(epoch=5) == ErrorCode.STALE_CONTROLLER_EPOCH


async def test_fetchers_are_told_whom_to_follow() -> None:
    async with replicas() as world:
        world.lead(OTHER, 0, replicas=(ME, OTHER))
        world.lead(OTHER, 1, replicas=(ME, OTHER))
        world.lead(OTHER, 1, replicas=(ME, OTHER))  # the same again
        world.lead(ME, 2, replicas=(ME, OTHER))
        world.lead(OTHER, 3, replicas=(ME, OTHER))
        world.stop()
        assert world.submitted.followed == [(OTHER, 0), (OTHER, 1), None, (OTHER, 3), None]


async def test_a_stopped_replica_knows_its_leader_epoch() -> None:
    async with replicas() as world:
        world.lead(OTHER, 5, replicas=(ME, OTHER))
        assert world.stop(epoch=4) == ErrorCode.FENCED_LEADER_EPOCH
        assert world.stop(epoch=5) == ErrorCode.NONE
        assert world.lead(ME, 5, replicas=(ME, OTHER)) == ErrorCode.STALE_CONTROLLER_EPOCH
        with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
            world.partition.check_leader()
        assert world.stop(delete=True) == ErrorCode.NONE


async def test_coordinators_are_told_when_leadership_comes_and_goes() -> None:
    async with replicas() as world:
        world.lead(epoch=0)
        world.lead(epoch=0)  # the same again: no news
        world.lead(epoch=1)
        world.lead(OTHER, 2, replicas=(ME, OTHER))
        world.lead(OTHER, 3, replicas=(ME, OTHER))
        world.lead(epoch=4)
        world.stop()
        assert world.told == [("t", 0, 0), ("t", 0, 1), ("t", 0, None), ("t", 0, 4), ("t", 0, None)]


async def test_a_stopped_partition_is_kept_a_deleted_one_begins_anew() -> None:
    async with replicas() as world:
        world.lead()
        world.partition.append(batch(), NOW_MS)
        world.stop()
        world.lead(epoch=1)
        assert world.partition.log.log_end_offset == 1
        world.stop(delete=True)
        world.lead(epoch=0, topic_id=b"j" * 16)
        assert (world.partition.log.log_end_offset, world.partition.log.high_watermark) == (0, 0)


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({}, False),
        ({"leader_epoch": 1}, True),  # which this broker has heard of
        ({"replicas": (OTHER, ME)}, True),
        ({"isr": (OTHER, ME)}, True),
        (None, True),  # its topic is being deleted, for which there is another request
    ],
)
async def test_a_replica_that_is_elsewhere_now_is_deleted(change: dict[str, Any] | None, stays: bool) -> None:
    async with replicas() as world:
        world.lead(epoch=1, replicas=(ME, OTHER))
        world.partition.append(batch(), NOW_MS)
        moved = None if change is None else registration(OTHER, 2, (OTHER, THIRD), (OTHER, THIRD))._replace(**change)
        tell(world.metadata, TopicDelta("t", TOPIC_ID, {0: moved}))
        assert (world.logs.get("t", 0) is not None) == stays
        assert (world.told[-1] == ("t", 0, None)) != stays


async def test_a_replica_of_an_earlier_topic_is_not_elsewhere() -> None:
    async with replicas() as world:
        world.lead(epoch=1)
        moved = registration(OTHER, 2, (OTHER,), (OTHER,))
        for topic_id in (b"j" * 16, ZERO_UUID):
            tell(world.metadata, TopicDelta("t", topic_id, {0: moved}))
        assert world.logs.get("t", 0) is not None


# --- those who wait for the high watermark ----------------------------------------------------------------------------


async def test_who_waits_goes_on_when_the_leader_is_elected_again(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        world.partition.append(batch(), NOW_MS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.partition.wait_for_high_watermark, 1, 3600)
            await trio.testing.wait_all_tasks_blocked()
            world.lead(epoch=1, isr=(ME, OTHER), replicas=(ME, OTHER))
            await trio.testing.wait_all_tasks_blocked()
            assert len(world.partition.offset_waiters) == 1
            world.lead(epoch=2, isr=(ME,), replicas=(ME, OTHER))


async def test_what_is_committed_needs_no_wait() -> None:
    async with replicas() as world:
        world.lead()
        world.partition.append(batch(), NOW_MS)
        with trio.testing.assert_no_checkpoints():
            await world.partition.wait_for_high_watermark(1, timeout=0)


async def test_waiters_are_woken_in_the_order_of_their_offsets(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        world.lead()
        reached = []

        async def wait_for(offset: int) -> None:
            await world.partition.wait_for_high_watermark(offset)
            reached.append(offset)

        async with trio.open_nursery() as nursery:
            for offset in (3, 1, 2):
                nursery.start_soon(wait_for, offset)
            await trio.testing.wait_all_tasks_blocked()
            for offset in (1, 2, 3):
                world.partition.append(batch(), NOW_MS)
                await trio.testing.wait_all_tasks_blocked()
                assert reached == list(range(1, offset + 1))
        assert world.partition.offset_waiters == []


@pytest.mark.parametrize("timeout", [30.0, 0.0, -1.0])
async def test_a_wait_ends_with_its_timeout(autojump_clock: trio.testing.MockClock, timeout: float) -> None:
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        world.partition.append(batch(), NOW_MS)
        started = trio.current_time()
        with refused(ErrorCode.REQUEST_TIMED_OUT):
            await world.partition.wait_for_high_watermark(1, timeout)
        assert trio.current_time() - started == max(timeout, 0)
        assert world.partition.offset_waiters == []


async def test_a_wait_that_is_cancelled_leaves_nothing_behind(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        world.lead()
        with trio.move_on_after(5) as scope:
            await world.partition.wait_for_high_watermark(1)
        assert scope.cancelled_caught
        assert world.partition.offset_waiters == []


@pytest.mark.parametrize("change", ["follower", "stopped", "deleted", "new-epoch"])
async def test_lost_leadership_answers_those_who_wait(autojump_clock: trio.testing.MockClock, change: str) -> None:
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        partition = world.partition
        partition.append(batch(), NOW_MS)
        answers = []

        async def wait() -> None:
            try:
                await partition.wait_for_high_watermark(1, timeout=3600)
            except KafkaError as error:
                answers.append(error.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            if change == "follower":
                world.lead(OTHER, 1, replicas=(ME, OTHER))
            elif change == "new-epoch":
                # Led again, but under an epoch in which the records may have been cut: whether they are is not known.
                world.lead(OTHER, 1, replicas=(ME, OTHER))
                world.lead(ME, 2)
            else:
                world.stop(delete=change == "deleted")
        assert answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
        assert trio.current_time() < 3600


# --- those who wait for bytes -----------------------------------------------------------------------------------------


async def test_a_fetch_waits_for_the_sum_of_its_partitions() -> None:
    async with replicas() as world:
        world.lead()
        size = len(batch())
        watch = CountedBytes(2 * size)
        world.partition.fetches.consumers.add(watch)
        world.partition.append(batch(), NOW_MS)
        assert watch.is_waiting
        watch.on_change(size - 1)  # as another partition would
        assert watch.is_waiting
        watch.on_change(1)
        assert not watch.is_waiting


async def test_a_fetch_does_not_wait_for_what_it_cannot_see() -> None:
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        watch = CountedBytes(1)
        world.partition.fetches.consumers.add(watch)
        world.partition.append(batch(), NOW_MS)
        world.partition.append(batch(), NOW_MS)
        assert watch.missing == 1
        world.fetched(OTHER, 2)
        # Both batches become visible at once.
        assert watch.missing == 1 - 2 * len(batch())


@pytest.mark.parametrize("how", ["follower", "stopped", "broker-stops"])
async def test_a_fetch_that_waits_is_answered_when_there_is_nothing_to_wait_for(how: str) -> None:
    async with replicas() as world:
        world.lead()
        watch = CountedBytes(1 << 20)
        world.partition.fetches.consumers.add(watch)
        if how == "follower":
            world.lead(OTHER, 1, replicas=(ME, OTHER))
        elif how == "stopped":
            world.stop()
        else:
            world.manager.release_waiters()
        assert not watch.is_waiting


# --- flush.messages ---------------------------------------------------------------------------------------------------


async def test_a_record_to_be_flushed_first_is_committed_from_its_flush_on() -> None:
    async with replicas(flush_messages=2) as world:
        world.lead()
        partition = world.partition
        partition.append(batch(), NOW_MS)
        assert partition.log.high_watermark == 1
        assert partition.append(batch(), NOW_MS).flush_due
        assert partition.log.high_watermark == 1
        watch = CountedBytes(1)
        partition.fetches.consumers.add(watch)
        await partition.log.flush()
        assert (partition.log.high_watermark, watch.is_waiting) == (2, False)


async def test_end_markers_too_are_committed_from_their_flush_on() -> None:
    async with replicas(flush_messages=1) as world:
        world.lead()
        marker = WritableTxnMarker(producer_id=7, producer_epoch=0, transaction_result=True)
        end = world.partition.append_end_marker(marker, NOW_MS)
        with refused(ErrorCode.REQUEST_TIMED_OUT):
            await world.partition.wait_for_high_watermark(end, 0)
        await world.partition.log.flush()
        await world.partition.wait_for_high_watermark(end)


async def test_a_new_leader_flushes_what_it_found(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas(flush_messages=1) as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        world.partition.append(batch(), NOW_MS)
        assert world.partition.log.high_watermark == 0
        world.lead(epoch=1, replicas=(ME, OTHER))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.logs.run)
            await world.partition.wait_for_high_watermark(1)
            nursery.cancel_scope.cancel()


async def test_a_log_that_was_moved_is_committed_from_its_flush_on() -> None:
    async with replicas(flush_messages=1) as world:
        world.lead()
        log = world.partition.log
        log.listener = None  # as it is in a log of another folder
        world.partition.replace_log(log)
        world.partition.append(batch(), NOW_MS)
        await log.flush()
        assert log.high_watermark == 1
