"""The controller on an embedded store: topics made, told to brokers, enlarged, deleted, and found again after a restart."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import SystemClock
from ottla.controller import znodes
from ottla.controller.config_store import ConfigStore
from ottla.controller.controller import Controller
from ottla.controller.embedded_store import EmbeddedStore
from ottla.controller.registration import ensure_cluster, register_broker
from ottla.controller.settings import ControllerSettings
from ottla.controller.store import ClusterStore
from ottla.controller.topics import CreatedTopic, NewTopic
from ottla.controller.znodes import BrokerEndpoint, BrokerRegistration
from ottla.log.settings import LogSettings
from ottla.replication.metadata_cache import MetadataCache
from ottla.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ottla.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ottla.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


class RecordingBroker:
    """A broker that notes what its controller says, in order, and keeps a metadata cache from it."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.metadata = MetadataCache("cluster")

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        self.requests.append(request)
        return LeaderAndIsrResponse()

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        self.requests.append(request)
        return StopReplicaResponse()

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        self.requests.append(request)
        return self.metadata.update(request)

    def leader_epochs(self, topic: str) -> dict[int, int]:
        """Leader epoch by partition, as the last LeaderAndIsr requests had it."""
        return {
            partition.partition_index: partition.leader_epoch
            for request in self.requests
            if isinstance(request, LeaderAndIsrRequest)
            for state in request.topic_states
            if state.topic_name == topic
            for partition in state.partition_states
        }


async def join(store: ClusterStore, broker_id: int, rack: str | None = None) -> None:
    endpoint = BrokerEndpoint("PLAINTEXT", "127.0.0.1", 9092 + broker_id)
    await register_broker(store, BrokerRegistration(broker_id, (endpoint,), rack), SystemClock())


class Cluster:
    """One store, one controller on broker 1, and recording brokers."""

    def __init__(self, store: EmbeddedStore, brokers: int = 1) -> None:
        self.store = store
        self.session = store.session()
        self.sessions = {1: self.session} | {i: store.session() for i in range(2, brokers + 1)}
        self.brokers = {i: RecordingBroker() for i in self.sessions}
        self.configs = ConfigStore(self.session, SystemClock())
        self.controller = Controller(
            1,
            self.session,
            self.configs,
            self.brokers,
            ControllerSettings(),
            LogSettings(),
            SystemClock(),
            random.Random(7),
        )

    async def start(self) -> None:
        await ensure_cluster(self.session, random.Random(7))
        for broker_id, session in self.sessions.items():
            await join(session, broker_id)
        await self.configs.start()
        await self.controller.start()

    async def create(self, *topics: NewTopic) -> None:
        for result in (await self.controller.create_topics(topics)).values():
            assert isinstance(result, CreatedTopic), result


@asynccontextmanager
async def running(brokers: int = 1, store: EmbeddedStore | None = None) -> AsyncIterator[Cluster]:
    if store is None:
        store = EmbeddedStore(SystemClock())
        await store.open()
    cluster = Cluster(store, brokers)
    await cluster.start()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.controller.run)
        nursery.start_soon(cluster.configs.run)
        yield cluster
        nursery.cancel_scope.cancel()
    for session in cluster.sessions.values():
        await session.close()


async def test_a_new_topic_is_ready_before_it_is_seen() -> None:
    async with running() as cluster:
        broker = cluster.brokers[1]
        broker.requests.clear()
        await cluster.create(NewTopic("orders", 3))
        first, second = broker.requests
        assert isinstance(first, LeaderAndIsrRequest)
        assert isinstance(second, UpdateMetadataRequest)
        assert all(p.is_new and p.leader == 1 and p.leader_epoch == 0 for p in first.topic_states[0].partition_states)
        topic = broker.metadata.topic("orders")
        assert topic is not None
        assert sorted(topic.partitions) == [0, 1, 2]
        assert first.topic_states[0].topic_id == topic.topic_id


async def test_a_restarted_cluster_has_its_topics_with_raised_leader_epochs() -> None:
    store = EmbeddedStore(SystemClock())
    await store.open()
    async with running(store=store) as cluster:
        await cluster.create(NewTopic("orders", 2, configs={"retention.ms": "1000"}))
        topic = cluster.brokers[1].metadata.topic("orders")
        assert topic is not None
    async with running(store=store) as cluster:
        again = cluster.brokers[1].metadata.topic("orders")
        assert again is not None
        assert again.topic_id == topic.topic_id
        assert cluster.brokers[1].leader_epochs("orders") == {0: 1, 1: 1}
        assert cluster.configs.topic_overrides("orders") == {"retention.ms": "1000"}
        assert (await cluster.session.get(znodes.CONTROLLER_EPOCH)).data == b"2"


async def test_deletion_tells_clients_first_then_replicas_then_removes_every_node() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("orders", 2))
        broker = cluster.brokers[1]
        broker.requests.clear()
        assert await cluster.controller.delete_topics(["orders"]) == {"orders": None}
        update, stop = broker.requests
        assert {p.leader for p in update.topic_states[0].partition_states} == {-2}
        assert all(p.delete_partition and p.leader_epoch == -2 for p in stop.topic_states[0].partition_states)
        assert broker.metadata.topic("orders") is None
        assert await cluster.session.children(znodes.TOPICS) == []
        assert await cluster.session.children(znodes.TOPIC_CONFIGS) == []
        assert await cluster.session.children(znodes.DELETE_TOPICS) == []


async def test_a_topic_made_again_has_another_id() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("orders"))
        before = cluster.brokers[1].metadata.topic_id("orders")
        await cluster.controller.delete_topics(["orders"])
        await cluster.create(NewTopic("orders"))
        assert cluster.brokers[1].metadata.topic_id("orders") not in (before, None)
        assert cluster.brokers[1].metadata.topic_name(before or b"") is None


async def test_partitions_are_added_at_the_end() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("orders", 2))
        await cluster.controller.create_partitions("orders", 5)
        topic = cluster.brokers[1].metadata.topic("orders")
        assert topic is not None
        assert list(topic.partitions) == [0, 1, 2, 3, 4]
        with pytest.raises(KafkaError) as caught:
            await cluster.controller.create_partitions("orders", 5)
        assert caught.value.code == ErrorCode.INVALID_PARTITIONS


async def test_leadership_moves_when_a_broker_dies_and_its_replica_comes_back() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("orders", assignment={0: [2, 1, 3]}))
        metadata = cluster.brokers[1].metadata
        await cluster.sessions[2].expire()
        with trio.fail_after(5):
            while metadata.is_alive(2):
                await trio.lowlevel.checkpoint()
        state = metadata.partition("orders", 0)
        assert state is not None
        assert (state.leader, state.leader_epoch, state.isr) == (1, 1, [1, 3])
        assert state.offline_replicas == [2]
        cluster.brokers[2].requests.clear()
        await join(cluster.store.session(), 2)
        with trio.fail_after(5):
            while not metadata.is_alive(2):
                await trio.lowlevel.checkpoint()
        assert [type(request) for request in cluster.brokers[2].requests] == [LeaderAndIsrRequest, UpdateMetadataRequest]
        assert cluster.brokers[2].metadata.topic("orders") is not None


async def test_a_partition_without_live_replica_waits_for_one() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("orders", assignment={0: [2]}))
        metadata = cluster.brokers[1].metadata
        await cluster.sessions[2].expire()
        with trio.fail_after(5):
            while (state := metadata.partition("orders", 0)) is None or state.leader != -1:
                await trio.lowlevel.checkpoint()
        assert state.isr == [2]
        await join(cluster.store.session(), 2)
        with trio.fail_after(5):
            while (state := metadata.partition("orders", 0)) is None or state.leader != 2:
                await trio.lowlevel.checkpoint()
        assert state.leader_epoch == 2
