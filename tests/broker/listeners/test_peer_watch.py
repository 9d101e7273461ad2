"""A client that goes while its request waits gives back its connection at once, however long the request may wait."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from ottla.base.config import Config
from ottla.base.presence import Presence
from ottla.broker.listeners.peer_watch import PeerWatch
from ottla.broker.server import BrokerServer
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.schema import Message

from ...helpers.memory_broker import frame, running
from ..helpers.responses import body_of

FOR_EVER = (1 << 31) - 1

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a peer's end")


class Client:
    """A client on a TCP connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream

    async def send(self, request: Message, version: int) -> None:
        await self.stream.send_all(frame(request, version, 1))

    async def ask(self, request: Message, version: int) -> bytes:
        await self.send(request, version)
        (size,) = struct.unpack(">i", await self._exactly(4))
        return await self._exactly(size)

    async def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = await self.stream.receive_some(size - len(found))
            assert piece
            found += piece
        return found


async def test_a_connection_that_was_accepted_as_its_listener_ended_is_no_error() -> None:
    watch = PeerWatch()
    with trio.CancelScope() as ended:
        ended.cancel()
        await watch.run()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watch.add(ours.fileno(), Presence())


async def connect(server: BrokerServer) -> Client:
    host, _, port = server.bootstrap_servers.partition(":")
    return Client(await trio.open_tcp_stream(host, int(port)))


def fetch() -> FetchRequest:
    return FetchRequest(
        max_wait_ms=FOR_EVER,
        min_bytes=1,
        max_bytes=1000,
        topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])],
    )


def join() -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=FOR_EVER,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(20):
        while not condition():
            await trio.sleep(0.005)


@pytest.mark.parametrize("kind", ["fetch", "fetch with more behind it", "join"])
async def test_the_connection_of_a_client_that_goes_is_closed(tmp_path: Path, kind: str) -> None:
    properties = {
        "log.dirs": str(tmp_path),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": str(FOR_EVER),
    }
    async with running(BrokerServer(Config(properties))) as server:
        waiting, other = [await connect(server) for _ in range(2)]
        await other.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        code = -1
        while code:
            answer = await other.ask(FindCoordinatorRequest(key="g"), 0)
            code = body_of(answer, FindCoordinatorResponse, 0).error_code
        if kind == "join":
            await waiting.send(join(), 3)
        else:
            await waiting.send(fetch(), 8)
        if kind == "fetch with more behind it":
            await waiting.send(MetadataRequest(topics=[]), 4)
        await until(lambda: sum(client.busy for client in server.connections()) == 1)
        await waiting.stream.aclose()
        await until(lambda: len(server.connections()) == 1)
        await other.ask(MetadataRequest(topics=[]), 4)  # which is served as before


async def test_a_client_that_stays_waits_on(tmp_path: Path) -> None:
    properties = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    async with running(BrokerServer(Config(properties))) as server:
        waiting, other = [await connect(server) for _ in range(2)]
        await other.ask(
            CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]), 4
        )
        await waiting.send(fetch(), 8)
        await until(lambda: sum(client.busy for client in server.connections()) == 1)
        gone = await connect(server)
        await until(lambda: len(server.connections()) == 3)
        await gone.stream.aclose()
        await until(lambda: len(server.connections()) == 2)
        assert sum(client.busy for client in server.connections()) == 1
