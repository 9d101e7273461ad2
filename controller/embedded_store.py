"""A cluster store inside the process: the tree in memory, every transaction in a journal before it is answered.

Rules
-----
1. A transaction is checked and applied to the tree at once, in one plain function, and queued for the journal. It is
   answered, and watches fire, when the journal is synced. Writers that meet share one sync.
2. A read waits for the transactions it can see to be synced first, so nothing is ever answered that a crash could undo.
3. No session outlives the process: at start the ephemeral nodes of all of them are removed.
4. When the journal cannot be written the store has failed: memory is ahead of the disk, so nothing is answered any more.

Without files (``files=None``) nothing is kept; a simulation shares one such store between brokers, each with a session
of its own that can be expired.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence

import trio

from ..base.seams import Clock, InlineWorkers, Workers
from . import journal
from .journal import StateFiles
from .session import SessionState
from .store import (
    Delete,
    EventType,
    Node,
    NoNodeError,
    Operation,
    Result,
    SessionExpiredError,
    Stat,
    StoreFailedError,
    Watch,
    WatchEvent,
)
from .znode_tree import Transaction, ZnodeTree

logger = logging.getLogger(__name__)

SNAPSHOT_AFTER_BYTES = 4 << 20
"""A snapshot is taken when the journal is larger than this and than twice the snapshot before it."""


class EmbeddedStore:
    """The tree, its journal, and the sessions that look at it."""

    def __init__(self, clock: Clock, workers: Workers | None = None, files: StateFiles | None = None) -> None:
        self._clock = clock
        self._workers = workers or InlineWorkers()
        self._files = files
        self._tree = ZnodeTree()
        self._sessions: dict[int, EmbeddedSession] = {}
        self._last_session_id = 0
        self._flush_lock = trio.Lock()
        self._unsynced: list[tuple[Transaction, list[WatchEvent]]] = []
        self._synced_zxid = 0
        self._journal_size = 0
        self._snapshot_size = 0
        self._failure: OSError | None = None
        self.on_failure: Callable[[OSError], None] | None = None
        """Called once, when the journal cannot be written."""

    async def open(self) -> None:
        """Read what is on disk. Raises CorruptStateError, OSError."""
        if self._files is not None:
            self._tree, self._journal_size = await self._workers.run(journal.load, self._files)
        self._synced_zxid = self._tree.zxid
        self._last_session_id = self._tree.zxid
        leftover = self._tree.ephemerals()
        if leftover:
            self._apply(0, [Delete(path) for path in leftover])

    @property
    def sessions(self) -> list[EmbeddedSession]:
        """Those that have not ended."""
        return list(self._sessions.values())

    def session(self) -> EmbeddedSession:
        """A new session; ids are never used twice."""
        self._last_session_id += 1
        session = EmbeddedSession(self, self._last_session_id)
        self._sessions[session.session_id] = session
        return session

    async def write(self, session_id: int, operations: Sequence[Operation]) -> list[Result]:
        """Apply, sync, answer. Raises StoreError."""
        self._check_working()
        results = self._apply(session_id, operations)
        await self.sync()
        return results

    async def sync(self) -> ZnodeTree:
        """Wait until all that is applied is on disk, and give the tree. Raises StoreFailedError."""
        target = self._tree.zxid
        if self._synced_zxid >= target and self._failure is None:
            await trio.lowlevel.checkpoint()
            return self._tree
        async with self._flush_lock:
            self._check_working()
            if self._synced_zxid < target:
                await self._flush()
        return self._tree

    async def end_session(self, session_id: int) -> None:
        """Remove the session and its ephemeral nodes; in a failed store they only go with the process."""
        if self._sessions.pop(session_id, None) is None or self._failure is not None:
            return
        paths = self._tree.ephemerals(session_id)
        if paths:
            self._apply(session_id, [Delete(path) for path in paths])
            try:
                await self.sync()
            except StoreFailedError:
                pass

    def _apply(self, session_id: int, operations: Sequence[Operation]) -> list[Result]:
        transaction = Transaction(self._tree.zxid + 1, session_id, self._clock.now_ms(), operations)
        results, events = self._tree.apply(transaction)
        self._unsynced.append((transaction, events))
        return results

    async def _flush(self) -> None:
        """Sync all that is queued, then tell the watches. A cancelled writer must not take the others with it."""
        batch, self._unsynced = self._unsynced, []
        zxid = self._tree.zxid
        if self._files is not None:
            data = journal.encode_transactions(transaction for transaction, _ in batch)
            with trio.CancelScope(shield=True):
                try:
                    await self._store(self._files, data)
                except OSError as error:
                    self._failure = error
                    if self.on_failure is not None:
                        self.on_failure(error)
                    else:
                        logger.error("The cluster state cannot be written, admin requests are refused: %s", error)
                    raise StoreFailedError(why=f"the cluster state cannot be written: {error}") from error
        self._synced_zxid = zxid
        for _, events in batch:
            for event in events:
                self._fire(event)

    async def _store(self, files: StateFiles, data: bytes) -> None:
        if self._journal_size > max(SNAPSHOT_AFTER_BYTES, 2 * self._snapshot_size):
            snapshot = journal.encode_snapshot(self._tree)
            await self._workers.run(files.replace, journal.SNAPSHOT, snapshot)
            await self._workers.run(files.truncate, journal.JOURNAL, 0)
            self._snapshot_size, self._journal_size = len(snapshot), 0
        else:
            await self._workers.run(files.append, journal.JOURNAL, data)
            self._journal_size += len(data)

    def _check_working(self) -> None:
        if self._failure is not None:
            raise StoreFailedError(why=f"the cluster state cannot be written: {self._failure}")

    def _fire(self, event: WatchEvent) -> None:
        for session in self.sessions:
            session.notify(event)


class EmbeddedSession:
    """One session at an EmbeddedStore; a ``StoreSession``. Only a simulation expires it or has it suspected."""

    def __init__(self, store: EmbeddedStore, session_id: int) -> None:
        self._store = store
        self._session_id = session_id
        self._state = SessionState.CONNECTED
        self._state_changed = trio.Event()
        self._data_watches: dict[str, dict[Watch, None]] = defaultdict(dict)
        self._child_watches: dict[str, dict[Watch, None]] = defaultdict(dict)

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def state(self) -> SessionState:
        return self._state

    async def wait_state_other_than(self, known: SessionState) -> SessionState:
        while self._state is known:
            await self._state_changed.wait()
        return self._state

    async def get(self, path: str, watch: Watch | None = None) -> Node:
        node = (await self._tree()).get(path)
        if node is None:
            raise NoNodeError(path)
        if watch is not None:
            self._data_watches[path][watch] = None
        return node

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        tree = await self._tree()
        return [tree.get(path) for path in paths]

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        node = (await self._tree()).get(path)
        if watch is not None:
            self._data_watches[path][watch] = None
        return None if node is None else node.stat

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        names = (await self._tree()).children(path)
        if watch is not None:
            self._child_watches[path][watch] = None
        return names

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        await self._answering()
        return await self._store.write(self._session_id, operations)

    async def close(self) -> None:
        self._end()
        await self._store.end_session(self._session_id)

    async def expire(self) -> None:
        """What a simulation does to a session: its nodes vanish and every watch hears of it."""
        watches = self._end()
        await self._store.end_session(self._session_id)
        event = WatchEvent(EventType.SESSION_EXPIRED, "")
        for watch in watches:
            watch(event)

    def suspect(self) -> None:
        """What a simulation does to a session whose connection is cut: requests wait, and watches are lost unheard."""
        self._drop_watches()
        self._change(SessionState.SUSPECTED)

    def reconnect(self) -> None:
        """The end of ``suspect`` in time: requests are answered again."""
        self._change(SessionState.CONNECTED)

    def _end(self) -> set[Watch]:
        self._change(SessionState.EXPIRED)
        return self._drop_watches()

    def _change(self, state: SessionState) -> None:
        if self._state is not SessionState.EXPIRED:
            self._state = state
            changed, self._state_changed = self._state_changed, trio.Event()
            changed.set()

    def _drop_watches(self) -> set[Watch]:
        groups = [*self._data_watches.values(), *self._child_watches.values()]
        self._data_watches.clear()
        self._child_watches.clear()
        return {watch for group in groups for watch in group}

    def notify(self, event: WatchEvent) -> None:
        """Call, once, the watches that this change is for."""
        watches: dict[Watch, None] = {}
        if event.type is not EventType.CHILDREN:
            watches |= self._data_watches.pop(event.path, {})
        if event.type in (EventType.CHILDREN, EventType.DELETED):
            watches |= self._child_watches.pop(event.path, {})
        for watch in watches:
            watch(event)

    async def _tree(self) -> ZnodeTree:
        await self._answering()
        return await self._store.sync()

    async def _answering(self) -> None:
        """Return when requests are answered. Raises SessionExpiredError."""
        while self._state is SessionState.SUSPECTED:
            await self._state_changed.wait()
        if self._state is SessionState.EXPIRED:
            raise SessionExpiredError()
