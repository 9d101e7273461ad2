"""Size and time limits for HTTP clients."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class HttpLimits:
    """Sizes in bytes, times in seconds.

    ``idle_seconds`` may pass before a request begins, ``head_seconds`` from its first byte to the end of its headers,
    ``body_seconds`` while its body is read. ``send_seconds`` is for each ``piece_bytes`` of an answer: so slow may a reader be.
    ``linger_seconds`` is how long a refused client is listened to, so that it can read why.
    """

    max_connections: int = 512
    max_head_bytes: int = 32 * 1024
    max_body_bytes: int = 1 << 20
    max_ahead_bytes: int = 64 * 1024
    piece_bytes: int = 64 * 1024
    idle_seconds: float = 75.0
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    send_seconds: float = 20.0
    linger_seconds: float = 1.0
