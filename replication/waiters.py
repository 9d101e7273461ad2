"""Long polls without a task per partition.

A ``FetchWaiter`` is one Event and the bytes still missing. It stands in the set of every partition it waits on; what
becomes visible there is subtracted, and at zero the Event fires. Whoever registers it takes it out again.
"""

from __future__ import annotations

import trio


class FetchWaiter:
    """Waits until ``missing`` more bytes are visible in the partitions it was registered in, or something changed there."""

    __slots__ = ("event", "missing", "read_committed")

    def __init__(self, missing: int, *, read_committed: bool = False) -> None:
        self.missing = missing
        self.read_committed = read_committed
        self.event = trio.Event()

    def visible(self, count: int) -> None:
        """``count`` more bytes can be fetched."""
        self.missing -= count
        if self.missing <= 0:
            self.event.set()

    def disturb(self) -> None:
        """The partition is gone, has another leader or lost its end: answer now."""
        self.missing = 0
        self.event.set()


class OffsetWaiter:
    """Waits until the high watermark reaches ``offset``."""

    __slots__ = ("event", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.event = trio.Event()
