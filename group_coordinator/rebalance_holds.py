"""Groups whose rebalances do not end for the time being, because a test looks at what its clients do meanwhile.

A consumer group of KIP-848 keeps its old target assignment: its members have a new epoch before them, and nothing to do. In a
classic group SyncGroup waits, so members have joined the generation and have no assignments.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from ..replication.coordinator_log import Flush


class RebalanceHolds:
    """Of the groups of one broker."""

    def __init__(self) -> None:
        self._released: dict[str, trio.Event] = {}
        """By group id."""
        self._on_reached: dict[str, Callable[[], None]] = {}

    def hold(self, group_id: str, on_reached: Callable[[], None]) -> None:
        """From now on no rebalance of the group ends. ``on_reached`` is called whenever one would have gone on."""
        self._released.setdefault(group_id, trio.Event())
        self._on_reached[group_id] = on_reached

    def release(self, group_id: str) -> None:
        """Rebalances of the group go on; nothing happens where none is held."""
        self._on_reached.pop(group_id, None)
        event = self._released.pop(group_id, None)
        if event is not None:
            event.set()

    def release_all(self) -> None:
        """No request goes on waiting."""
        for group_id in list(self._released):
            self.release(group_id)

    def is_held(self, group_id: str) -> bool:
        """Whether a rebalance that is to go on now must not."""
        if group_id not in self._released:
            return False
        self._on_reached[group_id]()
        return True

    async def wait(self, group_id: str, flush: Flush) -> None:
        """Return once the group is not held. ``flush`` lets out the responses before this one."""
        while self.is_held(group_id):
            event = self._released[group_id]
            await flush()
            await event.wait()
