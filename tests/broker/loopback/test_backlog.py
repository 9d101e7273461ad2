"""Many clients at once: how many connections wait in the kernel while the broker is busy."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import ottla

CLIENTS = 500
TCP_ESTABLISHED = 1
_TCP_INFO_BYTES = 104
_SOMAXCONN = Path("/proc/sys/net/core/somaxconn")


@pytest.mark.skipif(
    not _SOMAXCONN.exists() or int(_SOMAXCONN.read_text()) < CLIENTS,
    reason="the kernel holds fewer connections than that",
)
async def test_a_burst_of_connections_is_taken_while_the_loop_is_held() -> None:
    async with ottla.open_broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        clients = [socket.socket() for _ in range(CLIENTS)]
        try:
            for client in clients:
                client.setblocking(False)
                client.connect_ex((host, int(port)))
            # Over the loopback a connection is made at once or its SYN was dropped; nothing was accepted meanwhile.
            states = [client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)[0] for client in clients]
            assert states.count(TCP_ESTABLISHED) == CLIENTS
        finally:
            for client in clients:
                client.close()
