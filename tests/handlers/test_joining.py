"""What a broker tells clients before a controller has told it of the cluster."""

from __future__ import annotations

import trio

from ottla.base.errors import ErrorCode
from ottla.replication.metadata_cache import MetadataCache
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

from ..helpers.memory_cluster import MemoryCluster, running, until
from ..helpers.told import led, tell


async def test_a_broker_that_was_told_nothing_yet_calls_no_topic_unknown(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1, 2) as cluster:
        await cluster.create("known", [1])
        # As it is between its registration and the controller's first request, which may be long where that is paused.
        services = cluster.services(2)
        services.metadata = MetadataCache(services.metadata.cluster_id)
        began = trio.current_time()
        answer = await cluster.metadata(2, "known", "other", "no name")
        assert trio.current_time() - began == 5
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            ("known", ErrorCode.LEADER_NOT_AVAILABLE),
            ("other", ErrorCode.LEADER_NOT_AVAILABLE),
            ("no name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]


async def test_a_broker_with_logs_that_was_told_of_brokers_only_calls_no_topic_unknown(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A controller that takes over tells first who is alive, and of partitions once it has elected their leaders."""
    async with running(1, 2) as cluster:
        await cluster.create("known", [1], [2])
        services = cluster.services(2)
        await until(lambda: services.metadata.topic("known") is not None)
        services.metadata = MetadataCache(services.metadata.cluster_id, lambda: cluster.assembly(2).logs.has_logs)
        tell(services.metadata, controller_id=1)
        answer = await cluster.metadata(2, "known", "other")
        assert [topic.error_code for topic in answer.topics] == 2 * [ErrorCode.LEADER_NOT_AVAILABLE]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell_later, services.metadata, "known")
            answer = await cluster.metadata(2, "known", "other")
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def committed(cluster: MemoryCluster) -> int:
    """The error code of an offset that is committed at broker 2. It is not the coordinator; the topic is looked at first."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="known", partitions=[partition])
    answer = await cluster.ask(2, OffsetCommitRequest(group_id="g", topics=[topic]), 8)
    code: int = answer.topics[0].partitions[0].error_code
    return code


async def test_a_coordinator_that_was_told_of_brokers_only_does_not_refuse_offsets_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """librdkafka gives a commit up, and tells its application so, when the topic is unknown."""
    async with running(1, 2) as cluster:
        await cluster.create("known", [1], [2])
        services = cluster.services(2)
        await until(lambda: services.metadata.topic("known") is not None)
        services.metadata = MetadataCache(services.metadata.cluster_id, lambda: cluster.assembly(2).logs.has_logs)
        tell(services.metadata, controller_id=1)
        assert await committed(cluster) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell_later, services.metadata, "known")
            assert await committed(cluster) == ErrorCode.NOT_COORDINATOR


async def tell_later(metadata: MetadataCache, topic: str) -> None:
    """Of a topic, in a second."""
    await trio.sleep(1)
    tell(metadata, led(topic, bytes(15) + b"1", {0: 1, 1: 2}), controller_id=1)


async def test_a_broker_with_logs_of_no_topic_does_not_wait_for_ever(autojump_clock: trio.testing.MockClock) -> None:
    metadata = MetadataCache("cluster", lambda: True)
    tell(metadata, controller_id=1)
    assert not metadata.is_initialized
    await trio.sleep(10)
    assert metadata.is_initialized


async def test_a_broker_without_logs_is_told_of_a_cluster_without_topics_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1) as cluster:
        began = trio.current_time()
        (topic,) = (await cluster.metadata(1, "other")).topics
        assert (topic.error_code, trio.current_time() - began) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
