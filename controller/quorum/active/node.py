"""A controller node of a quorum: its Raft node, its controller, and the requests it receives.

Each node follows what is committed, so that the one which becomes leader has the state at hand. It claims the leadership when
Raft says so, and gives it up when another is named. The tasks of the active controller are done when their time has come. With no
task due and nobody who asks, the node writes nothing.

Requests of Raft go to the driver. The others are operations of the active controller, and a standby refuses them with
NOT_CONTROLLER.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from ....base.distribution import Distribution
from ....base.errors import ErrorCode, KafkaError
from ....base.seams import Clock, Workers
from ....metadata.types import LogPosition
from ....wire.messages.add_raft_voter import AddRaftVoterRequest
from ....wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ....wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ....wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ....wire.messages.broker_registration import BrokerRegistrationRequest
from ....wire.messages.controller_registration import ControllerRegistrationRequest
from ....wire.messages.describe_quorum import DescribeQuorumRequest
from ....wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from ....wire.messages.fetch import FetchRequest
from ....wire.messages.fetch_snapshot import FetchSnapshotRequest
from ....wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from ....wire.messages.update_raft_voter import UpdateRaftVoterRequest
from ....wire.messages.vote import VoteRequest
from ....wire.records import RecordsBuilder
from ....wire.schema import Message
from ...raft.driver import RaftDriver
from ...raft.effects import LeaderChanged
from ...raft.events import KRaftVersionRequested, PreparedBatch, ResignRequested
from ...raft.leader import RaftLeader
from ...raft.metadata_cleaning import MetadataLogCleaner
from ...raft.metadata_log import CommittedBatch
from ...raft.settings import MetadataLogSettings
from ...raft.voter_changes import check_upgrade
from ..controller_client import Connect, ControllerClient
from ..following import MetadataFollower
from ..loader import LoaderManifest, snapshot_image
from ..snapshot_generator import SnapshotGenerator
from .brokers import register_controller
from .context import OperationContext
from .controller import ActiveController, Operation
from .periodic import PeriodicTask
from .producer_ids import allocate_producer_ids
from .registrar import ControllerRegistrar
from .request_source import RequestSource
from .result import ControllerResult

OF_RAFT = (
    VoteRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    DescribeQuorumRequest,
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
"""Requests for the Raft node."""

_ROUNDING_SECONDS = 1e-6
"""The wait for a task ends by so much later: rounded down, its time would not have come, and the loop would not rest."""

if TYPE_CHECKING:
    from .requests import ControllerRequests

T = TypeVar("T")


class RaftWriter:
    """The log of the quorum as its leader's controller writes it (``MetadataLogWriter``)."""

    def __init__(self, driver: RaftDriver, clock: Clock) -> None:
        self._driver = driver
        self._clock = clock
        self.bytes_written = 0
        """Of batches, since somebody has set it to 0."""
        self.written_at_ms = -1
        """When the last batch was written, by the wall clock; -1 before the first one."""

    @property
    def next_offset(self) -> int:
        return self._driver.node.quorum.log.end_offset

    def append(self, epoch: int, values: Sequence[bytes]) -> int:
        builder, now_ms = RecordsBuilder(), self._clock.now_ms()
        for value in values:
            builder.append(None, value, now_ms)
        batch = builder.build()
        last_offset = self._driver.append(epoch, [PreparedBatch(batch, len(values))])
        self.bytes_written += len(batch)
        self.written_at_ms = now_ms
        return last_offset


def token_expiry(clock: Clock, interval_ms: int = 3_600_000) -> PeriodicTask:
    """The task that removes delegation tokens whose time is up (``delegation.token.expiry.check.interval.ms``)."""

    def expire(context: OperationContext) -> ControllerResult[bool]:
        if not context.image.tokens:
            return ControllerResult((), response=False)
        from .tokens import remove_expired_tokens  # few clusters have tokens

        return remove_expired_tokens(context.image, clock.now_ms())

    return PeriodicTask("expireTokens", expire, interval_ms)


def raise_kraft_version(driver: RaftDriver, level: int, only_checks: bool) -> None:
    """Have the leader's Raft node finalize a level of ``kraft.version``. Raises KafkaError."""
    quorum = driver.node.quorum
    state = quorum.state
    if not isinstance(state, RaftLeader):
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "This controller does not lead the quorum.")
    if check_upgrade(quorum, state, level) and not only_checks:
        driver.step(KRaftVersionRequested(state.epoch, level))


class _Outcome(Generic[T]):
    """What an operation responds, once it does."""

    def __init__(self) -> None:
        self._value: T | KafkaError | None = None
        self._is_there = trio.Event()

    def take(self, value: T | KafkaError) -> None:
        self._value = value
        self._is_there.set()

    async def wait(self) -> T:
        """Raises KafkaError."""
        await self._is_there.wait()
        if isinstance(self._value, KafkaError):
            raise self._value
        assert self._value is not None
        return self._value


@dataclasses.dataclass(slots=True)
class NodeCounts:
    """What a controller's node counts from its start on."""

    operation_times: Distribution = dataclasses.field(default_factory=Distribution)
    """From an operation's beginning until its response is there, in ms: for most until their records are committed."""
    failed_operations: int = 0
    """Those that have failed as none should."""
    new_leaders: int = 0
    """How often another node became the active controller, this one included."""
    snapshots_loaded: int = 0


class ControllerNode:
    """See the module. ``run`` it in a task. It is the ``MetadataListener`` of its Raft node."""

    def __init__(
        self,
        node_id: int,
        driver: RaftDriver,
        writer: RaftWriter,
        controller: ActiveController,
        make_requests: Callable[[], ControllerRequests],
        registration: ControllerRegistrationRequest,
        connect: Connect,
        log_settings: MetadataLogSettings,
        clock: Clock,
        workers: Workers,
    ) -> None:
        """``make_requests`` is called at the first request that needs it. ``registration`` is what this node tells the active
        controller; ``connect`` makes a client of that."""
        self.node_id = node_id
        self.driver = driver
        self.controller = controller
        self._writer = writer
        self._requests = functools.cache(make_requests)
        self._clock = clock
        self._active = ControllerClient(connect)
        self._registrar = ControllerRegistrar(registration, lambda: controller.state.image, self._ask_active)
        log = driver.storage.log
        self._snapshots = SnapshotGenerator(log, log_settings, clock, workers, driver.note_snapshot)
        self._cleaner = MetadataLogCleaner(log, log_settings, clock, workers, driver.clean)
        self._follower = MetadataFollower(driver, self, workers)
        self._sooner = trio.Event()
        self.counts = NodeCounts()

    async def run(self) -> None:
        """Take part in the quorum until cancelled.

        Raises OSError, KafkaError and CorruptFileError where the log cannot be kept, ReplayError where it cannot be understood.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follower.run)
            nursery.start_soon(self._run_timers)
            nursery.start_soon(self._registrar.run)
            nursery.start_soon(self._snapshots.run)
            nursery.start_soon(self._cleaner.run)
            try:
                await self.driver.run()
            finally:
                self._active.close()

    @property
    def written_at_ms(self) -> int:
        """When this controller has written to the log last, by the wall clock; -1 before that."""
        return self._writer.written_at_ms

    # --- requests -----------------------------------------------------------------------------------------------------

    async def ask(self, request: Message, source: RequestSource, listener: str) -> Any:
        """The response to a request that came by a listener. Raises KafkaError where all of the request is refused."""
        if isinstance(request, OF_RAFT):
            return await self.driver.ask(request, listener, source.version)
        return await self._outcome(lambda outcome: self._begin(request, source, outcome))

    async def carry_out(self, operation: Operation[T]) -> T:
        """What an operation responds that no request stands for. Raises KafkaError."""
        return await self._outcome(lambda outcome: self.controller.run(operation, outcome.take))

    async def _outcome(self, begin: Callable[[_Outcome[T]], None]) -> T:
        outcome: _Outcome[T] = _Outcome()
        began = trio.current_time()
        try:
            begin(outcome)
            return await outcome.wait()
        except KafkaError:
            raise
        except Exception:
            self.counts.failed_operations += 1
            self._resign()
            raise
        finally:
            self.counts.operation_times.note((trio.current_time() - began) * 1000)

    def _begin(self, request: Message, source: RequestSource, outcome: _Outcome[Any]) -> None:
        if isinstance(request, BrokerRegistrationRequest):
            kraft_version = self.driver.node.quorum.kraft_version
            self.controller.register(request, source.version, kraft_version, _now_ms(), outcome.take)
        elif isinstance(request, BrokerHeartbeatRequest):
            if self.controller.heartbeat(request, _now_ms(), outcome.take):
                self._sooner.set()  # it may be the only session there is, and nobody waits for its end yet
        elif isinstance(request, ControllerRegistrationRequest):
            self.controller.run(lambda context: register_controller(context, request), outcome.take)
        elif isinstance(request, AllocateProducerIdsRequest):
            self.controller.run(lambda context: allocate_producer_ids(context, request), outcome.take)
        else:
            operation = self._requests().operation(request, source, self._clock.now_ms())
            self.controller.run(operation, outcome.take)

    async def _ask_active(self, request: Message) -> Any:
        """The active controller's response to a request of this node. Raises KafkaError, NoAnswerError."""
        raft = self.driver.node
        if self.controller.is_active:
            return await self.ask(request, RequestSource(type(request).valid_versions.stop - 1), raft.quorum.listener)
        address = raft.leader_address
        if address is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "No controller appears to be active.")
        client = self._active.at(address)
        return await client.send(request, await client.negotiate(type(request)))

    def _resign(self) -> None:
        """An operation has failed as none should: another node may fare better."""
        self.driver.step(ResignRequested(self.driver.node.epoch))

    # --- the log ------------------------------------------------------------------------------------------------------

    def handle_leader_change(self, news: LeaderChanged) -> None:
        controller = self.controller
        controller.leader_id = None if news.leader_id < 0 else news.leader_id
        self.counts.new_leaders += news.leader_id >= 0
        # Also where this node leads again, in another epoch: what was not committed in the one before may never be.
        if controller.is_active:
            controller.renounce()
        if news.leader_id == self.node_id:
            controller.claim(news.epoch, _now_ms())
            self._sooner.set()
        self._registrar.look()

    def handle_high_watermark(self, high_watermark: int) -> bool:
        if not self.controller.is_active:
            return False
        self.controller.committed(high_watermark - 1)
        self._maybe_generate_snapshot(self._writer.bytes_written)
        self._writer.bytes_written = 0
        self._registrar.look()
        return True

    async def take_snapshot(self, batches: Iterable[Sequence[Message]], position: LogPosition) -> None:
        self.controller.load(await snapshot_image(batches, position))
        self.counts.snapshots_loaded += 1
        self._registrar.look()

    async def handle_commit(self, batches: Iterator[CommittedBatch]) -> None:
        size = 0
        for batch in batches:
            self.controller.apply_committed(batch.records, batch.position)
            size += batch.size
        self._maybe_generate_snapshot(size)
        self._registrar.look()
        await trio.lowlevel.checkpoint()

    def caught_up(self) -> None:
        self.controller.caught_up()

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def _maybe_generate_snapshot(self, log_bytes: int) -> None:
        """Have a snapshot written if enough has come with what is committed now, of ``log_bytes`` of the log."""
        state = self.controller.committed_state
        image, position = state.image, state.image.position
        if state.transaction is not None or position is None:
            return
        if position.timestamp < 0:
            # The controller's own records have no time in its image: they got it where they were appended.
            image = dataclasses.replace(image, position=position._replace(timestamp=self._clock.now_ms()))
        self._snapshots.on_metadata_update(image, LoaderManifest(is_snapshot=False, log_bytes=log_bytes))

    # --- time ---------------------------------------------------------------------------------------------------------

    async def _run_timers(self) -> None:
        """Have the active controller do what is due."""
        while True:
            self._sooner = trio.Event()
            due_ms = self.controller.tick(_now_ms())
            with trio.move_on_at(trio.current_time() + 3600 if due_ms is None else due_ms / 1000 + _ROUNDING_SECONDS):
                await self._sooner.wait()


def _now_ms() -> int:
    """By the clock of the loop, which is monotonic."""
    return int(trio.current_time() * 1000)
