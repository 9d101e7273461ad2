"""A schema registry is asked for the schemas that records name, once for each, and whatever it answers fails no page."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import fastavro
import pytest
import trio
import trio.testing

from ottla.console.avro import AvroSchema
from ottla.console.decoding import Decoding
from ottla.console.schema_registry import SchemaRegistry
from ottla.console.trees import DecodeError


class LocalRegistry:
    """Answers as the test says; ``asked`` are the targets of its requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.stalls = False
        self.url = ""

    def add(self, number: int, answer: object, status: int = 200) -> None:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.answers[f"/base/schemas/ids/{number}"] = status, body

    async def serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive_some(4096)
            target = head.split()[1].decode()
            self.asked.append(target)
            if self.stalls:
                await trio.sleep_forever()
            status, body = self.answers.get(target, (404, b"{}"))
            start = f"HTTP/1.1 {status} So\r\nContent-Length: {len(body)}\r\nLocation: /base/schemas/ids/1\r\n\r\n"
            try:
                await stream.send_all(start.encode() + body)
            except trio.BrokenResourceError:
                pass


@asynccontextmanager
async def registry() -> AsyncIterator[LocalRegistry]:
    local = LocalRegistry()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, local.serve, 0)
        port = listeners[0].socket.getsockname()[1]
        local.url = f"http://127.0.0.1:{port}/base/"
        yield local
        nursery.cancel_scope.cancel()


def framed(number: int, value: object, schema: object = "string") -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


async def test_a_schema_is_asked_for_once() -> None:
    async with registry() as local:
        local.add(1, {"schema": '"string"'})
        local.add(2, {"schema": "{}", "schemaType": "JSON"})
        decoding = Decoding(registry=SchemaRegistry(local.url))
        data = framed(1, "one")
        assert decoding.needed(data, "auto") == 1
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(decoding.prepare, [data, data, None, b"", b"{}", b"\0\1"], "auto")
        assert decoding.needed(data, "auto") is None
        assert local.asked == ["/base/schemas/ids/1"]
        assert decoding.tree(data, "avro", "t") == "one"
        assert decoding.shown(data, len(data), "auto", "t").text == '"one"'
        as_json = b"\0\0\0\0\2" + b'{"a": 1}'
        await decoding.prepare([as_json], "avro")
        assert decoding.tree(as_json, "avro", "t") == {"a": "1"}


async def test_a_topics_own_schema_reads_what_only_looks_framed() -> None:
    async with registry() as local:
        local.add(7, {}, 404)
        local.add(8, {"schema": '"string"'}, 200)
        five = AvroSchema('{"type": "fixed", "name": "Five", "size": 5}')
        decoding = Decoding({"orders": five}, SchemaRegistry(local.url))
        show = decoding.of_values("auto", "orders")
        looks_framed, framed_text = b"\0\0\0\0\7", framed(8, "x")
        await decoding.prepare([looks_framed, framed_text], show)
        assert decoding.shown(looks_framed, 5, show, "orders").kind == "tree"
        assert decoding.shown(looks_framed, 5, show, "orders").problem == ""
        assert decoding.shown(framed_text, len(framed_text), show, "orders").text == '"x"'
        assert decoding.of_values("auto", "others") == "auto"


@pytest.mark.parametrize(
    ("answer", "status", "why"),
    [
        ({}, 404, "no schema 7"),
        ({}, 302, "status 302"),
        ({"schema": '"string"'}, 500, "status 500"),
        ({"schema": "message X {}", "schemaType": "PROTOBUF"}, 200, "one of PROTOBUF"),
        ({"schema": "{}"}, 200, "Schema 7: The Avro schema"),
        ([], 200, "one of None"),
        (b"<html>", 200, "cannot be queried"),
        (b"x" * (1 << 20) + b"x", 200, "longer than"),
    ],
)
async def test_whatever_it_answers_is_told(answer: object, status: int, why: str) -> None:
    async with registry() as local:
        local.add(7, answer, status)
        decoding = Decoding(registry=SchemaRegistry(local.url))
        data = framed(7, "x")
        for _ in range(2):
            await decoding.prepare([data], "avro")
            shown = decoding.shown(data, len(data), "avro", "t")
            assert why in shown.problem
            assert shown.kind == "hex"
        assert len(local.asked) == 1, "a failure is remembered for a while, and a redirection is not followed"


async def test_a_registry_that_stalls(autojump_clock: trio.testing.MockClock) -> None:
    async with registry() as local:
        local.stalls = True
        decoding = Decoding(registry=SchemaRegistry(local.url))
        await decoding.prepare([framed(7, "x")], "avro")
        with pytest.raises(DecodeError, match="did not answer within 5 s"):
            decoding.tree(framed(7, "x"), "avro", "t")


async def test_a_registry_that_is_away() -> None:
    decoding = Decoding(registry=SchemaRegistry("http://127.0.0.1:1"))  # where nothing listens
    await decoding.prepare([framed(7, "x")], "avro")
    with pytest.raises(DecodeError, match="cannot be queried"):
        decoding.tree(framed(7, "x"), "avro", "t")


async def test_hostile_numbers_do_not_become_many_requests() -> None:
    async with registry() as local:
        decoding = Decoding(registry=SchemaRegistry(local.url))
        await decoding.prepare([framed(number, "x") for number in range(1000)], "avro")
        assert len(local.asked) == 20
        for start in range(1000, 4000, 100):
            await decoding.prepare([framed(number, "x") for number in range(start, start + 100)], "avro")
        assert len(local.asked) == 120, "no more within a minute"
