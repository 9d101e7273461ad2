"""What a user may see and do in the console is what the user's rights say, by the broker's own authorizer."""

from __future__ import annotations

import logging
from pathlib import Path

import h11
import pytest
import trio
import trio.testing

from ottla.console.visitor_rights import ConsoleRoute
from ottla.handlers.table import right_to
from ottla.security.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.view.record_search import Search
from ottla.wire.records import Record

from .helpers.browsing import Browsing, browsing
from .helpers.form_reader import FormReader
from .helpers.secured import SECURED, WRITES, allow, forbid, log_in, set_password

OP = Operation
Clock = trio.testing.MockClock
OPEN = {"/static/{place:path}"}
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER


async def test_without_rights_there_is_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafka.authorizer.logger")
    async with browsing(tmp_path, WRITES) as browser:
        await browser.create("orders")
        await log_in(browser, "alice")
        assert (await browser.get("/")).headers["location"] == "/topics"
        assert "0 topics" in (await browser.get("/topics")).page.text
        assert "0 groups" in (await browser.get("/groups")).page.text
        shown = {"/topics", "/groups", "/find", "/create-topic", "/reset-offsets", "/", "/state"}
        for route in browser.console.routes:
            address = (
                route.path.replace("{topic}", "orders").replace("{partition:int}", "0").replace("{offset:int}", "0")
            )
            if address not in shown and not address.startswith("/static"):
                answer = await browser.get(address)
                assert answer.status in (400, 403, 404), address
                assert answer.status == 403 or "{" in address or not address.startswith("/topics"), address
        assert "No topic or group" in (await browser.get("/find?q=orders")).page.text
        state = await browser.get("/state")
        assert (state.status, state.body) == (200, b""), "a part of other pages, which they do without"
        refused = await browser.get("/topics/orders")
        assert refused.status == 403
        assert "Topic authorization failed. (TOPIC_AUTHORIZATION_FAILED)" in refused.page.text
        denied = (
            "Denied Operation = Describe from host = client on resource = Topic:LITERAL:orders for request = Metadata"
        )
        assert denied in caplog.text
        other = await browser.get("/topics/nothing")
        assert other.status == 403, "whether there is such a topic is not told either"


async def test_each_address_states_an_api_that_has_rights(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        for route in browser.console.routes:
            if route.path not in OPEN:
                assert isinstance(route, ConsoleRoute), f"{route.path} is open to everyone"
                assert route.apis, f"{route.path} states no API"
                assert all(right_to(api) for api in route.apis)


async def test_each_right_shows_its_part(tmp_path: Path) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        for name in ("orders", "prices"):
            await browser.create(name)
            browser.put(name, Record(timestamp=1, value=b"v"))
        await log_in(browser, "alice")
        await allow(browser, "alice", OP.DESCRIBE, TOPIC, "orders")
        topics = (await browser.get("/topics")).page
        assert "1 topic" in topics.text
        assert "orders" in topics.links
        assert "prices" not in topics.text
        page = (await browser.get("/topics/orders")).page
        assert "Records 1" in page.text
        assert (await browser.get("/topics/orders/settings")).status == 403
        for address in ("/topics/orders/records", "/topics/orders/0/0", "/topics/orders/0/0/value", "/topics/prices"):
            assert (await browser.get(address)).status == 403, address
        assert (await browser.get("/topics/orders/search?contains=v")).status == 403
        await allow(browser, "alice", OP.DESCRIBE_CONFIGS, TOPIC, "orders")
        assert "retention.ms" in (await browser.get("/topics/orders/settings")).page.text
        await allow(browser, "alice", OP.READ, TOPIC, "orders")
        assert (await browser.get("/topics/orders/records")).status == 200
        assert (await browser.get("/topics/orders/0/0/value")).body == b"v"
        for address in ("/connections", "/requests", "/top.json", "/history.json", "/topics/orders/0/log"):
            assert (await browser.get(address)).status == 403, address
        await allow(browser, "alice", OP.DESCRIBE, CLUSTER, CLUSTER_NAME)
        for address in ("/", "/connections", "/requests", "/topics/orders/0/log"):
            assert (await browser.get(address)).status == 200, address
        top = (await browser.get("/top.json")).json
        assert [row["name"] for row in top["topics"]] == ["orders"]


async def test_groups_are_those_that_may_be_described(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await browser.create("orders")
        await log_in(browser, "alice")
        for name in ("billing", "shipping"):
            await browser.put_offset(name, "orders", 0, 0)
        await allow(browser, "alice", OP.DESCRIBE, GROUP, "billing")
        groups = (await browser.get("/groups")).page
        assert "billing" in groups.links
        assert "shipping" not in groups.text
        assert (await browser.get("/group?id=shipping")).status == 403
        page = (await browser.get("/group?id=billing")).page
        assert "orders" not in page.text, "a topic that may not be described"
        await allow(browser, "alice", OP.DESCRIBE, TOPIC, "orders")
        assert "orders 0 0 0" in (await browser.get("/group?id=billing")).page.text
        readers = (await browser.get("/topics/orders")).page.links
        assert "billing" in readers
        assert "shipping" not in readers


async def test_the_history_of_a_group_needs_the_right_to_the_group(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await browser.create("orders")
        await log_in(browser, "alice")
        for name in ("billing", "shipping"):
            await browser.put_offset(name, "orders", 0, 0)
        await allow(browser, "alice", OP.DESCRIBE, GROUP, "billing")
        answer = await browser.get("/history.json?group=billing&series=lag")
        assert answer.json["series"] == ["lag"]
        for query in ("group=shipping", "group=billing&group=shipping", "group=nobody", "topic=orders", "series=lag"):
            assert (await browser.get(f"/history.json?{query}")).status == 403, query
        await allow(browser, "alice", OP.DESCRIBE, CLUSTER, CLUSTER_NAME)
        for query in ("topic=orders", "series=lag"):
            assert (await browser.get(f"/history.json?{query}")).status == 200, query
        assert (await browser.get("/history.json?group=shipping")).status == 403, "the cluster is not the group"


async def test_findings_name_no_topic_that_may_not_be_described(tmp_path: Path, autojump_clock: Clock) -> None:
    """They count it all the same: the overview is about the cluster."""
    folders = {"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}
    async with browsing(tmp_path, SECURED | folders) as browser:
        for name in ("orders", "secret"):
            await browser.create(name, 2)  # one partition in each folder
        await log_in(browser, "alice")
        await allow(browser, "alice", OP.DESCRIBE, CLUSTER, CLUSTER_NAME)
        await allow(browser, "alice", OP.DESCRIBE, TOPIC, "orders")
        browser.services.logs.folders[1].fail("writing", OSError("it broke"))
        with trio.fail_after(60):
            while "2 partitions have no leader" not in (page := (await browser.get("/")).page).text:
                await trio.sleep(1)
        assert "orders" in page.links
        assert "secret" not in page.text
        await allow(browser, "alice", OP.DESCRIBE, TOPIC, "secret")
        assert "secret" in (await browser.get("/")).page.links
        assert (await browser.get("/state")).page.text == "2 problems, 1 warning"


async def test_actions_need_what_their_requests_need(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await browser.create("orders")
        await log_in(browser, "alice")
        await allow(browser, "alice", OP.DESCRIBE, TOPIC, "orders")
        for address, operation in (
            ("/topics/orders/add-partitions?count=2", OP.ALTER),
            ("/topics/orders/configure?name=retention.ms&way=set&value=5", OP.ALTER_CONFIGS),
            ("/topics/orders/delete-records?partition=0&offset=end", OP.DELETE),
        ):
            form = {**(await browser.get("/topics/orders/delete")).page.button_form(), "typed": "orders"}
            query = dict(part.split("=") for part in address.partition("?")[2].split("&"))
            refused = await browser.post(address.partition("?")[0], {**form, **query})
            assert refused.status == 403, address
            assert "TOPIC_AUTHORIZATION_FAILED" in refused.page.text
            more = (OP.DESCRIBE_CONFIGS,) if operation is OP.ALTER_CONFIGS else ()
            await allow(browser, "alice", operation, TOPIC, "orders", *more)
            assert (await browser.do(address, typed="orders")).status == 200, address
        assert (await browser.get("/create-topic?name=new")).status == 403
        await allow(browser, "alice", OP.CREATE, TOPIC, "new")
        assert (await browser.do("/create-topic?name=new")).status == 200
        assert (await browser.do("/topics/orders/delete", typed="orders")).status == 200


async def test_who_may_write_but_not_read_writes_and_reads_nothing(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await browser.create("orders")
        browser.put("orders", Record(timestamp=1, value=b"secret"))
        await log_in(browser, "alice")
        await allow(browser, "alice", OP.DESCRIBE, TOPIC, "orders")
        refused = await browser.post("/topics/orders/produce", await form(browser, "/topics/orders/produce"))
        assert refused.status == 403
        assert "TOPIC_AUTHORIZATION_FAILED" in refused.page.text
        await allow(browser, "alice", OP.WRITE, TOPIC, "orders")
        sent = await browser.post("/topics/orders/produce", await form(browser, "/topics/orders/produce"))
        assert "orders-0 at offset 1" in sent.page.text
        for address in ("0/0/edit", "send-again?record=0:0", "tail?rest=0:0-0", "export"):
            answer = await browser.get(f"/topics/orders/{address}")
            assert b"secret" not in answer.body, address
            assert answer.status == 403, address
        await allow(browser, "alice", OP.READ, TOPIC, "orders")
        assert "secret" in (await browser.get("/topics/orders/0/0/edit")).page.text


async def form(browser: Browsing, address: str) -> dict[str, str]:
    return {**FormReader((await browser.get(address)).page.html).fields, "value": "x"}


@pytest.mark.parametrize("way", ["a rule", "the password"])
async def test_what_is_under_way_ends_with_the_right_to_it(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file the reader sees that it is not whole."""
    step, goes_on = Search.step, trio.Event()

    async def gated(search: Search) -> None:
        if search.looked_at:
            await goes_on.wait()
        await step(search)

    monkeypatch.setattr(Search, "step", gated)
    async with browsing(tmp_path, SECURED) as browser:
        await browser.create("orders")
        for _ in range(5):
            browser.put("orders", Record(timestamp=1, value=b"x" * 300_000))
        await set_password(browser, "carol", "carols-secret")
        await log_in(browser, "carol")
        await allow(browser, "carol", OP.READ, TOPIC, "orders")
        stream, protocol = await browser.open("/topics/orders/export?from=oldest")
        with trio.fail_after(30):
            while not isinstance(event := protocol.next_event(), h11.Data):
                if event is h11.NEED_DATA:
                    protocol.receive_data(await stream.receive())
            if way == "a rule":
                await forbid(browser, TOPIC, "orders")
            else:
                await set_password(browser, "carol", "another-secret")
            goes_on.set()
            received = 0
            with pytest.raises(h11.RemoteProtocolError, match="without sending complete message body"):
                while not isinstance(event := protocol.next_event(), h11.EndOfMessage):
                    if event is h11.NEED_DATA:
                        protocol.receive_data(await stream.receive())
                    elif isinstance(event, h11.Data):
                        received += len(event.data)
            assert received < 300_000 + 10_000, "of the first record only"
        stream.close()
        refused = await browser.get("/topics/orders/export?from=oldest")
        assert refused.status in (303, 403)
