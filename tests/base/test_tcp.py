"""Connections of the system's TCP, as they are accepted."""

from __future__ import annotations

import socket
import struct

import trio

from ottla.base.seams import InlineWorkers
from ottla.base.tcp import TcpNetwork


async def test_a_client_that_is_gone_before_it_is_accepted_is_passed_over() -> None:
    listener = await TcpNetwork(InlineWorkers()).listen("127.0.0.1", 0, 10)
    with socket.create_connection(("127.0.0.1", listener.port)) as gone:
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # its close is a reset
    with socket.create_connection(("127.0.0.1", listener.port)) as client, trio.fail_after(60):
        connection = await listener.accept()
        assert connection.peer == "{}:{}".format(*client.getsockname())
        connection.close()
    listener.close()
