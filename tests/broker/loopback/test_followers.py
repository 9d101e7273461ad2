"""Brokers that follow each other over their network: what a leader has, its followers get, and one of them can take over."""

from __future__ import annotations

import trio.testing

from ottla.base.errors import ErrorCode
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

from ...helpers.memory_cluster import running, until
from ..helpers.followers import in_sync, log_of, stored


async def test_acks_all_means_that_all_have_it(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3) as cluster:
        await cluster.create("t", (2, 1, 3), min_insync_replicas="3")
        for number in range(5):
            assert await cluster.produce(2, "t", 0, b"%d" % number, b"x" * number) == 0
            assert stored(cluster, 1) == stored(cluster, 2) == stored(cluster, 3)
        assert log_of(cluster, 2).high_watermark == 10
        await until(lambda: all(log_of(cluster, broker_id).high_watermark == 10 for broker_id in (1, 3)))


async def test_many_partitions_of_several_leaders(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3) as cluster:
        replicas = [(1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2)]
        await cluster.create("t", *replicas)
        for number, (leader, *_) in enumerate(replicas):
            assert await cluster.produce(leader, "t", number, b"%d" % number) == 0
        for number, ids in enumerate(replicas):
            assert [log_of(cluster, broker_id, number).log_end_offset for broker_id in ids] == [1] * len(ids)


async def test_follower_that_was_away_catches_up(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3) as cluster:
        await cluster.create("t", (1, 2, 3), min_insync_replicas="2")
        assert await cluster.produce(1, "t", 0, b"all") == 0
        await cluster.stop(3)
        await until(lambda: in_sync(cluster, 1) == {1, 2})
        for number in range(10):
            assert await cluster.produce(1, "t", 0, b"%d" % number) == 0
        await cluster.start(3)
        await until(lambda: in_sync(cluster, 1) == {1, 2, 3})
        assert stored(cluster, 3) == stored(cluster, 1)


async def test_another_leads_on_and_the_old_leader_follows(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3) as cluster:
        await cluster.create("t", (3, 2, 1), min_insync_replicas="2")
        assert await cluster.produce(3, "t", 0, b"before") == 0
        await cluster.stop(3)
        await until(lambda: cluster.services(2).replicas.partition("t", 0).is_leader)
        assert await cluster.produce(2, "t", 0, b"after") == 0
        assert await cluster.values(2, "t", 0) == [b"before", b"after"]
        await cluster.start(3)
        await until(lambda: in_sync(cluster, 2) == {1, 2, 3})
        assert stored(cluster, 3) == stored(cluster, 2)
        assert log_of(cluster, 3).leader_epochs.entries()[-1][1] == 1


async def test_deletion_waits_for_the_followers(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3) as cluster:
        await cluster.create("t", (1, 2, 3))
        assert await cluster.produce(1, "t", 0, b"a", b"b", b"c") == 0
        asked = DeleteRecordsPartition(partition_index=0, offset=2)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[asked])], timeout_ms=20_000)
        (answer,) = (await cluster.ask(1, request, 2)).topics[0].partitions
        assert (ErrorCode(answer.error_code), answer.low_watermark) == (ErrorCode.NONE, 2)
        assert [log_of(cluster, broker_id).log_start_offset for broker_id in (1, 2, 3)] == [2, 2, 2]


async def test_a_session_says_each_time_where_else_to_read(autojump_clock: trio.testing.MockClock) -> None:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    async with running(replica_selector_class=selector) as cluster:
        for broker_id, rack in ((1, "north"), (2, "south")):
            await cluster.start(broker_id, broker_rack=rack)
        topic_id = await cluster.create("t", (1, 2))
        assert await cluster.produce(1, "t", 0, b"x") == 0
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)

        async def fetch(broker_id: int, epoch: int, session_id: int = 0, version: int = 17) -> FetchResponse:
            topics = [FetchTopic(topic="t", topic_id=topic_id, partitions=[asked])] if epoch <= 0 else []
            request = FetchRequest(
                max_wait_ms=500, topics=topics, session_id=session_id, session_epoch=epoch, rack_id="south"
            )
            answer = await cluster.ask(broker_id, request, version)
            assert isinstance(answer, FetchResponse)
            return answer

        first = await fetch(1, 0)
        again = await fetch(1, 1, first.session_id)
        for answer in (first, again):
            (part,) = answer.responses[0].partitions
            assert (part.preferred_read_replica, len(part.records)) == (2, 0)
        (there,) = (await fetch(2, -1)).responses[0].partitions
        assert there.preferred_read_replica == -1
        (before,) = (await fetch(1, -1, version=10)).responses[0].partitions
        assert before.records, "a consumer that cannot be sent elsewhere reads here"
