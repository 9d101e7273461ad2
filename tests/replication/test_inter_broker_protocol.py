"""inter.broker.protocol.version: how it is read, what it is refused for, and what a follower's requests look like with it."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.settings import SettingError
from ottla.controller.zookeeper.active.request_versions import request_versions
from ottla.replication.inter_broker_protocol import inter_broker_protocol
from ottla.replication.settings import ReplicationSettings

from .helpers.followers import batch, texts
from .helpers.replicas import TOPIC_ID
from .helpers.scripted_leader import data, leader

NAME = "inter.broker.protocol.version"


@pytest.mark.parametrize(
    ("text", "name", "versions"),
    [
        ("2.8", "2.8-IV1", (5, 7, 3, 12, 6, False)),
        ("2.8-IV1", "2.8-IV1", (5, 7, 3, 12, 6, False)),
        ("2.8.2", "2.8-IV1", (5, 7, 3, 12, 6, False)),
        ("3.0-IV0", "3.0-IV0", (5, 7, 3, 12, 6, True)),
        ("3.0", "3.0-IV1", (5, 7, 3, 12, 7, True)),
        ("3.1", "3.1-IV0", (5, 7, 3, 13, 7, True)),
        ("3.2.3", "3.2-IV0", (6, 7, 3, 13, 7, True)),
        ("3.3", "3.3-IV3", (6, 7, 3, 13, 7, True)),
        ("3.4", "3.4-IV0", (7, 8, 4, 13, 7, True)),
        ("3.5-IV0", "3.5-IV0", (7, 8, 4, 14, 8, True)),
        ("3.5", "3.5-IV2", (7, 8, 4, 15, 8, True)),
        ("3.6", "3.6-IV2", (7, 8, 4, 15, 8, True)),
        ("3.7", "3.7-IV4", (7, 8, 4, 16, 8, True)),
        ("3.8", "3.8-IV0", (7, 8, 4, 16, 8, True)),
        ("3.9", "3.9-IV0", (7, 8, 4, 17, 9, True)),
    ],
)
def test_a_release_stands_for_the_versions_that_kafka_has_with_it(
    text: str, name: str, versions: tuple[int, ...]
) -> None:
    protocol = inter_broker_protocol(ReplicationSettings.from_properties({NAME: text}).inter_broker_protocol_version)
    assert (protocol.name, *request_versions(protocol), *protocol[1:]) == (name, *versions)


@pytest.mark.parametrize("text", ["2.7", "2.7-IV2", "2.8-IV0", "0.10.2", "1.0", "2.4-IV1"])
def test_a_broker_does_not_start_with_an_older_one(text: str) -> None:
    with pytest.raises(SettingError, match=r"Ottla can be in a cluster with brokers of 2\.8 and newer only"):
        ReplicationSettings.from_properties({NAME: text})


@pytest.mark.parametrize("text", ["4.0", "3.10", "3.9-IV1", "latest", ""])
def test_what_kafka_3_9_does_not_know_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match=r"is not a valid version; the newest is 3\.9-IV0"):
        ReplicationSettings.from_properties({NAME: text})


@pytest.mark.parametrize(("protocol", "version"), [("3.0", 12), ("3.4", 13), ("3.5-IV0", 14), ("3.6", 15), ("3.9", 17)])
async def test_a_follower_fetches_as_the_brokers_of_that_release(
    protocol: str, version: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with leader(protocol=protocol) as (peer, fetcher):
        partitions = [peer.partition(number) for number in (0, 1)]
        for partition in partitions:
            fetcher.follow(partition)
        assert list(await peer.fetch()) == [0, 1]
        assert peer.header.api_version == version
        replica = peer.request.replica_id if version < 15 else peer.request.replica_state.replica_id
        assert replica == 1
        (topic,) = peer.request.topics
        assert (topic.topic, topic.topic_id) == (("t", bytes(16)) if version < 13 else ("", TOPIC_ID))
        await peer.answer(data(0, batch(0, "a", "b", epoch=5), high_watermark=1), data(1))
        assert [(n, asked.fetch_offset) for n, asked in (await peer.fetch()).items()] == [(0, 2)]
        assert texts(partitions[0].log) == ["a", "b"]
        fetcher.unfollow(partitions[1])
        await peer.answer()
        await peer.fetch()
        assert peer.forgotten == [1], "in the same session"
        (forgotten,) = peer.request.forgotten_topics_data
        assert forgotten.topic == ("t" if version < 13 else "")


@pytest.mark.parametrize(("protocol", "version"), [("2.8", 6), ("3.4", 7), ("3.8", 8), ("3.9", 9)])
async def test_and_asks_for_offsets_as_they_do(
    protocol: str, version: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with leader(protocol=protocol) as (peer, fetcher):
        fetcher.follow(peer.partition())
        await peer.fetch()
        await peer.answer(data(error_code=1))  # OFFSET_OUT_OF_RANGE
        await peer.next()
        assert peer.header.api_version == version
        await peer.answer_offset(7)
