"""The suite's plain client: a broker that dies in the middle of an answer is one that has closed the connection."""

from __future__ import annotations

import socket
import struct

import pytest

from ottla.compat_tests.wire_client import Connection


@pytest.mark.parametrize("sent", [b"", b"\x00\x00", struct.pack(">i", 100), struct.pack(">i", 100) + b"half of it"])
def test_a_broker_that_dies_in_the_middle_of_a_frame(sent: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = Connection(f"127.0.0.1:{server.getsockname()[1]}")
        broker_side, _ = server.accept()
        with client.socket, broker_side:
            broker_side.sendall(sent)
            broker_side.close()
            with pytest.raises(EOFError):
                client.receive_frame()
