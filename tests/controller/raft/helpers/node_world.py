"""A Raft node by itself, for tables of scenarios: a clock, a disk without faults, and messages that the test answers by hand.

``NodeWorld`` performs the node's effects in their order on the simulation's model of a disk. It keeps the requests that the node
has sent until a scenario takes them with ``sent``, and gives it requests of others with ``vote``, ``fetch`` and the like, which
return what the node responds. There is no chance: timeouts are exactly their least, and the first of several servers is chosen.

What it checks by itself, in every scenario:

- an epoch, and a granted vote, are in ``quorum-state`` before any message tells of them;
- the node is not woken without end at one and the same time;
- a response comes once for each request.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.controller.raft import effects, events, messages
from ottla.controller.raft.election_file import NOBODY, ElectionState
from ottla.controller.raft.log_outline import QuorumEntry
from ottla.controller.raft.node import RaftNode
from ottla.controller.raft.quorum_state import QuorumState, RaftIdentity
from ottla.controller.raft.settings import RaftTimes
from ottla.controller.raft.voter_set import Endpoints, ReplicaKey, VoterSet
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, MetadataSnapshotId
from ottla.tests.controller.raft.helpers.quorum_parts import (
    ELECTION_MS,
    FETCH_MS,
    OWN,
    START_MS,
    address_of_node,
    batch_of,
    control_of,
    snapshot_of,
    static_voters_of,
    voters_of,
)
from ottla.tests.simulation.raft.disk import ModelDisk
from ottla.tests.simulation.raft.machine import CLUSTER_ID, LISTENER, encode_model_snapshot, endpoint_of, key_of
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.vote import VoteRequest
from ottla.wire.records import iter_batches
from ottla.wire.schema import ZERO_UUID, Message

_NEWS = (
    effects.HighWatermarkAdvanced
    | effects.LeaderChanged
    | effects.AppendRefused
    | effects.PeerRefused
    | effects.ShutdownFinished
)


class NoChance(random.Random):
    """Chance that always says the same: ``share`` of what may be added, and the first of what may be chosen."""

    share = 0.0

    def random(self) -> float:
        return self.share

    def choice(self, seq: Any) -> Any:
        return seq[0]


class NodeState(NamedTuple):
    """The state of a node: the name of its class, epoch, leader, and for whom it has voted in this epoch."""

    state: str
    epoch: int
    leader_id: int = NOBODY
    voted_id: int = NOBODY


class Told(NamedTuple):
    """What a response says of itself and of the leader."""

    error: ErrorCode
    epoch: int = -1
    leader_id: int = NOBODY
    granted: bool = False


class Fetched(NamedTuple):
    """What the response to a Fetch says. ``batches`` are (base offset, epoch)."""

    error: ErrorCode = ErrorCode.NONE
    epoch: int = -1
    leader_id: int = NOBODY
    high_watermark: int = -1
    batches: tuple[tuple[int, int], ...] = ()
    diverging: tuple[int, int] | None = None
    """(epoch, end offset)."""
    snapshot: MetadataSnapshotId | None = None


class NodeWorld:
    """See the module.

    ``voters`` are those of the 0-0 checkpoint, or, with ``kraft_version`` 0, those of ``controller.quorum.voters``. ``log`` has
    (epoch, number of records) for each batch, or (epoch, control message …). ``bootstrap`` are nodes; without static voters they
    are 2 and 3 unless given. ``epoch``, ``leader`` and ``voted`` are what
    ``quorum-state`` says; without any of them there is no such file. ``snapshots`` have their ends in the log; it is deleted
    before ``log_start``.
    """

    def __init__(
        self,
        *,
        own: ReplicaKey = key_of(OWN),  # noqa: B008
        voters: Sequence[int] | VoterSet = (1, 2, 3),
        kraft_version: int = 1,
        epoch: int = 0,
        leader: int = NOBODY,
        voted: ReplicaKey | None = None,
        log: Sequence[tuple[Any, ...]] = (),
        snapshots: Sequence[MetadataSnapshotId] = (),
        log_start: MetadataSnapshotId | None = None,
        bootstrap: Sequence[int] | None = None,
        may_vote: bool = True,
        endpoints: Endpoints | None = None,
        times: RaftTimes = RaftTimes(),  # noqa: B008
    ) -> None:
        self.now = START_MS
        self.times = times
        self.chance = NoChance()
        self.disk = ModelDisk(random.Random(0))
        self.told: list[effects.RaftEffect] = []
        """News for the node's own controller, and what was done to the log, since ``forget``."""
        self.holds_flushes = False
        """Whether a flush ends only with ``finish_flush``; else it ends at once."""
        self.reads: list[effects.LogRead | effects.SnapshotRead] = []
        """What responses were completed by."""
        self._flushing: list[int] = []
        self._sent: list[effects.SendRequest] = []
        self._requests: dict[int, Message] = {}
        self._responses: dict[int, Message] = {}
        self._next_id = 0
        servers = ((2, 3) if kraft_version else ()) if bootstrap is None else bootstrap
        self._bootstrap = [address_of_node(each) for each in servers]
        ids = tuple(voters.ids) if isinstance(voters, VoterSet) else tuple(voters)
        self.static_voters = VoterSet(())
        if kraft_version and ids:
            first = voters if isinstance(voters, VoterSet) else voters_of(*ids)
            self.disk.snapshots[BOOTSTRAP_ID] = encode_model_snapshot(QuorumEntry(-1, 1, first), BOOTSTRAP_ID, b"")
        elif ids:
            self.static_voters = static_voters_of(*ids)
        if epoch or leader != NOBODY or voted is not None:
            directory_id = voted.directory_id if voted is not None else ZERO_UUID
            voted_id = NOBODY if voted is None else voted.node_id
            self.disk.election = ElectionState(epoch, leader, voted_id, directory_id)
        for batch_epoch, *said in log:
            base = self.disk.log.end_offset
            made = isinstance(said[0], Message)
            self.disk.append(control_of(base, batch_epoch, *said) if made else batch_of(base, batch_epoch, said[0]))
        for snapshot in snapshots:
            self.disk.add_snapshot(snapshot, snapshot_of(snapshot, voters_of(*ids) if kraft_version else None))
        if log_start is not None:
            self._delete_log_before(log_start)
        where = (endpoint_of(own.node_id),) if endpoints is None else endpoints
        self.identity = RaftIdentity(CLUSTER_ID, own, where, LISTENER, may_vote)
        self.restart()

    def _delete_log_before(self, snapshot: MetadataSnapshotId) -> None:
        kept = [each for each in self.disk.log.batches if each.base_offset >= snapshot.end_offset]
        self.disk.log.batches, self.disk.log.base_offset = kept, snapshot.end_offset
        self.disk.snapshots.pop(BOOTSTRAP_ID, None)

    def restart(self) -> None:
        """The process ends, and another one begins with what is on the disk."""
        self.node = RaftNode(
            self.identity, self.times, self.disk.open(), self._bootstrap, self.static_voters, self.chance
        )
        self._sent.clear()
        self._flushing.clear()
        self._perform(self.node.start(self.now, self.disk.election))

    # --- time and effects ---------------------------------------------------------------------------------------------

    def sleep(self, duration_ms: float) -> None:
        """Time passes; the node gets a Tick whenever it asks for one."""
        end, ticks = self.now + duration_ms, 0
        while self.node.deadline_ms <= end:
            ticks = ticks + 1 if self.node.deadline_ms <= self.now else 0
            assert ticks < 5, f"{self.seen} wakes without end"
            self.now = max(self.now, self.node.deadline_ms)
            self.step(events.Tick())
        self.now = end

    def step(self, event: events.RaftEvent) -> None:
        self._perform(self.node.step(self.now, event))

    def _perform(self, new: Sequence[effects.RaftEffect]) -> None:
        for effect in new:
            self._perform_one(effect)
        if self._flushing and not self.holds_flushes:
            self.finish_flush()

    def finish_flush(self) -> None:
        """The flush in flight ends."""
        self.disk.end_flush(self._flushing.pop())
        self.step(events.FlushFinished())

    @property
    def is_flushing(self) -> bool:
        return bool(self._flushing)

    def _perform_one(self, effect: Any) -> None:
        disk = self.disk
        if isinstance(effect, effects.SendRequest):
            self._check_told(effect.request)
            self._sent.append(effect)
            return
        if isinstance(effect, effects.Respond):
            self._respond(effect)
            return
        if isinstance(effect, effects.Persist):
            assert disk.election is None or effect.election.epoch >= disk.election.epoch, "the epoch falls"
            disk.perform(effect)
        elif isinstance(effect, effects.Flush):
            assert not self._flushing, "one flush is in flight"
            self._flushing.append(disk.begin_flush())
        elif not isinstance(effect, _NEWS):
            disk.perform(effect)
        self.told.append(effect)

    def forget(self) -> None:
        """Let go of what was sent and told so far."""
        self._sent.clear()
        self.told.clear()

    # --- what there is ------------------------------------------------------------------------------------------------

    @property
    def quorum(self) -> QuorumState:
        return self.node.quorum

    @property
    def seen(self) -> NodeState:
        state = self.quorum.state
        voted = getattr(state, "voted", None)
        return NodeState(type(state).__name__, state.epoch, state.leader_id, NOBODY if voted is None else voted.node_id)

    @property
    def stored(self) -> ElectionState:
        """``quorum-state``."""
        assert self.disk.election is not None
        return self.disk.election

    @property
    def end_offset(self) -> int:
        assert self.quorum.log.end_offset == self.disk.log.end_offset, "the outline is that of the log"
        return self.disk.log.end_offset

    @property
    def batches(self) -> list[tuple[int, int]]:
        """(base offset, epoch) of each batch in the log."""
        return [(each.base_offset, each.epoch) for each in self.disk.log.batches]

    @property
    def flushed_offset(self) -> int:
        """Where the log ends that a loss of power leaves."""
        return self.disk.synced.end_offset

    @property
    def high_watermark(self) -> int | None:
        return self.quorum.high_watermark

    @property
    def shutdown(self) -> bool | None:
        """Whether the node has shut down in time; None while it has not."""
        finished = self.news(effects.ShutdownFinished)
        return finished[-1].in_time if finished else None

    def news(self, kind: type) -> list[Any]:
        """What of this kind the node has told its controller or done to its log, since ``forget``."""
        return [each for each in self.told if isinstance(each, kind)]

    # --- requests of the node -----------------------------------------------------------------------------------------

    def all_sent(self, kind: type[Message] | None = None) -> list[effects.SendRequest]:
        """Take the requests that were sent since, of one kind or of all."""
        found = [each for each in self._sent if kind is None or isinstance(each.request, kind)]
        self._sent = [each for each in self._sent if each not in found]
        return found

    def sent(self, kind: type[Message], to: int | None = None) -> effects.SendRequest:
        """Take the first request of this kind, which there has to be."""
        for each in self._sent:
            if isinstance(each.request, kind) and to in (None, each.peer.node_id):
                self._sent.remove(each)
                return each
        raise AssertionError(f"no {kind.__name__} to {to} among {[self._short(each) for each in self._sent]}")

    def receivers(self, kind: type[Message]) -> list[int]:
        """Take the requests of this kind; returns to whom they go."""
        return [each.peer.node_id for each in self.all_sent(kind)]

    @property
    def fetch_sent(self) -> effects.SendRequest:
        return self.sent(FetchRequest)

    @property
    def pre_votes(self) -> list[effects.SendRequest]:
        return [each for each in self.all_sent(VoteRequest) if each.request.topics[0].partitions[0].pre_vote]  # type: ignore[attr-defined]

    @property
    def votes(self) -> list[effects.SendRequest]:
        return [each for each in self.all_sent(VoteRequest) if not each.request.topics[0].partitions[0].pre_vote]  # type: ignore[attr-defined]

    @staticmethod
    def _short(each: effects.SendRequest) -> str:
        return f"{type(each.request).__name__} to {each.peer.node_id}"

    def answer(self, sent: effects.SendRequest, response: Message) -> None:
        self.step(events.ResponseReceived(sent.request_id, response))

    def fail(self, sent: effects.SendRequest, error: ErrorCode = ErrorCode.BROKER_NOT_AVAILABLE) -> None:
        self.step(events.RequestFailed(sent.request_id, error))

    def refuse(self, sent: effects.SendRequest) -> None:
        """Nothing listens where a request was sent to."""
        self.step(events.RequestFailed(sent.request_id, is_refused=True))

    def leader_of(self, leader: int = NOBODY, epoch: int | None = None) -> messages.KnownLeader:
        address = address_of_node(leader) if leader >= 0 else None
        return messages.KnownLeader(self.node.epoch if epoch is None else epoch, leader, address)

    def answer_vote(
        self,
        sent: effects.SendRequest,
        granted: bool = True,
        *,
        error: ErrorCode = ErrorCode.NONE,
        epoch: int | None = None,
        leader: int = NOBODY,
    ) -> None:
        self.answer(sent, messages.vote_response(self.leader_of(leader, epoch), error, granted))

    def answer_end(self, sent: effects.SendRequest) -> None:
        """Of a voter that has heard that the leader resigns."""
        self.answer(sent, messages.end_quorum_epoch_response(self.leader_of(self.node.leader_id), ErrorCode.NONE))

    def answer_fetch(
        self,
        sent: effects.SendRequest,
        records: bytes = b"",
        *,
        high_watermark: int = 0,
        error: ErrorCode = ErrorCode.NONE,
        epoch: int | None = None,
        leader: int | None = None,
        diverging: tuple[int, int] | None = None,
        snapshot: MetadataSnapshotId | None = None,
    ) -> None:
        """Of the leader whom the node follows, unless another one is given."""
        known = self.leader_of(self.node.leader_id if leader is None else leader, epoch)
        response = messages.fetch_response(
            known, error, log_start_offset=0, high_watermark=high_watermark, diverging=diverging, snapshot=snapshot
        )
        response.responses[0].partitions[0].records = records
        self.answer(sent, response)

    def answer_snapshot(
        self,
        sent: effects.SendRequest,
        data: bytes = b"",
        *,
        snapshot: MetadataSnapshotId,
        size: int,
        position: int = 0,
        error: ErrorCode = ErrorCode.NONE,
        epoch: int | None = None,
        leader: int | None = None,
    ) -> None:
        known = self.leader_of(self.node.leader_id if leader is None else leader, epoch)
        response = messages.fetch_snapshot_response(known, error, snapshot, size=size, position=position)
        response.topics[0].partitions[0].unaligned_records = data
        self.answer(sent, response)

    # --- requests of others -------------------------------------------------------------------------------------------

    def ask(self, request: Message, listener: str = LISTENER) -> int:
        """Give the node a request; returns its id, by which ``response`` finds the response."""
        self._next_id += 1
        self._requests[self._next_id] = request
        self.step(events.RequestReceived(self._next_id, request, listener, int(self.now)))
        return self._next_id

    def response(self, request_id: int) -> Any:
        """The response to a request; None while it waits."""
        return self._responses.get(request_id)

    def vote(
        self,
        candidate: int | ReplicaKey = 2,
        epoch: int | None = None,
        last: tuple[int, int] | None = None,
        *,
        pre_vote: bool = False,
        voter: ReplicaKey | None = None,
        cluster_id: str | None = CLUSTER_ID,
    ) -> Told:
        """``last`` is the (epoch, offset) of the candidate's log; that of the node's own unless given."""
        key = key_of(candidate) if isinstance(candidate, int) and candidate >= 0 else candidate
        asked = ReplicaKey(key) if isinstance(key, int) else key
        request = messages.vote_request(
            "", asked, voter or self.quorum.key, self._epoch(epoch), last or self.quorum.log.end, pre_vote
        )
        request.cluster_id = cluster_id  # type: ignore[assignment]
        response = self.response(self.ask(request))
        if response.error_code:
            return Told(ErrorCode(response.error_code))
        partition = response.topics[0].partitions[0]
        return self._told(partition.error_code, partition, partition.vote_granted)

    def begin(
        self,
        leader: int,
        epoch: int | None = None,
        *,
        voter: ReplicaKey | None = None,
        endpoints: Endpoints | None = None,
        cluster_id: str | None = CLUSTER_ID,
    ) -> Told:
        where = (endpoint_of(leader),) if endpoints is None else endpoints
        request = messages.begin_quorum_epoch_request("", leader, self._epoch(epoch), voter or self.quorum.key, where)
        request.cluster_id = cluster_id  # type: ignore[assignment]
        return self._short_response(request)

    def end(
        self,
        leader: int,
        epoch: int | None = None,
        successors: Sequence[ReplicaKey] = (),
        *,
        cluster_id: str | None = CLUSTER_ID,
    ) -> Told:
        request = messages.end_quorum_epoch_request("", leader, self._epoch(epoch), successors, (endpoint_of(leader),))
        request.cluster_id = cluster_id  # type: ignore[assignment]
        return self._short_response(request)

    def _short_response(self, request: Message) -> Told:
        response = self.response(self.ask(request))
        if response.error_code:
            return Told(ErrorCode(response.error_code))
        partition = response.topics[0].partitions[0]
        return self._told(partition.error_code, partition)

    def fetch_request(
        self,
        replica: int | ReplicaKey = 2,
        offset: int | None = None,
        last_epoch: int | None = None,
        *,
        epoch: int | None = None,
        max_wait_ms: int = 0,
        max_bytes: int = 1 << 20,
        high_watermark: int = (1 << 63) - 1,
        cluster_id: str | None = CLUSTER_ID,
    ) -> FetchRequest:
        """A Fetch at the end of the node's own log, unless told otherwise. It knows any high watermark, so it may wait."""
        key = key_of(replica) if isinstance(replica, int) and replica >= 0 else replica
        end = (
            self.quorum.log.last_epoch if last_epoch is None else last_epoch,
            self.end_offset if offset is None else offset,
        )
        request = messages.fetch_request(
            "",
            ReplicaKey(key) if isinstance(key, int) else key,
            self._epoch(epoch),
            end,
            high_watermark,
            max_wait_ms=max_wait_ms,
            max_bytes=max_bytes,
        )
        request.cluster_id = cluster_id
        return request

    def fetch(self, *args: Any, **options: Any) -> Fetched:
        """What the node responds to ``fetch_request`` at once."""
        fetched = self.fetched(self.ask(self.fetch_request(*args, **options)))
        assert fetched is not None, "the Fetch waits"
        return fetched

    def fetched(self, request_id: int) -> Fetched | None:
        """The response to a Fetch; None while it waits."""
        response = self.response(request_id)
        if response is None or response.error_code:
            return None if response is None else Fetched(ErrorCode(response.error_code))
        partition = response.responses[0].partitions[0]
        diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
        return Fetched(
            ErrorCode(partition.error_code),
            partition.current_leader.leader_epoch,
            partition.current_leader.leader_id,
            partition.high_watermark,
            tuple((each.base_offset, each.partition_leader_epoch) for each in iter_batches(partition.records or b"")),
            None if diverging is None else (diverging.epoch, diverging.end_offset),
            None if snapshot is None else MetadataSnapshotId(snapshot.end_offset, snapshot.epoch),
        )

    def _epoch(self, epoch: int | None) -> int:
        return self.node.epoch if epoch is None else epoch

    def _told(self, error: int, leader: Any, granted: bool = False) -> Told:
        return Told(ErrorCode(error), leader.leader_epoch, leader.leader_id, granted)

    def _respond(self, effect: effects.Respond) -> None:
        response: Any = effect.response
        request: Any = self._requests.pop(effect.request_id)
        self._check_told(response)
        if isinstance(request, VoteRequest) and response.topics and response.topics[0].partitions[0].vote_granted:
            asked = request.topics[0].partitions[0]
            assert asked.pre_vote or self.stored.voted_id == asked.replica_id, "a vote that is not written is granted"
        if effect.read is not None:
            self.reads.append(effect.read)
            self.disk.complete(effect)
        self._responses[effect.request_id] = response

    def _check_told(self, message: Any) -> None:
        """No message tells of an epoch that is not written. Requests tell of it in fields of several names."""
        topics = getattr(message, "topics", None) or getattr(message, "responses", None) or ()
        for topic in topics:
            for partition in topic.partitions:
                leader = getattr(partition, "current_leader", None) or partition
                for name in ("leader_epoch", "replica_epoch", "current_leader_epoch"):
                    epoch = getattr(leader, name, -1)
                    assert epoch <= self.stored.epoch, f"epoch {epoch} is told and not written: {message}"

    # --- elections ----------------------------------------------------------------------------------------------------

    def become_prospective(self) -> list[effects.SendRequest]:
        """Let timeouts pass until the node asks for pre-votes; returns these."""
        if self.seen.state != "Prospective":
            self.forget()
        for _ in range(4):
            if self.seen.state == "Prospective":
                break
            self.sleep(FETCH_MS if self.seen.state == "RaftFollower" else ELECTION_MS)
        assert self.seen.state == "Prospective"
        return self.pre_votes

    def become_candidate(self) -> list[effects.SendRequest]:
        """The same until it asks for votes."""
        for sent in self.become_prospective():
            if self.seen.state == "Prospective":
                self.answer_vote(sent)
        assert self.seen.state == "RaftCandidate"
        return self.votes

    def become_leader(self) -> int:
        """The same until it leads; returns its epoch. Its requests and news so far are forgotten."""
        if self.seen.state != "RaftLeader":
            for sent in self.become_candidate():
                if self.seen.state == "RaftCandidate":
                    self.answer_vote(sent)
        assert self.seen.state == "RaftLeader"
        for sent in self.all_sent(BeginQuorumEpochRequest):
            response = messages.begin_quorum_epoch_response(self.leader_of(self.quorum.key.node_id), ErrorCode.NONE)
            self.answer(sent, response)
        self.forget()
        return self.node.epoch

    def commit(self, *replicas: int) -> int:
        """Other voters, 2 and 3 unless given, fetch at the end of the leader's log; returns the high watermark then."""
        for replica in replicas or [each for each in self.quorum.voters.ids if each != self.quorum.key.node_id]:
            self.fetch(replica)
        assert self.high_watermark == self.end_offset
        return self.end_offset

    def shut_down(self, timeout_ms: int = 5000) -> None:
        self.step(events.ShutdownRequested(timeout_ms))

    def resign(self, epoch: int | None = None) -> None:
        """The active controller gives up."""
        self.step(events.ResignRequested(self._epoch(epoch)))

    def append(self, *counts: int, epoch: int | None = None) -> None:
        """The active controller appends a batch of so many records for each."""
        batches = tuple(events.PreparedBatch(batch_of(0, 0, count), count) for count in counts)
        self.step(events.AppendRequested(self._epoch(epoch), batches))
