"""The HTTP server as clients meet it: what HTTP/1.1 asks of it, its limits, and that it ends whatever clients do."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import h11
import pytest
import trio
import trio.testing
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.base.seams import SimulatedClock
from ottla.broker.http.exchange import Application
from ottla.broker.http.limits import HttpLimits
from ottla.broker.http.server import HttpServer

LIMITS = HttpLimits(max_connections=3, max_head_bytes=2000, max_body_bytes=5000, max_ahead_bytes=1000)
GET = b"GET /hello HTTP/1.1\r\nHost: test\r\n\r\n"


class Pages:
    """An application with a page of each kind; ``ended`` tells of streams that have come to their end."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.ended = trio.Event()
        self.was_gone: bool | None = None
        routes = [
            Route("/hello", self._hello),
            Route("/echo", self._echo, methods=["POST"]),
            Route("/ignore", self._ignore, methods=["POST"]),
            Route("/large", self._large),
            Route("/quiet", self._quiet),
            Route("/empty", self._empty),
            Route("/fails", self._fails),
            Route("/asks", self._asks),
        ]
        self.application: Application = Starlette(routes=routes)

    async def _hello(self, request: Request) -> Response:
        return PlainTextResponse(f"hello {request.query_params.get('name', 'you')}")

    async def _echo(self, request: Request) -> Response:
        return Response(await request.body())

    async def _ignore(self, request: Request) -> Response:
        return RedirectResponse("/hello")

    async def _large(self, request: Request) -> Response:
        return Response(b"x" * 10_000_000)

    async def _quiet(self, request: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            try:
                yield b"data: 1\n\n"
                self.begun.set()
                await trio.sleep_forever()
            finally:
                self.ended.set()

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _empty(self, request: Request) -> Response:
        return Response(status_code=204)

    async def _fails(self, request: Request) -> Response:
        raise LookupError("a bug")

    async def _asks(self, request: Request) -> Response:
        assert not await request.is_disconnected()
        self.begun.set()
        await trio.sleep(1)
        self.was_gone = await request.is_disconnected()
        self.ended.set()
        return PlainTextResponse("late")


class Client:
    """A bare connection, and h11 to read answers."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection
        self.protocol = h11.Connection(h11.CLIENT)

    async def send(self, data: bytes) -> None:
        await self._connection.send([data])

    async def get(self, path: str, method: str = "GET", **headers: str) -> tuple[h11.Response, bytes]:
        fields = [("Host", "test"), *headers.items()]
        await self.send(self.protocol.send(h11.Request(method=method, target=path, headers=fields)) or b"")
        await self.send(self.protocol.send(h11.EndOfMessage()) or b"")
        return await self.answer()

    async def event(self) -> object:
        while (event := self.protocol.next_event()) is h11.NEED_DATA:
            self.protocol.receive_data(await self._connection.receive())
        return event

    async def answer(self) -> tuple[h11.Response, bytes]:
        body = b""
        response = await self.event()
        assert isinstance(response, h11.Response), response
        while isinstance(event := await self.event(), h11.Data):
            body += event.data
        if self.protocol.our_state is h11.DONE and self.protocol.their_state is h11.DONE:
            self.protocol.start_next_cycle()
        return response, body

    async def rest(self) -> bytes:
        """All that comes until the server closes."""
        received = b""
        while piece := await self._connection.receive():
            received += piece
        return received

    def close(self) -> None:
        self._connection.close()


@contextlib.asynccontextmanager
async def serving(application: Application, limits: HttpLimits = LIMITS) -> AsyncIterator[MemoryNetwork]:
    network = MemoryNetwork()
    server = HttpServer(application, network, SimulatedClock(), limits)
    await server.bind("test", 80)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve)
        yield network
        with trio.fail_after(1):
            nursery.cancel_scope.cancel()
    assert not network.listeners


@pytest.fixture
def pages() -> Pages:
    return Pages()


async def connect(network: MemoryNetwork) -> Client:
    return Client(await network.connect("test", 80))


def headers(response: h11.Response) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in response.headers}


async def exchange(network: MemoryNetwork, request: bytes) -> list[str]:
    """Lines of all that the server says to ``request`` until it closes."""
    client = await connect(network)
    await client.send(request)
    return (await client.rest()).decode().splitlines()


async def test_requests_of_a_connection_are_answered_one_after_another(pages: Pages) -> None:
    async with serving(pages.application) as network:
        client = await connect(network)
        for name in ("one", "two"):
            response, body = await client.get(f"/hello?name={name}")
            assert (response.status_code, body) == (200, f"hello {name}".encode())
            assert headers(response)["date"].endswith(" GMT")
            assert "connection" not in headers(response)


async def test_pipelined_requests_are_answered_in_order(pages: Pages) -> None:
    async with serving(pages.application) as network:
        client = await connect(network)
        await client.send(b"".join(GET.replace(b"/hello", b"/hello?name=%d" % n) for n in range(100)))
        received = b""
        while b"hello 99" not in received:
            received += await client._connection.receive()
    names = [line.partition(b"HTTP/")[0] for line in received.splitlines() if line.startswith(b"hello ")]
    assert names == [b"hello %d" % n for n in range(100)]


async def test_methods_and_paths(pages: Pages) -> None:
    async with serving(pages.application) as network:
        client = await connect(network)
        response, body = await client.get("/hello", "HEAD")
        assert (response.status_code, body, headers(response)["content-length"]) == (200, b"", "9")
        assert (await client.get("/nothing"))[0].status_code == 404
        response, _ = await client.get("/echo")
        assert (response.status_code, headers(response)["allow"]) == (405, "POST")
        assert (await client.get("/empty"))[0].status_code == 204
        assert (await client.get("http://test/hello?name=x"))[1] == b"hello x"
        assert (await client.get("/hel%6Co"))[1] == b"hello you"
        assert (await client.get("*", "OPTIONS"))[0].status_code == 404


@pytest.mark.parametrize("is_chunked", [True, False])
async def test_bodies(pages: Pages, is_chunked: bool) -> None:
    framing = b"Transfer-Encoding: chunked" if is_chunked else b"Content-Length: 10"
    pieces = [b"4\r\nabcd\r\n", b"6\r\nefghij\r\n", b"0\r\n\r\n"] if is_chunked else [b"abcd", b"efghij"]
    async with serving(pages.application) as network:
        client = await connect(network)
        for _ in range(2):
            client.protocol.send(h11.Request(method="POST", target="/echo", headers=[("Host", "test")]))
            client.protocol.send(h11.EndOfMessage())
            await client.send(b"POST /echo HTTP/1.1\r\nHost: test\r\n" + framing + b"\r\n\r\n")
            for piece in pieces:
                await trio.testing.wait_all_tasks_blocked()
                await client.send(piece)
            assert (await client.answer())[1] == b"abcdefghij"


async def test_expect_100_continue(pages: Pages) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
    async with serving(pages.application) as network:
        client = await connect(network)
        client.protocol.send(h11.Request(method="POST", target="/echo", headers=[("Host", "test")]))
        client.protocol.send(h11.EndOfMessage())
        await client.send(head % (b"/echo", 4))
        event = await client.event()
        assert isinstance(event, h11.InformationalResponse) and event.status_code == 100
        await client.send(b"abcd")
        assert (await client.answer())[1] == b"abcd"
        # Without a wish for the body there is no 100; and what follows the answer cannot be told from the body.
        assert (await exchange(network, head % (b"/ignore", 4)))[0].startswith("HTTP/1.1 307 ")
        assert (await exchange(network, head % (b"/echo", 100_000)))[0].startswith("HTTP/1.1 413 ")


async def test_a_body_nobody_reads_ends_the_connection(pages: Pages) -> None:
    async with serving(pages.application) as network:
        lines = await exchange(network, b"POST /ignore HTTP/1.1\r\nHost: test\r\nContent-Length: 4000\r\n\r\n" + GET)
    assert lines[0].startswith("HTTP/1.1 307 ")
    assert "connection: close" in [line.lower() for line in lines]
    assert sum(line.startswith("HTTP/1.1 ") for line in lines) == 1


async def test_http_1_0_ends_with_its_answer(pages: Pages) -> None:
    async with serving(pages.application) as network:
        lines = await exchange(network, b"GET /hello HTTP/1.0\r\n\r\n")
        assert lines[0].startswith("HTTP/1.1 200 ")
        assert lines[-1] == "hello you"
        client = await connect(network)
        await client.send(b"GET /quiet HTTP/1.0\r\n\r\n")
        await pages.begun.wait()
        assert (await client._connection.receive()).endswith(b"\r\n\r\ndata: 1\n\n")  # no chunks


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 600, 400),
        (b"GET /hello HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET /hello HTTP/1.1\r\nHost: a\r\nBad header: 1\r\n\r\n", 400),
        (b"GET /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000, 431),
        (b"GET hello HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT test:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5001\r\n\r\n" + b"x" * 5001, 413),
        (b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1771\r\n" + b"x" * 6001, 413),
        (b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n", 400),
    ],
)
async def test_what_is_refused_is_told_and_ends_the_connection(
    pages: Pages, request_bytes: bytes, status: int, autojump_clock: object
) -> None:
    async with serving(pages.application) as network:
        lines = await exchange(network, request_bytes)
        assert lines[0].startswith(f"HTTP/1.1 {status} ")
        assert lines[-1].startswith(f"{status} ")
        assert sum(line.startswith("HTTP/1.1 ") for line in lines) == 1
        assert (await (await connect(network)).get("/hello"))[0].status_code == 200


@pytest.mark.parametrize(
    ("sent", "seconds", "answer"),
    [
        (b"", LIMITS.idle_seconds, ""),
        (GET[:20], LIMITS.head_seconds, "408"),
        (b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", LIMITS.body_seconds, "408"),
    ],
)
async def test_a_request_that_does_not_come_to_its_end(
    pages: Pages, sent: bytes, seconds: float, answer: str, autojump_clock: object
) -> None:
    async with serving(pages.application) as network:
        began = trio.current_time()
        lines = await exchange(network, sent)
        assert seconds <= trio.current_time() - began <= seconds + 2 * LIMITS.linger_seconds
        assert (lines[0].split()[1] if lines else "") == answer


async def test_a_request_that_comes_byte_by_byte_is_cut(pages: Pages, autojump_clock: object) -> None:
    async with serving(pages.application) as network:
        client = await connect(network)
        with pytest.raises(OSError, match="has closed"):
            for _ in range(100):
                await client.send(b"x")
                await trio.sleep(1)
        assert trio.current_time() >= LIMITS.head_seconds


async def test_a_connection_that_went_idle_between_requests_is_closed(pages: Pages, autojump_clock: object) -> None:
    async with serving(pages.application) as network:
        client = await connect(network)
        await client.get("/hello")
        assert await client.rest() == b""
        assert trio.current_time() == pytest.approx(LIMITS.idle_seconds, abs=0.1)


async def test_a_reader_that_stalls_is_closed(pages: Pages, autojump_clock: object) -> None:
    async with serving(pages.application) as network:
        client = await connect(network)
        await client.send(GET.replace(b"/hello", b"/large"))
        await trio.sleep(LIMITS.send_seconds + 1)
        assert len(await client.rest()) < 200_000


async def test_a_reader_that_is_slow_gets_all(pages: Pages, autojump_clock: object) -> None:
    async with serving(pages.application) as network:
        client = await connect(network)
        await client.send(GET.replace(b"/hello", b"/large"))
        received = 0
        while received < 10_000_000:
            received += len(await client._connection.receive())
            await trio.sleep(1)
        assert trio.current_time() > LIMITS.send_seconds


async def test_a_quiet_stream_ends_with_its_client(pages: Pages) -> None:
    async with serving(pages.application) as network:
        client = await connect(network)
        await client.send(GET.replace(b"/hello", b"/quiet"))
        await pages.begun.wait()
        client.close()
        with trio.fail_after(10):
            await pages.ended.wait()


async def test_an_application_can_ask_whether_its_client_is_there(pages: Pages, autojump_clock: object) -> None:
    async with serving(pages.application) as network:
        for leaves in (True, False):
            pages.begun, pages.ended = trio.Event(), trio.Event()
            client = await connect(network)
            await client.send(GET.replace(b"/hello", b"/asks"))
            await pages.begun.wait()
            if leaves:
                client.close()
            await pages.ended.wait()
            assert pages.was_gone is leaves


async def test_a_bug_of_the_application_is_500_and_in_the_log(pages: Pages, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(pages.application) as network:
        client = await connect(network)
        assert (await client.get("/fails"))[0].status_code == 500
        assert (await client.get("/hello"))[0].status_code == 200
    assert "HTTP GET /fails failed" in caplog.text
    assert "LookupError: a bug" in caplog.text


async def test_a_client_that_goes_is_not_in_the_log(pages: Pages, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with serving(pages.application) as network:
        for path in (b"/large", b"/quiet", b"/echo"):
            client = await connect(network)
            await client.send(GET.replace(b"/hello", path))
            await trio.testing.wait_all_tasks_blocked()
            client.close()
            await trio.testing.wait_all_tasks_blocked()
    assert caplog.text == ""


async def test_more_connections_than_allowed_are_closed(pages: Pages) -> None:
    async with serving(pages.application) as network:
        clients = [await connect(network) for _ in range(LIMITS.max_connections)]
        for client in clients:
            assert (await client.get("/hello"))[0].status_code == 200
        assert await (await connect(network)).rest() == b""
        clients[0].close()
        await trio.testing.wait_all_tasks_blocked()
        assert (await (await connect(network)).get("/hello"))[0].status_code == 200


async def test_a_client_that_floods_leaves_the_loop_to_others(pages: Pages) -> None:
    async with serving(pages.application) as network:
        flooding = await connect(network)
        async with trio.open_nursery() as nursery:

            async def flood() -> None:
                while True:
                    await flooding.send(GET * 100)

            async def read() -> None:
                while True:
                    await flooding._connection.receive()

            nursery.start_soon(flood)
            nursery.start_soon(read)
            with trio.fail_after(60):
                for _ in range(10):
                    assert (await (await connect(network)).get("/hello", Connection="close"))[0].status_code == 200
            nursery.cancel_scope.cancel()


async def test_200_open_streams_end_with_the_server() -> None:
    pages = Pages()
    async with serving(pages.application, HttpLimits()) as network:
        clients = [await connect(network) for _ in range(200)]
        for client in clients:
            await client.send(GET.replace(b"/hello", b"/quiet"))
        for client in clients:
            assert b"200 OK" in await client._connection.receive()
        assert (await (await connect(network)).get("/hello"))[0].status_code == 200
    for client in clients:
        assert (await client.rest()).replace(b"9\r\ndata: 1\n\n\r\n", b"") == b""
