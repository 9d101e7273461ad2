"""A transaction that hangs is aborted, and a client disconnected, by a button."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import trio

from ottla.security.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.records import Record, build_batch

from ..helpers.memory_broker import HOST, PORT, frame, read_answer
from .helpers.browsing import browsing
from .helpers.secured import WRITES as SECURED_WRITES
from .helpers.secured import allow, log_in

WRITES = {"console.allow.writes": "true"}


async def test_a_transaction_is_aborted(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await browser.create("orders")
        browser.put("orders", Record(timestamp=1, value=b"before"))
        records = build_batch(
            [Record(timestamp=1, value=b"v")],
            producer_id=4000,
            producer_epoch=3,
            base_sequence=0,
            is_transactional=True,
        )
        browser.partition("orders").append(records, now_ms=1, internal=True)
        log = browser.partition("orders").log
        assert log.last_stable_offset == 1
        address = "/abort-transaction?topic=orders&partition=0&producer=4000"
        assert address in (await browser.get("/topics/orders")).page.addresses()
        plan = (await browser.get(address)).page
        assert "4000 3 -1 1" in plan.text
        assert "ottla transactions abort -b test:9092 --partition 0 --start-offset 1 orders" in plan.text
        form = plan.button_form()
        stale = await browser.post("/abort-transaction", {**form, "start": "0"})
        assert stale.status == 400
        assert log.last_stable_offset == 1
        done = await browser.do(address)
        assert "The transaction of producer 4000 in orders-0, open from offset 1 on, was aborted." in done.page.text
        assert log.last_stable_offset == log.log_end_offset == 3
        assert (await browser.get(address)).status == 404
        assert (await browser.post("/abort-transaction", form)).status == 404
        for wrong in (
            "topic=orders",
            "topic=orders&partition=x",
            "topic=orders&partition=7&producer=1",
            "topic=x&partition=0",
        ):
            assert (await browser.get(f"/abort-transaction?{wrong}")).status in (400, 404, 409), wrong


async def test_a_client_is_disconnected(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        clients = [await browser.network.connect(HOST, PORT) for _ in range(2)]
        for number, client in enumerate(clients):
            await client.send([frame(ListGroupsRequest(), 4, 1, f"client {number}")])
            await read_answer(client)
        rows = {row.client_id: row for row in await browser.console.view.connections()}
        address = f"/disconnect?peer={quote(rows['client 0'].peer)}"
        assert address in (await browser.get("/connections")).page.addresses()
        assert "client 0" in (await browser.get(address)).page.text
        done = await browser.do(address)
        peer = rows["client 0"].peer
        assert f"1 connection was closed: that of client 0 from {peer}. 1 is left." in done.page.text
        with trio.fail_after(20):
            assert await clients[0].receive() == b""
        await clients[1].send([frame(ListGroupsRequest(), 4, 1, "client 1")])
        await read_answer(clients[1])
        assert (await browser.get("/disconnect?peer=nobody:1")).status == 404
        for client in clients:
            client.close()


async def test_who_may(tmp_path: Path) -> None:
    async with browsing(tmp_path, SECURED_WRITES) as browser:
        await log_in(browser, "alice")
        cluster = ResourceType.CLUSTER
        await allow(browser, "alice", Operation.DESCRIBE, cluster, CLUSTER_NAME)
        refused = await browser.get("/disconnect?peer=x:1")
        assert refused.status == 403
        assert "CLUSTER_AUTHORIZATION_FAILED" in refused.page.text
        await allow(browser, "alice", Operation.ALTER, cluster, CLUSTER_NAME)
        assert (await browser.get("/disconnect?peer=x:1")).status == 404
