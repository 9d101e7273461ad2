"""The ways to other brokers: by what this broker was told of them last."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.memory_network import MemoryNetwork
from ottla.replication.broker_client import BrokerClient, PeerUnavailableError
from ottla.replication.metadata_cache import MetadataCache
from ottla.replication.peers import Peers
from ottla.wire.messages.api_versions import ApiVersionsRequest

from ..helpers.memory_cluster import MemoryCluster, running, until
from ..helpers.told import reached_at, tell


def peers_of(cluster: MemoryCluster, broker_id: int, listener: str = "PLAINTEXT") -> Peers:
    return Peers(cluster.network, broker_id, listener, cluster.services(broker_id).metadata)


async def is_answered(client: BrokerClient) -> bool:
    return (await client.send(ApiVersionsRequest(), 0)).error_code == 0


async def test_each_purpose_has_a_client_of_its_own(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2) as cluster:
        peers = peers_of(cluster, 1)
        fetcher, markers = peers.client(2, "fetcher"), peers.client(2, "markers")
        assert fetcher is not markers
        assert peers.client(2, "fetcher") is fetcher
        assert fetcher.peer == markers.peer == "broker2:9092"
        assert await is_answered(fetcher)
        assert await is_answered(markers)


async def test_a_broker_that_is_not_alive_cannot_be_reached(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2) as cluster:
        peers = peers_of(cluster, 1)
        client = peers.client(2, "fetcher")
        assert await is_answered(client)
        await cluster.stop(2)
        await until(lambda: not cluster.services(1).metadata.is_alive(2))
        for broker_id in (2, 3, -1):
            with pytest.raises(PeerUnavailableError, match=f"broker {broker_id} is not known to be alive"):
                peers.client(broker_id, "fetcher")
        with pytest.raises(PeerUnavailableError):
            await is_answered(client)
        with pytest.raises(PeerUnavailableError):
            peers_of(cluster, 1, "OUTSIDE").client(1, "fetcher")


async def test_a_broker_that_is_back_elsewhere_has_another_client(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2) as cluster:
        peers = peers_of(cluster, 1)
        before = peers.client(2, "fetcher")
        await cluster.stop(2)
        await cluster.start(2, listeners="PLAINTEXT://elsewhere:9092")
        after = peers.client(2, "fetcher")
        assert (before.peer, after.peer) == ("broker2:9092", "elsewhere:9092")
        assert await is_answered(after)
        with pytest.raises(PeerUnavailableError, match="the client was closed"):
            await is_answered(before)


async def test_nobody_waits_for_a_broker_that_is_gone(autojump_clock: trio.testing.MockClock) -> None:
    network = MemoryNetwork()
    await network.listen("silent", 9092, 1)
    metadata = MetadataCache("cluster")
    tell(metadata, brokers=[reached_at("silent", 7)])
    client = Peers(network, 1, "PLAINTEXT", metadata).client(7, "fetcher")
    async with trio.open_nursery() as nursery:

        async def wait_for_an_answer() -> None:
            with pytest.raises(PeerUnavailableError, match="the client was closed"):
                await is_answered(client)

        nursery.start_soon(wait_for_an_answer)
        await trio.testing.wait_all_tasks_blocked()
        tell(metadata)


async def test_nothing_is_sent_once_they_are_closed(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2) as cluster:
        peers = peers_of(cluster, 1)
        client = peers.client(2, "fetcher")
        peers.close()
        with pytest.raises(PeerUnavailableError):
            await is_answered(client)
        with pytest.raises(PeerUnavailableError):
            peers.client(2, "fetcher")
