"""In a cluster pages have links to the consoles of the other brokers, as far as these can be reached."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from ottla.broker.server import BrokerServer
from ottla.console.broker_console import ConsoleSide

from ..helpers.memory_cluster import MemoryCluster, running_as
from .helpers.browsing import Browsing, Page, alone_on

LISTENERS = {1: "broker1:8080", 2: "0.0.0.0:8080", 3: "127.0.0.1:8080", 4: ""}


class Consoles(MemoryCluster):
    def make_server(self, broker_id: int, /, **own_properties: str) -> BrokerServer:
        listener = LISTENERS[broker_id]
        server = super().make_server(
            broker_id, **({"console_listener": listener} if listener else {}), **own_properties
        )
        server._make_console = ConsoleSide
        return server


@asynccontextmanager
async def cluster_of_four() -> AsyncIterator[MemoryCluster]:
    async with running_as(Consoles, 1, 2, 3, 4) as cluster:
        yield cluster


def linked(page: Page) -> dict[str, str]:
    return {name: address for name, address in page.links.items() if name.startswith("broker ")}


async def test_pages_lead_to_the_consoles_that_can_be_reached() -> None:
    async with cluster_of_four() as cluster:
        browser = Browsing(cluster.servers[1], cluster.network)
        assert linked((await browser.get("/connections")).page) == {}
        await browser.console.view.find_consoles()
        page = (await browser.get("/connections")).page
        assert linked(page) == {"broker 2": "http://broker2:8080/"}, "that of 3 is on its own machine, 4 has none"
        assert "Sizes, rates and data folders are this broker's" in page.text
        with trio.fail_after(60):
            await cluster.stop(2)
            while 2 in cluster.services(1).metadata.broker_ids():
                await trio.sleep(0.02)
        await browser.console.view.find_consoles()
        assert linked((await browser.get("/")).page) == {}


async def test_a_console_of_its_own_leads_to_those_of_the_brokers() -> None:
    async with cluster_of_four() as cluster, alone_on(cluster.network, ("broker4", 9092)) as alone:
        page = (await Browsing(cluster.servers[4], cluster.network, alone).get("/")).page
        assert linked(page) == {"broker 1": "http://broker1:8080/", "broker 2": "http://broker2:8080/"}
        assert "What only a broker knows is in its own console" in page.text
