"""What a follower makes of its leader's answers, by rule; the logs are real, on a simulated disk."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode
from ottla.log.memory_disk import MemoryDisk
from ottla.replication.follower import (
    FollowerAction,
    begin_following,
    position_of,
    process_partition_data,
    process_reset_error,
    reset_to_leader,
)
from ottla.replication.partition import Partition
from ottla.wire.control_records import ControlRecordType, EndTransactionMarker, build_end_marker_batch
from ottla.wire.messages.fetch import EpochEndOffset, PartitionData
from ottla.wire.records import build_batch

from .helpers.followers import batch, filled, follower_world, texts

EPOCH = 5


async def following(epochs: Sequence[int] = (), high_watermark: int = 0, **settings: Any) -> Partition:
    """A partition that follows broker 2 in EPOCH; its log has one record of each of these leader epochs."""
    partition = (await follower_world(**settings)).lead(2, EPOCH)
    filled(partition.log, epochs)
    partition.log.high_watermark = high_watermark
    return partition


def answer(
    records: bytes = b"",
    *,
    high_watermark: int = 0,
    log_start: int = 0,
    error: ErrorCode = ErrorCode.NONE,
    diverging: tuple[int, int] | None = None,
) -> PartitionData:
    data = PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start,
        records=memoryview(records),
    )
    if diverging is not None:
        data.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    return data


def take(partition: Partition, data: PartitionData) -> FollowerAction:
    return process_partition_data(partition, position_of(partition), data)


# --- records ----------------------------------------------------------------------------------------------------------


async def test_records_are_appended_and_the_next_fetch_begins_behind_them() -> None:
    partition = await following()
    assert position_of(partition) == (0, EPOCH, -1, 0)
    assert take(partition, answer(batch(0, "a", "b", epoch=4), high_watermark=1)) is FollowerAction.FETCH
    assert texts(partition.log) == ["a", "b"]
    assert position_of(partition) == (2, EPOCH, 4, 0)


@pytest.mark.parametrize("what", ["offset", "epoch"])
async def test_answer_to_another_question_is_passed_over(what: str) -> None:
    partition = await following((1, 1))
    asked = position_of(partition)
    asked = asked._replace(offset=1) if what == "offset" else asked._replace(leader_epoch=EPOCH - 1)
    for data in (
        answer(batch(2, "c", epoch=1), high_watermark=3),
        answer(diverging=(0, 1)),
        answer(error=ErrorCode.FENCED_LEADER_EPOCH),
        answer(error=ErrorCode.OFFSET_OUT_OF_RANGE),
    ):
        assert process_partition_data(partition, asked, data) is FollowerAction.REFETCH
        assert (partition.log.log_end_offset, partition.log.high_watermark) == (2, 0)


async def test_records_of_a_leader_not_heard_of_wait() -> None:
    """KAFKA-18723. The watermark that comes with them holds for what is here, too."""
    partition = await following((1,))
    assert take(partition, answer(batch(1, "b", epoch=EPOCH + 1), high_watermark=2)) is FollowerAction.BACK_OFF
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (1, 1)


async def test_bad_records_are_fetched_again() -> None:
    partition = await following((1,))
    bad = bytearray(batch(1, "b", epoch=1))
    bad[-1] ^= 1
    assert take(partition, answer(bytes(bad), high_watermark=2, log_start=1)) is FollowerAction.BACK_OFF
    assert (partition.log.log_end_offset, partition.log.high_watermark, partition.log.log_start_offset) == (1, 0, 0)
    assert take(partition, answer(batch(1, "b", epoch=1))) is FollowerAction.FETCH


async def test_offsets_that_do_not_follow_stop_the_partition() -> None:
    partition = await following((1, 1))
    assert take(partition, answer(batch(0, "again", epoch=1))) is FollowerAction.STOP
    assert partition.log.log_end_offset == 2


async def test_disk_that_fails_stops_the_partition() -> None:
    partition = await following((1,))
    disk = partition.log.folder.disk
    assert isinstance(disk, MemoryDisk)
    disk.fail("write")
    assert take(partition, answer(batch(1, "b", epoch=1))) is FollowerAction.STOP


async def test_no_descriptor_for_a_moment_is_no_end() -> None:
    partition = await following((1,))
    disk = partition.log.folder.disk
    assert isinstance(disk, MemoryDisk)
    disk.fail("write", errno.EMFILE)
    assert take(partition, answer(batch(1, "b", epoch=1))) is FollowerAction.BACK_OFF
    disk.heal()
    assert take(partition, answer(batch(1, "b", epoch=1))) is FollowerAction.FETCH
    assert texts(partition.log)[1:] == ["b"]


async def test_flush_messages_holds_for_followers() -> None:
    partition = await following(flush_messages=2)
    assert take(partition, answer(batch(0, epoch=1))) is FollowerAction.FETCH
    assert take(partition, answer(batch(1, epoch=1))) is FollowerAction.FLUSH


# --- watermarks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("leaders", "expected"), [(0, 0), (2, 2), (3, 3), (9, 3)])
async def test_high_watermark_is_the_leaders_as_far_as_the_log_reaches(leaders: int, expected: int) -> None:
    partition = await following((1, 1))
    take(partition, answer(batch(2, "c", epoch=1), high_watermark=leaders))
    assert partition.log.high_watermark == expected


async def test_high_watermark_moves_without_records() -> None:
    partition = await following((1, 1))
    take(partition, answer(high_watermark=2))
    assert partition.log.high_watermark == 2


async def test_broker_alone_loses_nothing_by_an_old_watermark() -> None:
    """After a crash its checkpoint is as old as it is; with no other replica in sync the end of its log is committed."""
    disk = MemoryDisk()
    world = await follower_world(disk)
    filled(world.lead(1, EPOCH, isr=[1]).log, (EPOCH,) * 3)
    world.kill()
    partition = (await follower_world(disk)).lead(1, EPOCH + 1, isr=[1])
    assert (texts(partition.log), partition.log.high_watermark) == ([f"{n}/{EPOCH}" for n in range(3)], 3)


async def test_log_start_follows_and_segments_below_it_go() -> None:
    partition = await following((1,) * 6, segment_bytes=150)
    log = partition.log
    assert len(log.segments) > 2
    take(partition, answer(high_watermark=6, log_start=5))
    assert (log.log_start_offset, log.leader_epochs.entries()) == (5, [(1, 5)])
    log.delete_old_segments(0)
    assert log.segments[0].base_offset > 0
    take(partition, answer(high_watermark=6, log_start=2))
    assert log.log_start_offset == 5


async def test_log_start_does_not_pass_the_high_watermark() -> None:
    partition = await following((1,) * 6)
    take(partition, answer(high_watermark=3, log_start=5))
    assert (partition.log.log_start_offset, partition.log.high_watermark) == (3, 3)


async def test_ended_transactions_are_forgotten_below_the_watermark() -> None:
    partition = await following()
    offset = 0
    for _ in range(20):
        marker = build_end_marker_batch(
            EndTransactionMarker(ControlRecordType.COMMIT, 0), producer_id=7, producer_epoch=0, timestamp=1
        )
        marker[:8] = (offset + 1).to_bytes(8, "big")
        data = batch(offset, epoch=0, producer_id=7, producer_epoch=0, base_sequence=offset // 2, is_transactional=True)
        take(partition, answer(data + bytes(marker), high_watermark=offset))
        offset += 2
    assert len(partition.log.producer_state.unreplicated) <= 2


def written(offset: int, *, sequence: int = 0, producer_id: int = 7, epoch: int = 0) -> bytes:
    """A batch of a transaction."""
    header = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": True}
    return batch(offset, f"{offset}", epoch=epoch, **header)


def ended(offset: int, *, producer_id: int = 7) -> bytes:
    """A transaction's end marker."""
    marker = build_end_marker_batch(
        EndTransactionMarker(ControlRecordType.COMMIT, 0), producer_id=producer_id, producer_epoch=0, timestamp=1
    )
    marker[:8] = offset.to_bytes(8, "big")
    return bytes(marker)


async def following_with_open_transaction(*, is_away: bool, begins_at: int = 1) -> Partition:
    """It was away for longer than ``delete.retention.ms``, or has another leader now."""
    world = await follower_world(cleanup_policy="compact", delete_retention_ms=1000)
    partition = world.lead(2, EPOCH)
    begin_following(partition)
    take(partition, answer(batch(0, "kept"), high_watermark=1))
    take(partition, answer(written(begins_at), high_watermark=1))
    if is_away:
        await trio.sleep(1.5)
    else:
        begin_following(world.lead(3, EPOCH + 1))
    return partition


@pytest.mark.parametrize("is_away", [True, False], ids=["away", "another leader"])
@pytest.mark.parametrize(
    "beyond", [written(9, sequence=4, producer_id=8), written(9, sequence=1)], ids=["another producer", "the same"]
)
async def test_transaction_whose_end_was_compacted_away_is_fetched_anew(
    autojump_clock: MockClock, beyond: bytes, is_away: bool
) -> None:
    """Open for ever, it would keep the last stable offset below what consumers have seen, if this replica led."""
    partition = await following_with_open_transaction(is_away=is_away)
    assert take(partition, answer(beyond, high_watermark=10)) is FollowerAction.REFETCH
    log = partition.log
    assert (texts(log), log.log_end_offset, dict(log.producer_state.ongoing)) == (["kept"], 1, {})
    assert (
        take(partition, answer(beyond + ended(10, producer_id=8) + ended(11), high_watermark=12))
        is FollowerAction.FETCH
    )
    assert (texts(log)[:2], log.last_stable_offset) == (["kept", "9"], 12)


async def test_emptied_end_marker_is_a_gap(autojump_clock: MockClock) -> None:
    partition = await following_with_open_transaction(is_away=True)
    empty = bytearray(build_batch([], base_offset=2, last_offset=2, producer_id=7, producer_epoch=0, is_control=True))
    assert take(partition, answer(bytes(empty), high_watermark=3)) is FollowerAction.REFETCH
    assert partition.log.log_end_offset == 1


@pytest.mark.parametrize("is_away", [True, False], ids=["away", "another leader"])
async def test_transaction_that_goes_on_without_a_gap_is_not_fetched_anew(
    autojump_clock: MockClock, is_away: bool
) -> None:
    partition = await following_with_open_transaction(is_away=is_away)
    assert take(partition, answer(written(2, sequence=1) + ended(3), high_watermark=4)) is FollowerAction.FETCH
    assert (texts(partition.log)[:3], partition.log.last_stable_offset) == (["kept", "1", "2"], 4)


async def test_transaction_that_is_still_in_the_leaders_log_is_fetched_anew_once(autojump_clock: MockClock) -> None:
    partition = await following_with_open_transaction(is_away=True)
    assert take(partition, answer(written(9, sequence=4), high_watermark=10)) is FollowerAction.REFETCH
    assert take(partition, answer(written(1), high_watermark=10)) is FollowerAction.FETCH
    assert take(partition, answer(written(9, sequence=4), high_watermark=10)) is FollowerAction.FETCH
    assert take(partition, answer(ended(10), high_watermark=11)) is FollowerAction.FETCH
    assert (texts(partition.log)[:3], partition.log.last_stable_offset) == (["kept", "1", "9"], 11)


async def test_gaps_in_what_one_leader_sends_without_a_pause_are_no_reason(autojump_clock: MockClock) -> None:
    partition = await following_with_open_transaction(is_away=True, begins_at=1)
    take(partition, answer(ended(2), high_watermark=3))
    for offset in range(5, 25, 5):
        assert take(partition, answer(written(offset, sequence=offset), high_watermark=3)) is FollowerAction.FETCH
        await trio.sleep(0.9)
    assert partition.log.log_end_offset == 21


# --- truncation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "leaders", "expected"),
    [
        pytest.param((1, 1, 1, 3), (1, 2), 2, id="the leader's epoch ends before mine does"),
        pytest.param((1, 1, 3, 3), (1, 9), 2, id="mine ends before the leader's does"),
        pytest.param((1, 1, 3, 3), (2, 3), 2, id="I have nothing of the leader's epoch"),
        pytest.param((2, 2, 3), (1, 1), 0, id="I have only later ones"),
        pytest.param((2, 2, 2), (2, 9), 3, id="it ends behind my log"),
        pytest.param((2, 2, 2), (9, 1), 1, id="I know no such epoch"),
        pytest.param((2, 2, 2), (1, -1), 3, id="the leader does not know either"),
    ],
)
async def test_log_is_truncated_to_what_both_have(mine: Sequence[int], leaders: tuple[int, int], expected: int) -> None:
    partition = await following(mine)
    data = answer(batch(len(mine), "x", epoch=1), high_watermark=len(mine), log_start=1, diverging=leaders)
    assert take(partition, data) is FollowerAction.REFETCH
    log = partition.log
    assert log.log_end_offset == expected
    assert (log.high_watermark, log.log_start_offset) == (0, 0), "nothing else of the answer counts"
    assert all(start < expected for _, start in log.leader_epochs.entries())


async def test_watermark_of_a_diverging_answer_does_not_count() -> None:
    """Before the truncation it would commit what the leader does not have."""
    partition = await following((1, 1, 3), high_watermark=1)
    take(partition, answer(high_watermark=3, diverging=(1, 9)))
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (2, 1)


async def test_truncation_below_the_watermark_takes_it_along() -> None:
    partition = await following((1, 1, 3), high_watermark=3)
    take(partition, answer(diverging=(1, 2)))
    assert partition.log.high_watermark == 2


async def test_epoch_that_this_broker_led_without_a_record_is_forgotten() -> None:
    partition = await following((1, 1))
    partition.log.become_leader(4)
    assert position_of(partition).last_fetched_epoch == 4
    take(partition, answer(diverging=(3, 7)))
    assert position_of(partition)[:3] == (2, EPOCH, 1)


async def test_log_without_epochs_begins_at_its_high_watermark() -> None:
    partition = await following((-1, -1, -1), high_watermark=1)
    assert partition.log.latest_epoch == -1
    begin_following(partition)
    assert partition.log.log_end_offset == 1


async def test_log_with_epochs_is_compared_before_it_is_cut() -> None:
    partition = await following((1, 1, 1), high_watermark=1)
    begin_following(partition)
    assert partition.log.log_end_offset == 3


async def test_truncation_that_fails_stops_the_partition() -> None:
    partition = await following((1, 1, 3))
    disk = partition.log.folder.disk
    assert isinstance(disk, MemoryDisk)
    disk.fail("truncate")
    assert take(partition, answer(diverging=(1, 2))) is FollowerAction.STOP


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, FollowerAction.RESET),
        (ErrorCode.FENCED_LEADER_EPOCH, FollowerAction.STOP),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, FollowerAction.RETRY),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, FollowerAction.RETRY),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, FollowerAction.RETRY),
        (ErrorCode.UNKNOWN_TOPIC_ID, FollowerAction.RETRY),
        (ErrorCode.INCONSISTENT_TOPIC_ID, FollowerAction.RETRY),
        (ErrorCode.KAFKA_STORAGE_ERROR, FollowerAction.BACK_OFF),
        (ErrorCode.CORRUPT_MESSAGE, FollowerAction.BACK_OFF),
        (9999, FollowerAction.BACK_OFF),
    ],
)
async def test_errors(error: Any, outcome: FollowerAction) -> None:
    partition = await following((1, 1))
    assert take(partition, answer(batch(2, epoch=1), error=error, high_watermark=2)) is outcome
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (2, 0)


# --- out of range -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "expected", "outcome"),
    [
        pytest.param(0, 2, (0, 2), FollowerAction.FETCH, id="the leader ends before"),
        pytest.param(7, 9, (7, 7), FollowerAction.FETCH, id="the leader starts behind"),
        pytest.param(3, 9, (0, 3), FollowerAction.BACK_OFF, id="the leader starts where the log ends"),
        pytest.param(1, 3, (0, 3), FollowerAction.BACK_OFF, id="the offset is in the leader's log now"),
    ],
)
async def test_reset(start: int, end: int, expected: tuple[int, int], outcome: FollowerAction) -> None:
    partition = await following((1, 1, 1), high_watermark=3)
    assert reset_to_leader(partition, start, end) is outcome
    log = partition.log
    assert (log.log_start_offset, log.log_end_offset) == expected
    assert expected[0] <= log.high_watermark <= expected[1]
    assert log.leader_epochs.entries() == ([] if expected[0] else [(1, 0)])


async def test_refused_reset() -> None:
    partition = await following((1, 1, 1))
    assert process_reset_error(partition, ErrorCode.FENCED_LEADER_EPOCH) is FollowerAction.STOP
    assert process_reset_error(partition, ErrorCode.UNKNOWN_LEADER_EPOCH) is FollowerAction.RETRY
    assert process_reset_error(partition, ErrorCode.OFFSET_OUT_OF_RANGE) is FollowerAction.BACK_OFF
    assert partition.log.log_end_offset == 3
