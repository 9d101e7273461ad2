"""What breaks the protocol, and a clock by which each time is recorded."""

from __future__ import annotations

import struct

from ottla.base.seams import SystemClock
from ottla.wire.api_keys import ApiKey

GARBAGE = struct.pack(">ihhih", 11, ApiKey.METADATA, 99, 666, -1) + b"\0"


class HastyClock(SystemClock):
    """A quarter of an hour goes by at each look, so that nothing comes too soon after another."""

    def __init__(self) -> None:
        self._elapsed = 0.0

    def elapsed(self) -> float:  # type: ignore[override]
        self._elapsed += 900
        return self._elapsed
