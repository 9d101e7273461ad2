"""A quick probe, before every command, for a listener that serves clients without TLS and SASL.

The two requests are written by hand: loading the codec takes longer than they do.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

Connect = Callable[[], socket.socket]
"""Opens a connection to the listener, with a time-out. Raises OSError."""

_WAIT_S = 1.0
_MOST_BYTES = 1 << 24
_CLIENT_ID = b"\x00\x05ottla"
_API_VERSIONS = b"\x00\x12\x00\x00" + b"\x00\x00\x00\x01" + _CLIENT_ID
_METADATA = b"\x00\x03\x00\x01" + b"\x00\x00\x00\x02" + _CLIENT_ID + bytes(4)
"""Of no topics; with SASL a listener takes it only from who has logged in."""


def answers_plainly(connect: Connect) -> bool:
    """False where ApiVersions and Metadata, asked for without TLS and SASL, are not answered: the connection is closed, or it
    is no Kafka that answers. True also for an answer that takes long. Raises OSError when there is no connection at all."""
    with connect() as connection:
        connection.settimeout(_WAIT_S)
        try:
            for request in (_API_VERSIONS, _METADATA):
                connection.sendall(len(request).to_bytes(4, "big") + request)
                size = int.from_bytes(_read(connection, 4), "big")
                if size > _MOST_BYTES:
                    return False
                _read(connection, size)
        except TimeoutError:
            return True
        except OSError:
            return False
    return True


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        received = connection.recv(size - len(data))
        if not received:
            raise ConnectionResetError
        data += received
    return data
