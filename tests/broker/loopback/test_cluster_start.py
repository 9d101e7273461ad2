"""How a broker of a cluster starts: who it is, what it takes over before it opens its logs, which features there are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import pytest
import trio

from ottla.base.seams import InlineWorkers
from ottla.broker.server import BrokerFailedError, StartError
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_home import ClusterHome
from ottla.controller.zookeeper.store.cluster_store import Create, Delete, Set
from ottla.log.checkpoints import read_meta_properties
from ottla.replication.broker_client import BrokerClient
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.metadata import MetadataRequest

from ...helpers.memory_cluster import SECONDS, MemoryCluster, SharedZooKeeper, running_as, until, until_true

T = TypeVar("T")

FEATURES = b'{"features":{},"version":2,"status":1}'
UNSUPPORTED = b'{"features":{"metadata.version":{"max_version_level":20}},"version":2,"status":1}'


class ZooKeeperCluster(MemoryCluster):
    """Brokers that share a store in memory as they would a ZooKeeper."""

    def home(self, broker_id: int) -> ClusterHome:
        return SharedZooKeeper(self.store)


def open_cluster(*broker_ids: int, **properties: str) -> AbstractAsyncContextManager[ZooKeeperCluster]:
    return running_as(ZooKeeperCluster, *broker_ids, **properties)


async def start_refused(cluster: MemoryCluster, broker_id: int, /, **properties: str) -> str:
    """Why the broker does not start."""
    with trio.fail_after(SECONDS), pytest.raises(StartError) as caught:
        await cluster.make_server(broker_id, **properties).serve()
    return str(caught.value)


# --- who it is --------------------------------------------------------------------------------------------------------


async def test_brokers_without_an_id_get_one_that_lasts() -> None:
    async with open_cluster() as cluster:
        await cluster.start(1, 2, broker_id="-1")
        ids = {number: cluster.servers[number].broker_id for number in (1, 2)}
        assert ids == {1: 1001, 2: 1002}
        assert sorted(await cluster.store.session().children(znodes.BROKER_IDS)) == ["1001", "1002"]
        await cluster.stop(1)
        await cluster.start(1, broker_id="-1")
        assert cluster.servers[1].broker_id == 1001
        meta = read_meta_properties(cluster.disk(1), "/data")
        assert meta is not None
        assert (meta.broker_id, meta.zookeeper) == (1001, SharedZooKeeper.zookeeper)


async def test_ids_that_are_refused() -> None:
    async with open_cluster() as cluster:
        disabled = {"broker_id_generation_enable": "false"}
        assert "broker.id must be greater than or equal to 0" in (
            await start_refused(cluster, 1, broker_id="-1", **disabled)
        )
        assert "not greater than reserved.broker.max.id" in await start_refused(cluster, 1001)
        assert "not greater than reserved.broker.max.id" in (
            await start_refused(cluster, 8, reserved_broker_max_id="7")
        )
        await cluster.start(1001, **disabled)
        await cluster.stop(1001)
        why = await start_refused(cluster, 1001, broker_id="5")
        assert "Stored node id 1001 doesn't match previous node id 5 in /data/meta.properties" in why
        assert await cluster.store.session().get(znodes.BROKER_SEQUENCE)


async def test_folders_that_are_refused() -> None:
    async with open_cluster(1) as cluster:
        other = "version=0\nbroker.id=2\ncluster.id=other\n"
        cluster.disk(2).make_dir("/data")
        cluster.disk(2).write_file("/data/meta.properties", other.encode())
        expected = (
            f"Invalid cluster.id in: /data/meta.properties. Expected {cluster.services(1).cluster_id}, but read other"
        )
        assert await start_refused(cluster, 2) == expected
        of_kraft = f"version=1\nnode.id=3\ncluster.id={cluster.services(1).cluster_id}\n"
        cluster.disk(3).make_dir("/data")
        cluster.disk(3).write_file("/data/meta.properties", of_kraft.encode())
        assert "Found unexpected version in /data/meta.properties" in await start_refused(cluster, 3)
        assert cluster.disk(2).read_file("/data/meta.properties") == other.encode()


# --- what is set on brokers -------------------------------------------------------------------------------------------


class CountingWorkers(InlineWorkers):
    """Notes how many calls there were at once."""

    def __init__(self) -> None:
        self._now = 0
        self.most = 0

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        self._now += 1
        self.most = max(self.most, self._now)
        await trio.sleep(0.01)
        try:
            return await super().run(function, *arguments)
        finally:
            self._now -= 1


async def test_what_is_set_on_brokers_holds_before_the_logs_are_opened() -> None:
    async with open_cluster(1) as cluster:
        await cluster.create("t", *([1] for _ in range(64)))
        for partition in range(64):
            assert await cluster.produce(1, "t", partition, b"x") == 0
        await cluster.stop(1)
        path = znodes.config_path("brokers", "<default>")
        config = znodes.encode_config({"num.recovery.threads.per.data.dir": "4"})
        await cluster.store.session().multi([Create(path, config)])
        workers = cluster.workers[1] = CountingWorkers()
        await cluster.start(1)
        assert workers.most == 4


# --- its session ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made", [znodes.CLUSTER_ID, znodes.broker_path(1), znodes.CONTROLLER], ids=["cluster", "registered", "controller"]
)
async def test_a_broker_whose_session_ends_while_it_starts_goes_on_in_a_new_one(made: str) -> None:
    async with open_cluster() as cluster:
        session = cluster.store.session()
        is_made = trio.Event()
        await session.exists(made, lambda _: is_made.set())
        ready = cluster.start_soon(1)
        await is_made.wait()
        for each in cluster.store.sessions:
            if each is not session:
                await each.expire()
        with trio.fail_after(SECONDS):
            await ready.wait()
        await cluster.start(2)
        await cluster.create("t", [1, 2])
        await until(lambda: set(cluster.services(1).metadata.broker_ids()) == {1, 2})
        assert await cluster.produce(1, "t", 0, b"x") == 0


# --- features ---------------------------------------------------------------------------------------------------------


async def features(cluster: MemoryCluster, broker_id: int) -> tuple[int, int]:
    """How many features clients are told of, and the epoch."""
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    answer: ApiVersionsResponse = await cluster.ask(broker_id, request, 3)
    return len(answer.supported_features) + len(answer.finalized_features), answer.finalized_features_epoch


async def test_nothing_is_finalized_and_the_epoch_is_that_of_the_node() -> None:
    async with open_cluster(1, 2) as cluster:
        session = cluster.store.session()
        assert (await session.get(znodes.FEATURE)).data == FEATURES
        await until_true(is_told(cluster, 2, 0))
        await session.multi([Set(znodes.FEATURE, FEATURES)])
        for broker_id in (1, 2):
            await until_true(is_told(cluster, broker_id, 1))
        for each in cluster.store.sessions:
            if each is not session:
                await each.expire()
        await session.multi([Set(znodes.FEATURE, FEATURES)])
        for broker_id in (1, 2):
            await until_true(is_told(cluster, broker_id, 2))
        await session.multi([Delete(znodes.FEATURE)])
        for broker_id in (1, 2):
            await until_true(is_told(cluster, broker_id, -1))


def is_told(cluster: MemoryCluster, broker_id: int, epoch: int) -> Callable[[], Awaitable[bool]]:
    async def is_it() -> bool:
        return await features(cluster, broker_id) == (0, epoch)

    return is_it


@pytest.mark.parametrize(
    "layout", [b'{"features":{},"version":1,"status":1}', b'{"features":{},"version":2,"status":0}']
)
async def test_the_controller_gives_the_node_its_present_form(layout: bytes) -> None:
    async with open_cluster() as cluster:
        session = cluster.store.session()
        await session.multi([Create(znodes.FEATURE, layout)])
        await cluster.start(1)
        assert (await session.get(znodes.FEATURE)).data == FEATURES
        await until_true(is_told(cluster, 1, 1))


@pytest.mark.parametrize("data", [UNSUPPORTED, b"nonsense", b'{"features":{},"version":3,"status":1}'])
async def test_a_broker_does_not_start_where_something_is_finalized_that_it_does_not_know(data: bytes) -> None:
    async with open_cluster() as cluster:
        session = cluster.store.session()
        await session.multi([Create(znodes.FEATURE, data)])
        why = await start_refused(cluster, 1)
        assert ("features that this broker does not support: metadata.version" in why) is (data == UNSUPPORTED)
        assert "/feature is not understood" in why or data == UNSUPPORTED
        assert await session.children(znodes.BROKER_IDS) == []


async def test_a_broker_stops_when_something_is_finalized_that_it_does_not_know() -> None:
    async with open_cluster() as cluster:
        server = cluster.make_server(1)

        async def finalize() -> None:
            await cluster.store.session().multi([Set(znodes.FEATURE, UNSUPPORTED)])

        with trio.fail_after(SECONDS), pytest.raises(BrokerFailedError, match=r"does not support: metadata\.version"):
            async with trio.open_nursery() as nursery:
                ready = trio.Event()
                nursery.start_soon(_after, ready, finalize)
                try:
                    await server.serve(ready.set)
                except BrokerFailedError as error:
                    failure = error
                nursery.cancel_scope.cancel()
            raise failure


async def _after(event: trio.Event, action: Callable[[], Awaitable[None]]) -> None:
    await event.wait()
    await action()


# --- listeners --------------------------------------------------------------------------------------------------------


async def test_brokers_meet_at_their_own_listener_and_clients_at_theirs() -> None:
    """No client can reach ``insideN``, and no broker ``outsideN``: those names are advertised, and not bound."""
    async with open_cluster() as cluster:
        for number in (1, 2):
            await cluster.start(
                number,
                listeners=f"INSIDE://broker{number}:9091,OUTSIDE://broker{number}:9092",
                advertised_listeners=f"INSIDE://broker{number}:9091,OUTSIDE://outside{number}:19092",
                listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
                inter_broker_listener_name="INSIDE",
            )
        await cluster.create("t", [1, 2], min_insync_replicas="2")
        await until(lambda: len(cluster.services(1).metadata.broker_ids()) == 2)
        assert await cluster.produce(1, "t", 0, b"x") == 0
        outside = (await cluster.metadata(1)).brokers
        assert {(each.host, each.port) for each in outside} == {("outside1", 19092), ("outside2", 19092)}
        client = BrokerClient(cluster.network, "broker2", 9091, "client")
        inside = (await client.send(MetadataRequest(topics=None), 12)).brokers
        client.close()
        assert {(each.host, each.port) for each in inside} == {("broker1", 9091), ("broker2", 9091)}
