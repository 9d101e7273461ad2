"""The common parts of sessions at any cluster store: the state, waits for its changes, and watches."""

from __future__ import annotations

from collections import defaultdict

import trio

from .cluster_store import EventType, Watch, WatchEvent
from .session import SessionState

SUSPECTED_AFTER = 2 / 3
"""The part of the time-out after which a connection without an answer is given up (ZooKeeper's ClientCnxn)."""


class SessionLife:
    """The life of one session, as ``StoreSession`` has it: ``changes`` rises by one with each state, EXPIRED is the last."""

    def __init__(self, state: SessionState, changes: int) -> None:
        self._state = state
        self._changes = changes
        self._changed = trio.Event()

    @property
    def state(self) -> SessionState:
        return self._state

    @property
    def changes(self) -> int:
        return self._changes

    async def wait_change(self, seen: int) -> int:
        while self._changes == seen:
            await self._changed.wait()
        return self._changes

    def _change(self, state: SessionState) -> None:
        if self._state is not SessionState.EXPIRED:
            self._state = state
            self._changes += 1
            self._wake()

    def _wake(self) -> None:
        """Wake the tasks that wait for ``_changed``."""
        changed, self._changed = self._changed, trio.Event()
        changed.set()


class WatchTable:
    """The watches of one session: which are called by what happens to a node, each once."""

    def __init__(self) -> None:
        self._of_nodes: dict[str, dict[Watch, None]] = defaultdict(dict)
        self._of_children: dict[str, dict[Watch, None]] = defaultdict(dict)

    def watch_node(self, path: str, watch: Watch) -> None:
        """``watch`` hears when the node is made, written or deleted."""
        self._of_nodes[path][watch] = None

    def watch_children(self, path: str, watch: Watch) -> None:
        """``watch`` hears when the names below the node change, or the node is deleted."""
        self._of_children[path][watch] = None

    def fire(self, event: WatchEvent) -> None:
        """Call, once, the watches that this change is for, and forget them."""
        watches: dict[Watch, None] = {}
        if event.type is not EventType.CHILDREN:
            watches |= self._of_nodes.pop(event.path, {})
        if event.type in (EventType.CHILDREN, EventType.DELETED):
            watches |= self._of_children.pop(event.path, {})
        for watch in watches:
            watch(event)

    def drop(self) -> list[Watch]:
        """Forget all watches, uncalled; which they were."""
        groups = [*self._of_nodes.values(), *self._of_children.values()]
        self._of_nodes.clear()
        self._of_children.clear()
        return list(dict.fromkeys(watch for group in groups for watch in group))
