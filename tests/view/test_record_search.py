"""Records are found where they are: counted and not by their offsets, forwards and back, with what became of transactions."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from ottla.base.seams import InlineWorkers
from ottla.replication.partition import Partition
from ottla.view.found_records import KEPT_BYTES, TransactionOutcome
from ottla.view.own.replica_log import ReplicaLog
from ottla.view.record_search import Matches, Range, Search, search_pace, whole_record
from ottla.wire.compression import GZIP, NONE
from ottla.wire.control_records import ControlRecordType, EndTransactionMarker, build_end_marker_batch
from ottla.wire.records import Record, RecordBatch, build_batch

from ..helpers.memory_cluster import running

WORKERS = InlineWorkers()


@asynccontextmanager
async def topic(partitions: int = 1, **configs: str) -> AsyncIterator[list[Partition]]:
    async with running(1) as cluster:
        await cluster.create("t", *[(1,)] * partitions, **configs)
        yield [cluster.services(1).replicas.partition("t", number) for number in range(partitions)]


def put(partition: Partition, *values: bytes | None, first_timestamp: int = 1000, compression: int = NONE) -> None:
    """One batch; the records have ascending times."""
    records = [Record(timestamp=first_timestamp + number, key=b"k", value=value) for number, value in enumerate(values)]
    partition.append(build_batch(records, compression=compression), now_ms=1, internal=True)


def numbered(partition: Partition, count: int, per_batch: int) -> None:
    for first in range(0, count, per_batch):
        values = [b"%d" % number for number in range(first, min(first + per_batch, count))]
        put(partition, *values, first_timestamp=1000 + first, compression=GZIP if first % 2 else NONE)


def search(
    partitions: Sequence[Partition],
    wanted: int,
    *,
    backwards: bool = False,
    matches: Matches | None = None,
    low: int = 0,
    high: int = 1 << 60,
) -> Search:
    ranges = [Range(ReplicaLog(partition, WORKERS), low, high) for partition in partitions]
    return Search(ranges, wanted, WORKERS, search_pace(lambda: 0.0), backwards=backwards, matches=matches)


async def run(searched: Search) -> list[int]:
    """The offsets of what was found."""
    while not searched.is_done:
        await searched.step()
    return [record.offset for record in searched.found()]


async def test_from_an_offset_on_and_back_from_the_end(autojump_clock: trio.testing.MockClock) -> None:
    async with topic() as (partition,):
        numbered(partition, 100, 7)
        assert await run(search([partition], 5)) == [0, 1, 2, 3, 4]
        assert await run(search([partition], 5, low=9)) == [9, 10, 11, 12, 13]
        assert await run(search([partition], 5, backwards=True)) == [99, 98, 97, 96, 95]
        assert await run(search([partition], 5, backwards=True, high=50)) == [49, 48, 47, 46, 45]
        assert await run(search([partition], 500, backwards=True)) == [*range(99, -1, -1)]
        everything = search([partition], 500)
        assert await run(everything) == [*range(100)]
        assert everything.is_exhausted
        assert everything.done_share == 1
        assert everything.looked_at == 100


async def test_going_back_a_large_batch_is_opened_once(autojump_clock: trio.testing.MockClock) -> None:
    async with topic() as (partition,):
        numbered(partition, 20_000, 5000)
        back = search([partition], 5, backwards=True, matches=lambda record: record.offset in (0, 4999, 5000, 19_999))
        assert await run(back) == [19_999, 5000, 4999, 0]
        assert back.looked_at == 20_000
        assert await run(search([partition], 3, backwards=True, low=4998, high=5002)) == [5001, 5000, 4999]


async def test_one_page_after_another_has_each_record_once(autojump_clock: trio.testing.MockClock) -> None:
    """The ranges that a search leaves are what the next one begins with."""
    async with topic() as (partition,):
        numbered(partition, 100, 13)
        for backwards in (False, True):
            seen: list[int] = []
            low, high = 0, 100
            while low < high:
                page = search([partition], 9, backwards=backwards, low=low, high=high)
                seen += await run(page)
                low, high = page.ranges[0].low, page.ranges[0].high
            assert seen == ([*range(99, -1, -1)] if backwards else [*range(100)])


async def test_records_are_counted_and_not_offsets(autojump_clock: trio.testing.MockClock) -> None:
    """Compaction leaves gaps: the newest n are n records anyway."""
    async with topic() as (partition,):
        chosen = sorted(random.Random(1).sample(range(10_000), 40))
        for offset in chosen:
            batch = build_batch([Record(timestamp=1, value=b"v")], base_offset=offset, leader_epoch=0)
            partition.log.write_stamped(RecordBatch(batch), 0, 1)
        partition.log.high_watermark = partition.log.log_end_offset
        assert await run(search([partition], 10, backwards=True)) == chosen[-1:-11:-1]
        assert await run(search([partition], 10)) == chosen[:10]


async def test_a_filter_looks_through_all(autojump_clock: trio.testing.MockClock) -> None:
    async with topic() as (partition,):
        numbered(partition, 300, 11)
        found = search([partition], 100, matches=lambda record: bool(record.value and record.value.endswith(b"42")))
        assert await run(found) == [42, 142, 242]
        assert found.looked_at == 300
        found = search(
            [partition], 2, backwards=True, matches=lambda record: bool(record.value and b"4" in record.value)
        )
        assert await run(found) == [294, 284]
        assert not found.is_exhausted


async def test_partitions_are_put_together_by_time(autojump_clock: trio.testing.MockClock) -> None:
    async with topic(3) as partitions:
        for number, partition in enumerate(partitions):
            put(partition, b"a", b"b", first_timestamp=1000 + 10 * (3 - number))
        newest = search(partitions, 4, backwards=True)
        await run(newest)
        assert [(record.partition, record.timestamp) for record in newest.found()][:4] == [
            (0, 1031),
            (0, 1030),
            (1, 1021),
            (1, 1020),
        ]


async def test_what_became_of_transactions(autojump_clock: trio.testing.MockClock) -> None:
    async with topic() as (partition,):

        def put_transactional(producer_id: int, value: bytes) -> None:
            batch = build_batch(
                [Record(timestamp=1, value=value)],
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0,
                is_transactional=True,
            )
            partition.append(batch, now_ms=1, internal=True)

        def end(producer_id: int, kind: ControlRecordType) -> None:
            marker = build_end_marker_batch(
                EndTransactionMarker(kind, 0), producer_id=producer_id, producer_epoch=0, timestamp=1
            )
            partition.append(marker, now_ms=1, internal=True)

        put(partition, b"plain")
        put_transactional(1, b"committed")
        put_transactional(2, b"aborted")
        end(1, ControlRecordType.COMMIT)
        end(2, ControlRecordType.ABORT)
        put_transactional(3, b"open")
        put(partition, None)
        found = search([partition], 10)
        await run(found)
        assert [(record.value, record.fate) for record in found.found() if not record.is_marker] == [
            (b"plain", TransactionOutcome.PLAIN),
            (b"committed", TransactionOutcome.COMMITTED),
            (b"aborted", TransactionOutcome.ABORTED),
            (b"open", TransactionOutcome.OPEN),
            (None, TransactionOutcome.PLAIN),
        ]
        assert [record.fate for record in found.found() if record.is_marker] == [
            TransactionOutcome.COMMIT_MARKER,
            TransactionOutcome.ABORT_MARKER,
        ]
        newest = search([partition], 3, backwards=True)
        await run(newest)
        assert [record.fate for record in newest.found() if not record.is_marker] == [
            TransactionOutcome.PLAIN,
            TransactionOutcome.OPEN,
            TransactionOutcome.ABORTED,
        ]


async def test_a_large_value_is_not_kept(autojump_clock: trio.testing.MockClock) -> None:
    async with topic() as (partition,):
        put(partition, b"x" * 500_000)
        found = search([partition], 1)
        await run(found)
        (record,) = found.found()
        assert (record.value_size, len(record.value or b"")) == (500_000, KEPT_BYTES)
        whole = await whole_record(ReplicaLog(partition, WORKERS), 0, WORKERS)
        assert whole is not None
        assert whole.value == b"x" * 500_000
        assert await whole_record(ReplicaLog(partition, WORKERS), 1, WORKERS) is None


async def test_a_damaged_batch_is_a_problem_and_the_rest_is_read(autojump_clock: trio.testing.MockClock) -> None:
    async with topic() as (partition,):
        put(partition, b"good")
        place = partition.log.size
        put(partition, b"bad")
        put(partition, b"good too")
        file = partition.log.segments[0].file.open()
        byte = file.read(1, place + 65)
        file.write(bytes([byte[0] ^ 1]), place + 65)
        found = search([partition], 10)
        assert await run(found) == [0, 2]
        (problem,) = found.problems
        assert problem.startswith("Partition 0 from offset 1 on: ")


async def test_others_go_on_while_a_search_runs(autojump_clock: trio.testing.MockClock) -> None:
    async with topic() as (partition,):
        put(partition, *[b"v"] * 20_000)
        pace = search_pace(lambda: 0.0)
        looking = Search(
            [Range(ReplicaLog(partition, WORKERS), 0, 1 << 60)], 1, WORKERS, pace, matches=lambda record: False
        )
        while not looking.is_done:
            await looking.step()
        assert looking.looked_at == 20_000
        assert pace.slices >= 19
        assert pace.largest <= 1001


async def test_a_range_begins_where_the_log_does(autojump_clock: trio.testing.MockClock) -> None:
    async with topic() as (partition,):
        numbered(partition, 10, 1)
        partition.log.delete_records_before(4)
        assert await run(search([partition], 3)) == [4, 5, 6]
        assert await run(search([partition], 30, backwards=True)) == [9, 8, 7, 6, 5, 4]


@pytest.mark.parametrize("backwards", [False, True])
async def test_an_empty_partition(backwards: bool, autojump_clock: trio.testing.MockClock) -> None:
    async with topic() as (partition,):
        nothing = search([partition], 5, backwards=backwards)
        assert await run(nothing) == []
        assert nothing.is_exhausted
        assert nothing.done_share == 1


@pytest.mark.parametrize("backwards", [False, True])
async def test_nothing_is_left_out_between_segments_while_the_log_grows(
    backwards: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async with topic(**{"segment.bytes": "2000"}) as (partition,):
        numbered(partition, 3000, 17)
        assert len(partition.log.segments) > 20
        looking = search([partition], 10_000, backwards=backwards, matches=lambda record: True)
        while not looking.is_done:
            await looking.step()
            numbered(partition, 34, 17)
        offsets = [record.offset for record in looking.found()]
        assert offsets == ([*range(2999, -1, -1)] if backwards else [*range(3000)])
        assert looking.problems == []
