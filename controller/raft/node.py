"""A node of a quorum as a pure state machine: ``step(now, event)`` gives the effects (KIP-595, KIP-630, KIP-853, KIP-996).

The node knows its log by an outline, and the world by events; there is no await, no clock and no I/O in it. What may happen to
it is in ``events``, what it asks for in ``effects``, and what it knows in ``quorum_state``. Each step ends with a look at the
state's timers and at what the node has to send, and leaves ``deadline_ms`` for the next look.

What holds beside the invariants of ``quorum_state``, and why (Kafka's ``KafkaRaftClient``):

- A voter fetches at an offset only when all below is flushed, so that its fetch counts for the leader's high watermark.
- The log is cut only where the leader's differs, and never below what is known to be committed.
- A leader whose process is gone, so that nothing listens at its address, is not waited for: its followers have another one
  elected after a fraction of the fetch timeout. In Kafka they wait for all of it.
- A node that is the only voter has no timers.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Sequence

from ...base.errors import KafkaError
from . import inbound, polling, responses, voter_changes
from .effects import DeleteBefore, LeaderChanged, RaftEffect
from .election import Resigned
from .election_file import NOBODY, ElectionState
from .events import (
    AppendRequested,
    CleanRequested,
    FlushFinished,
    KRaftVersionRequested,
    RaftEvent,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    ShutdownRequested,
    SnapshotWritten,
)
from .leader import RaftLeader
from .log_outline import LogOutline
from .quorum_state import QuorumState, RaftIdentity
from .settings import RaftTimes
from .voter_set import VoterSet
from .voters import ControllerAddress


class RaftNode:
    """See the module. ``start`` it, then give it each event by ``step``. The arguments are those of ``QuorumState``."""

    def __init__(
        self,
        identity: RaftIdentity,
        times: RaftTimes,
        log: LogOutline,
        bootstrap: Sequence[ControllerAddress],
        static_voters: VoterSet,
        randomness: random.Random,
    ) -> None:
        self.quorum = QuorumState(identity, times, log, bootstrap, static_voters, randomness, _PendingRequests())
        self.deadline_ms = math.inf
        """When a Tick is due."""
        self._notified: tuple[int, int] = (0, NOBODY)
        """The epoch and the leader of the last ``LeaderChanged``."""

    # --- steps --------------------------------------------------------------------------------------------------------

    def start(self, now_ms: float, election: ElectionState | None) -> list[RaftEffect]:
        """Begin with what ``quorum-state`` says; None without that file. Returns effects as ``step`` does."""
        self.quorum.initialize(now_ms, election)
        return self._end_step(now_ms)

    def step(self, now_ms: float, event: RaftEvent) -> list[RaftEffect]:
        """Returns the effects of an event, to be performed in this order behind those of the step before."""
        quorum = self.quorum
        if isinstance(event, ResponseReceived):
            responses.handle_response(quorum, event.request_id, event.response, now_ms)
        elif isinstance(event, RequestReceived):
            inbound.handle_request(quorum, event, now_ms)
        elif isinstance(event, RequestFailed):
            responses.handle_failure(quorum, event.request_id, event.error, now_ms, is_refused=event.is_refused)
        elif isinstance(event, FlushFinished):
            quorum.end_flush()
        elif isinstance(event, AppendRequested):
            quorum.append(event.epoch, event.batches)
        elif isinstance(event, SnapshotWritten):
            if event.snapshot.end_offset >= quorum.log.start_offset:
                quorum.log.add_snapshot(event.snapshot, event.size)
        elif isinstance(event, CleanRequested):
            if quorum.log.delete_before(event.snapshot):
                quorum.emit(DeleteBefore(event.snapshot))
        elif isinstance(event, KRaftVersionRequested):
            if isinstance(quorum.state, RaftLeader) and quorum.state.epoch == event.epoch:
                with contextlib.suppress(KafkaError):
                    voter_changes.upgrade(quorum, quorum.state, event.level)
        elif isinstance(event, ResignRequested):
            if isinstance(quorum.state, RaftLeader) and quorum.state.epoch == event.epoch:
                quorum.state.is_resign_requested = True
        elif isinstance(event, ShutdownRequested):
            quorum.shutdown_deadline_ms = now_ms + event.timeout_ms
        return self._end_step(now_ms)

    def _end_step(self, now_ms: float) -> list[RaftEffect]:
        quorum = self.quorum
        self.deadline_ms = math.inf if quorum.is_stopped else polling.poll(quorum, now_ms)
        # Last, as polling may change the state, and ``HighWatermarkAdvanced`` has to come before the news that this node leads.
        self._notify_leader()
        return quorum.take_effects()

    def _notify_leader(self) -> None:
        """Name the leader, if it is another one: this node itself only when a record of its epoch is committed."""
        state = self.quorum.state
        leads = isinstance(state, RaftLeader) and state.high_watermark is not None
        is_own = isinstance(state, RaftLeader | Resigned)
        news = (state.epoch, NOBODY if is_own and not leads else state.leader_id)
        if news != self._notified:
            self._notified = news
            self.quorum.emit(LeaderChanged(*news))

    # --- the leader ---------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.quorum.epoch

    @property
    def leader_id(self) -> int:
        """See ``QuorumState.leader_id``."""
        return self.quorum.leader_id

    @property
    def leader_address(self) -> ControllerAddress | None:
        """Where nodes of the quorum reach the leader, if that is known."""
        return self.quorum.leader_address


class _PendingRequests:
    """The ``PendingRequests`` of a node: changes of the voters that are under way first, then fetches that wait."""

    def complete_appended(self, quorum: QuorumState, leading: RaftLeader) -> None:
        inbound.complete_appended(quorum, leading)

    def complete_committed(self, quorum: QuorumState, leading: RaftLeader) -> None:
        voter_changes.complete_committed(quorum, leading)
        inbound.complete_all(quorum, leading)

    def refuse_all(self, quorum: QuorumState, left: RaftLeader) -> None:
        voter_changes.refuse_all(quorum, left)
        inbound.refuse_all(quorum, left)
