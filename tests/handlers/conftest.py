"""A broker for the tests of a file, and a client that sends any request at any version and reads the answer."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ottla
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import decode_response_header, encode_request_header
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.registry import response_class
from ottla.wire.schema import Message

TIMEOUT = 20.0

Send = Callable[..., Any]
"""(request, version) -> response."""

MakeTopic = Callable[..., tuple[str, bytes]]
"""(partitions=1, **configs with _ for .) -> (name, id) of a new topic."""

_topic_numbers = itertools.count(1)


class WireClient:
    """One connection to a broker."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, port = bootstrap_servers.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT)
        self._correlation_ids = itertools.count(1)

    def __call__(self, request: Message, version: int) -> Any:
        correlation_id = next(self._correlation_ids)
        header = encode_request_header(request.api_key, version, correlation_id, "tests")
        frame = header + encode_bytes(request, version)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", self._read(4))
        body = memoryview(self._read(size))
        answered, offset = decode_response_header(body, request.api_key, version)
        assert answered == correlation_id
        return decode(response_class(ApiKey(request.api_key)), version, body[offset:])

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            chunk = self._socket.recv(size - len(received))
            if not chunk:
                raise EOFError("the broker closed the connection")
            received += chunk
        return bytes(received)


@pytest.fixture(scope="module")
def properties() -> dict[str, str]:
    """Properties of the file's broker; a file with other ones overrides this fixture."""
    return {}


@pytest.fixture(scope="module")
def broker(properties: dict[str, str]) -> Iterator[ottla.Broker]:
    with ottla.Broker(properties=properties) as running:
        yield running


@pytest.fixture
def send(broker: ottla.Broker) -> Iterator[Send]:
    client = WireClient(broker.bootstrap_servers)
    yield client
    client.close()


@pytest.fixture
def make_topic(send: Send) -> MakeTopic:
    def make(partitions: int = 1, **configs: str) -> tuple[str, bytes]:
        configs = {"retention_ms": "-1", **configs}  # the tests' records are of any age
        new = CreatableTopic(
            name=f"made-{next(_topic_numbers)}",
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()],
        )
        (created,) = send(CreateTopicsRequest(topics=[new], timeout_ms=10_000), 7).topics
        assert created.error_code == 0
        return new.name, created.topic_id

    return make


@pytest.fixture
def connect() -> Iterator[Callable[[str], Send]]:
    """Makes further connections, to any broker."""
    clients: list[WireClient] = []

    def connect(bootstrap_servers: str) -> WireClient:
        clients.append(WireClient(bootstrap_servers))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()
