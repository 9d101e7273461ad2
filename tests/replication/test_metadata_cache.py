"""The metadata cache: what a broker knows is what was published to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from ottla.metadata.delta import TopicDelta
from ottla.metadata.types import AdvertisedListener, BrokerRegistration
from ottla.replication.metadata_cache import BrokerNode, MetadataCache

from ..helpers.told import registration, tell

ID_A, ID_B = b"a" * 16, b"b" * 16


def broker(broker_id: int, *listeners: str, rack: str | None = None) -> BrokerRegistration:
    endpoints = [
        AdvertisedListener(listener, f"{listener.lower()}.example", 9000 + broker_id)
        for listener in listeners or ("PLAINTEXT",)
    ]
    return BrokerRegistration(broker_id, tuple(endpoints), rack)


def update(
    cache: MetadataCache,
    topics: dict[str, tuple[bytes, dict[int, int | None]]],
    brokers: list[BrokerRegistration] | None = None,
) -> None:
    """Tell of topics by the leaders of their partitions, None of one that is gone; and of brokers."""
    changed = [
        TopicDelta(
            name,
            topic_id,
            {number: None if leader is None else registration(leader) for number, leader in leaders.items()},
        )
        for name, (topic_id, leaders) in topics.items()
    ]
    tell(cache, *changed, brokers=brokers if brokers is not None else [broker(1)], controller_id=1)


def test_updates_add_to_what_is_known() -> None:
    cache = MetadataCache("c")
    update(cache, {"t": (ID_A, {1: 1, 0: 1})})
    update(cache, {"t": (ID_A, {2: 1})})
    topic = cache.topic("t")
    assert topic is not None
    assert list(topic.partitions) == [0, 1, 2]
    assert cache.topic_by_id(ID_A) is topic
    assert (cache.topic_id("t"), cache.topic_name(ID_A)) == (ID_A, "t")
    assert cache.partition("t", 2) is not None
    assert cache.partition("t", 3) is None
    assert (cache.cluster_id, cache.controller_id) == ("c", 1)


def test_a_deleted_topic_is_gone_by_name_and_id() -> None:
    cache = MetadataCache("c")
    update(cache, {"t": (ID_A, {0: 1, 1: 1})})
    update(cache, {"t": (ID_A, {0: None})})
    topic = cache.topic("t")
    assert topic is not None
    assert list(topic.partitions) == [1]
    update(cache, {"t": (ID_A, {1: None})})
    assert cache.topic("t") is None
    assert cache.topic_by_id(ID_A) is None


def test_a_topic_made_again_keeps_nothing_of_the_old_one() -> None:
    cache = MetadataCache("c")
    update(cache, {"t": (ID_A, {0: 1, 1: 1})})
    update(cache, {"t": (ID_B, {0: 1})})
    topic = cache.topic("t")
    assert topic is not None
    assert (topic.topic_id, list(topic.partitions)) == (ID_B, [0])
    assert cache.topic_name(ID_A) is None


def test_brokers_are_listed_by_listener() -> None:
    cache = MetadataCache("c")
    update(cache, {}, [broker(2, "IN", "OUT", rack="r"), broker(1, "IN")])
    assert list(cache.nodes("IN").values()) == [
        BrokerNode(1, "in.example", 9001, None),
        BrokerNode(2, "in.example", 9002, "r"),
    ]
    assert list(cache.nodes("OUT")) == [2]
    assert cache.nodes("NONE") == {}
    assert list(cache.broker_ids()) == [1, 2]
    assert (cache.is_alive(1), cache.is_alive(3)) == (True, False)


def test_what_was_derived_from_a_topic_lasts_until_it_could_be_wrong() -> None:
    cache = MetadataCache("c")
    update(cache, {"t": (ID_A, {0: 1}), "other": (ID_B, {0: 1})})
    for name in ("t", "other"):
        topic = cache.topic(name)
        assert topic is not None
        cache.derived(topic)["answer"] = name
    before = cache.topics["t"]
    update(cache, {"t": (ID_A, {0: 1})})
    cache.derived(before)["answer"] = "made of what is past"
    assert [cache.derived(topic) for topic in cache.topics.values()] == [{}, {"answer": "other"}]
    update(cache, {}, [broker(1), broker(2)])
    assert [cache.derived(topic) for topic in cache.topics.values()] == [{}, {}]


@asynccontextmanager
async def told_of_brokers_alone() -> AsyncIterator[tuple[MetadataCache, float]]:
    """The cache of a broker with logs, for whose topics a task waits until the end, and when it was told of brokers."""
    cache = MetadataCache("c", lambda: True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cache.wait_initialized)
        await trio.testing.wait_all_tasks_blocked()
        update(cache, {})
        yield cache, trio.current_time()


async def test_a_broker_with_logs_of_no_topic_knows_the_cluster_after_a_while(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Without a further update, by which it would be looked at again."""
    async with told_of_brokers_alone() as (_cache, began):
        pass
    assert trio.current_time() - began == 10


async def test_a_broker_with_logs_knows_the_cluster_with_the_first_topic(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with told_of_brokers_alone() as (cache, began):
        await trio.sleep(1)
        update(cache, {"t": (ID_A, {0: 1})})
    assert trio.current_time() - began == 1
