"""The ports that brokers of tests are kept on."""

from __future__ import annotations

import contextlib
import errno
import socket

import pytest

from ottla.testing.held_port import HeldPort


def test_a_held_port_is_for_one_server_that_may_start_again() -> None:
    with contextlib.closing(HeldPort()) as port, socket.socket() as stranger:
        address = ("127.0.0.1", port.number)
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address)
            with socket.create_server(address), socket.create_connection(address):
                pass
        with pytest.raises(OSError, match="in use") as refused:
            stranger.bind(address)
        assert refused.value.errno == errno.EADDRINUSE


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{number}: the port is in use$") as refused:
            HeldPort(number)
    assert refused.value.errno == errno.EADDRINUSE
