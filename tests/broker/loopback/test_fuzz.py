"""Frames that no client should send: the connection closes or a Kafka error comes back, and the broker serves on.

Never: an exception that is not a Kafka error (it would be logged as a bug), memory by an announced size, or a hang.
"""

from __future__ import annotations

import logging
import random
import resource
import socket
import struct
from collections.abc import Iterator

import pytest

import ottla
from ottla.handlers.table import HANDLERS
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import encode_bytes
from ottla.wire.headers import encode_request_header
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.registry import request_class

TIMEOUT = 20.0
WAITS = {ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP}


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with ottla.Broker(properties={"socket.request.max.bytes": "1048576"}) as broker:
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        yield host, int(port)


@pytest.fixture(autouse=True)
def no_bugs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever is logged with a trace is a bug."""
    with caplog.at_level(logging.WARNING):
        yield
    traces = [record.getMessage() for record in caplog.records if record.exc_info]
    assert not traces, traces


def exchange(address: tuple[str, int], frame: bytes) -> bytes | None:
    """Send raw bytes and end; everything that came back, None when the connection was reset."""
    with socket.create_connection(address, timeout=TIMEOUT) as client:
        try:
            client.sendall(frame)
            client.shutdown(socket.SHUT_WR)
            received = bytearray()
            while chunk := client.recv(65536):
                received += chunk
        except ConnectionError:
            return None
        return bytes(received)


def assert_serving(address: tuple[str, int]) -> None:
    header = encode_request_header(ApiKey.API_VERSIONS, 3, 7, "fuzz")
    request = ApiVersionsRequest(client_software_name="fuzz", client_software_version="1")
    body = header + encode_bytes(request, 3)
    answer = exchange(address, struct.pack(">i", len(body)) + body)
    assert answer is not None
    assert struct.unpack_from(">ih", answer, 4) == (7, 0)


def assert_whole_frames(answer: bytes | None) -> None:
    """What came back is nothing or whole answers."""
    position = 0
    while answer is not None and position < len(answer):
        (size,) = struct.unpack_from(">i", answer, position)
        assert size >= 4
        position += 4 + size
        assert position <= len(answer)


def valid_frames() -> list[tuple[ApiKey, bytes]]:
    frames = []
    for handler in HANDLERS:
        for version in range(handler.lowest, handler.highest + 1):
            header = encode_request_header(handler.api_key, version, 1, "fuzz")
            body = header + encode_bytes(request_class(handler.api_key)(), version)
            frames.append((handler.api_key, struct.pack(">i", len(body)) + body))
    return frames


def test_random_bytes(address: tuple[str, int]) -> None:
    rng = random.Random(1)
    for _ in range(150):
        assert_whole_frames(exchange(address, rng.randbytes(rng.randrange(1, 400))))
    assert_serving(address)


def test_random_bodies_behind_a_right_size(address: tuple[str, int]) -> None:
    rng = random.Random(2)
    for _ in range(150):
        body = rng.randbytes(rng.randrange(0, 300))
        assert_whole_frames(exchange(address, struct.pack(">i", len(body)) + body))
    assert_serving(address)


def test_every_request_cut_short(address: tuple[str, int]) -> None:
    rng = random.Random(3)
    for _, frame in valid_frames():
        cut = rng.randrange(4, len(frame))
        assert_whole_frames(exchange(address, frame[:cut]))
        assert_whole_frames(exchange(address, struct.pack(">i", cut - 4) + frame[4:cut]))
    assert_serving(address)


def test_every_request_with_bytes_changed(address: tuple[str, int]) -> None:
    rng = random.Random(4)
    for api_key, frame in valid_frames():
        if api_key in WAITS:
            continue
        for _ in range(3):
            mutated = bytearray(frame)
            for _ in range(rng.randrange(1, 4)):
                mutated[rng.randrange(8, len(mutated))] = rng.randrange(256)
            assert_whole_frames(exchange(address, bytes(mutated)))
    assert_serving(address)


@pytest.mark.parametrize("size", [-1, -(1 << 31), (1 << 31) - 1, 1048577])
def test_a_size_out_of_range_closes_the_connection(address: tuple[str, int], size: int) -> None:
    assert not exchange(address, struct.pack(">i", size) + b"abc")
    assert_serving(address)


def test_an_announced_size_takes_no_memory(address: tuple[str, int]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clients = []
    for _ in range(200):
        client = socket.create_connection(address, timeout=TIMEOUT)
        client.sendall(struct.pack(">i", 1 << 20) + b"x")
        clients.append(client)
    assert_serving(address)
    for client in clients:
        client.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 * 1024


def test_counts_beyond_the_frame_are_refused(address: tuple[str, int]) -> None:
    header = encode_request_header(ApiKey.PRODUCE, 3, 1, "fuzz")
    body = header + struct.pack(">hhii", -1, 1, 1000, (1 << 31) - 1)
    assert not exchange(address, struct.pack(">i", len(body)) + body)
    assert_serving(address)
