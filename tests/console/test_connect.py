"""Kafka Connect in the console: what workers tell of connectors, what is wrong with them, and what can be done about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from ottla.security.acl import CLUSTER_NAME, Operation, ResourceType

from .helpers.browsing import Browsing, Open, Page, browsing, on_both
from .helpers.hostile import EVIL, UNSEEN, check_answer
from .helpers.recorded_connect import LIST, RecordedConnect, recorded_connect
from .helpers.secured import WRITES as SECURED_WRITES
from .helpers.secured import allow, log_in

BUTTONS = {
    "RUNNING": {"Restart…", "Pause…", "Stop…"},
    "PAUSED": {"Restart…", "Resume…", "Stop…"},
    "STOPPED": {"Resume…"},
}
CHANGES = (
    ("RUNNING", "Restart…", "POST /connectors/orders-sink/restart", "restarted"),
    ("RUNNING", "Pause…", "PUT /connectors/orders-sink/pause", "paused"),
    ("PAUSED", "Stop…", "PUT /connectors/orders-sink/stop", "stopped"),
    ("STOPPED", "Resume…", "PUT /connectors/orders-sink/resume", "resumed"),
)
ALL_BUTTONS = set().union(*BUTTONS.values())
RESTART_FAILED = "/connectors/broken-sink/restart?includeTasks=true&onlyFailed=true"


@pytest.fixture
def connect() -> Iterator[RecordedConnect]:
    with recorded_connect() as made:
        yield made


def findings(page: Page) -> list[str]:
    """Those about Connect: a busy machine may have others."""
    found = re.finditer('<li class="warning" data-kind="(connector|connector task|unassigned)".*?</li>', page.html)
    return [Page(each[0]).text for each in found]


async def renewed(browser: Browsing, target: str) -> Page:
    """A page, after the workers were asked anew."""
    view = browser.alone.view if browser.alone is not None else browser.console.source
    assert view.connect is not None
    await view.connect.renew()
    await view.renew()
    return (await browser.get(target)).page


# --- pages ------------------------------------------------------------------------------------------------------------


@on_both
async def test_without_a_worker_the_page_says_how_to_set_one(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, console_allow_writes="true") as browser:
        page = (await browser.get("/connect")).page
        assert "No worker of Kafka Connect was set." in page.text
        assert "ottla console --connect-url http://127.0.0.1:8083" in page.text
        assert "Connect" not in page.links, "the side bar has what there is"
        assert "Kafka Connect" not in (await browser.get("/")).page.text
        for target in ("/connect/x", "/restart-failed?name=x", "/restart-task?name=x&task=0"):
            answer = await browser.get(target)
            assert answer.status == 404
            assert "No worker of Kafka Connect was set" in answer.page.text


@on_both
async def test_connectors(browsing: Open, tmp_path: Path, connect: RecordedConnect) -> None:
    async with browsing(tmp_path, console_connect_urls=connect.url) as browser:
        page = (await browser.get("/connect")).page
        assert page.links["Connect"] == "/connect"
        assert page.row_texts()[1:4] == [
            "broken-sink sink FileStreamSink RUNNING 0 of 1 1 orders worker-1:8083",
            "orders-sink sink FileStreamSink RUNNING 2 of 2 0 orders worker-1:8083",
            "orders-source source FileStreamSource RUNNING 1 of 1 0 orders worker-1:8083",
        ]
        assert page.links["orders"] == "/topics/orders"
        assert page.links["broken-sink"] == f"/connect/broken-sink?at={connect.place}"
        assert f"{connect.place} yes 4.3.1" in page.row_texts()[-1]
        assert "another one 3" in page.row_texts()[-1], "the worker is of another Kafka cluster"
        assert f"curl -s '{connect.url}/connectors?expand=info&expand=status'" in page.text
        failed = (await browser.get("/connect?failed=1&sort=-name")).page
        assert "1 connector of 3" in failed.text
        assert "checked" in next(each for tag, each in failed.elements if each.get("name") == "failed")
        found = (await browser.get("/connect?q=orders-s&sort=-name")).page
        assert [row.split()[0] for row in found.row_texts()[1:3]] == ["orders-source", "orders-sink"]
        assert (await browser.get("/connect?q=nothing")).page.text.count("No connector is like that.") == 1
        assert "Restart" not in page.text


async def test_a_connector(tmp_path: Path, connect: RecordedConnect) -> None:
    async with browsing(tmp_path, console_connect_urls=connect.url) as browser:
        page = (await browser.get(f"/connect/broken-sink?at={connect.place}")).page
        assert page.links["connect-broken-sink"] == "/group?id=connect-broken-sink"
        trace = re.search(
            r"<details class=\"trace\"><summary>(.*?)</summary><pre>(.*?)</pre></details>", page.html, re.S
        )
        assert trace is not None
        assert "ConnectException: Couldn" in trace[1]
        assert "\tat " in trace[2]
        assert "Couldn" not in trace[2], "its first line stands there once"
        assert "Restart" not in page.text
        source = (await browser.get("/connect/orders-source")).page
        assert "database.password hidden" in source.text
        assert "hunter2" not in source.html
        assert "database.token ${file:/etc/connect/secrets.properties:token}" in source.text
        assert "Group" not in source.text.replace("Groups", "")
        assert source.links["orders"] == "/topics/orders"
        missing = await browser.get("/connect/nothing")
        assert missing.status == 404
        assert "There is no connector nothing." in missing.page.text


async def test_there_is_nothing_yet(tmp_path: Path, connect: RecordedConnect) -> None:
    connect.connectors.clear()
    async with browsing(tmp_path, console_connect_urls=connect.url) as browser:
        page = (await browser.get("/connect")).page
        assert "There is no connector yet. One is made by POST /connectors, to a worker." in page.text


async def test_several_workers(tmp_path: Path, connect: RecordedConnect) -> None:
    with recorded_connect() as second:
        second.connectors["orders-sink"]["status"]["connector"]["state"] = "PAUSED"
        async with browsing(tmp_path, console_connect_urls=f"{connect.url},{second.url}") as browser:
            page = (await browser.get("/connect?sort=asked")).page
            assert "4 connectors" in page.text
            for worker, state in ((connect, "RUNNING"), (second, "PAUSED")):
                row = f"orders-sink sink FileStreamSink {state} 2 of 2 0 orders worker-1:8083 {worker.place}"
                assert row in page.row_texts()
            paused = (await browser.get(f"/connect/orders-sink?at={second.place}")).page
            assert "State PAUSED" in paused.text


async def test_a_name_may_have_slashes(tmp_path: Path, connect: RecordedConnect) -> None:
    name = "a/b c?d#e/../f"
    connect.connectors[name] = connect.connectors["orders-sink"]
    async with browsing(tmp_path, console_connect_urls=connect.url, console_allow_writes="true") as browser:
        address = (await browser.get("/connect")).page.links[name]
        page = (await browser.get(address)).page
        assert page.links[f"connect-{name}"] == f"/group?id={quote(f'connect-{name}')}"
        await browser.do(page.links["Pause…"])
        assert connect.changes() == [f"PUT /connectors/{quote(name, safe='')}/pause"]


# --- what is wrong ----------------------------------------------------------------------------------------------------


@on_both
async def test_what_has_failed_is_on_the_overview(browsing: Open, tmp_path: Path, connect: RecordedConnect) -> None:
    async with browsing(tmp_path, console_connect_urls=connect.url) as browser:
        page = (await browser.get("/")).page
        assert findings(page) == ["1 task of 1 connector has failed : broken-sink"]
        assert page.links["1 task of 1 connector has failed"] == "/connect"
        assert page.links["broken-sink"] == f"/connect/broken-sink?at={connect.place}"
        assert "3 connectors of Kafka Connect, with their tasks" in page.text
        assert (await browser.get("/state")).page.text.startswith("1 problem")
        status = connect.connectors["orders-sink"]["status"]
        status["connector"] |= {"state": "FAILED", "trace": "it broke"}
        status["tasks"][0]["state"] = "UNASSIGNED"
        connect.connectors["broken-sink"]["status"]["tasks"] = []
        await browser.renewed()
        page = await renewed(browser, "/")
        assert findings(page) == [
            "1 connector has failed : orders-sink",
            "1 connector waits for a worker of Connect : orders-sink",
        ]
        assert "Why the connector has failed it broke" in (await browser.get("/connect/orders-sink")).page.text


@on_both
async def test_a_worker_that_does_not_answer_is_named(browsing: Open, tmp_path: Path, connect: RecordedConnect) -> None:
    async with browsing(tmp_path, console_connect_urls=f"{connect.url},http://127.0.0.1:1") as browser:
        page = (await browser.get("/")).page
        assert "3 connectors of Kafka Connect, with their tasks: 127.0.0.1:1: it cannot be queried: " in page.text
        page = (await browser.get("/connect")).page
        assert page.row_texts()[-1].startswith("127.0.0.1:1 no it cannot be queried: ")
        connect.answers[LIST] = [500, {"message": "Request timed out"}]
        page = await renewed(browser, "/connect")
        assert "No connector is known. A worker does not answer: the reason is below." in page.text
        assert "no it has answered with status 500: Request timed out" in page.text


# --- actions ----------------------------------------------------------------------------------------------------------


async def test_what_has_failed_is_restarted(tmp_path: Path, connect: RecordedConnect) -> None:
    async with browsing(tmp_path, console_connect_urls=connect.url, console_allow_writes="true") as browser:
        page = (await browser.get("/connect/broken-sink")).page
        address = page.links["Restart failed parts…"]
        plan = (await browser.get(address)).page
        assert plan.row_texts() == ["Part State Worker", "task 0 FAILED worker-1:8083"]
        assert f"curl -s -X POST '{connect.url}{RESTART_FAILED}'" in plan.text
        assert connect.changes() == []
        done = (await browser.do(address)).page
        assert "The failed parts of the connector broken-sink are being restarted." in done.text
        assert done.row_texts() == ["Part State Worker", "task 0 RESTARTING worker-1:8083"]
        assert done.links["broken-sink"] == f"/connect/broken-sink?at={connect.place}"
        assert connect.changes() == [f"POST {RESTART_FAILED}"]
        connect.connectors["broken-sink"]["status"]["tasks"][0]["state"] = "RUNNING"
        refused = await browser.post("/restart-failed", {**plan.button_form(), "name": "broken-sink"})
        assert refused.status == 400
        assert "Nothing of the connector broken-sink has failed." in refused.page.text
        assert "Restart failed parts…" not in (await browser.get("/connect/broken-sink")).page.links
        assert len(connect.changes()) == 1


async def test_each_change_is_one_request(tmp_path: Path, connect: RecordedConnect) -> None:
    connect.answers["POST /connectors/orders-sink/restart"] = connect.answers["POST /connectors/broken-sink/restart"]
    async with browsing(tmp_path, console_connect_urls=connect.url, console_allow_writes="true") as browser:
        for state, text, request, told in CHANGES:
            connect.connectors["orders-sink"]["status"]["connector"]["state"] = state
            page = await renewed(browser, "/connect/orders-sink")
            assert {each for each in page.links if each in ALL_BUTTONS} == BUTTONS[state]
            plan = (await browser.get(page.links[text])).page
            assert [row.split(" worker")[0] for row in plan.row_texts()[1:]] == [
                f"connector {state}",
                "task 0 RUNNING",
                "task 1 RUNNING",
            ]
            method, target = request.split()
            assert f"curl -s -X {method} {connect.url}{target}" in plan.text
            connect.asked.clear()
            done = await browser.do(page.links[text])
            assert done.status == 200
            assert f"The connector orders-sink is being {told}." in done.page.text
            assert connect.changes() == [request]


async def test_a_task_is_restarted(tmp_path: Path, connect: RecordedConnect) -> None:
    async with browsing(tmp_path, console_connect_urls=connect.url, console_allow_writes="true") as browser:
        addresses = (await browser.get("/connect/broken-sink")).page.addresses()
        (address,) = [each for each in addresses if each is not None and each.startswith("/restart-task")]
        done = await browser.do(address)
        assert "Task 0 of the connector broken-sink is being restarted." in done.page.text
        assert connect.changes() == ["POST /connectors/broken-sink/tasks/0/restart"]
        for task in ("1", "x", "", "-1"):
            wrong = await browser.get(f"/restart-task?name=broken-sink&task={task}")
            assert wrong.status == 400
        assert len(connect.changes()) == 1


async def test_a_refusal_is_told_with_connects_reason(tmp_path: Path, connect: RecordedConnect) -> None:
    reason = "Cannot complete request momentarily due to stale configuration"
    connect.answers["PUT /connectors/orders-sink/pause"] = [409, {"error_code": 409, "message": f"{reason}."}]
    async with browsing(tmp_path, console_connect_urls=connect.url, console_allow_writes="true") as browser:
        refused = await browser.do("/pause-connector?name=orders-sink")
        assert refused.status == 409
        assert (
            f"Nothing was done: the worker {connect.place} has answered with status 409: {reason}." in refused.page.text
        )


async def test_a_console_that_only_shows_has_no_address_to_change_something(
    tmp_path: Path, connect: RecordedConnect
) -> None:
    async with browsing(tmp_path, console_connect_urls=connect.url) as browser:
        for address in (
            "/restart-connector",
            "/restart-failed",
            "/restart-task",
            "/pause-connector",
            "/stop-connector",
        ):
            assert (await browser.get(f"{address}?name=orders-sink&task=0")).status == 404
        assert connect.changes() == []


async def test_who_may_look_and_who_may_change_something(tmp_path: Path, connect: RecordedConnect) -> None:
    settings = {**SECURED_WRITES, "console.connect.urls": connect.url}
    async with browsing(tmp_path, settings) as browser:
        await log_in(browser, "alice")
        for address in ("/connect", "/connect/orders-sink", "/pause-connector?name=orders-sink"):
            assert (await browser.get(address)).status == 403
        assert connect.changes() == []
        await allow(browser, "alice", Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        for address in ("/connect", "/connect/orders-sink"):
            assert (await browser.get(address)).status == 200
        form = (await browser.get("/create-topic?name=x")).page.button_form()
        refused = await browser.get("/pause-connector?name=orders-sink")
        assert refused.status == 403
        assert "CLUSTER_AUTHORIZATION_FAILED" in refused.page.text
        for address in ("/pause-connector", "/restart-failed", "/restart-task"):
            sent = await browser.post(address, {**form, "name": "broken-sink", "task": "0"})
            assert sent.status == 403
        assert connect.changes() == []
        await allow(browser, "alice", Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        assert (await browser.do("/pause-connector?name=orders-sink")).status == 200
        assert connect.changes() == ["PUT /connectors/orders-sink/pause"]


# --- hostile workers --------------------------------------------------------------------------------------------------


def evil_connector(name: str) -> dict[str, Any]:
    part = {"state": EVIL, "worker_id": EVIL, "trace": f"{EVIL}\n{EVIL}"}
    config = {EVIL: EVIL, "connector.class": EVIL, "topics": f"{EVIL},//evil.example", "topics.regex": EVIL}
    tasks = [{"id": number, **part} for number in (0, 1 << 70, -1, EVIL)]
    tasks.append({"id": 5, **part, "state": "FAILED"})
    status = {"connector": part | {"state": "FAILED"}, "tasks": tasks}
    return {"info": {"name": name, "config": config, "type": "sink"}, "status": status}


async def test_nothing_of_a_connectors_gets_into_a_page(tmp_path: Path, connect: RecordedConnect) -> None:
    names = (EVIL, "//evil.example", "..", "\ud800", "", "x" * 3000)
    connect.connectors.update((name, evil_connector(name)) for name in names)
    connect.answers["GET /"] = [200, {"version": EVIL, "kafka_cluster_id": EVIL}]
    connect.answers["POST /connectors/nothing/restart"] = [409, {"message": EVIL}]
    urls = f"{connect.url},http://127.0.0.1:1"
    async with browsing(tmp_path, console_connect_urls=urls, console_allow_writes="true") as browser:
        query = urlencode(dict.fromkeys(("q", "sort", "page", "failed", "name", "at", "task", EVIL), EVIL))
        targets = ["/", "/connect", f"/connect?{query}", f"/connect?{urlencode({'q': EVIL})}"]
        for name in names:
            path = quote(name.encode("utf-8", "replace").decode(), safe="")
            targets += [f"/connect/{path}", f"/connect/{path}?{query}"]
        changes = ("connector", "failed", "task")
        for name in (EVIL, "//evil.example"):
            given = urlencode({"name": name, "task": 5})
            targets += [f"/restart-{what}?{given}" for what in changes] + [
                f"/restart-{what}?{query}" for what in changes
            ]
        for target in targets:
            answer = await browser.get(target)
            assert answer.status in (200, 400, 404), target
            check_answer(answer, target)
        assert "alert(1)" in (await browser.get("/connect")).page.text
        assert findings((await browser.get("/")).page)[0].startswith("6 connectors have failed : ")
        refused = await browser.do(f"/restart-failed?{urlencode({'name': EVIL})}")
        assert refused.status == 409
        assert "alert(1)" in refused.page.text
        check_answer(refused, "a refusal")
        assert not UNSEEN & set(refused.page.text)


async def test_pages_of_very_many_are_bounded(tmp_path: Path, connect: RecordedConnect) -> None:
    task = {"state": "FAILED", "worker_id": "a:1", "trace": "at x\n" * 8_000}
    tasks = [{"id": number, **(task if number > 800 else {"state": "RUNNING"})} for number in range(1000)]
    several = {"info": {"config": {}, "type": "source"}, "status": {"connector": {"state": "RUNNING"}, "tasks": []}}
    connect.connectors.clear()
    connect.connectors.update((f"c{number:03}", several) for number in range(300))
    connect.connectors["c000"] = {**several, "status": {"connector": {"state": "RUNNING"}, "tasks": tasks}}
    async with browsing(tmp_path, console_connect_urls=connect.url) as browser:
        answer = await browser.get("/connect")
        assert len(answer.body) < 100_000
        assert "300 connectors" in answer.page.text
        assert sum(each.endswith("/topics") for each in connect.asked) == 50, "of those that are shown"
        answer = await browser.get("/connect/c000")
        assert len(answer.body) < 3_000_000
        assert "The first 100 of 1,000, those that have failed before the others." in answer.page.text
        assert answer.page.row_texts()[1].startswith("801 FAILED")
