"""The driver of a Raft node, which passes events to it and performs its effects in order.

An effect that waits for a disk (``Persist``, ``FinishSnapshot``) holds up those behind it, while further events are taken. A
flush runs beside them. Requests to other nodes are sent by tasks of their own, one connection to each address. The first error
of the disk ends the driver: what the node believes would no longer be true.

Whoever lives on the node, its controller or its broker, asks for its ``news``: who leads and what is committed, in the order in
which the node found it out.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import trio

from ...base.errors import ErrorCode, KafkaError
from ...base.seams import Clock, Workers
from ...log.checkpoints import CorruptFileError
from ...log.metadata_snapshots import MetadataSnapshotId
from ...replication.broker_client import BrokerClient, NoAnswerError
from ...wire.messages.fetch import FetchRequest, FetchResponse
from ...wire.messages.fetch_snapshot import FetchSnapshotRequest
from ...wire.schema import Message
from . import effects, events
from .fetch_reports import FetchReports
from .measures import RaftMeasures
from .node import RaftNode
from .storage import RaftStorage
from .voters import ControllerAddress

logger = logging.getLogger(__name__)

_ROUNDING_SECONDS = 1e-6
"""A timer ends by so much later: rounded down, it would find that its time has not come, and turn without rest."""

RaftNews = effects.HighWatermarkAdvanced | effects.LeaderChanged


class _DeferredResponse:
    """The response that a request of another node waits for."""

    def __init__(self) -> None:
        self.response: Message | None = None
        self.is_there = trio.Event()


class RaftDriver:
    """See the module. ``run`` it in a task.

    ``connect`` makes a client of the node at an address. It gives up a request after the node's ``request_timeout_ms``.
    """

    def __init__(
        self,
        node: RaftNode,
        storage: RaftStorage,
        connect: Callable[[ControllerAddress], BrokerClient],
        clock: Clock,
        workers: Workers,
    ) -> None:
        self.node = node
        self.storage = storage
        self._connect = connect
        self._clock = clock
        self._workers = workers
        self._clients: dict[ControllerAddress, BrokerClient] = {}
        self._effects: deque[effects.RaftEffect] = deque()
        self._is_performing = False
        # Whether the first effect of the queue waits for the disk.
        self._is_held_up = False
        self._work = trio.Event()
        self._earlier = trio.Event()
        self._timer_at = -math.inf
        self._pending: dict[int, _DeferredResponse] = {}
        self._last_request_id = 0
        self._has_free_sender = False
        """Whether a task has sent a request, and can send the next one: within a step only."""
        self._next_request: effects.SendRequest | None = None
        self._failure: Exception | None = None
        self._failed = trio.Event()
        self._may_go = trio.Event()
        self._subscribers: list[trio.MemorySendChannel[RaftNews]] = []
        self._leader_followers: list[Callable[[], None]] = []
        self._reports = FetchReports()
        self.measures = RaftMeasures(trio.current_time())
        self._seen_state = node.quorum.state
        self._has_started = False
        self._nursery: trio.Nursery
        self._others: dict[type[Any], Callable[[Any], None]] = {
            effects.Append: self._append_as_leader,
            effects.AppendControl: self._append_control,
            effects.AppendFetched: self._append_fetched,
            effects.DeleteBefore: self._delete_before,
            effects.Flush: self._begin_flush,
            effects.SendRequest: self._begin_sending,
            effects.Respond: self._respond,
            effects.HighWatermarkAdvanced: self._advance,
            effects.LeaderChanged: self._publish_leader,
            effects.AppendRefused: lambda effect: None,
            effects.PeerRefused: lambda effect: self._reports.refused(effect.peer.address, effect.code, effect.why),
            effects.ShutdownFinished: lambda effect: self._may_go.set(),
        }
        """Effects beside those that the storage alone performs."""

    def news(self) -> trio.MemoryReceiveChannel[RaftNews]:
        """What the node finds out, from its start on. Each who follows it asks for its own before ``run``."""
        assert not self._has_started, "news that came before would be missed"
        sender, receiver = trio.open_memory_channel[RaftNews](math.inf)
        self._subscribers.append(sender)
        return receiver

    def on_leader_changed(self, follow: Callable[[], None]) -> None:
        """Call this at once, each time that the node has found another leader, or has lost the one it had."""
        self._leader_followers.append(follow)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take part in the quorum until cancelled. Raises OSError, KafkaError, CorruptFileError where the log cannot be kept."""
        self._has_started = True
        try:
            async with trio.open_nursery() as self._nursery:
                self._start()
                self._nursery.start_soon(self._run_timers)
                self._nursery.start_soon(self._work_on_disk)
                await self._failed.wait()
                self._nursery.cancel_scope.cancel()
            assert self._failure is not None
            raise self._failure
        finally:
            self._failed.set()
            self._may_go.set()
            for pending in self._pending.values():
                pending.is_there.set()
            for client in self._clients.values():
                client.close()
            self.storage.close()

    def _start(self) -> None:
        log = self.storage.log
        election = log.election
        if election is not None and election.epoch < log.last_epoch:
            logger.warning(
                "quorum-state has epoch %d, and the log of %s epoch %d", election.epoch, log.directory, log.last_epoch
            )
        self._take(self.node.start(_now_ms(), election))

    async def leave(self, timeout_ms: int) -> None:
        """Resign where this node leads, and return once another does, or the time is up."""
        self.step(events.ShutdownRequested(timeout_ms))
        if not self._failed.is_set():
            await self._may_go.wait()

    # --- events -------------------------------------------------------------------------------------------------------

    def step(self, event: events.RaftEvent) -> None:
        """Give the node an event. What it asks for is performed at once, as far as nothing has to be waited for."""
        if not self._failed.is_set():
            self._take(self.node.step(_now_ms(), event))

    async def ask(self, request: Message, listener: str, version: int | None = None) -> Any:
        """The response to a request of another node, in a version, by default the newest.

        Raises KafkaError BROKER_NOT_AVAILABLE where the driver has ended.
        """
        self._last_request_id += 1
        request_id = self._last_request_id
        pending = self._pending[request_id] = _DeferredResponse()
        try:
            self.step(events.RequestReceived(request_id, request, listener, self._clock.now_ms(), version))
            if not self._failed.is_set():
                await pending.is_there.wait()
        finally:
            del self._pending[request_id]
        if pending.response is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "This controller shuts down.")
        return pending.response

    def append(self, epoch: int, batches: Sequence[events.PreparedBatch]) -> int:
        """Append as the leader of ``epoch``; returns the offset of the last record.

        Raises KafkaError NOT_CONTROLLER where this node does not lead in that epoch.
        """
        # The outline grows within the step. The effects, ``AppendRefused`` among them, may wait behind the disk.
        wanted = self.node.quorum.log.end_offset + sum(batch.record_count for batch in batches)
        self.step(events.AppendRequested(epoch, tuple(batches)))
        if self.node.quorum.log.end_offset != wanted:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"This controller does not lead in epoch {epoch}.")
        return wanted - 1

    def note_snapshot(self, snapshot: MetadataSnapshotId, size: int) -> None:
        """A snapshot of what is committed has its name; ``size`` in bytes."""
        self.measures.note_snapshot(size, trio.current_time())
        self.step(events.SnapshotWritten(snapshot, size))

    def clean(self, snapshot: MetadataSnapshotId) -> bool:
        """Let the log begin at the end of a snapshot, and delete older ones; False where it cannot."""
        before = self.node.quorum.log.start_offset
        self.step(events.CleanRequested(snapshot))
        return self.node.quorum.log.start_offset > before

    async def _run_timers(self) -> None:
        """Wake the node when its deadline has come."""
        while True:
            self._timer_at = self.node.deadline_ms
            self._earlier = trio.Event()
            with trio.move_on_at(self._timer_at / 1000 + _ROUNDING_SECONDS):
                await self._earlier.wait()
            if self.node.deadline_ms <= _now_ms():
                self.step(events.Tick())

    # --- effects ------------------------------------------------------------------------------------------------------

    def _take(self, asked: list[effects.RaftEffect]) -> None:
        if self.node.deadline_ms < self._timer_at:
            self._earlier.set()
        state = self.node.quorum.state
        if state is not self._seen_state:
            self._seen_state = state
            self.measures.note_state(self._seen_state, trio.current_time())
        self._effects.extend(asked)
        self._perform()

    def _perform(self) -> None:
        """Perform what waits, up to an effect that has to wait for the disk."""
        # ``on_leader_changed`` calls others within an effect. An event that they give the node must not overtake the rest.
        if self._is_performing or self._is_held_up:
            return
        self._is_performing = True
        try:
            while self._effects and not self._failed.is_set():
                if isinstance(self._effects[0], effects.Persist | effects.FinishSnapshot):
                    self._is_held_up = True
                    self._work.set()
                    return
                effect: Any = self._effects.popleft()
                perform = self._others.get(type(effect))
                if perform is None:
                    self.storage.perform(effect, self._clock.now_ms())
                else:
                    perform(effect)
        except (OSError, KafkaError, CorruptFileError) as error:
            self._fail(error)
        finally:
            self._is_performing = False

    async def _work_on_disk(self) -> None:
        """Perform each effect that holds up the others."""
        while True:
            await self._work.wait()
            self._work = trio.Event()
            if self._failed.is_set():  # a flush beside it: what was to be done is gone
                return
            effect = self._effects.popleft()
            try:
                if isinstance(effect, effects.Persist):
                    await self._workers.run(self.storage.persist, effect)
                else:
                    assert isinstance(effect, effects.FinishSnapshot)
                    # The log is emptied after the snapshot has its name: a start after a crash finds the one or the other.
                    head = await self._workers.run(self.storage.freeze_snapshot, effect.snapshot)
                    self.storage.start_after(effect.snapshot, head)
                    await self.storage.log.remove_deleted_snapshots()
            except (OSError, KafkaError, CorruptFileError) as error:
                self._fail(error)
                return
            self._is_held_up = False
            self._perform()

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._effects.clear()
        self._failed.set()
        self._may_go.set()

    def _begin_flush(self, effect: effects.Flush) -> None:
        self._nursery.start_soon(self._flush)

    async def _flush(self) -> None:
        try:
            await self.storage.log.flush()
        except (OSError, KafkaError) as error:
            self._fail(error)
        else:
            self.step(events.FlushFinished())

    def _append_as_leader(self, effect: effects.Append) -> None:
        self.storage.perform(effect, self._clock.now_ms())
        self.measures.note_appended(effect.base_offset, effect.record_count, trio.current_time())

    def _append_control(self, effect: effects.AppendControl) -> None:
        self.storage.perform(effect, self._clock.now_ms())
        self.measures.note_appended(effect.base_offset, len(effect.messages), trio.current_time())

    def _append_fetched(self, effect: effects.AppendFetched) -> None:
        before = self.storage.log.end_offset
        self.storage.perform(effect, self._clock.now_ms())
        self.measures.note_fetched(effect.end_offset - before, trio.current_time())

    def _delete_before(self, effect: effects.DeleteBefore) -> None:
        self.storage.log.delete_before(effect.snapshot, self._clock.now_ms())
        self._nursery.start_soon(self._remove_deleted_snapshots)

    async def _remove_deleted_snapshots(self) -> None:
        try:
            await self.storage.log.remove_deleted_snapshots()
        except OSError as error:
            self._fail(error)

    def _advance(self, effect: effects.HighWatermarkAdvanced) -> None:
        self.storage.log.advance_high_watermark(effect.high_watermark)
        self.measures.note_committed(effect.high_watermark, trio.current_time())
        self._publish(effect)

    def _publish_leader(self, effect: effects.LeaderChanged) -> None:
        self._publish(effect)
        for each in self._leader_followers:
            each()

    def _publish(self, news: RaftNews) -> None:
        for each in self._subscribers:
            each.send_nowait(news)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _respond(self, effect: effects.Respond) -> None:
        pending = self._pending.get(effect.request_id)
        if pending is None:
            return  # who has asked is gone
        self.storage.complete(effect)
        pending.response = effect.response
        pending.is_there.set()

    def _begin_sending(self, effect: effects.SendRequest) -> None:
        if self._has_free_sender:
            self._has_free_sender, self._next_request = False, effect
        else:
            self._nursery.start_soon(self._send_all, effect)

    async def _send_all(self, effect: effects.SendRequest) -> None:
        """Send a request, then the one that the node makes of its response, and so on: that spares a task for each fetch."""
        request: effects.SendRequest | None = effect
        while request is not None:
            outcome = await self._send(request)
            self._has_free_sender, self._next_request = True, None
            if outcome is not None:
                self.step(outcome)
            request, self._has_free_sender = self._next_request, False

    async def _send(self, effect: effects.SendRequest) -> events.ResponseReceived | events.RequestFailed | None:
        """What becomes of a request; None where its time is up, which the node knows."""
        request, address = effect.request, effect.peer.address
        ends = trio.current_time() + effect.timeout_ms / 1000
        client = self._clients.get(address)
        if client is None:
            client = self._clients[address] = self._connect(address)
        try:
            version = await client.negotiate(type(request))
            response = await client.send(request, version)
        except NoAnswerError as error:
            if _is_fetch(request):
                self._reports.failed(str(error))
            if trio.current_time() >= ends:
                return None
            is_refused = isinstance(error.__cause__, ConnectionRefusedError)
            return events.RequestFailed(effect.request_id, is_refused=is_refused)
        except KafkaError as error:
            if _is_fetch(request):
                self._reports.refused(address, error.code, error.message or "")
            return events.RequestFailed(effect.request_id, error.code)
        except ValueError:  # the version lacks a field that the request needs
            return events.RequestFailed(effect.request_id, ErrorCode.UNSUPPORTED_VERSION)
        if isinstance(request, FetchRequest) and _has_succeeded(response):
            self._reports.fetched()
        return events.ResponseReceived(effect.request_id, response)


def _is_fetch(request: Message) -> bool:
    return isinstance(request, FetchRequest | FetchSnapshotRequest)


def _has_succeeded(response: FetchResponse) -> bool:
    return not response.error_code and not response.responses[0].partitions[0].error_code


def _now_ms() -> float:
    return trio.current_time() * 1000
