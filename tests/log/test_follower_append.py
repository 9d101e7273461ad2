"""What a follower appends of a leader's answer, and what it refuses; by a leader's log and a follower's side by side."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.log.follower_append import append_as_follower
from ottla.log.log_manager import LogManager
from ottla.log.partition_log import PartitionLog
from ottla.log.verify.directory import verify_folder
from ottla.wire.control_records import ControlRecordType, EndTransactionMarker, build_end_marker_batch
from ottla.wire.records import Record, RecordBatch, build_batch

from .conftest import TOPIC_ID, World, batches, values


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)


def sent(log: PartitionLog, offset: int = 0, count: int | None = None) -> bytes:
    """What a leader answers from ``offset`` on: the bytes of its batches."""
    return b"".join(bytes(batch.view) for batch in batches(log, offset)[:count])


def batch_at(offset: int, *texts: str, epoch: int = 0, **header: Any) -> bytes:
    records = [Record(timestamp=1000, value=text.encode()) for text in texts or ("a",)]
    return bytes(build_batch(records, base_offset=offset, leader_epoch=epoch, **header))


class Pair:
    """The logs of a leader and of a follower, which share nothing."""

    def __init__(self, leader: PartitionLog, follower: PartitionLog, worlds: tuple[World, World]) -> None:
        self.leader = leader
        self.follower = follower
        self.leaders, self.followers = worlds

    def replicate(self, fetch_epoch: int = 9) -> int:
        """One answer with all that the follower lacks; the size of what was appended."""
        return append_as_follower(self.follower, sent(self.leader, self.follower.log_end_offset), fetch_epoch).size

    def assert_same(self) -> None:
        leader, follower = self.leader, self.follower
        assert sent(follower, follower.log_start_offset) == sent(leader, follower.log_start_offset)
        assert follower.log_end_offset == leader.log_end_offset
        assert follower.leader_epochs.entries() == leader.leader_epochs.entries()
        assert follower.producer_state.map_end_offset == follower.log_end_offset


async def make_pair(make_world: Any, kind: str = "memory", **settings: Any) -> Pair:
    worlds = make_world(kind), make_world(kind)
    return Pair(await worlds[0].log(**settings), await worlds[1].log(**settings), worlds)


async def logged(world: World, **settings: Any) -> PartitionLog:
    """The log of "t", as a start finds it."""
    manager: LogManager = await world.start(**settings)
    return manager.get_or_create("t", 0, TOPIC_ID)


# --- what is taken ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "os"])
async def test_batches_are_taken_as_they_came(make_world, kind):
    pair = await make_pair(make_world, kind)
    for epoch, count in ((0, 3), (2, 1), (5, 2)):
        for number in range(count):
            pair.leaders.append(pair.leader, "a", "b" * number, epoch=epoch)
    assert pair.replicate() == pair.leader.size
    pair.assert_same()
    assert pair.follower.size == pair.leader.size
    assert pair.follower.leader_epochs.entries() == [(0, 0), (2, 6), (5, 8)]
    assert pair.follower.high_watermark == 0, "that is for the leader to say"


async def test_part_of_a_batch_at_the_end_is_dropped(make_world):
    pair = await make_pair(make_world)
    pair.leaders.append(pair.leader, "a")
    pair.leaders.append(pair.leader, "b")
    data = sent(pair.leader)
    first = len(sent(pair.leader, 0, 1))
    for cut in (len(data) - 1, first + 61, first + 20, first + 3):
        pair.follower.truncate_to(0)
        assert append_as_follower(pair.follower, data[:cut], 0).size == first
        assert values(pair.follower) == [(0, "a")]
    pair.replicate()
    pair.assert_same()


async def test_answer_without_records_changes_nothing(make_world):
    pair = await make_pair(make_world)
    assert append_as_follower(pair.follower, b"", 0) == (0, False)
    assert not pair.follower.segments


async def test_gaps_of_compaction_are_kept(make_world):
    pair = await make_pair(make_world)
    data = batch_at(0) + batch_at(7, "b", "c") + batch_at(1000)
    append_as_follower(pair.follower, data, 0)
    assert values(pair.follower) == [(0, "a"), (7, "b"), (8, "c"), (1000, "a")]
    assert pair.follower.log_end_offset == 1001
    pair.followers.kill()
    assert values(await logged(pair.followers)) == [(0, "a"), (7, "b"), (8, "c"), (1000, "a")]


async def test_gap_that_no_segment_holds(make_world):
    pair = await make_pair(make_world)
    far = 1 << 33
    append_as_follower(pair.follower, batch_at(0) + batch_at(far) + batch_at(far + 1), 0)
    assert values(pair.follower) == [(0, "a"), (far, "a"), (far + 1, "a")]
    pair.followers.kill()
    assert values(await logged(pair.followers)) == [(0, "a"), (far, "a"), (far + 1, "a")]


async def test_log_of_a_leader_that_starts_inside_a_batch(make_world):
    pair = await make_pair(make_world)
    pair.leaders.append(pair.leader, "a", "b", "c", "d")
    pair.leaders.append(pair.leader, "e")
    pair.leader.delete_records_before(2)
    pair.follower.truncate_fully_and_start_at(2)  # OFFSET_OUT_OF_RANGE had brought it there
    assert pair.replicate() == pair.leader.size
    assert pair.follower.log_start_offset == 0
    assert sent(pair.follower) == sent(pair.leader, 2)


async def test_records_below_the_leaders_start_give_way_to_its_first_batch(make_world):
    """They are not the leader's, which cannot be seen any more: what it had there is deleted."""
    pair = await make_pair(make_world)
    append_as_follower(pair.follower, batch_at(0, "alone", epoch=1), 1)
    data = batch_at(0, "a", "b", epoch=2)
    with refused(ErrorCode.UNKNOWN_SERVER_ERROR):
        append_as_follower(pair.follower, data, 2, 0)
    append_as_follower(pair.follower, data, 2, 1)
    assert values(pair.follower) == [(0, "a"), (1, "b")]


async def test_last_batches_of_a_producer_and_its_transaction_are_known(make_world):
    pair = await make_pair(make_world)
    producer = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    data = b"".join(
        batch_at(offset, "a", "b", base_sequence=sequence, **producer) for offset, sequence in ((0, 0), (2, 2), (4, 4))
    )
    append_as_follower(pair.follower, data, 0)
    (state,) = pair.follower.active_producers()
    assert (state.producer_epoch, state.last_sequence, state.current_txn_first_offset) == (0, 5, 0)
    marker = build_end_marker_batch(
        EndTransactionMarker(ControlRecordType.ABORT, 3), producer_id=7, producer_epoch=0, timestamp=1
    )
    marker[:8] = struct.pack(">q", 6)
    append_as_follower(pair.follower, bytes(marker) + batch_at(7), 0)
    assert (state.current_txn_first_offset, state.coordinator_epoch) == (-1, 3)
    (aborted,) = pair.follower.segments[-1].aborted.entries()
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (7, 0, 6)
    # As the leader of tomorrow it knows a duplicate.
    again = pair.followers.batch(["a", "b"], base_sequence=4, **producer)
    assert pair.follower.append_as_leader(again, 1, pair.followers.clock.now).is_duplicate


async def test_data_is_not_decoded(make_world):
    """A batch whose records are no records, under a right CRC: the leader has it, so the follower has it."""
    pair = await make_pair(make_world)
    batch = bytearray(batch_at(0, "x" * 50))
    batch[70:100] = bytes(30)
    struct.pack_into(">I", batch, 17, RecordBatch(batch).compute_crc())
    append_as_follower(pair.follower, batch, 0)
    assert sent(pair.follower) == bytes(batch)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [17, 40, 65, -1])
async def test_corrupt_batch_refuses_all_that_came_with_it(make_world, position):
    pair = await make_pair(make_world)
    data = bytearray(batch_at(0, "before") + batch_at(1, "bad") + batch_at(2, "behind"))
    second = len(batch_at(0, "before"))
    end = second + len(batch_at(1, "bad"))
    data[second + position if position >= 0 else end - 1] ^= 0x10
    with refused(ErrorCode.CORRUPT_MESSAGE):
        append_as_follower(pair.follower, data, 0)
    assert pair.follower.log_end_offset == 0
    assert not pair.follower.segments


async def test_bytes_without_a_batch_are_no_part_of_one(make_world):
    pair = await make_pair(make_world)
    with refused(ErrorCode.CORRUPT_MESSAGE):
        append_as_follower(pair.follower, batch_at(0)[:-1], 0)


async def test_unreadable_end_marker_is_refused_before_it_is_written(make_world):
    pair = await make_pair(make_world)
    marker = build_end_marker_batch(
        EndTransactionMarker(ControlRecordType.ABORT, 3), producer_id=7, producer_epoch=0, timestamp=1
    )
    marker[61:] = bytes(len(marker) - 61)
    struct.pack_into(">I", marker, 17, RecordBatch(marker).compute_crc())
    with refused(ErrorCode.CORRUPT_MESSAGE):
        append_as_follower(pair.follower, bytes(marker), 0)
    assert pair.follower.log_end_offset == 0


@pytest.mark.parametrize("offsets", [(0, 0), (1, 0), (5, 4), (0, 2, 1)])
async def test_offsets_ascend(make_world, offsets):
    pair = await make_pair(make_world)
    with refused(ErrorCode.UNKNOWN_SERVER_ERROR):
        append_as_follower(pair.follower, b"".join(batch_at(offset) for offset in offsets), 0)
    assert pair.follower.log_end_offset == 0


async def test_what_is_there_is_not_written_again(make_world):
    pair = await make_pair(make_world)
    data = batch_at(0) + batch_at(1)
    append_as_follower(pair.follower, data, 0)
    for again in (data, data + batch_at(2), batch_at(1)):
        with refused(ErrorCode.UNKNOWN_SERVER_ERROR):
            append_as_follower(pair.follower, again, 0)
    assert values(pair.follower) == [(0, "a"), (1, "a")]


async def test_later_epoch_than_the_fetch_ends_the_append(make_world):
    """KAFKA-18723: what the next leader wrote is fetched under its epoch, after the logs were compared."""
    pair = await make_pair(make_world)
    data = batch_at(0, epoch=3) + batch_at(1, epoch=4) + batch_at(2, epoch=5) + batch_at(3, epoch=4)
    assert append_as_follower(pair.follower, data, 4).size == 2 * len(batch_at(0))
    assert pair.follower.leader_epochs.entries() == [(3, 0), (4, 1)]
    assert append_as_follower(pair.follower, batch_at(2, epoch=5), 4).size == 0
    assert pair.follower.log_end_offset == 2


async def test_nothing_behind_a_later_epoch_is_judged(make_world):
    pair = await make_pair(make_world)
    bad = bytearray(batch_at(1, epoch=5))
    bad[-1] ^= 1
    assert append_as_follower(pair.follower, batch_at(0, epoch=4) + bytes(bad), 4).size == len(batch_at(0))


async def test_failed_write_leaves_the_log_as_it_was(make_world):
    pair = await make_pair(make_world)
    append_as_follower(pair.follower, batch_at(0), 0)
    folder = pair.follower.folder
    pair.followers.disk.fail("write")
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        append_as_follower(pair.follower, batch_at(1) + batch_at(2) + batch_at(3), 0)
    assert pair.follower.log_end_offset == 1
    assert folder.is_offline
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        append_as_follower(pair.follower, batch_at(1), 0)


# --- how it is written ------------------------------------------------------------------------------------------------


async def test_batches_that_came_together_are_written_together(make_world, monkeypatch):
    pair = await make_pair(make_world)
    pair.leaders.append(pair.leader, "first")
    pair.replicate()
    for _ in range(50):
        pair.leaders.append(pair.leader, "a")
    sizes: list[int] = []
    file = pair.follower.segments[-1].file.open()
    write = type(file).write

    def counting(self: Any, data: Any, position: int) -> None:
        sizes.append(len(data))
        write(self, data, position)

    monkeypatch.setattr(type(file), "write", counting)
    size = pair.replicate()
    assert sizes == [size]
    pair.assert_same()


@pytest.mark.parametrize(
    "settings", [{"segment_bytes": 300}, {"segment_ms": 5_000}, {"segment_index_bytes": 60, "index_interval_bytes": 0}]
)
async def test_one_answer_rolls_where_the_leader_did(make_world, settings):
    pair = await make_pair(make_world, **settings)
    for number in range(20):
        pair.leaders.append(pair.leader, "a", timestamp=pair.leaders.clock.now - 50_000 + 1_000 * number)
    pair.replicate()
    pair.assert_same()
    starts = [[segment.base_offset for segment in log.segments] for log in (pair.leader, pair.follower)]
    assert len(starts[0]) > 2
    assert starts[0] == starts[1]


@pytest.mark.parametrize("seed", range(25))
async def test_same_as_the_leader_whatever_the_answers_hold(make_world, seed):
    """Rolls by size, by time and by a full index, transactions, gaps; a restart in between, clean or not."""
    rng = random.Random(seed)
    settings = {
        "segment_bytes": rng.choice([300, 1000, 100_000]),
        "index_interval_bytes": rng.choice([0, 100, 4096]),
        "segment_ms": rng.choice([1_000, 1 << 40]),
        "segment_index_bytes": rng.choice([60, 10_000]),
        "retention_ms": -1,
    }
    pair = await make_pair(make_world, **settings)
    sequences: dict[int, int] = {}
    for _ in range(40):
        epoch = max(pair.leader.latest_epoch, 0) + (rng.random() < 0.1)
        if rng.random() < 0.2:
            pair.leaders.abort(pair.leader, rng.randrange(3), epoch)
        else:
            producer = rng.randrange(-1, 3)
            header = {} if producer < 0 else {"producer_id": producer, "producer_epoch": 0}
            if producer >= 0:
                header |= {"base_sequence": sequences.get(producer, 0)}
                sequences[producer] = sequences.get(producer, 0) + 2
            texts = ["x" * rng.randrange(60), "y"]
            timestamp = pair.leaders.clock.now + rng.randrange(5_000)
            pair.leaders.append(pair.leader, *texts, epoch=epoch, timestamp=timestamp, **header)
        if rng.random() < 0.3:
            data = sent(pair.leader, pair.follower.log_end_offset)
            first = len(sent(pair.leader, pair.follower.log_end_offset, 1))
            append_as_follower(pair.follower, data[: rng.randrange(first, len(data) + 1)], 99)
        if rng.random() < 0.1:
            if rng.random() < 0.5:
                await pair.followers.managers[-1].stop()
            else:
                pair.followers.kill()
            pair.follower = await logged(pair.followers, **settings)
    pair.replicate(99)
    pair.assert_same()
    for log in (pair.leader, pair.follower):
        state = {
            s.producer_id: (s.last_sequence, s.coordinator_epoch, s.current_txn_first_offset)
            for s in log.active_producers()
        }
        if log is pair.leader:
            expected = state
    assert state == expected
    aborted = [
        [a for segment in log.segments for a in segment.aborted.entries()] for log in (pair.leader, pair.follower)
    ]
    assert aborted[0] == aborted[1]
    await pair.followers.managers[-1].stop()


async def test_flush_messages_asks_for_a_flush(make_world):
    pair = await make_pair(make_world, flush_messages=2)
    assert not append_as_follower(pair.follower, batch_at(0), 0).flush_due
    assert append_as_follower(pair.follower, batch_at(1) + batch_at(2), 0).flush_due


# --- leader epochs after a crash --------------------------------------------------------------------------------------


async def test_epochs_of_truncated_records_do_not_come_back(make_world):
    """An old leader's own epoch was flushed, then truncated; what took its place has a lower epoch."""
    pair = await make_pair(make_world)
    log = pair.follower
    append_as_follower(log, batch_at(0, epoch=3), 3)
    pair.followers.append(log, "alone", epoch=5)
    await log.flush()
    log.truncate_to(1)
    append_as_follower(log, batch_at(1, epoch=4) + batch_at(2, epoch=4) + batch_at(3, epoch=6), 6)
    expected = [(3, 0), (4, 1), (6, 3)]
    assert log.leader_epochs.entries() == expected
    pair.followers.kill()
    findings = verify_folder(pair.followers.disk, pair.followers.path)
    assert not [finding for finding in findings if "epoch" in finding.path], "a crash leaves the file so"
    assert (await logged(pair.followers)).leader_epochs.entries() == expected
