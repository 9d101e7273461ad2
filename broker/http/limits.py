"""Size and time limits for HTTP clients."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class HttpLimits:
    """Sizes in bytes, times in seconds."""

    max_connections: int = 512
    max_head_bytes: int = 32 * 1024
    max_body_bytes: int = 1 << 20
    max_ahead_bytes: int = 64 * 1024
    piece_bytes: int = 64 * 1024
    idle_seconds: float = 75.0
    """Before a request begins."""
    head_seconds: float = 10.0
    """From a request's first byte to the end of its headers."""
    body_seconds: float = 30.0
    """While a request's body is read."""
    send_seconds: float = 20.0
    """For each ``piece_bytes`` of a response: so slow may a reader be."""
    linger_seconds: float = 1.0
    """How long a refused client is listened to, so that it can read why."""
