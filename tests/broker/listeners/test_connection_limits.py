"""How many connections a broker lets in, at which listener and from whom; and how long it waits for a client to say who it is.

Clients of a network in memory all come from the host ``client``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio
import trio.testing

from ottla.base.addresses import split_host_port
from ottla.base.config import Config
from ottla.base.loop_turns import LoopTurns
from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.base.network import WOULD_BLOCK, Connection, Part
from ottla.base.seams import SystemClock
from ottla.base.settings import SettingError
from ottla.broker.listeners.acceptor import AUTHENTICATION_SECONDS, Acceptor
from ottla.broker.listeners.addresses import ListenerAddress
from ottla.broker.listeners.connection_limits import ConnectionLimits
from ottla.broker.listeners.listener_security import ListenerSecurity, ServedListener
from ottla.broker.listeners.monitor import Ending, Monitor
from ottla.broker.server import BrokerServer
from ottla.broker.settings import parse_connection_overrides
from ottla.controller.quorum.active.result import ControllerResult
from ottla.controller.quorum.snapshot_records import quota_record
from ottla.handlers.call import NodeCall
from ottla.handlers.connection_context import ConnectionContext
from ottla.handlers.node_services import NodeServices
from ottla.handlers.table import SERVED
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.connection_rates import CONNECTION_CREATION_RATE
from ottla.security.entities import IPS, Entity
from ottla.wire.messages.api_versions import ApiVersionsRequest

from ...helpers.memory_broker import frame, read_answer, running

INSIDE, OUTSIDE = ("inside", 9091), ("outside", 9092)


@asynccontextmanager
async def limited(folder: Path, **properties: str) -> AsyncIterator[tuple[MemoryNetwork, BrokerServer]]:
    """A broker with a listener for brokers and one for clients."""
    config = Config(
        {
            "log.dirs": str(folder),
            "listeners": "INSIDE://inside:9091,OUTSIDE://outside:9092",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
    )
    network = MemoryNetwork()
    async with running(BrokerServer(config, network=network)) as server:
        yield network, server


async def asked(network: MemoryNetwork, address: tuple[str, int]) -> MemoryConnection:
    """A client that has sent a request, and has its answer if it was let in."""
    client = await network.connect(*address)
    await client.send([frame(ApiVersionsRequest(), 0, 7)])
    await trio.testing.wait_all_tasks_blocked()
    return client


async def is_answered(client: MemoryConnection) -> bool:
    await trio.testing.wait_all_tasks_blocked()
    if client.receive_into(memoryview(bytearray())) == WOULD_BLOCK:
        return False
    return (await read_answer(client))[0] == 7


async def test_who_comes_when_as_many_are_open_as_may_be_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with limited(tmp_path, max_connections="2") as (network, server):
        first, second, third, fourth = [await asked(network, OUTSIDE) for _ in range(4)]
        assert [await is_answered(client) for client in (first, second, third)] == [True, True, False]
        first.close()
        assert await is_answered(third)
        assert not await is_answered(fourth)
        server.config.change_dynamic({"max.connections": "3"}, {})
        assert await is_answered(fourth)
        for client in (second, third, fourth):
            client.close()
    assert caplog.text.count("connections to OUTSIDE wait: as many are open as max.connections allows") == 1


async def test_a_listener_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    async with limited(tmp_path, listener_name_outside_max_connections="1") as (network, server):
        clients = [await asked(network, address) for address in (OUTSIDE, OUTSIDE, INSIDE, INSIDE)]
        assert [await is_answered(client) for client in clients] == [True, False, True, True]
        server.config.change_dynamic({"listener.name.outside.max.connections": "2"}, {})
        assert await is_answered(clients[1])
        for client in clients:
            client.close()


async def test_brokers_get_in_and_the_quietest_client_has_to_go(tmp_path: Path) -> None:
    async with limited(tmp_path, max_connections="2") as (network, server):
        quiet, lively = [await asked(network, OUTSIDE) for _ in range(2)]
        assert await is_answered(quiet)
        await lively.send([frame(ApiVersionsRequest(), 0, 7)])
        assert await is_answered(lively)
        broker = await asked(network, INSIDE)
        assert await is_answered(broker)
        assert await quiet.receive() == b""
        await lively.send([frame(ApiVersionsRequest(), 0, 7)])
        assert await is_answered(lively)
        assert server.monitor.errors == {Ending.LIMIT: 1}
        for client in (lively, broker):
            client.close()


async def test_a_host_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    config = Config(
        {
            "log.dirs": str(tmp_path),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "max.connections.per.ip": "1",
            "max.connections.per.ip.overrides": "10.0.0.1:7, 127.0.0.1:2",
        }
    )
    async with running(BrokerServer(config)) as server:
        address = split_host_port(server.bootstrap_servers)
        clients = [await trio.open_tcp_stream(*address) for _ in range(3)]
        assert await clients[2].receive_some() == b""
        config.change_dynamic({"max.connections.per.ip.overrides": "localhost:3"}, {})
        clients.append(await trio.open_tcp_stream(*address))
        for client in (clients[0], clients[1], clients[3]):
            await client.send_all(frame(ApiVersionsRequest(), 0, 7))
            assert await client.receive_some()
        for client in clients:
            await client.aclose()


@pytest.mark.parametrize("name", ["\u2603", "a\0b"])
async def test_a_quota_of_what_can_be_no_host_keeps_nobody_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """Controllers of other releases may have let it pass."""
    async with limited(tmp_path) as (network, server):
        assert server.assembly is not None
        assert server.controller is not None
        record = quota_record(Entity(IPS, name), CONNECTION_CREATION_RATE, 1.0)
        await server.controller.node.carry_out(lambda context: ControllerResult([(record, 0)], response=True))
        client = await asked(network, OUTSIDE)
        assert (await read_answer(client))[0] == 7
        client.close()
    assert f"connection_creation_rate: {name!r} has no address that can be found" in caplog.text


def test_overrides_are_hosts_with_numbers() -> None:
    assert parse_connection_overrides("a.example:1,::1:2, [::2]:3") == {"a.example": 1, "::1": 2, "[::2]": 3}
    for malformed in ("a", "a:", ":1", "a:-1", "a:b"):
        with pytest.raises(ValueError, match="is not HOST:NUMBER"):
            parse_connection_overrides(malformed)
    for no_host in ("☃:5", "a b:5", "a\0:5", f"{'a' * 254}:5", "127.0.0.1/8:5", "::g:5"):
        with pytest.raises(ValueError, match="is neither an address nor a host name"):
            parse_connection_overrides(no_host)
    with pytest.raises(SettingError, match=r"max\.connections\.per\.ip\.overrides"):
        BrokerServer(Config({"max.connections.per.ip.overrides": "a"}))


# --- clients that do not say who they are -----------------------------------------------------------------------------


class Closed:
    """A gate that nobody passes."""

    is_open = False
    frame_limit: int | None = 64

    async def take(self, call: NodeCall, frame: memoryview) -> list[Part] | None:
        return [b"?"]


@asynccontextmanager
async def accepting(security: ListenerSecurity) -> AsyncIterator[tuple[MemoryNetwork, Monitor]]:
    """An acceptor at ADDRESS, without a broker behind it."""
    config = Config({})
    clock = SystemClock()
    parts = SimpleNamespace(
        config=config,
        metadata=MetadataCache(),
        clock=clock,
        group_turns=LoopTurns(clock.elapsed),
        served=SERVED,
        early_responses=[],
    )
    services = cast(NodeServices, parts)
    network, monitor = MemoryNetwork(), Monitor()
    listener = await network.listen(*OUTSIDE, 5)
    acceptor = Acceptor(
        services, partial(NodeCall, services), monitor, ConnectionLimits(config, "OUTSIDE", {"OUTSIDE"})
    )
    async with trio.open_nursery() as nursery:
        served = ServedListener(ListenerAddress("OUTSIDE", *OUTSIDE, "SASL_SSL"), listener, security, True)
        nursery.start_soon(acceptor.accept_from, served, nursery)
        nursery.start_soon(acceptor.watch_idle)
        yield network, monitor
        nursery.cancel_scope.cancel()


async def test_who_does_not_say_who_it_is_is_cut_off_even_if_it_goes_on_talking(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with accepting(ListenerSecurity(make_gate=lambda context, services, monitor: Closed())) as (network, monitor):
        began = trio.current_time()
        client = await network.connect(*OUTSIDE)
        said = b"?"
        while said:
            with suppress(OSError):
                await client.send([b"\0\0\0\1x"])
            said = await client.receive()
            await trio.sleep(1)
        assert AUTHENTICATION_SECONDS < trio.current_time() - began < AUTHENTICATION_SECONDS + 15
        assert monitor.errors[Ending.AUTHENTICATION] == 1


async def test_a_handshake_that_does_not_end_is_ended(autojump_clock: trio.testing.MockClock) -> None:
    async def shake_hands(connection: Connection, context: ConnectionContext) -> Connection:
        await connection.wait_readable()
        raise OSError("not a handshake")

    async with accepting(ListenerSecurity(transport=shake_hands)) as (network, monitor):
        silent, wrong = await network.connect(*OUTSIDE), await network.connect(*OUTSIDE)
        began = trio.current_time()
        await wrong.send([b"x"])
        assert await wrong.receive() == b""
        assert trio.current_time() == began
        assert await silent.receive() == b""
        assert 0 < trio.current_time() - began <= 10
        assert monitor.errors == {Ending.AUTHENTICATION: 2}
