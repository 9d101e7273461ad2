"""Kazoo's thread and the loop: neither waits for the other, and what is over is over for both at once."""

from __future__ import annotations

import socket

import pytest
from kazoo import exceptions
from kazoo.protocol.states import KazooState

from ottla.controller.zookeeper.store import kazoo_client
from ottla.controller.zookeeper.store.cluster_store import ConnectionLossError, Create, StoreError
from ottla.controller.zookeeper.store.kazoo_client import KazooConnection
from ottla.controller.zookeeper.store.zookeeper_session import Multi, ZooKeeperSession
from ottla.controller.zookeeper.store.zookeeper_settings import parse_zookeeper_address
from ottla.testing.held_port import HeldPort


async def test_no_connection_is_made_from_the_moment_on_at_which_a_session_is_over() -> None:
    """Kazoo would open another session by itself, before the loop has heard of the end of this one."""
    server = HeldPort()
    address = parse_zookeeper_address(f"127.0.0.1:{server.number}")
    connection = KazooConnection(address, 10.0, None, None, False)
    connection._listener = ZooKeeperSession(connection, 10)
    with pytest.raises(ConnectionRefusedError):
        connection._connect(1.0, None, *address.servers, "127.0.0.1")
    connection._state_changed(KazooState.LOST)
    with pytest.raises(OSError, match="the session is over"):
        connection._connect(1.0, None, *address.servers, "127.0.0.1")
    server.close()


@pytest.mark.parametrize("failure", [exceptions.SessionMovedError(), RuntimeError("xids do not match")])
async def test_an_answer_that_tells_nothing_is_a_lost_connection(failure: Exception) -> None:
    """A transaction may have happened. Kazoo's connection is broken, so that there is another one."""
    answers: list[tuple[object, StoreError | None]] = []
    near, far = socket.socketpair()
    connection = KazooConnection(parse_zookeeper_address("127.0.0.1"), 10.0, None, None, False)
    connection._socket = near
    result = connection._client.handler.async_result()
    result.set_exception(failure)
    connection._answer(Multi([Create("/n")]), lambda answer, error: answers.append((answer, error)), result)
    [(answer, error)] = answers
    assert answer is None and type(error) is ConnectionLossError
    assert far.recv(1) == b""
    for end in (near, far):
        end.close()


@pytest.mark.timeout(60)
def test_the_thread_is_woken_without_waiting_for_it() -> None:
    """It may be busy with a connection, for as long as ZooKeeper is away."""
    reader, wakeup = kazoo_client._Handler(print, socket.create_connection).create_socket_pair()
    for _ in range(5000):
        wakeup.send(b"\0")
    assert len(reader.recv(5000)) > 200
    wakeup.close()
    reader.close()
