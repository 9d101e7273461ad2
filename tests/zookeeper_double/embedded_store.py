"""A cluster store inside the process: the tree in memory, every transaction in a journal before it is answered.

Rules
-----
1. A transaction is checked and applied to the tree at once, in one plain function, and queued for the journal. It is
   answered, and watches fire, when the journal is synced. Writers that meet share one sync.
2. A read waits for the transactions it can see to be synced first, so nothing is ever answered that a crash could undo.
3. No session outlives the process: at start the ephemeral nodes of all of them are removed.
4. When the journal cannot be written the store has failed: memory is ahead of the disk, so nothing is answered any more.

Without files (``files=None``) nothing is kept. One such store is shared by the brokers of a cluster in one process, each
with sessions of its own (``embedded_session``); ``run`` does for these what is due by the clock.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence

import trio

from ottla.base.seams import Clock, InlineWorkers, Workers
from ottla.controller.zookeeper.store import journal
from ottla.controller.zookeeper.store.cluster_store import Delete, Operation, Result, StoreFailedError, WatchEvent
from ottla.controller.zookeeper.store.journal import StateFiles
from ottla.controller.zookeeper.store.znode_tree import ZnodeTransaction, ZnodeTree

from .embedded_session import EmbeddedSession
from .store_link import StoreLink

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
        self._lives: list[
            EmbeddedSession
        ] = []  # also those that the store has ended while their broker does not know it
        self._last_session_id = 0
        self._time_changed = trio.Event()
        self._flush_lock = trio.Lock()
        self._unsynced: list[tuple[ZnodeTransaction, list[WatchEvent]]] = []
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
    def tree(self) -> ZnodeTree:
        """What is applied, whether it is synced or not; for observers."""
        return self._tree

    @property
    def sessions(self) -> list[EmbeddedSession]:
        """Those that have not ended."""
        return list(self._sessions.values())

    def session(self, link: StoreLink | None = None, timeout: float | None = None) -> EmbeddedSession:
        """A new session; ids are never used twice.

        ``timeout`` is for how many seconds the store keeps it when nothing comes over its ``link``; None: for ever.
        """
        self._last_session_id += 1
        session = EmbeddedSession(self, self._last_session_id, link or StoreLink(), timeout)
        self._sessions[session.session_id] = session
        self._lives.append(session)
        return session

    async def run(self) -> None:
        """Do for sessions what is due by the clock; not needed where no link is ever cut."""
        while True:
            self._time_changed = trio.Event()
            self._lives = [session for session in self._lives if not session.is_over]
            with trio.move_on_at(min((session.deadline for session in self._lives), default=math.inf)):
                await self._time_changed.wait()
            for session in list(self._lives):
                if session.deadline <= trio.current_time():
                    await session.take_time()

    def time_changed(self) -> None:
        self._time_changed.set()

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
        transaction = ZnodeTransaction(self._tree.zxid + 1, session_id, self._clock.now_ms(), operations)
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
