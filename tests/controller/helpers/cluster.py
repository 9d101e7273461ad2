"""A controller on an embedded store, with brokers that only record its requests."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar, cast

import trio

from ottla.base.errors import ErrorCode
from ottla.base.seams import SystemClock
from ottla.controller.new_topics import CreatedTopic, NewTopic
from ottla.controller.settings import ControllerSettings
from ottla.controller.zookeeper.active.controller import ZooKeeperController
from ottla.controller.zookeeper.config_store import ConfigStore
from ottla.controller.zookeeper.membership import Membership
from ottla.controller.zookeeper.nodes.znodes import decode_state, state_path
from ottla.controller.zookeeper.registration import ensure_cluster, register_broker
from ottla.controller.zookeeper.replica_requests import ReplicaRequests
from ottla.controller.zookeeper.store.cluster_store import ClusterStore, NoNodeError
from ottla.controller.zookeeper.store.session import BrokerSession
from ottla.log.settings import LogSettings
from ottla.metadata.types import AdvertisedListener, BrokerRegistration, LeaderState
from ottla.replication.metadata_cache import MetadataCache
from ottla.replication.replica_manager import ReplicaManager
from ottla.tests.zookeeper_double.embedded_store import EmbeddedSession, EmbeddedStore
from ottla.tests.zookeeper_double.store_link import StoreLink
from ottla.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from ottla.wire.messages.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse
from ottla.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

T = TypeVar("T")

logger = logging.getLogger(__name__)


async def _refresh_nothing(topics: Iterable[str]) -> None:
    """What is set on topics is not kept anywhere here."""


class RecordingBroker:
    """A broker that records the requests of its controller, in order, and keeps a metadata cache.

    ``lost``: the numbers of the partitions in a log directory that has failed.
    """

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.metadata = MetadataCache("cluster")
        self.lost: set[int] = set()
        self._told = ReplicaRequests(cast(ReplicaManager, None), self.metadata, lambda: -1, _refresh_nothing)

    def close(self) -> None:
        pass

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        self.requests.append(request)
        return LeaderAndIsrResponse(
            topics=[
                LeaderAndIsrTopicError(
                    topic_id=topic.topic_id,
                    partition_errors=[
                        LeaderAndIsrPartitionError(
                            partition_index=state.partition_index,
                            error_code=ErrorCode.KAFKA_STORAGE_ERROR if state.partition_index in self.lost else 0,
                        )
                        for state in topic.partition_states
                    ],
                )
                for topic in request.topic_states
            ]
        )

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        self.requests.append(request)
        return StopReplicaResponse(
            partition_errors=[
                StopReplicaPartitionError(
                    topic_name=topic.topic_name,
                    partition_index=state.partition_index,
                    error_code=ErrorCode.KAFKA_STORAGE_ERROR if state.partition_index in self.lost else 0,
                )
                for topic in request.topic_states
                for state in topic.partition_states
            ]
        )

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        self.requests.append(request)
        return await self._told.update_metadata(request)

    def told(self, kind: type[T]) -> list[T]:
        """The requests of one kind, in order."""
        return [request for request in self.requests if isinstance(request, kind)]

    def leader_epochs(self, topic: str) -> dict[int, int]:
        """Leader epoch by partition, from the last LeaderAndIsr requests."""
        return {
            partition.partition_index: partition.leader_epoch
            for request in self.requests
            if isinstance(request, LeaderAndIsrRequest)
            for state in request.topic_states
            if state.topic_name == topic
            for partition in state.partition_states
        }


def registration(broker_id: int) -> BrokerRegistration:
    return BrokerRegistration(broker_id, (AdvertisedListener("PLAINTEXT", "127.0.0.1", 9092 + broker_id),), None)


async def join(store: ClusterStore, broker_id: int) -> None:
    await register_broker(store, registration(broker_id), SystemClock())


async def until(condition: Callable[[], bool]) -> None:
    """Return once ``condition`` holds. Raises trio.TooSlowError."""
    with trio.fail_after(10):
        while not condition():
            await trio.sleep(0.005)  # lets a mock clock jump


class Cluster:
    """One store, a member with a controller on broker 1, and recording brokers.

    ``sessions`` are the newest sessions, by broker; ``session`` is another one, to read the store.
    """

    def __init__(self, store: EmbeddedStore, brokers: int = 1, settings: Mapping[str, str] | None = None) -> None:
        self.store = store
        self.settings = ControllerSettings.from_properties(settings or {})
        self.link = StoreLink()
        """The link of broker 1 to the store."""
        self.clock = SystemClock()
        self.session = store.session()
        self.sessions = {i: store.session(self.link if i == 1 else None) for i in range(1, brokers + 1)}
        self.brokers = {i: RecordingBroker() for i in self.sessions}
        own = BrokerSession(self._connect, self.sessions[1])
        self.configs = ConfigStore(own, SystemClock(), MetadataCache())
        self.controller = self.new_controller(1, own)
        self.member = Membership(own, registration(1), self.configs, self.controller, SystemClock())

    async def _connect(self) -> EmbeddedSession:
        """Broker 1 opens another session."""
        self.sessions[1] = self.store.session()
        return self.sessions[1]

    async def state(self, topic: str, partition: int = 0) -> LeaderState:
        """The state of a partition in the store."""
        return decode_state((await self.session.get(state_path(topic, partition))).data)

    async def until_state(self, topic: str, expected: LeaderState, partition: int = 0) -> None:
        """Return once the store has this state of a partition. Raises trio.TooSlowError."""
        with trio.fail_after(10):
            while True:
                with suppress(NoNodeError):  # there is none before the first one
                    found = await self.state(topic, partition)
                    if found == expected:
                        return
                    logger.debug("%s, not %s", found, expected)
                await trio.sleep(0.005)

    async def restart(self, *broker_ids: int) -> None:
        """Register brokers again, between two looks of the controller."""
        self.controller.suspend()
        for broker_id in broker_ids:
            await self.sessions[broker_id].expire()
            self.sessions[broker_id] = self.store.session()
            await join(self.sessions[broker_id], broker_id)
        self.controller.resume()

    async def die(self, broker_id: int) -> None:
        """End a broker's session; return once the controller's broker knows."""
        await self.sessions[broker_id].expire()
        await until(lambda: not self.brokers[1].metadata.is_alive(broker_id))

    async def come_back(self, broker_id: int) -> None:
        """Register a broker again; return once the controller's broker knows."""
        self.sessions[broker_id] = self.store.session()
        await join(self.sessions[broker_id], broker_id)
        await until(lambda: self.brokers[1].metadata.is_alive(broker_id))

    def new_controller(self, broker_id: int, session: ClusterStore) -> ZooKeeperController:
        return ZooKeeperController(
            broker_id,
            session,
            self.configs,
            lambda broker: self.brokers.get(broker.registration.broker_id) or RecordingBroker(),
            self.settings,
            LogSettings(),
            SystemClock(),
            random.Random(7),
            "PLAINTEXT",
        )

    async def start(self) -> None:
        await ensure_cluster(self.session, random.Random(7))
        for broker_id, session in self.sessions.items():
            if broker_id != 1:
                await join(session, broker_id)
        await self.configs.start()
        await self.member.join()

    @property
    def epochs(self) -> dict[int, int]:
        """The broker epochs of live brokers, by id."""
        term = self.controller._term
        assert term is not None
        return {broker_id: broker.epoch for broker_id, broker in term.context.brokers.items()}

    async def create(self, *topics: NewTopic) -> None:
        for result in (await self.controller.create_topics(topics)).values():
            assert isinstance(result, CreatedTopic), result


@asynccontextmanager
async def running(
    brokers: int = 1, store: EmbeddedStore | None = None, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Cluster]:
    if store is None:
        store = EmbeddedStore(SystemClock())
        await store.open()
    cluster = Cluster(store, brokers, settings)
    await cluster.start()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        nursery.start_soon(cluster.controller.run)
        nursery.start_soon(cluster.configs.run)
        nursery.start_soon(cluster.member.run)
        yield cluster
        nursery.cancel_scope.cancel()
    for session in cluster.sessions.values():
        await session.close()
