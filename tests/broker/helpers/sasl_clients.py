"""Clients of a SASL listener: a broker on a network in memory, and what is said to it before it knows its client."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryConnection
from ottla.security.entities import USERS, Entity
from ottla.security.sasl import SaslClient
from ottla.security.scram import ScramMechanism, new_credential
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode
from ottla.wire.headers import decode_response_header
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.wire.registry import response_class
from ottla.wire.schema import Message

from ...helpers.memory_broker import frame
from ...helpers.memory_cluster import MemoryCluster
from ...helpers.memory_cluster import running as running_cluster

LISTENER = {
    "listeners": "SASL://broker1:9092",
    "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "SASL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user.alice="secret" user.bob="other";'
    ).replace("user.", "user_"),
}


class Client:
    """Sends frames to a broker and reads its answers; ``when`` is the time of the last one."""

    def __init__(self, connection: MemoryConnection) -> None:
        self.connection = connection
        self.when = 0.0
        self._correlation_id = 0

    async def ask(self, request: Message, version: int) -> Any:
        """The response, None where the broker closes the connection instead."""
        self._correlation_id += 1
        await self.connection.send([frame(request, version, self._correlation_id)])
        answer = await self.read()
        if answer is None:
            return None
        correlation_id, start = decode_response_header(answer, ApiKey(request.api_key), version)
        assert correlation_id == self._correlation_id
        return decode(response_class(ApiKey(request.api_key)), version, memoryview(answer)[start:])

    async def ask_bare(self, token: bytes) -> bytes | None:
        """The answer to a frame without a header."""
        await self.connection.send([struct.pack(">i", len(token)) + token])
        return await self.read()

    async def shake_hands(self, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
        response: SaslHandshakeResponse = await self.ask(SaslHandshakeRequest(mechanism=mechanism), version)
        return response

    async def authenticate(self, mechanism: str, client: SaslClient, version: int = 2) -> SaslAuthenticateResponse:
        """The last response of a conversation."""
        assert (await self.shake_hands(mechanism)).error_code == ErrorCode.NONE
        token, response = client.respond(b""), SaslAuthenticateResponse()
        while token is not None and not response.error_code:
            response = await self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
            token = None if response.error_code else client.respond(bytes(response.auth_bytes))
        return response

    async def is_let_in(self) -> bool:
        return await self.ask(MetadataRequest(topics=[]), 12) is not None

    async def is_closed(self) -> bool:
        return await self.read() is None

    async def read(self) -> bytes | None:
        """The next answer without its size, None at the end of the connection."""
        with trio.fail_after(20):
            size = await self._read_exactly(4)
            answer = size and await self._read_exactly(*struct.unpack(">i", size))
        self.when = trio.current_time()
        return None if not size else answer

    async def _read_exactly(self, size: int) -> bytes:
        received = b""
        while len(received) < size and (piece := await self.connection.receive(size - len(received))):
            received += piece
        return received


@asynccontextmanager
async def running(**properties: str) -> AsyncIterator[MemoryCluster]:
    async with running_cluster(1, **{**LISTENER, **properties}) as cluster:
        yield cluster


async def connected(cluster: MemoryCluster) -> Client:
    return Client(await cluster.network.connect("broker1", 9092))


async def add_user(cluster: MemoryCluster, name: str, password: str) -> None:
    """SCRAM credentials for both mechanisms."""
    credentials = {each.sasl_name: new_credential(each, password).render() for each in ScramMechanism}
    await cluster.services(1).cluster.configs.change(Entity(USERS, name), lambda before: {**before, **credentials})
