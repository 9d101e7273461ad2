"""A machine of a simulated quorum: its disk, its clock, and the Raft node that lives on it now.

It performs a node's effects as a driver must: in their order, a flush beside them. It can die between any two of them.
"""

from __future__ import annotations

import collections
import random
import re
from typing import TYPE_CHECKING, Any

from ottla.controller.raft import effects, events
from ottla.controller.raft.leader import RaftLeader
from ottla.controller.raft.log_outline import QuorumEntry
from ottla.controller.raft.node import RaftNode
from ottla.controller.raft.quorum_state import RaftIdentity
from ottla.controller.raft.settings import RaftTimes
from ottla.controller.raft.storage import LogEffect
from ottla.controller.raft.voter_set import ListenerEndpoint, ReplicaKey, VoterSet
from ottla.controller.raft.voters import KRAFT_VERSIONS, ControllerAddress
from ottla.log.metadata_snapshots import MetadataSnapshotId
from ottla.tests.simulation.raft.disk import DiskFullError, ModelDisk
from ottla.tests.simulation.raft.real_disk import RealDisk
from ottla.wire.control_records import build_quorum_batch
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from ottla.wire.messages.control_records import KRaftVersionRecord, SnapshotFooterRecord, SnapshotHeaderRecord
from ottla.wire.messages.vote import VoteRequest, VoteResponse
from ottla.wire.record_codec import Record
from ottla.wire.records import build_batch
from ottla.wire.schema import Message

if TYPE_CHECKING:
    from ottla.tests.simulation.raft.world import QuorumWorld

CLUSTER_ID = "quorum"
LISTENER = "CONTROLLER"


def endpoint_of(node_id: int, move: int = 0) -> ListenerEndpoint:
    """Where a node is reached; it has another port when it has moved."""
    return ListenerEndpoint(LISTENER, f"host-{node_id}", 9000 + 100 * move + node_id)


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, b"directory" + node_id.to_bytes(7, "big"))


class RaftMachine:
    """See the module. ``node`` is None while it is down."""

    def __init__(self, world: QuorumWorld, node_id: int, may_vote: bool, is_real: bool) -> None:
        self.world = world
        self.node_id = node_id
        self.name = f"node {node_id}"
        self.identity = RaftIdentity(CLUSTER_ID, key_of(node_id), (endpoint_of(node_id),), LISTENER, may_vote)
        self.randomness = random.Random(f"{world.seed} machine {node_id}")
        self.disk: ModelDisk = RealDisk(self.randomness) if is_real else ModelDisk(self.randomness)
        self.node: RaftNode | None = None
        self.life = 0
        self.rate = 1.0
        self.sync_ms = 1.0
        """How long a sync takes in the mean."""
        self.dies_after: int | None = None
        """After so many effects the machine dies."""
        self.told_epoch = 0
        self.high_watermark = 0
        self.checked_offset = 0
        self.led_epoch = -1
        self.newest_quorum: QuorumEntry | None = None
        self.leads: int | None = None
        """The epoch in which the node's controller is active."""
        self._queue: collections.deque[Any] = collections.deque()
        self._is_blocked = False
        self._is_running = False
        self._clock = (0.0, 0.0)
        self._tick_at = float("inf")
        self._requests: dict[int, tuple[int, int, int]] = {}
        self._asked: dict[int, VoteRequest] = {}
        self._last_request = 0

    # --- time ---------------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        """By the machine's own clock."""
        world_ms, own_ms = self._clock
        return own_ms + (self.world.now_ms - world_ms) * self.rate

    def change_rate(self, rate: float) -> None:
        self._clock = (self.world.now_ms, self.now_ms)
        self.rate = rate
        self._tick_at = float("inf")
        if self.node is not None:
            self._set_timer()

    def _set_timer(self) -> None:
        assert self.node is not None
        deadline = self.node.deadline_ms
        if deadline == float("inf"):
            return
        at = self.world.now_ms + max(0.0, deadline - self.now_ms) / self.rate + 0.001
        if at < self._tick_at - 0.0005 or self._tick_at <= self.world.now_ms:
            self._tick_at = at
            self.world.at(at, self._tick, self.life)

    def _tick(self, life: int) -> None:
        if life != self.life or self.node is None:
            return
        if self.world.now_ms + 0.0005 < self._tick_at:
            return
        self._tick_at = float("inf")
        if self.node.deadline_ms <= self.now_ms:
            self.step(events.Tick())
        else:
            self._set_timer()

    # --- lives --------------------------------------------------------------------------------------------------------

    def start(self, times: RaftTimes, bootstrap: list[ControllerAddress], static_voters: VoterSet) -> None:
        self.world.log(self.name, "starts")
        self.life += 1
        self._queue.clear()
        self._is_blocked = self._is_running = False
        self._tick_at = float("inf")
        self._requests.clear()
        self._asked.clear()
        self.high_watermark = self.checked_offset = 0
        self.led_epoch, self.newest_quorum, self.leads = -1, None, None
        outline = self.disk.open()
        self.node = RaftNode(self.identity, times, outline, bootstrap, static_voters, self.randomness)
        self._stepped(self.node.start(self.now_ms, self.disk.election))

    def move(self) -> None:
        """From its next start on it says that it has another port. It is reached by the old one all the same."""
        endpoint = endpoint_of(self.node_id, self.randomness.randint(0, 9))
        self.identity = self.identity._replace(endpoints=(endpoint,))

    def die(self, loses_power: bool) -> None:
        self.world.log(self.name, "loses power" if loses_power else "is killed")
        self.world.crashes += 1
        self.life += 1
        self.node = self.leads = None
        self.dies_after = None
        self._queue.clear()
        if loses_power:
            self.disk.lose_power()
        else:
            self.disk.kill()

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self, event: events.RaftEvent) -> None:
        if self.node is None:
            return
        if self.world.is_verbose:
            self.world.log(self.name, f"<- {_short(event)}")
        self._stepped(self.node.step(self.now_ms, event))

    def _stepped(self, new: list[effects.RaftEffect]) -> None:
        assert self.node is not None
        self.world.steps += 1
        if self.world.is_verbose:
            quorum = self.node.quorum
            state, log = quorum.state, quorum.log
            self.world.log(
                self.name,
                f"{type(state).__name__} {state.epoch} end {log.end} flushed {log.flushed_offset} "
                f"hw {quorum.high_watermark}",
            )
            for effect in new:
                self.world.log(self.name, f"-> {_short(effect)}")
        self.world.inspector.stepped(self)
        self._queue.extend(self.world.reordered(new))
        self._set_timer()
        self._run()

    def _run(self) -> None:
        if self._is_running:
            return
        self._is_running = True
        life = self.life
        while self._queue and not self._is_blocked:
            if self.dies_after is not None:
                self.dies_after -= 1
                if self.dies_after < 0:
                    self.die(self.world.loses_power())
                    return
            try:
                self._perform(self._queue.popleft())
            except DiskFullError:
                self.die(loses_power=False)
                return
            if self.life != life:
                return
        self._is_running = False
        if not self._queue and not self._is_blocked:
            self.world.inspector.rested(self)

    def _perform(self, effect: Any) -> None:
        _PERFORMERS[type(effect)](self, effect)

    def _later(self, then: Any, *arguments: Any) -> None:
        """After a sync, unless the machine is dead by then."""
        delay = self.randomness.expovariate(1 / self.sync_ms)
        life = self.life

        def happen() -> None:
            if self.life == life:
                then(*arguments)

        self.world.after(delay, happen)

    # --- the disk -----------------------------------------------------------------------------------------------------

    def _persist(self, effect: effects.Persist) -> None:
        self.disk.persisting = effect.election
        self._slowly(effect)

    def _slowly(self, effect: LogEffect) -> None:
        """What has to be on stable storage before the next effect."""
        self._is_blocked = True
        self._later(self._done, effect)

    def _done(self, effect: LogEffect) -> None:
        try:
            self.disk.perform(effect)
        except DiskFullError:
            self.die(loses_power=False)
            return
        self._is_blocked = False
        self._run()

    def _at_once(self, effect: LogEffect) -> None:
        self.disk.perform(effect)

    def _truncate(self, effect: effects.Truncate) -> None:
        self.world.inspector.truncated(self, effect.end_offset)
        self.disk.perform(effect)
        self.checked_offset = min(self.checked_offset, effect.end_offset)

    def _flush(self, effect: effects.Flush) -> None:
        self._later(self._flushed, self.disk.begin_flush())

    def _flushed(self, count: int) -> None:
        try:
            self.disk.end_flush(count)
        except DiskFullError:
            self.die(loses_power=False)
            return
        self.step(events.FlushFinished())

    # --- messages -----------------------------------------------------------------------------------------------------

    def _send(self, effect: effects.SendRequest) -> None:
        node = self.node
        assert node is not None
        request = effect.request
        self.told_epoch = max(self.told_epoch, _epoch_of(request))
        if isinstance(request, VoteRequest):
            asked = request.topics[0].partitions[0]
            if not asked.pre_vote:
                self.world.inspector.voted(node.quorum.key, asked.replica_epoch, node.quorum.key.node_id)
        receiver = effect.peer.address.port % 100
        self.world.send(self, receiver, (self.node_id, self.life, effect.request_id), request)

    def receive(self, sender: tuple[int, int, int], request: Message) -> None:
        """A request of another machine; ``sender`` is its id, life, and id of the request."""
        if self.node is None:
            self.world.fail(sender)
            return
        if isinstance(request, ApiVersionsRequest):
            lowest, highest = KRAFT_VERSIONS
            feature = SupportedFeatureKey(name="kraft.version", min_version=lowest, max_version=highest)
            self.world.answer(self, sender, ApiVersionsResponse(supported_features=[feature]))
            return
        self._last_request += 1
        self._requests[self._last_request] = sender
        if isinstance(request, VoteRequest):
            self._asked[self._last_request] = request
        self.step(events.RequestReceived(self._last_request, request, LISTENER))

    def _respond(self, effect: effects.Respond) -> None:
        node, response = self.node, effect.response
        assert node is not None
        sender = self._requests.pop(effect.request_id)
        self.told_epoch = max(self.told_epoch, _epoch_of(response))
        if isinstance(response, VoteResponse):
            asked = self._asked.pop(effect.request_id).topics[0:1]
            if response.topics and response.topics[0].partitions[0].vote_granted:
                vote = asked[0].partitions[0]
                if not vote.pre_vote:
                    self.world.inspector.voted(node.quorum.key, vote.replica_epoch, vote.replica_id)
        if effect.read is not None:
            self.disk.complete(effect)
        self.world.answer(self, sender, response)

    # --- the controller -----------------------------------------------------------------------------------------------

    def _advanced(self, effect: effects.HighWatermarkAdvanced) -> None:
        self.disk.advance(effect.high_watermark)
        self.world.inspector.advanced(self, effect.high_watermark)

    def _leader_changed(self, effect: effects.LeaderChanged) -> None:
        node = self.node
        assert node is not None
        self.leads = effect.epoch if effect.leader_id == self.node_id else None
        if self.leads is not None:
            self.world.elections += 1
            self.world.log(self.name, f"leads epoch {effect.epoch}")

    def _ignore(self, effect: Any) -> None:
        pass

    def append_record(self, value: bytes) -> None:
        """The active controller appends, if this machine has it."""
        if self.leads is not None and self.node is not None:
            batch = build_batch([Record(offset=0, timestamp=int(self.now_ms), key=None, value=value, headers=())])
            self.step(events.AppendRequested(self.leads, (events.PreparedBatch(batch, 1),)))

    def write_snapshot(self, end_offset: int) -> None:
        """Write a snapshot of what is committed below the end of a batch, unless there is one."""
        digest = self.world.inspector.digests.get(end_offset)
        if self.node is None or digest is None or self._queue:
            return
        log = self.node.quorum.log
        if log.start_offset >= end_offset:
            return
        if end_offset > self.checked_offset or self.disk.is_full:
            return
        snapshot = MetadataSnapshotId(end_offset, log.epoch_at(end_offset - 1))
        if snapshot.epoch < 0 or snapshot in log.snapshots:
            return
        data = encode_model_snapshot(log.quorum_at(end_offset - 1), snapshot, digest)
        self.disk.add_snapshot(snapshot, data)
        self.step(events.SnapshotWritten(snapshot, len(data)))

    @property
    def is_leader(self) -> bool:
        return self.node is not None and isinstance(self.node.quorum.state, RaftLeader)


def encode_model_snapshot(quorum: QuorumEntry, snapshot: MetadataSnapshotId, digest: bytes) -> bytes:
    """A snapshot whose content is the digest of the committed log."""
    messages: list[tuple[Message, int]] = [(SnapshotHeaderRecord(last_contained_log_timestamp=0), 0)]
    if quorum.kraft_version and quorum.voters is not None:
        messages += [(KRaftVersionRecord(k_raft_version=quorum.kraft_version), 0), (quorum.voters.to_record(), 0)]
    epoch = snapshot.epoch
    head = build_quorum_batch(messages, base_offset=0, leader_epoch=epoch, timestamp=0)
    record = Record(offset=0, timestamp=0, key=None, value=digest, headers=())
    body = build_batch([record], base_offset=0, leader_epoch=epoch)
    footer = build_quorum_batch([(SnapshotFooterRecord(), 0)], base_offset=0, leader_epoch=epoch, timestamp=0)
    return bytes(head + body + footer)


def _epoch_of(request: Any) -> int:
    """The sender's epoch in a request or a response."""
    topics = getattr(request, "topics", None) or getattr(request, "responses", None)
    if not topics:
        return 0
    partition = topics[0].partitions[0]
    partition = getattr(partition, "current_leader", None) or partition
    for name in ("replica_epoch", "leader_epoch", "current_leader_epoch"):
        if hasattr(partition, name):
            return int(getattr(partition, name))
    return 0


def _short(what: object) -> str:
    return re.sub(r"<memory at \w+>", "<records>", repr(what))[:400]


_PERFORMERS: dict[type, Any] = {
    effects.Persist: RaftMachine._persist,
    effects.Append: RaftMachine._at_once,
    effects.AppendControl: RaftMachine._at_once,
    effects.AppendFetched: RaftMachine._at_once,
    effects.Truncate: RaftMachine._truncate,
    effects.Flush: RaftMachine._flush,
    effects.DeleteBefore: RaftMachine._at_once,
    effects.BeginSnapshot: RaftMachine._at_once,
    effects.AppendToSnapshot: RaftMachine._at_once,
    effects.FinishSnapshot: RaftMachine._slowly,
    effects.DropSnapshot: RaftMachine._at_once,
    effects.SendRequest: RaftMachine._send,
    effects.Respond: RaftMachine._respond,
    effects.HighWatermarkAdvanced: RaftMachine._advanced,
    effects.LeaderChanged: RaftMachine._leader_changed,
    effects.AppendRefused: RaftMachine._ignore,
    effects.PeerRefused: RaftMachine._ignore,
    effects.ShutdownFinished: RaftMachine._ignore,
}
