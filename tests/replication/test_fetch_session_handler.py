"""The fetch session of a follower: what its requests name, and what it believes of the answers."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.replication.fetch_session_handler import FetchSessionHandler
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
)

from .helpers.followers import batch, filled, texts
from .helpers.replicas import TOPIC_ID
from .helpers.scripted_leader import BROKER_EPOCH, SESSION, data, leader


async def test_first_request_names_everything(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partitions = [peer.partition(number) for number in (0, 1)]
        filled(partitions[1].log, (1, 3))
        for partition in partitions:
            fetcher.follow(partition)
        asked = await peer.fetch()
        request: FetchRequest = peer.request
        assert peer.header.api_version == 17
        assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (1, BROKER_EPOCH)
        assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10 << 20)
        assert (request.session_id, request.session_epoch, request.isolation_level) == (0, 0, 0)
        assert [topic.topic_id for topic in request.topics] == [TOPIC_ID]
        assert [
            (a.current_leader_epoch, a.fetch_offset, a.last_fetched_epoch, a.log_start_offset, a.partition_max_bytes)
            for a in asked.values()
        ] == [(5, 0, -1, 0, 1 << 20), (5, 2, 3, 0, 1 << 20)]


async def test_then_only_what_has_changed(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partitions = [peer.partition(number) for number in (0, 1)]
        for partition in partitions:
            fetcher.follow(partition)
        await peer.fetch()
        await peer.answer(data(0, batch(0, "a", "b", epoch=5), high_watermark=1), data(1))
        asked = await peer.fetch()
        assert (peer.request.session_id, peer.request.session_epoch) == (SESSION, 1)
        assert [(n, a.fetch_offset, a.last_fetched_epoch) for n, a in asked.items()] == [(0, 2, 5)]
        assert (texts(partitions[0].log), partitions[0].log.high_watermark) == (["a", "b"], 1)
        await peer.answer()
        assert await peer.fetch() == {}
        assert (peer.request.session_epoch, peer.forgotten) == (2, [])


async def test_partitions_come_and_go_while_a_request_is_under_way(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        first, second, third = (peer.partition(number) for number in range(3))
        fetcher.follow(first)
        fetcher.follow(second)
        await peer.fetch()
        fetcher.unfollow(first)
        fetcher.follow(third)
        await peer.answer(data(0, batch(0)), data(1, batch(0, epoch=1)))
        asked = await peer.fetch()
        assert (list(asked), peer.forgotten) == ([2, 1], [0])
        assert (first.log.log_end_offset, second.log.log_end_offset) == (0, 1)


async def test_answer_under_the_epoch_before_is_not_appended(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partition = peer.partition(epoch=5)
        fetcher.follow(partition)
        await peer.fetch()
        fetcher.follow(peer.partition(epoch=6))
        await peer.answer(data(0, batch(0, epoch=5), high_watermark=1))
        assert (await peer.fetch())[0].current_leader_epoch == 6
        assert partition.log.log_end_offset == 0


@pytest.mark.parametrize("why", ["the epoch is past", "the logs diverge"])
async def test_watermark_that_was_not_taken_is_asked_for_again(
    autojump_clock: trio.testing.MockClock, why: str
) -> None:
    """The leader has told it, and would not again in this session."""
    async with leader() as (peer, fetcher):
        partition = peer.partition(epoch=5)
        filled(partition.log, (3,))
        fetcher.follow(partition)
        await peer.fetch()
        await peer.answer(data(0))
        await peer.fetch()
        if why == "the epoch is past":
            fetcher.follow(peer.partition(epoch=6))
            await peer.answer(data(0, high_watermark=1))
        else:
            await peer.answer(data(0, high_watermark=1, diverging_epoch=EpochEndOffset(epoch=3, end_offset=1)))
        assert list(await peer.fetch()) == [0]
        assert (peer.request.session_id, peer.request.session_epoch) == (SESSION, 0)
        await peer.answer(data(0, high_watermark=1))
        await peer.fetch()
        assert partition.log.high_watermark == 1


@pytest.mark.parametrize(
    ("error", "session_id"),
    [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, SESSION)],
)
async def test_lost_session_is_begun_anew_at_once(
    autojump_clock: trio.testing.MockClock, error: ErrorCode, session_id: int
) -> None:
    async with leader() as (peer, fetcher):
        for number in range(2):
            fetcher.follow(peer.partition(number))
        await peer.fetch()
        await peer.answer(data(0), data(1))
        await peer.fetch()
        before = trio.current_time()
        await peer.answer(error=error, session_id=0)
        assert list(await peer.fetch()) == [0, 1]
        assert (peer.request.session_id, peer.request.session_epoch) == (session_id, 0)
        assert trio.current_time() == before


async def test_without_a_session_each_request_names_everything(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        for number in range(2):
            fetcher.follow(peer.partition(number))
        for _ in range(3):
            assert list(await peer.fetch()) == [0, 1]
            assert (peer.request.session_id, peer.request.session_epoch) == (0, 0)
            await peer.answer(data(0), data(1), session_id=0)


@pytest.mark.parametrize("is_full", [True, False])
async def test_answer_of_other_partitions_is_not_believed(
    autojump_clock: trio.testing.MockClock, is_full: bool
) -> None:
    async with leader() as (peer, fetcher):
        partition = peer.partition()
        fetcher.follow(partition)
        await peer.fetch()
        if not is_full:
            await peer.answer(data(0))
            await peer.fetch()
        await peer.answer(data(0, batch(0)), data(1))
        assert list(await peer.fetch()) == [0]
        assert peer.request.session_epoch == 0
        assert partition.log.log_end_offset == 0


async def test_full_answer_has_all_partitions(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partition = peer.partition()
        fetcher.follow(partition)
        fetcher.follow(peer.partition(1))
        await peer.fetch()
        await peer.answer(data(0, batch(0)))
        assert list(await peer.fetch()) == [0, 1]
        assert partition.log.log_end_offset == 0


def test_epochs_of_a_session_go_round() -> None:
    session = FetchSessionHandler()
    session.session_id, session.epoch = SESSION, (1 << 31) - 1
    assert session.take(FetchResponse(session_id=SESSION))
    assert session.epoch == 1, "0 would begin another one"


async def test_other_error_of_the_request_backs_off(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        fetcher.follow(peer.partition())
        await peer.fetch()
        before = trio.current_time()
        await peer.answer(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        await peer.fetch()
        assert trio.current_time() == before + 1


async def test_retention_is_told_to_the_leader(autojump_clock: trio.testing.MockClock) -> None:
    """The log's start moves without a word of the leader; a DeleteRecords there waits until it hears of it."""
    async with leader(segment_bytes=100) as (peer, fetcher):
        partition = peer.partition()
        filled(partition.log, (1,) * 6)
        partition.log.high_watermark = 6
        fetcher.follow(partition)
        await peer.fetch()
        await peer.answer(data(0, high_watermark=6))
        assert not await peer.fetch()
        partition.log.advance_log_start_offset(4)
        await trio.sleep(1)
        await peer.answer()
        assert (await peer.fetch())[0].log_start_offset == 4
