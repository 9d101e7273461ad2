"""Sessions at a real ZooKeeper: the contract of every store, over a proxy that cuts, holds up and breaks; and what only it has.

All use one server, each test below a path of its own.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from kazoo.client import KazooClient
from kazoo.protocol.serialization import Create as KazooCreate
from kazoo.security import OPEN_ACL_UNSAFE

from ottla.compat_tests.zookeeper import ZooKeeperEnsemble, ZooKeeperProcess
from ottla.controller.zookeeper.store import zookeeper_session
from ottla.controller.zookeeper.store.cluster_store import (
    ConnectionLossError,
    Create,
    EventType,
    SessionExpiredError,
    Set,
    StoreError,
    WatchEvent,
    create,
)
from ottla.controller.zookeeper.store.session import SessionState
from ottla.controller.zookeeper.store.zookeeper import _unknown_names
from ottla.controller.zookeeper.store.zookeeper_settings import parse_zookeeper_address
from ottla.testing.held_port import HeldPort

from .helpers.session_life_contract import LIFE
from .helpers.store_contract import OPERATIONS
from .helpers.store_place import PATIENCE, Noted, Rule, asked, caught_up, until_gone, until_state
from .helpers.tcp_proxy import tcp_proxy
from .helpers.zookeeper_place import ZooKeeperPlace, new_path, refusal, zookeeper_at, zookeeper_place

pytestmark = pytest.mark.slow

THREADS = "ottla-zookeeper"


def session_ids(server: ZooKeeperProcess) -> set[int]:
    """The sessions that the server keeps."""
    return {int(found, 16) for found in re.findall(r"0x([0-9a-f]{8,})", server.ask("dump"))}


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(PATIENCE):
        while not condition():
            await trio.sleep(0.02)


async def until_threads_are(count: int) -> None:
    """Each session that lives has one."""
    await until(lambda: sum(thread.name.startswith(THREADS) for thread in threading.enumerate()) == count)


@pytest.mark.parametrize("rule", OPERATIONS + LIFE, ids=lambda rule: rule.__name__)
async def test_keeps_the_contract(rule: Rule, zookeeper_server: ZooKeeperProcess) -> None:
    async with zookeeper_place(zookeeper_server.address) as place:
        await rule(place)


@pytest.mark.parametrize("rule", OPERATIONS, ids=lambda rule: rule.__name__)
async def test_keeps_the_contract_over_a_slow_way(rule: Rule, zookeeper_server: ZooKeeperProcess) -> None:
    """Of one request at a time, so that all others wait."""
    async with zookeeper_place(zookeeper_server.address, {"zookeeper.max.in.flight.requests": "1"}) as place:
        place.proxy.requests.delay = 0.002
        place.proxy.answers.delay = 0.001
        await rule(place)


# --- one way only -----------------------------------------------------------------------------------------------------


async def _tried(place: ZooKeeperPlace, hold: Callable[[], None]) -> bool:
    """Write with one way held until the session is suspected; whether a look afterwards found that it was done."""
    errors: list[StoreError] = []

    async def write() -> None:
        try:
            await place.session.multi([Create("/made")])
        except StoreError as error:
            errors.append(error)

    hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await until_state(place.session, SessionState.SUSPECTED)
        place.heal()
    await until_state(place.session, SessionState.CONNECTED)
    assert [type(error) for error in errors] == [ConnectionLossError]
    return await place.session.exists("/made") is not None


async def test_requests_arrive_and_answers_do_not(zookeeper_server: ZooKeeperProcess) -> None:
    async with zookeeper_place(zookeeper_server.address) as place:
        assert await _tried(place, place.proxy.answers.hold)
        await caught_up(place)
        assert await place.other.exists("/made") is not None


async def test_requests_do_not_arrive_and_the_server_is_heard(zookeeper_server: ZooKeeperProcess) -> None:
    async with zookeeper_place(zookeeper_server.address) as place:
        found = await _tried(place, place.proxy.requests.hold)
        await caught_up(place)
        assert (await place.other.exists("/made") is not None) is found


async def test_what_was_held_up_on_a_lost_connection_is_not_done_after_a_look(
    zookeeper_server: ZooKeeperProcess,
) -> None:
    """A connection takes the place of the one that is lost, and ZooKeeper hears no more of that, however late it comes."""
    async with zookeeper_place(zookeeper_server.address) as place:
        requests = place.proxy.requests
        requests.hold(connections=place.proxy.accepted)
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                with pytest.raises(ConnectionLossError):
                    await place.session.multi([Create("/made")])

            nursery.start_soon(write)
            await asked()
            await until_state(place.session, SessionState.SUSPECTED)
        assert await place.session.exists("/made") is None
        requests.release()
        await caught_up(place)
        await trio.sleep(0.5)
        assert await place.other.exists("/made") is None


# --- what ends a session ----------------------------------------------------------------------------------------------


async def test_another_session_handed_out_unasked_is_the_end_of_this_one(zookeeper_server: ZooKeeperProcess) -> None:
    async with zookeeper_place(zookeeper_server.address) as place:
        await place.session.multi([Create("/mine", ephemeral=True)])
        changes, before = place.session.changes, session_ids(zookeeper_server)
        place.proxy.requests.rewrite = _other_session_asked_for
        place.break_connection()
        await until_state(place.session, SessionState.EXPIRED)
        assert place.session.changes == changes + 2
        with pytest.raises(SessionExpiredError):
            await place.session.exists("/mine")
        await until_threads_are(1)
        assert session_ids(zookeeper_server) <= before


def _session_asked_for(piece: bytes) -> int | None:
    """The session that a client wants to go on with, 0 for a new one; None if this is not its first request."""
    # length, protocol (0), last zxid, time-out, session id, password
    if len(piece) >= 44 and struct.unpack_from(">i", piece, 4)[0] == 0:
        return int(struct.unpack_from(">q", piece, 20)[0])
    return None


def _other_session_asked_for(piece: bytes) -> bytes:
    """A client that comes back with its session's id is let in as one that has none."""
    return piece[:20] + bytes(8) + piece[28:] if _session_asked_for(piece) else piece


async def test_no_session_is_opened_in_the_place_of_one_that_has_expired(zookeeper_server: ZooKeeperProcess) -> None:
    """Where several servers are named Kazoo would go on to the next one at once."""
    async with zookeeper_place(zookeeper_server.address) as place:
        zookeeper = zookeeper_at(",".join([place.proxy.address] * 3) + place.path)
        session = await zookeeper.connect()
        await session.multi([Create("/mine", ephemeral=True)])
        before = session_ids(zookeeper_server)
        asked_for: list[int] = []

        def see(piece: bytes) -> bytes:
            session_id = _session_asked_for(piece)
            if session_id is not None:
                asked_for.append(session_id)
            return piece

        place.cut()
        await until_gone(place.other, "/mine")
        place.proxy.requests.rewrite = see
        place.heal()
        await until_state(session, SessionState.EXPIRED)
        await until_state(place.session, SessionState.EXPIRED)
        await until_threads_are(1)
        assert set(asked_for) == {session.session_id, place.session.session_id}
        assert session_ids(zookeeper_server) <= before
        zookeeper.close()


async def test_the_end_of_a_session_takes_no_longer_than_it_may(
    zookeeper_server: ZooKeeperProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kazoo gives a connection up after two thirds of the time-out."""
    monkeypatch.setattr(zookeeper_session, "CLOSE_SECONDS", 0.3)
    async with zookeeper_place(zookeeper_server.address, {"zookeeper.session.timeout.ms": "60000"}) as place:
        place.cut()
        with trio.fail_after(20):
            await place.session.close()
            await until_threads_are(1)


async def test_threads_end_with_their_sessions(zookeeper_server: ZooKeeperProcess) -> None:
    async with zookeeper_place(zookeeper_server.address) as place:
        session = await place.connect()
        assert any(thread.name == THREADS for thread in threading.enumerate())
        await session.close()
    await until_threads_are(0)


async def test_a_broker_that_only_lets_go_leaves_its_session_to_zookeeper(zookeeper_server: ZooKeeperProcess) -> None:
    async with zookeeper_place(zookeeper_server.address) as place:
        leaving = zookeeper_at(place.proxy.address + place.path)
        session = await leaving.connect()
        await session.multi([Create("/left", ephemeral=True)])
        leaving.close()
        assert await place.other.exists("/left") is not None
        await until_gone(place.other, "/left")
    await until_threads_are(0)


def test_a_loop_that_has_ended_is_told_nothing(zookeeper_server: ZooKeeperProcess) -> None:
    zookeeper = zookeeper_at(zookeeper_server.address + new_path())

    async def leave() -> None:
        await create(await zookeeper.connect(), "/n")

    trio.run(leave)
    zookeeper.close()
    trio.run(until_threads_are, 0)


# --- connecting -------------------------------------------------------------------------------------------------------


async def test_no_session_in_time_says_why_and_leaves_nothing(zookeeper_server: ZooKeeperProcess) -> None:
    closed, little_time = HeldPort(), {"zookeeper.connection.timeout.ms": "300"}
    address = f"127.0.0.1:{closed.number}/x"
    await refusal(address, little_time, f"no session at ZooKeeper {address} within 300 ms: 127.0.0.1: [Errno ")
    closed.close()
    async with tcp_proxy(zookeeper_server.address) as proxy:
        proxy.hold()
        await refusal(proxy.address, little_time, "within 300 ms: no answer")
        proxy.release()
        await until_threads_are(0)


class _Names(trio.abc.HostnameResolver):
    """One host is known."""

    async def getaddrinfo(self, host: Any, *_: Any, **__: Any) -> list[Any]:
        if host == b"known":
            return []
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def getnameinfo(self, *_: Any) -> tuple[str, str]:
        raise NotImplementedError


async def test_hosts_that_nobody_knows_are_named() -> None:
    """Kazoo says nothing of them."""
    trio.socket.set_custom_hostname_resolver(_Names())
    unknown = await _unknown_names(parse_zookeeper_address("known:1,unknown:2,127.0.0.1/x"))
    assert unknown == "unknown: Name or service not known"


async def test_a_server_that_is_away_is_passed_over(zookeeper_server: ZooKeeperProcess) -> None:
    closed = HeldPort()
    zookeeper = zookeeper_at(f"127.0.0.1:{closed.number},{zookeeper_server.address}{new_path()}/deep/down")
    session = await zookeeper.connect()
    assert await session.children("/") == []
    assert session.timeout == 4.0
    await session.close()
    zookeeper.close()
    closed.close()


async def test_the_time_out_is_the_one_that_zookeeper_agrees_to(zookeeper_server: ZooKeeperProcess) -> None:
    zookeeper = zookeeper_at(zookeeper_server.address, {"zookeeper.session.timeout.ms": "10"})
    session = await zookeeper.connect()
    assert session.timeout == 2 * zookeeper_server.tick_time / 1000
    await session.close()
    zookeeper.close()


async def test_everything_lies_below_the_path_that_is_given(zookeeper_server: ZooKeeperProcess) -> None:
    path = new_path()
    zookeeper = zookeeper_at(zookeeper_server.address + path + "/kafka")
    root = zookeeper_at(zookeeper_server.address)
    session, above = await zookeeper.connect(), await root.connect()
    told = Noted()
    assert await session.exists("/n", told) is None
    await above.multi([Create(f"{path}/kafka/n", b"x")])
    assert await told.first() == WatchEvent(EventType.CREATED, "/n")
    assert await session.multi([Create("/n/c_", sequence=True)]) == ["/n/c_0000000000"]
    assert await session.children("/") == ["n"]
    assert await above.children(f"{path}/kafka/n") == ["c_0000000000"]
    with pytest.raises(StoreError) as raised:
        await session.multi([Create("/n")])
    assert raised.value.path == "/n"
    for one in (session, above):
        await one.close()
    for ensemble in (zookeeper, root):
        ensemble.close()


# --- data -------------------------------------------------------------------------------------------------------------


async def test_a_node_without_data_is_empty(zookeeper_server: ZooKeeperProcess) -> None:
    """As Kafka makes its folders."""
    async with zookeeper_place(zookeeper_server.address) as place:
        await trio.to_thread.run_sync(_create_without_data, zookeeper_server.address, f"{place.path}/null")
        assert (await place.session.get("/null")).data == b""


def _create_without_data(address: str, path: str) -> None:
    client = KazooClient(address)
    client.start()
    done = client.handler.async_result()
    client._call(KazooCreate(path, None, OPEN_ACL_UNSAFE, 0), done)
    assert done.get(timeout=PATIENCE) == path
    client.stop()
    client.close()


async def test_a_transaction_that_zookeeper_would_hang_up_on_is_refused(zookeeper_server: ZooKeeperProcess) -> None:
    async with zookeeper_place(zookeeper_server.address) as place:
        changes = place.session.changes
        await place.session.multi([Create("/n", bytes(500_000)), Create("/m", bytes(540_000))])
        with pytest.raises(StoreError, match="a transaction of 1100203 bytes") as raised:
            await place.session.multi([Set("/n", bytes(600_000)), Set("/m", bytes(499_999))])
        assert type(raised.value) is StoreError
        assert (await place.session.get("/m")).data == bytes(540_000)
        assert place.session.changes == changes


async def test_thousands_of_requests_at_once(zookeeper_server: ZooKeeperProcess) -> None:
    """More than fit between the loop and the thread at a time."""
    async with zookeeper_place(zookeeper_server.address, {"zookeeper.max.in.flight.requests": "100"}) as place:
        place.cut()

        async def read() -> None:
            await place.session.get_many(["/n"] * 1000)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await until_state(place.session, SessionState.SUSPECTED)
            nursery.start_soon(read)
            place.heal()


# --- an ensemble ------------------------------------------------------------------------------------------------------


async def _leader_away(ensemble: ZooKeeperEnsemble, do: Callable[[], Awaitable[None]]) -> None:
    leader = await trio.to_thread.run_sync(ensemble.leader)
    assert leader is not None
    await trio.to_thread.run_sync(leader.kill)
    with trio.fail_after(2 * PATIENCE):
        await do()


async def test_sessions_outlive_the_leader_of_an_ensemble(tmp_path: Path) -> None:
    ensemble = ZooKeeperEnsemble(tmp_path)
    try:
        await trio.to_thread.run_sync(ensemble.start)
        zookeeper = zookeeper_at(
            f"{ensemble.address}/kafka",
            {"zookeeper.session.timeout.ms": "30000", "zookeeper.connection.timeout.ms": "60000"},
        )
        sessions = [await zookeeper.connect() for _ in range(3)]
        for i, session in enumerate(sessions):
            await session.multi([Create(f"/mine-{i}", ephemeral=True)])

        async def write() -> None:
            for i, session in enumerate(sessions):
                while True:
                    try:
                        await session.multi([Set(f"/mine-{i}", b"after")])
                        break
                    except ConnectionLossError:
                        continue
                for j in range(3):
                    assert (await session.get(f"/mine-{j}")).stat.ephemeral_owner == sessions[j].session_id

        await _leader_away(ensemble, write)
        assert {session.state for session in sessions} == {SessionState.CONNECTED}
        for session in sessions:
            await session.close()
        zookeeper.close()
    finally:
        await trio.to_thread.run_sync(ensemble.close)
