"""A fetch of a session reads what has changed, whatever it was; what its leader notes of a follower without news."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.metadata.types import PartitionRegistration
from ottla.replication.delayed_fetch import DelayedFetch, FetchedPartition
from ottla.replication.fetching import FetchReads
from ottla.replication.isr import CommittedPartitionState, PendingExpand, PendingShrink
from ottla.wire.messages.fetch import PartitionData
from ottla.wire.messages.write_txn_markers import WritableTxnMarker
from ottla.wire.records import Record, build_batch

from .helpers.fetches import ask, begin
from .helpers.replicas import LAG_SECONDS, ME, NOW_MS, OTHER, THIRD, Replicas, batch, replicas

ALL = (ME, OTHER, THIRD)


class Session:
    """A fetch session of partition 0 of "t", of a consumer, or of a follower, without its protocol."""

    def __init__(self, world: Replicas, broker_id: int = -1, offset: int = 0, *, isolation: int = 0) -> None:
        self.world, self.broker_id = world, broker_id
        self.news = DelayedFetch(is_followers=broker_id >= 0, read_committed=isolation == 1)
        self.state = ask(self.news, offset)

    def begin(self, *, min_bytes: int = 1, broker_epoch: int = -1) -> FetchReads:
        return begin(self.world, self.news, self.broker_id, min_bytes=min_bytes, broker_epoch=broker_epoch)

    async def fetch(self) -> PartitionData | None:
        """The partition's part of the next answer, None where it was not looked at; its records are released."""
        reading = self.begin()
        await reading.read_all()
        result = reading.results.get(self.state)
        if result is not None and result.records:
            result.records.release()  # type: ignore[union-attr]
        return result

    def ask(self, offset: int) -> None:
        """Have the next fetch begin elsewhere."""
        self.state.ask(_asked(self.state, offset))


def _asked(state: FetchedPartition, offset: int) -> object:
    fields = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20, "current_leader_epoch": -1}
    return type("Asked", (), {**fields, "last_fetched_epoch": -1, "log_start_offset": 0})()


def lead(world: Replicas, epoch: int = 0, isr: tuple[int, ...] = ALL, **fields: int) -> None:
    assert world.lead(epoch=epoch, isr=isr, replicas=ALL, **fields) == ErrorCode.NONE


def append(world: Replicas) -> None:
    world.partition.append(batch(), NOW_MS)


# --- consumers --------------------------------------------------------------------------------------------------------


async def test_what_has_not_changed_is_not_read_again() -> None:
    async with replicas() as world:
        world.lead()
        session = Session(world)
        assert await session.fetch() is not None
        assert [await session.fetch() for _ in range(3)] == [None] * 3
        append(world)
        # Until the consumer asks for the next offset it is given the same again.
        assert [bool((await session.fetch()).records) for _ in range(3)] == [True] * 3  # type: ignore[union-attr]
        session.ask(1)
        assert await session.fetch() is not None
        assert await session.fetch() is None


CHANGES: dict[str, Callable[[Replicas], object]] = {
    "an append": append,
    "a marker": lambda world: world.partition.append_end_marker(
        WritableTxnMarker(producer_id=7, producer_epoch=0, transaction_result=True), NOW_MS
    ),
    "the start of the log": lambda world: world.partition.log.delete_records_before(1),
    "a leader epoch": lambda world: world.lead(epoch=1),
    "another leader": lambda world: world.lead(OTHER, 1, replicas=(ME, OTHER)),
    "another state": lambda world: world.partition.apply(PartitionRegistration(ME, 0, 1, (ME,), (ME, OTHER))),
    "a stop": lambda world: world.stop(),
    "a deletion": lambda world: world.stop(delete=True),
    "a folder that fails": lambda world: world.partition.log.folder.fail("broken", OSError("broken")),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("waits", [False, True])
async def test_every_change_is_read(change: str, waits: bool, autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world, trio.open_nursery() as nursery:
        world.lead()
        append(world)
        session = Session(world, offset=1)
        assert await session.fetch() is not None
        assert await session.fetch() is None
        reading = session.begin()
        if waits:
            await reading.read_all()
            nursery.start_soon(reading.wait_for_more, 60, trio.lowlevel.checkpoint)
            await trio.testing.wait_all_tasks_blocked()
        CHANGES[change](world)
        if waits:
            await trio.sleep(61)
        else:
            await reading.read_all()
        assert session.state in reading.results
        reading.release()


async def test_a_log_is_read_at_another_end_after_it_was_cut_off() -> None:
    async with replicas() as world:
        world.lead(OTHER, 0, isr=ALL, replicas=ALL)
        session = Session(world)
        reading = begin(world, session.news, or_follower=True)
        await reading.read_all()
        assert session.news.changed == {}
        world.partition.log.truncate_fully_and_start_at(5)
        assert list(session.news.changed) == [session.state]


async def test_committed_records_are_read_when_their_transaction_ends() -> None:
    async with replicas() as world:
        world.lead()
        session = Session(world, isolation=1)
        records = [Record(timestamp=NOW_MS, value=b"x")]
        begun = build_batch(records, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
        world.partition.append(begun, NOW_MS, internal=True)
        assert not (await session.fetch()).records  # type: ignore[union-attr]
        assert await session.fetch() is None
        world.partition.append_end_marker(
            WritableTxnMarker(producer_id=7, producer_epoch=0, transaction_result=True), NOW_MS
        )
        assert (await session.fetch()).records  # type: ignore[union-attr]


async def test_under_other_terms_everything_is_read_again() -> None:
    async with replicas() as world:
        world.lead()
        session = Session(world)
        await session.fetch()
        session.news.begin("other rights", [session.state])
        assert list(session.news.changed) == [session.state]


async def test_who_gives_up_a_wait_does_not_end_the_next_one(autojump_clock: trio.testing.MockClock) -> None:
    """A client that reconnects goes on with its session, while its last request may still wait."""
    async with replicas() as world, trio.open_nursery() as nursery:
        world.lead()
        session = Session(world)
        ended: list[str] = []

        async def wait(name: str) -> None:
            reading = session.begin()
            await reading.read_all()
            await reading.wait_for_more(60, trio.lowlevel.checkpoint)
            ended.append(name)
            reading.release()

        for name in ("first", "second"):
            nursery.start_soon(wait, name)
            await trio.testing.wait_all_tasks_blocked()
        assert ended == ["first"]
        append(world)
        await trio.testing.wait_all_tasks_blocked()
        assert ended == ["first", "second"]


async def test_the_fetches_of_a_partition_that_rests_are_counted() -> None:
    async with replicas() as world:
        world.lead()
        session, partition = Session(world), world.partition
        for count in range(1, 4):
            await session.fetch()
            assert partition.fetch_requests == count
        append(world)
        assert partition.fetch_requests == 3
        await session.fetch()
        session.state.leave()
        assert partition.fetch_requests == 4


# --- followers --------------------------------------------------------------------------------------------------------


async def test_a_follower_is_told_of_the_high_watermark() -> None:
    async with replicas() as world:
        lead(world)
        append(world)
        session = Session(world, OTHER, offset=1)
        assert (await session.fetch()).high_watermark == 0  # type: ignore[union-attr]
        assert await session.fetch() is None
        world.fetched(THIRD, 1)
        assert (await session.fetch()).high_watermark == 1  # type: ignore[union-attr]
        assert await session.fetch() is None


async def test_a_follower_whose_fetch_moves_the_high_watermark_is_told_by_its_next() -> None:
    async with replicas() as world:
        world.lead(isr=(ME, OTHER), replicas=(ME, OTHER))
        append(world)
        session = Session(world, OTHER, offset=1)
        answers = [await session.fetch() for _ in range(3)]
        assert [answer and answer.high_watermark for answer in answers] == [0, 1, None]


async def test_a_follower_without_news_is_caught_up_as_of_its_session_s_last_fetch(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with replicas() as world:
        lead(world)
        session = Session(world, OTHER)
        assert world.partition.leader is not None
        progress = world.partition.leader.followers[OTHER]
        for _ in range(3):
            await session.fetch()
            assert (progress.last_caught_up, progress.last_fetch) == (trio.current_time(), trio.current_time())
            await trio.sleep(LAG_SECONDS * 2)
        fetched_at = trio.current_time() - LAG_SECONDS * 2
        append(world)
        assert (progress.last_caught_up, progress.last_fetch) == (fetched_at, fetched_at)
        world.partition.check_followers()
        assert isinstance(world.partition.leader.isr, PendingShrink), "it has not fetched for long, and lacks a record"


async def test_a_follower_that_fetches_stays_in_sync_without_being_read(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        lead(world, isr=(ME, OTHER))
        session = Session(world, OTHER)
        for _ in range(5):
            await session.fetch()
            await trio.sleep(LAG_SECONDS * 0.9)
        append(world)
        world.partition.check_followers()
        assert world.partition.leader is not None
        assert isinstance(world.partition.leader.isr, CommittedPartitionState), "its last fetch was not long ago"


async def test_a_follower_that_is_not_in_sync_joins_by_a_later_fetch(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        lead(world, isr=(ME, OTHER))
        session = Session(world, THIRD)
        role = world.partition.leader
        assert role is not None
        await session.fetch()
        change = role.isr
        assert isinstance(change, PendingExpand)
        world.partition.isr_refused(change)
        for _ in range(3):
            await trio.sleep(1)
            assert await session.fetch() is not None
        assert isinstance(role.isr, PendingExpand), "asked again"


async def test_a_follower_that_asks_under_a_wrong_epoch_does_not_count_as_fetching(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with replicas() as world:
        lead(world, epoch=3)
        session = Session(world, OTHER)
        await session.fetch()
        await session.fetch()
        fetched_at = trio.current_time()
        await trio.sleep(1)
        session.ask(0)
        session.state.current_leader_epoch = 4
        assert (await session.fetch()).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH  # type: ignore[union-attr]
        assert world.partition.leader is not None
        assert world.partition.leader.followers[OTHER].last_caught_up == fetched_at


async def test_an_earlier_life_of_a_follower_no_longer_speaks_for_it(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        lead(world)
        append(world)
        earlier, later = Session(world, OTHER, offset=1), Session(world, OTHER, offset=0)
        for session, epoch in ((earlier, 7), (later, 8)):
            await trio.sleep(1)
            reading = session.begin(broker_epoch=epoch)
            await reading.read_all()
            reading.release()
        assert world.partition.leader is not None
        progress = world.partition.leader.followers[OTHER]
        assert progress.log_end_offset == 0
        caught_up = progress.last_caught_up
        await trio.sleep(1)
        await earlier.begin(broker_epoch=7).read_all()
        assert (progress.log_end_offset, progress.last_caught_up) == (0, caught_up)


async def test_a_partition_that_a_follower_forgets_is_noted_no_more(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        lead(world)
        session = Session(world, OTHER)
        await session.fetch()
        fetched_at = trio.current_time()
        session.state.leave()
        await trio.sleep(5)
        await session.fetch()
        assert world.partition.leader is not None
        assert world.partition.leader.followers[OTHER].last_caught_up == fetched_at
