"""Several brokers in one loop, on one network, one clock and one store in memory; and a client that can ask each of them."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers, SimulatedClock, SystemClock, Workers
from ottla.broker.assembly import Assembly
from ottla.broker.config_file import load_config
from ottla.broker.server import BrokerServer
from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.controller.zookeeper.store.cluster_home import ClusterHome
from ottla.handlers.services import Services
from ottla.log.memory_disk import MemoryDisk
from ottla.replication.broker_client import BrokerClient
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore
from ottla.tests.zookeeper_double.shared_home import SharedHome
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.records import iter_batches
from ottla.wire.schema import Message

C = TypeVar("C", bound="MemoryCluster")

SECONDS = 20.0
"""The limit of every wait."""


class SharedZooKeeper(SharedHome):
    """A store in memory in place of a ZooKeeper."""

    zookeeper = "zookeeper:2181/kafka"


class MemoryCluster:
    """Brokers 1, 2, … at ``brokerN:9092``. ``properties`` are those of every broker, with _ for the dots."""

    def __init__(self, nursery: trio.Nursery, **properties: str) -> None:
        self.network = MemoryNetwork()
        self.store = EmbeddedStore(SystemClock())
        self.servers: dict[int, BrokerServer] = {}
        self.workers: dict[int, Workers] = {}
        """The workers of brokers that do not have ``InlineWorkers``."""
        self._properties = _dotted(properties)
        self._disks: dict[int, MemoryDisk] = {}
        self._stopped: dict[int, trio.Event] = {}
        self._clients: dict[int, BrokerClient] = {}
        self._nursery = nursery

    async def start(self, *broker_ids: int, **properties: str) -> None:
        """Start brokers, each when the one before is ready."""
        for broker_id in broker_ids:
            await self.start_soon(broker_id, **properties).wait()

    def home(self, broker_id: int) -> ClusterHome | None:
        """The home of the cluster's state, for a broker; None where that is a quorum."""
        return SharedHome(self.store)

    def make_server(self, broker_id: int, /, **own_properties: str) -> BrokerServer:
        """A broker that is not started yet. ``own_properties`` go before those of the cluster."""
        properties = {
            "broker.id": str(broker_id),
            "log.dirs": "/data",
            "listeners": f"PLAINTEXT://broker{broker_id}:9092",
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
            **self._properties,
            **_dotted(own_properties),
        }
        return BrokerServer(
            load_config(properties),
            network=self.network,
            clock=SimulatedClock(),
            workers=self.workers.get(broker_id) or InlineWorkers(),
            disk=self.disk(broker_id),
            randomness=random.Random(broker_id),
            home=self.home(broker_id),
        )

    def start_soon(self, broker_id: int, /, **own_properties: str) -> trio.Event:
        """Start a broker; the event is set when it is ready. ``own_properties`` go before those of the cluster."""
        server = self.servers[broker_id] = self.make_server(broker_id, **own_properties)
        ready, self._stopped[broker_id] = trio.Event(), trio.Event()
        self._nursery.start_soon(self._serve, broker_id, server, ready)
        return ready

    async def _serve(self, broker_id: int, server: BrokerServer, ready: trio.Event) -> None:
        await server.serve(ready.set)
        del self.servers[broker_id]
        self._stopped[broker_id].set()

    async def stop(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self.servers[broker_id].stop()
            await self._stopped[broker_id].wait()

    def services(self, broker_id: int) -> Services:
        """The parts of a broker."""
        return self.assembly(broker_id).services

    def assembly(self, broker_id: int) -> Assembly:
        assembly = self.servers[broker_id].assembly
        assert assembly is not None
        return assembly

    def disk(self, broker_id: int) -> MemoryDisk:
        return self._disks.setdefault(broker_id, MemoryDisk())

    def controller_id(self) -> int:
        """The id of the controller, or -1."""
        active = [i for i, s in self.servers.items() if s.assembly and s.assembly.services.cluster.is_controller]
        return active[0] if len(active) == 1 else -1

    # A client

    async def ask(self, broker_id: int, request: Message, version: int) -> Any:
        """Send a request to a broker; returns its response. Raises PeerUnavailableError."""
        client = self._clients.get(broker_id)
        if client is None:
            client = self._clients[broker_id] = BrokerClient(self.network, f"broker{broker_id}", 9092, "client")
        return await client.send(request, version)

    async def metadata(self, broker_id: int, *topics: str, create: bool = False) -> MetadataResponse:
        """Metadata of these topics, or of all."""
        named = [MetadataRequestTopic(name=topic) for topic in topics] or None
        answer = await self.ask(broker_id, MetadataRequest(topics=named, allow_auto_topic_creation=create), 12)
        assert isinstance(answer, MetadataResponse)
        return answer

    async def create(self, topic: str, *replicas: Sequence[int], **configs: str) -> bytes:
        """Create a topic at the controller with these replicas of its partitions; returns its id. ``configs`` have _ for dots."""
        assignments = [
            CreatableReplicaAssignment(partition_index=number, broker_ids=list(ids))
            for number, ids in enumerate(replicas)
        ]
        new = CreatableTopic(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=assignments,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in _dotted(configs).items()],
        )
        controller = (await self.metadata(next(iter(self.servers)))).controller_id
        (created,) = (await self.ask(controller, CreateTopicsRequest(topics=[new]), 7)).topics
        assert created.error_code == 0, created
        topic_id: bytes = created.topic_id
        return topic_id

    async def produce(self, broker_id: int, topic: str, partition: int, *values: bytes, acks: int = -1) -> int:
        """Produce at a broker; returns the error code."""
        answer = await self.ask(broker_id, produce_request(topic, {partition: batch(*values)}, acks), 9)
        code: int = answer.responses[0].partition_responses[0].error_code
        return code

    async def values(
        self, broker_id: int, topic: str, partition: int, *, committed: bool = False
    ) -> list[bytes | None]:
        """The values that a consumer reads from a partition at a broker. Raises KafkaError.

        ``committed``: without open and aborted transactions.
        """
        found: list[bytes | None] = []
        offset = 0
        while True:
            request = fetch_request(topic, {partition: offset})
            request.isolation_level = int(committed)
            (read,) = (await self.ask(broker_id, request, 12)).responses[0].partitions
            if read.error_code:
                raise KafkaError(ErrorCode(read.error_code))
            aborted = {each.producer_id for each in read.aborted_transactions or ()}
            batches = list(iter_batches(bytes(read.records or b"")))
            for each in batches:
                if not each.is_control and each.producer_id not in aborted:
                    found += [record.value for record in each.records()]
            if not batches:
                return found
            offset = batches[-1].next_offset


def _dotted(properties: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in properties.items()}


async def until(condition: Callable[[], bool]) -> None:
    """Return once ``condition`` holds. Raises trio.TooSlowError."""
    with trio.fail_after(SECONDS):
        while not condition():
            await trio.sleep(0.005)  # lets a mock clock jump


async def until_true(condition: Callable[[], Awaitable[bool]]) -> None:
    """As ``until``, for an asynchronous condition."""
    with trio.fail_after(SECONDS):
        while not await condition():
            await trio.sleep(0.005)


def running(*broker_ids: int, **properties: str) -> contextlib.AbstractAsyncContextManager[MemoryCluster]:
    """A cluster with these brokers, each ready; all are stopped at the end."""
    return running_as(MemoryCluster, *broker_ids, **properties)


@contextlib.asynccontextmanager
async def running_as(kind: type[C], *broker_ids: int, **properties: str) -> AsyncIterator[C]:
    """As ``running``, for another class of cluster."""
    async with trio.open_nursery() as nursery:
        cluster = kind(nursery, **properties)
        await cluster.store.open()
        await cluster.start(*broker_ids)
        yield cluster
        for server in list(cluster.servers.values()):
            server.stop()
