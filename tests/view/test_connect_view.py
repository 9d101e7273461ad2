"""Workers of Kafka Connect are asked with limits, and whatever they answer is told as what it is, of each for itself."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from ottla.base.seams import InlineWorkers
from ottla.view import connect_view
from ottla.view.connect_rows import read_connectors
from ottla.view.connect_view import ConnectError, ConnectView
from ottla.view.errors import NotFoundError

from ..console.helpers.recorded_connect import LIST, RecordedConnect, recorded_connect


@pytest.fixture
def connect() -> Iterator[RecordedConnect]:
    with recorded_connect() as made:
        yield made


@asynccontextmanager
async def viewed(*urls: str) -> AsyncIterator[ConnectView]:
    view = ConnectView(urls, InlineWorkers())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(view.run)
        yield view
        nursery.cancel_scope.cancel()


async def why_not(*urls: str) -> list[str]:
    async with viewed(*urls) as view:
        await view.renew()
        return [worker.why_not for worker in await view.workers()]


async def test_connectors_and_the_worker_that_tells_of_them(connect: RecordedConnect) -> None:
    async with viewed(f"{connect.url}/") as view:
        (worker,) = await view.workers()
        assert (worker.place, worker.version, worker.why_not) == (connect.place, "4.3.1", "")
        known = await view.connectors()
        rows = {row.name: row for row in known}
        assert [*rows] == ["broken-sink", "orders-sink", "orders-source"]
        assert [(row.running, row.failed) for row in rows.values()] == [(0, 1), (2, 0), (1, 0)]
        assert (
            rows["broken-sink"].tasks[0].trace.startswith("org.apache.kafka.connect.errors.ConnectException: Couldn't")
        )
        assert connect.asked == ["GET /", LIST], "all of it by two requests"
        topics = await view.topics(rows.values())
        assert topics == dict.fromkeys(rows.values(), ("orders",))
        await view.topics(rows.values())
        assert len(connect.asked) == 5, "topics are asked for once in a while"
        assert (await view.connector("orders-sink", connect.place)).group == "connect-orders-sink"
        await view.renew()
        assert await view.connectors() is known, "what has not changed is not read again"
        with pytest.raises(NotFoundError, match=r"There is no connector orders-sink at b:1\.$"):
            await view.connector("orders-sink", "b:1")


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (
            500,
            {"error_code": 500, "message": "Request timed out."},
            "it has answered with status 500: Request timed out",
        ),
        (404, b"<html>", "it has answered with status 404"),
        (302, None, "it has answered with status 302"),
        (200, b"<html>", "it cannot be understood: Expecting value"),
        (200, [], "it cannot be understood: its response is not a list of connectors"),
        (200, b"[" * 100_000, "it cannot be understood"),
        (200, b" " * ((16 << 20) + 1), "it cannot be queried: its response is longer than 16777216 bytes"),
    ],
)
async def test_whatever_a_worker_answers_is_told(connect: RecordedConnect, status: int, body: object, why: str) -> None:
    connect.answers[LIST] = [status, body]
    (told,) = await why_not(connect.url)
    assert told.startswith(why)


async def test_a_worker_that_is_away_holds_up_no_other(connect: RecordedConnect) -> None:
    away = "http://127.0.0.1:1"  # where nothing listens
    told = await why_not(away, connect.url)
    assert told[0].startswith("it cannot be queried: ")
    assert told[1] == ""
    async with viewed(away, connect.url) as view:
        await view.renew()
        assert len(await view.connectors()) == 3
        with pytest.raises(NotFoundError, match=r"There is no connector x\. Not checked: 127\.0\.0\.1:1: it cannot"):
            await view.connector("x")


async def test_one_that_has_no_tls_is_not_asked_with_it(connect: RecordedConnect) -> None:
    (told,) = await why_not(connect.url.replace("http:", "https:"))
    assert told.startswith("it cannot be queried: ")
    assert len(told) > len("it cannot be queried: ")


async def test_a_worker_that_stalls(connect: RecordedConnect, autojump_clock: trio.testing.MockClock) -> None:
    connect.may_answer.clear()
    (told,) = await why_not(connect.url)
    assert told == "it did not answer within 5 s"


async def test_a_change_that_is_not_answered_may_have_been_made(
    connect: RecordedConnect, autojump_clock: trio.testing.MockClock
) -> None:
    row = read_connectors(json.dumps(connect.connectors).encode(), connect.place)[0]
    connect.may_answer.clear()
    with pytest.raises(ConnectError, match=r"did not answer within 30 s\. It may have done it\."):
        await ConnectView([connect.url], InlineWorkers()).change(row, "PUT", "/pause")
    away = ConnectView(["http://127.0.0.1:1"], InlineWorkers())
    with pytest.raises(ConnectError, match=r"Nothing was done: the worker 127\.0\.0\.1:1 cannot be queried"):
        await away.change(dataclasses.replace(row, place="127.0.0.1:1"), "PUT", "/pause")


async def test_two_workers_of_a_cluster_tell_of_each_connector_once(connect: RecordedConnect) -> None:
    with recorded_connect() as second:
        async with viewed(connect.url, second.url) as view:
            assert [row.place for row in await view.connectors()] == [connect.place] * 3
            second.connectors["orders-sink"]["status"]["connector"]["state"] = "PAUSED"
            await view.renew(second.place)
            assert [row.state for row in await view.connectors() if row.name == "orders-sink"] == ["RUNNING", "PAUSED"]
            assert (await view.connector("orders-sink", second.place)).state == "PAUSED"


async def test_workers_behind_one_proxy_differ_in_their_paths(connect: RecordedConnect) -> None:
    for path in ("/a", "/b"):
        for target in ("/", "/connectors?expand=info&expand=status"):
            connect.answers[f"GET {path}{target}"] = copy.deepcopy(connect.answers[f"GET {target}"])
    connect.answers["GET /b/connectors?expand=info&expand=status"][1].pop("broken-sink")
    async with viewed(f"{connect.url}/a", f"{connect.url}/b/") as view:
        workers = await view.workers()
        assert [worker.place for worker in workers] == [f"{connect.place}/a", f"{connect.place}/b"]
        assert [len(worker.connectors) for worker in workers] == [3, 2]
        row = await view.connector("orders-sink", f"{connect.place}/b")
        assert view.request_url(row, "/pause") == f"{connect.url}/b/connectors/orders-sink/pause"


async def test_an_error_of_the_console_stops_nothing(
    connect: RecordedConnect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(body: bytes, place: str) -> None:
        raise KeyError(place)

    monkeypatch.setattr(connect_view, "read_connectors", fails)
    assert await why_not(connect.url) == ["its response could not be read: the log has the error"]
    assert "KeyError" in caplog.text


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8083", "ftp://127.0.0.1", "http://", "http://x:y", "http://x?a=b", "http://u:p@x", "http://[x"]
)
def test_what_is_no_address_of_a_worker(url: str) -> None:
    with pytest.raises(ValueError, match="of a Connect worker"):
        ConnectView([url], InlineWorkers())
