"""Detection of protocols other than Kafka's by the first bytes that a client sends.

No valid request begins that way: read as the size of a request, ``GET `` is 1,195,725,856 bytes and the beginning of a TLS
handshake 369,295,616 or more, far beyond ``socket.request.max.bytes``.
"""

from __future__ import annotations

_TLS_HANDSHAKE = 0x16
_METHODS = (b"GET ", b"PUT ", b"POST", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC", b"PRI ")


def foreign_protocol(start: bytes, listener: str, security_protocol: str) -> str | None:
    """Which protocol the bytes look like and what to do about it; None when they look like neither TLS nor HTTP."""
    if len(start) >= 3 and start[0] == _TLS_HANDSHAKE and start[1] == 3 and start[2] <= 4:
        return (
            f"this looks like TLS: the listener {listener} is {security_protocol}; "
            f"set security.protocol={security_protocol} in the client"
        )
    if start[:4] in _METHODS:
        return (
            f"this looks like HTTP: the listener {listener} speaks Kafka's protocol only; "
            "metrics and health are where metrics.listener says"
        )
    return None
