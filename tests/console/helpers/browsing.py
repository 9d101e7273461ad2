"""A broker with a console in the loop of a test, on a network in memory; and a client that reads its pages as a browser would."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

import h11
import pytest
import trio

from ottla.base.config import Config
from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.base.seams import Clock, InlineWorkers, SystemClock
from ottla.broker.server import BrokerServer
from ottla.console.broker_console import ConsoleSide
from ottla.console.kafka_requests import GroupCoordinatorTarget
from ottla.console.own_broker import OwnBroker
from ottla.console.standalone import ConsoleAlone
from ottla.console.visitor import Visitor, visited_by
from ottla.controller.new_topics import NewTopic
from ottla.handlers.connection_context import ConnectionContext
from ottla.handlers.services import Services
from ottla.log.disk import Disk
from ottla.replication.partition import Partition
from ottla.security.client_security import ClientSecurity
from ottla.security.principal import USER, Principal
from ottla.view.cached import FRESH_SECONDS
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.records import Record, build_batch

from ...helpers.memory_broker import HOST, PORT, running

CONSOLE = "console"
VOID = {"meta", "link", "input", "br", "hr", "img"}


class Page(HTMLParser):
    """HTML taken apart: its ``text``, its elements as (tag, attributes), and the addresses of its links by their text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.html = text
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.links: dict[str, str] = {}
        self.pieces: list[str] = []
        self._open: list[str] = []
        self._href: str | None = None
        self._rows: list[str] = []
        self.feed(text)
        assert self._open == [], "every element is closed"

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.pieces).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "a":
            self._href = dict(attrs).get("href")
        if tag == "tr":
            self._rows.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "a":
            self._href = None

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)
        if "tr" in self._open:
            self._rows[-1] += f" {data}"
        if self._href is not None:
            self.links[data.strip()] = self._href

    @property
    def run_on(self) -> str:
        """The text as it is read, without a space where one element follows another."""
        return "".join(self.pieces)

    def addresses(self) -> list[str | None]:
        """Where links lead."""
        return [attributes.get("href") for tag, attributes in self.elements if tag == "a"]

    def button_form(self) -> dict[str, str]:
        """The fields of the form that is sent with POST; empty if there is none."""
        found: dict[str, str] = {}
        is_inside = False
        for tag, attributes in self.elements:
            if tag == "form":
                is_inside = attributes.get("method") == "post"
            elif tag == "input" and is_inside:
                found[attributes["name"] or ""] = attributes.get("value") or ""
        return found

    def problems(self) -> dict[str, str]:
        """What is wrong with fields, by the name of the field that it stands at and that is marked as wrong."""
        described = {
            str(each["aria-describedby"]): str(each["name"])
            for _, each in self.elements
            if each.get("aria-invalid") == "true"
        }
        found = re.findall(r'<span class="warning" id="([^"]+)" role="alert"><bdi dir="ltr">([^<]*)', self.html)
        return {described[place]: html.unescape(text) for place, text in found}

    def row_texts(self) -> list[str]:
        """The text of each row of a table."""
        return [" ".join(pieces.split()) for pieces in self._rows]

    def rows(self) -> int:
        return sum(tag == "tr" for tag, _ in self.elements)


class Answer:
    """The response to a request for a page."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def page(self) -> Page:
        assert self.headers["content-type"].startswith("text/html")
        return Page(self.body.decode())

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Browsing:
    """``get`` reads a page, ``post`` and ``do`` send forms; ``put`` writes records without a client.

    ``alone``: the pages are those of ``ottla console``, which reads everything again before each of them if ``renews`` is set.
    """

    def __init__(self, server: BrokerServer, network: MemoryNetwork, alone: ConsoleAlone | None = None) -> None:
        self.server = server
        self.network = network
        self.alone = alone
        self.renews = True
        self.cookies: dict[str, str] = {}

    def another(self) -> Browsing:
        """A browser without the cookies of this one."""
        return Browsing(self.server, self.network)

    @property
    def services(self) -> Services:
        assert self.server.assembly is not None
        return self.server.assembly.services

    @property
    def console(self) -> ConsoleSide:
        side = self.server._console
        assert isinstance(side, ConsoleSide)
        return side

    async def get(self, target: str, *, method: str = "GET", **headers: str) -> Answer:
        if self.alone is not None and self.renews:
            await self.alone.view.renew()  # shows what a test has just done
        stream, protocol = await self.open(target, method=method, **headers)
        try:
            with trio.fail_after(60):
                return await _answer(stream, protocol)
        finally:
            stream.close()

    async def open(
        self, target: str, *, method: str = "GET", body: bytes = b"", **headers: str
    ) -> tuple[MemoryConnection, h11.Connection]:
        """A connection on which a request was sent."""
        side = self.alone or self.console
        stream = await self.network.connect(side.host, side.port)
        protocol = h11.Connection(h11.CLIENT)
        given = {"Host": f"localhost:{side.port}", "Connection": "close"}
        if body:
            given["Content-Length"] = str(len(body))
        if self.cookies:
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = h11.Request(method=method, target=target, headers=list(given.items()))
        data = protocol.send(request) or b""
        if body:
            data += protocol.send(h11.Data(data=body)) or b""
        await stream.send([data + (protocol.send(h11.EndOfMessage()) or b"")])
        return stream, protocol

    async def post(self, target: str, fields: dict[str, str], **headers: str) -> Answer:
        """Send a form as a browser does; headers of the same names replace those of a browser."""
        origin = f"http://localhost:{(self.alone or self.console).port}"
        sent = {"Origin": origin, "Sec_Fetch_Site": "same-origin", "Sec_Fetch_Mode": "navigate"}
        sent |= {"Content_Type": "application/x-www-form-urlencoded", **headers}
        body = urlencode(fields).encode()
        stream, protocol = await self.open(
            target, method="POST", body=body, **{name: value for name, value in sent.items() if value}
        )
        try:
            with trio.fail_after(60):
                answer = await _answer(stream, protocol)
        finally:
            stream.close()
        self._keep_cookie(answer)
        return answer

    def _keep_cookie(self, answer: Answer) -> None:
        if "set-cookie" in answer.headers:
            name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value

    async def do(self, target: str, **typed: str) -> Answer:
        """Press the button of an action's page, after filling in its fields."""
        shown = await self.get(target)
        assert shown.status == 200, shown.page.text
        form = shown.page.button_form()
        assert form, shown.page.text
        return await self.post(target.partition("?")[0], {**form, **typed})

    async def create(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        assert self.server.assembly is not None
        await self.server.assembly.services.cluster.create_missing_topics(
            [NewTopic(name, partitions, configs=configs or {})]
        )

    def partition(self, name: str, number: int = 0) -> Partition:
        assert self.server.assembly is not None
        return self.server.assembly.services.replicas.partition(name, number)

    async def renewed(self) -> None:
        """Return once the data that pages share, which may be a second old, has been read again."""
        await trio.sleep(FRESH_SECONDS + 0.1)

    async def settled(self) -> None:
        """Return once the broker has no connection any more."""
        with trio.fail_after(20):
            while self.server.connections():
                await trio.sleep(0.01)

    async def put_offset(self, group: str, topic: str, number: int, offset: int) -> None:
        """Commit an offset of a group, by the broker's own code."""
        partition = OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
        topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
        connection = ConnectionContext("TEST", "127.0.0.1:1")
        connection.principal = Principal(USER, "admin")
        with visited_by(Visitor(connection, "")):
            response = await OwnBroker(self.server).ask(
                OffsetCommitRequest(group_id=group, topics=topics), GroupCoordinatorTarget(group)
            )
        assert response.topics[0].partitions[0].error_code == 0

    def put(self, name: str, *records: Record, number: int = 0) -> None:
        self.partition(name, number).append(build_batch(records), now_ms=1, internal=True)


async def _answer(stream: MemoryConnection, protocol: h11.Connection) -> Answer:
    head: h11.Response | None = None
    body = b""
    while True:
        event = protocol.next_event()
        if event is h11.NEED_DATA:
            protocol.receive_data(await stream.receive())
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        else:
            break
    assert head is not None, event
    return Answer(head.status_code, {name.decode(): value.decode() for name, value in head.headers}, body)


@asynccontextmanager
async def browsing(
    folder: Path,
    spelt: Mapping[str, str] | None = None,
    *,
    clock: Clock | None = None,
    disk: Disk | None = None,
    **properties: str,
) -> AsyncIterator[Browsing]:
    """``properties`` have _ for the dots; those in ``spelt`` do not."""
    network = MemoryNetwork()
    named = {name.replace("_", "."): value for name, value in properties.items()}
    config = Config(
        {
            "log.dirs": str(folder),
            "listeners": f"PLAINTEXT://{HOST}:{PORT}",
            "console.listener": f"{CONSOLE}:8080",
            "message.max.bytes": "20000000",
            "log.initial.task.delay.ms": "1000000000",  # records of tests are old, and would be deleted
            **named,
            **(spelt or {}),
        }
    )
    server = BrokerServer(
        config, network=network, clock=clock, workers=InlineWorkers(), disk=disk, make_console=ConsoleSide
    )
    async with running(server):
        yield Browsing(server, network)


@asynccontextmanager
async def browsing_elsewhere(
    folder: Path, *, clock: Clock | None = None, disk: Disk | None = None, **properties: str
) -> AsyncIterator[Browsing]:
    """The same broker, with a separate console that sends it requests as a client."""
    writes = properties.get("console_allow_writes") == "true"
    connect_urls = [url for url in properties.pop("console_connect_urls", "").split(",") if url]
    async with (
        browsing(folder, clock=clock, disk=disk, **properties) as browser,
        alone_on(browser.network, writes=writes, clock=clock, connect_urls=connect_urls) as alone,
    ):
        yield Browsing(browser.server, browser.network, alone)


@asynccontextmanager
async def alone_on(
    network: MemoryNetwork,
    *addresses: tuple[str, int],
    security: ClientSecurity | None = None,
    writes: bool = False,
    clock: Clock | None = None,
    connect_urls: Sequence[str] = (),
) -> AsyncIterator[ConsoleAlone]:
    """``ottla console`` on a network in memory."""
    given = addresses or ((HOST, PORT),)
    alone = ConsoleAlone(
        given,
        security or ClientSecurity(),
        network,
        clock or SystemClock(),
        InlineWorkers(),
        writes=writes,
        connect_urls=connect_urls,
    )
    await alone.bind("elsewhere", 8081)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(alone.run)
        yield alone
        nursery.cancel_scope.cancel()


class Open(Protocol):
    """``browsing`` or ``browsing_elsewhere``, as the parameter of a test (``on_both``)."""

    def __call__(
        self, folder: Path, *, clock: Clock | None = None, disk: Disk | None = None, **properties: str
    ) -> AbstractAsyncContextManager[Browsing]: ...


on_both = pytest.mark.parametrize("browsing", [browsing, browsing_elsewhere], ids=["own", "elsewhere"])
"""Marks a test of pages that runs with both sources."""
