"""One console shows what every broker of the cluster knows, and names those that do not tell."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from ottla.base.errors import ErrorCode
from ottla.broker.server import BrokerServer
from ottla.console.broker_console import ConsoleSide
from ottla.replication.broker_client import BrokerClient
from ottla.wire.messages.describe_inside import DescribeInsideRequest
from ottla.wire.messages.list_groups import ListGroupsRequest

from ..helpers.memory_cluster import MemoryCluster, running_as
from .helpers.browsing import Browsing

WITHOUT_CONSOLE = 3


class Consoles(MemoryCluster):
    def make_server(self, broker_id: int, /, **own_properties: str) -> BrokerServer:
        listener = {} if broker_id == WITHOUT_CONSOLE else {"console_listener": f"broker{broker_id}:8080"}
        two = f"PLAINTEXT://broker{broker_id}:9092,CLIENTS://broker{broker_id}:9093"
        protocols = "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT"
        server = super().make_server(
            broker_id, **listener, listeners=two, listener_security_protocol_map=protocols, **own_properties
        )
        server._make_console = ConsoleSide
        return server


@asynccontextmanager
async def cluster_of_three() -> AsyncIterator[MemoryCluster]:
    async with running_as(Consoles, 1, 2, WITHOUT_CONSOLE) as cluster:
        for broker_id in (1, 2):
            with trio.fail_after(20):
                while cluster.services(broker_id).inside is None:
                    await trio.sleep(0.01)
        yield cluster


def row_of(texts: list[str], text: str) -> str:
    return next(each for each in texts if text in each)


async def test_a_client_of_another_broker_is_among_the_rows() -> None:
    async with cluster_of_three() as cluster:
        client = BrokerClient(cluster.network, "broker2", 9093, "elsewhere")
        await client.send(ListGroupsRequest(), 4)
        browser = Browsing(cluster.servers[1], cluster.network)
        for page in ("/connections", "/requests", "/requests/slowest", "/applications"):
            answer = await browser.get(page)
            assert row_of(answer.page.row_texts(), "elsewhere").endswith(" 2"), page
            assert "Broker 3 has not told what it knows: it has no console" in answer.page.text, page
        by_broker = (await browser.get("/requests?sort=-broker&q=elsewhere")).page
        link = by_broker.links["ListGroups"]
        assert link.endswith("?broker=2")
        assert "ListGroupsResponse" in (await browser.get(link)).page.text
        gone = await browser.get("/requests/999999?broker=2")
        assert gone.status == 404
        client.close()


async def test_a_broker_that_cannot_be_reached_is_named() -> None:
    async with cluster_of_three() as cluster:
        browser = Browsing(cluster.servers[1], cluster.network)
        cluster.assembly(1).peers.client(2, "inside").close()
        page = (await browser.get("/connections")).page
        assert "Broker 2 has not told what it knows" in page.text
        assert page.rows() > 1, "what this broker knows is there"


async def test_clients_are_refused_at_their_own_listener() -> None:
    async with cluster_of_three() as cluster:
        for port, code in ((9092, ErrorCode.NONE), (9093, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)):
            client = BrokerClient(cluster.network, "broker2", port, "curious")
            response = await client.send(DescribeInsideRequest(kind="connections"), 0)
            assert response.error_code == code
            client.close()
