"""Each page shows what the broker has, at an address of its own, and the command that shows the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.records import Record
from ottla.wire.schema import Message

from ..helpers.memory_broker import HOST, PORT, frame, read_answer
from .helpers.browsing import Browsing, Open, browsing, on_both

_ERROR_OF_COMMIT = slice(-5, -3)
"""Where the only error code of an OffsetCommit response of version 8 is: before the tagged fields of three structures."""
OFFSETS_AT_ONCE = {"offsets_topic_replication_factor": "1", "offsets_topic_num_partitions": "1"}


async def ask(browser: Browsing, request: Message, version: int, client_id: str = "c") -> bytes:
    client = await browser.network.connect(HOST, PORT)
    await client.send([frame(request, version, 1, client_id)])
    _, answer = await read_answer(client)
    client.close()
    return answer


async def commit(browser: Browsing, group: str, topic: str, offset: int, client_id: str = "c") -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])])
    with trio.fail_after(30):
        while (await ask(browser, request, 8, client_id))[_ERROR_OF_COMMIT] != b"\0\0":
            await ask(browser, FindCoordinatorRequest(key=group), 3)
            await trio.sleep(0.02)


async def test_the_overview(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("orders", 3)
        page = (await browser.get("/")).page
        assert (
            "Checked: whether this broker is ready; the leaders and in-sync replicas of 3 partitions; "
            "what 0 groups have committed in 0 partitions; " in page.text
        )
        assert "Partitions 3" in page.text
        assert f"Clients connect to {HOST}:{PORT}" in page.text
        assert f"ottla cluster describe -b {HOST}:{PORT}" in page.text
        charts = [attributes["data-series"] for tag, attributes in page.elements if "data-series" in attributes]
        await browser.console.view.sample()
        for series in charts:
            history = (await browser.get(f"/history.json?series={series}")).json
            assert history["series"] == (series or "").split(",")
            assert len(history["times"]) >= 1
            assert {len(values) for values in history["values"]} == {len(history["times"])}
        assert (await browser.get("/history.json?series=nothing&span=hour")).json["values"] == []


@on_both
async def test_topics_are_found_sorted_and_turned_over_by_address(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **OFFSETS_AT_ONCE) as browser:
        for number in range(60):
            await browser.create(f"topic-{number:02}", 1 + number % 3)
        browser.put("topic-07", Record(timestamp=1_700_000_000_000, value=b"x" * 5000))
        first = (await browser.get("/topics")).page
        assert "60 topics, page 1 of 2" in first.text
        assert first.links["topic-00"] == "/topics/topic-00"
        assert "topic-59" not in first.links
        second = (await browser.get(first.links["Next"])).page
        assert "topic-59" in second.links
        largest = (await browser.get("/topics?sort=size")).page
        assert next(name for name in largest.links if name.startswith("topic-")) == "topic-07"
        smallest = (await browser.get("/topics?sort=-name")).page
        assert next(name for name in smallest.links if name.startswith("topic-")) == "topic-59"
        found = (await browser.get("/topics?q=IC-5&sort=partitions")).page
        assert "10 topics of 60" in found.text
        assert found.rows() == 11
        await commit(browser, "g", "topic-07", 0)
        await trio.sleep(1.1)
        assert "__consumer_offsets" not in (await browser.get("/topics?q=__")).page.links
        assert "__consumer_offsets" in (await browser.get("/topics?q=__&internal=1")).page.links
        for odd in ("?page=99", "?page=-1", "?page=x", "?sort=nothing", "?page=" + "9" * 5000):
            assert (await browser.get(f"/topics{odd}")).status == 200


@on_both
async def test_a_topic(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **OFFSETS_AT_ONCE) as browser:
        await browser.create("orders", 2, {"retention.ms": "3600000"})
        browser.put("orders", *[Record(timestamp=1_700_000_000_000, value=b"v")] * 7)
        await commit(browser, "billing", "orders", 3)
        page = (await browser.get("/topics/orders")).page
        assert "Records 7" in page.text
        assert "delete: 1 h, no limit" in page.text
        settings = (await browser.get("/topics/orders/settings?set=1")).page
        assert "retention.ms 3600000 this topic" in settings.text
        assert "1 setting of" in settings.text
        assert "2023-11-14 22:13:20.000 UTC" in page.text
        assert page.links["billing"] == "/group?id=billing"
        assert "kafka-topics.sh --bootstrap-server test:9092 --describe --topic orders" in page.text
        log = await browser.get("/topics/orders/0/log")
        if browser.alone is None:
            assert "0 7" in log.page.text
            assert "active" in log.page.text
        else:
            assert log.status == 404
            assert "known to a broker alone" in log.page.text


@on_both
async def test_a_group(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **OFFSETS_AT_ONCE) as browser:
        await browser.create("orders")
        browser.put("orders", *[Record(timestamp=1, value=b"v")] * 5)
        await commit(browser, "a/b ü", "orders", 2)
        groups = (await browser.get("/groups")).page
        assert "Empty 0 1 1 3 3" in groups.text
        page = (await browser.get(groups.links["a/b ü"])).page
        assert "orders 0 2 5 3" in page.text
        assert page.links["2"] == "/topics/orders/records?partition=0&from=offset&at=2"
        assert "kafka-consumer-groups.sh --bootstrap-server test:9092 --describe --group 'a/b ü'" in page.text


async def test_connections_and_requests(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        client = await browser.network.connect(HOST, PORT)
        await client.send([frame(ListGroupsRequest(), 4, 1, "my client")])
        await read_answer(client)
        page = (await browser.get("/connections")).page
        assert "my client" in page.text
        assert "User:ANONYMOUS" in page.text
        assert "1 connection" in page.text
        assert "ListGroups" in (await browser.get("/requests")).page.text
        await ask(browser, OffsetCommitRequest(group_id="g"), 8, "wrong")
        page = (await browser.get("/requests?q=find")).page
        assert "No request has that in it." in page.text
        client.close()


@pytest.mark.parametrize(
    "target",
    ["/nothing", "/topics/nothing", "/topics/nothing/records", "/topics/t/9/log", "/group?id=nobody", "/group"],
)
@on_both
async def test_what_is_not_there_is_a_page_that_says_so(browsing: Open, target: str, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        answer = await browser.get(target)
        assert answer.status == 404
        assert any(words in answer.page.text for words in ("There is no", "This broker", "known to a broker alone"))


async def test_whole_numbers_are_text_for_programs(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("orders")
        top = (await browser.get("/top.json")).json
        assert top["broker"]["topics"] == "1"
        assert top["topics"][0]["name"] == "orders"
        assert top["topics"][0]["partitions"] == "1"
        assert top["groups"] == top["errors"] == []
