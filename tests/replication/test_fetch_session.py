"""Fetch sessions (KIP-227): ids and epochs, what is remembered, the order of service, the bound of the cache."""

from __future__ import annotations

import random

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.replication.delayed_fetch import DelayedFetch
from ottla.replication.fetch_session import FetchSession, FetchSessionCache, update_session
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic


def request(
    *asked: tuple[str, int, int], session_id: int = 0, epoch: int = 0, forgotten: list[ForgottenTopic] | None = None
) -> FetchRequest:
    """A fetch of (topic, partition, offset)."""
    topics = [FetchTopic(topic=t, partitions=[FetchPartition(partition=p, fetch_offset=o)]) for t, p, o in asked]
    return FetchRequest(
        topics=topics, session_id=session_id, session_epoch=epoch, forgotten_topics_data=forgotten or []
    )


def new_cache(slots: int = 10) -> FetchSessionCache:
    return FetchSessionCache(slots, random.Random(1))


def create(cache: FetchSessionCache, *asked: tuple[str, int, int], is_followers: bool = False) -> FetchSession | None:
    """The session that a fetch begins, None where it gets none."""
    news, partitions = DelayedFetch(is_followers=is_followers), {}
    update_session(request(*asked), False, partitions, news)
    return cache.create(False, partitions, news)


def begin(cache: FetchSessionCache, *asked: tuple[str, int, int]) -> FetchSession:
    session = create(cache, *asked)
    assert session is not None
    return session


def refused(cache: FetchSessionCache, *asked: tuple[str, int, int], is_followers: bool = False) -> bool:
    """Whether a fetch gets no session."""
    return create(cache, *asked, is_followers=is_followers) is None


def order(session: FetchSession) -> list[tuple[str | bytes, int]]:
    return list(session.partitions)


async def test_a_session_goes_on_with_what_it_was_told() -> None:
    cache = new_cache()
    session = begin(cache, ("a", 0, 5), ("a", 1, 6))
    resumed = cache.resume(request(("a", 1, 9), ("b", 0, 1), session_id=session.session_id, epoch=1), False)
    assert resumed is session
    assert [(state.topic, state.number, state.fetch_offset) for state in session.partitions.values()] == [
        ("a", 0, 5),
        ("a", 1, 9),
        ("b", 0, 1),
    ]
    forget = [ForgottenTopic(topic="a", partitions=[0, 7])]
    cache.resume(request(session_id=session.session_id, epoch=2, forgotten=forget), False)
    assert order(session) == [("a", 1), ("b", 0)]


async def test_the_epoch_must_be_the_next_one() -> None:
    cache = new_cache()
    session = begin(cache, ("a", 0, 0))
    for epoch in (2, 7):
        with pytest.raises(KafkaError) as caught:
            cache.resume(request(session_id=session.session_id, epoch=epoch), False)
        assert caught.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    cache.resume(request(session_id=session.session_id, epoch=1), False)
    cache.resume(request(session_id=session.session_id, epoch=2), False)


async def test_the_epoch_after_the_largest_is_one() -> None:
    cache = new_cache()
    session = begin(cache, ("a", 0, 0))
    session.next_epoch = (1 << 31) - 1
    cache.resume(request(session_id=session.session_id, epoch=(1 << 31) - 1), False)
    cache.resume(request(session_id=session.session_id, epoch=1), False)


async def test_an_unknown_or_closed_session_is_not_found() -> None:
    cache = new_cache()
    session = begin(cache, ("a", 0, 0))
    cache.close(session.session_id)
    with pytest.raises(KafkaError) as caught:
        cache.resume(request(session_id=session.session_id, epoch=1), False)
    assert caught.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_topic_names_and_ids_are_not_mixed() -> None:
    cache = new_cache()
    session = begin(cache, ("a", 0, 0))
    with pytest.raises(KafkaError) as caught:
        cache.resume(request(session_id=session.session_id, epoch=1), True)
    assert caught.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


async def test_a_full_cache_goes_on_without_a_session() -> None:
    cache = new_cache(slots=2)
    begin(cache, ("a", 0, 0))
    begin(cache, ("b", 0, 0))
    assert refused(cache, ("c", 0, 0))
    assert len(cache) == 2
    assert refused(new_cache(slots=0), ("c", 0, 0))


async def test_a_session_idle_for_two_minutes_makes_room(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    cache = new_cache(slots=2)
    old, used = begin(cache, ("a", 0, 0)), begin(cache, ("b", 0, 0))
    await trio.sleep(100)
    cache.resume(request(session_id=used.session_id, epoch=1), False)
    assert refused(cache, ("c", 0, 0))
    await trio.sleep(30)
    begin(cache, ("c", 0, 0))
    assert len(cache) == 2
    with pytest.raises(KafkaError):
        cache.resume(request(session_id=old.session_id, epoch=1), False)
    cache.resume(request(session_id=used.session_id, epoch=2), False)
    assert [r.getMessage() for r in caplog.records] == [
        f"Fetch session {old.session_id} makes room for another; 2 is the most"
    ]


async def test_all_sessions_together_remember_so_many_partitions() -> None:
    cache = FetchSessionCache(10, random.Random(1), most_partitions=4)
    first, second = begin(cache, ("a", 0, 0), ("a", 1, 0)), begin(cache, ("b", 0, 0), ("b", 1, 0))
    assert refused(cache, ("c", 0, 0))
    assert not refused(cache, ("c", 0, 0), is_followers=True)
    forget = [ForgottenTopic(topic="a", partitions=[0, 1])]
    more = request(("a", 2, 0), session_id=first.session_id, epoch=1, forgotten=forget)
    assert cache.resume(more, False) is first
    more = request(("b", 2, 0), session_id=second.session_id, epoch=1)
    with pytest.raises(KafkaError) as caught:
        cache.resume(more, False)
    assert caught.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(cache) == 2  # what is asked for next is served without a session
    begin(cache, ("a", 0, 0))


async def test_names_that_no_topic_has_are_not_remembered() -> None:
    cache = new_cache()
    asked = ("x" * 250, 0, 0)
    assert refused(cache, asked)
    session = begin(cache, ("x" * 249, 0, 0))
    with pytest.raises(KafkaError) as caught:
        cache.resume(request(asked, session_id=session.session_id, epoch=1), False)
    assert caught.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(cache) == 0
