"""``ottla console``: pages of a cluster that is asked by requests, also while it is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.base.config import Config
from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers
from ottla.broker.server import BrokerServer
from ottla.console import record_pages
from ottla.controller.new_topics import NewTopic
from ottla.wire.records import Record

from ..helpers.memory_broker import HOST, PORT, running
from .helpers.browsing import Browsing, alone_on, browsing_elsewhere
from .test_pages import OFFSETS_AT_ONCE, commit


async def test_the_overview_of_a_cluster_says_what_only_a_broker_knows(tmp_path: Path) -> None:
    async with browsing_elsewhere(tmp_path, **OFFSETS_AT_ONCE) as browser:
        await browser.create("orders", 3)
        browser.put("orders", *[Record(timestamp=1, value=b"v")] * 5)
        await commit(browser, "billing", "orders", 2)
        page = (await browser.get("/")).page
        assert (
            "Checked: the leaders and in-sync replicas of 4 partitions; "
            "what 1 group has committed in 1 partition; 1 data folder; whether 1 broker answers; "
            "the 1 voter of the quorum." in page.text
        )
        assert "Topics 2 Partitions 4 Groups 1" in page.text
        assert "Brokers 1; controller 1" in page.text
        assert (
            "Connections, requests, segments and where consumers are reading are known to a broker alone" in page.text
        )
        assert "Connections" not in page.links
        charts = [attributes["data-series"] for tag, attributes in page.elements if "data-series" in attributes]
        assert charts == ["messages_in", "lag"]
        assert browser.alone is not None
        browser.alone.view.note()
        history = (await browser.get("/history.json?series=messages_in,lag")).json
        assert history["values"][1][-1] == 3
        for place in ("/connections", "/requests", "/topics/orders/0/log"):
            answer = await browser.get(place)
            assert answer.status == 404
            assert "known to a broker alone" in answer.page.text


async def test_rates_are_of_what_has_come_between_two_looks(tmp_path: Path) -> None:
    async with browsing_elsewhere(tmp_path) as browser:
        await browser.create("orders")
        assert browser.alone is not None
        await browser.alone.view.renew()
        browser.put("orders", *[Record(timestamp=1, value=b"v")] * 500)
        await browser.alone.view.renew()
        (row,) = await browser.alone.view.topics()
        assert row.rates.messages_in > 0
        assert row.rates.bytes_in is None
        assert row.records == 500
        assert (await browser.alone.view.cluster()).rates.messages_in == row.rates.messages_in


async def test_the_charts_go_on_while_nobody_looks(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with browsing_elsewhere(tmp_path, **OFFSETS_AT_ONCE) as browser:
        await browser.create("orders")
        browser.put("orders", *[Record(timestamp=1, value=b"v")] * 5)
        await commit(browser, "billing", "orders", 2)
        browser.renews = False

        async def lags(seconds: int) -> list[float | None]:
            await trio.sleep(seconds)
            history = (await browser.get("/history.json?series=lag,messages_in")).json
            rates = history["values"][1]
            assert None not in rates[-10:], "which is looked at all the time"
            values: list[float | None] = history["values"][0][-10:]
            return values

        await browser.get("/")
        assert (await lags(15))[-1] == 3
        assert set(await lags(30)) == {3}, "they are read on for a minute"
        browser.put("orders", *[Record(timestamp=1, value=b"v")] * 2)
        assert await lags(600) == [5] * 10
        hour = (await browser.get("/history.json?series=lag&span=hour")).json["values"][0]
        assert hour[-8:] == [5] * 8


async def test_many_pages_cost_the_cluster_one_reading(tmp_path: Path) -> None:
    async with browsing_elsewhere(tmp_path) as browser:
        await browser.create("orders", 3)
        await browser.get("/topics")
        requests = browser.console.view.requests
        before = requests.count
        browser.renews = False
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(browser.get, "/topics")
        # Each kind is read again at most once meanwhile: Metadata, ListOffsets (3), groups, sizes, settings.
        assert requests.count - before <= 7


async def test_a_search_that_reads_very_much_ends_and_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browsing_elsewhere(tmp_path) as browser:
        await browser.create("orders")
        for _ in range(3):
            browser.put("orders", Record(timestamp=1, value=b"x" * 300_000))
        browser.put("orders", Record(timestamp=1, value=b"sought"))
        monkeypatch.setattr(record_pages, "_MOST_BYTES_ELSEWHERE", 500_000)
        answer = await browser.get("/topics/orders/search?contains=sought&from=oldest")
        end = json.loads(answer.body.decode().partition("event: done\ndata: ")[2])
        assert end["progress"]["found"] == "0"
        assert end["progress"]["records"] in ("2", "3")
        assert "sought" in (await browser.get(end["more"])).page.text


def _broker(folder: Path, network: MemoryNetwork) -> BrokerServer:
    config = Config({"log.dirs": str(folder), "listeners": f"PLAINTEXT://{HOST}:{PORT}"})
    return BrokerServer(config, network=network, workers=InlineWorkers())


async def test_a_cluster_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    network = MemoryNetwork()
    async with alone_on(network) as alone:
        server = _broker(tmp_path, network)
        browser = Browsing(server, network, alone)
        page = (await browser.get("/topics")).page
        assert "No broker has answered since" in page.text
        assert "There is no data yet." in page.text
        assert "No problem found" not in (await browser.get("/")).page.text
        async with running(server):
            assert server.assembly is not None
            await server.assembly.services.cluster.create_missing_topics([NewTopic("orders", 1)])
            page = (await browser.get("/topics")).page
            assert "orders" in page.links
            assert "No broker" not in page.text
        for place in ("/", "/topics", "/groups"):
            page = (await browser.get(place)).page
            assert "No broker has answered since" in page.text
            assert "This data is from" in page.text
        assert "orders" in (await browser.get("/topics")).page.links
        assert "No problem found" not in (await browser.get("/")).page.text
        for place in ("/topics/orders/records", "/topics/orders", "/group?id=g"):
            answer = await browser.get(place)
            assert answer.status == 503
            assert "No broker answers" in answer.page.text
        async with running(_broker(tmp_path, network)):
            page = (await browser.get("/topics")).page
            assert "No broker" not in page.text
            assert (await browser.get("/topics/orders/records")).status == 200
