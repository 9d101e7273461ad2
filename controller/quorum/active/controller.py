"""The controller of a node: a standby that follows the committed records, or the active one, which changes the cluster.

It has no queue, no clock and no I/O: whoever drives it calls one method after the other, and hands in the time. An operation is
a function of the present state. Its records are applied at once and appended to the log; its response waits until they are
committed. An operation without records may have seen records that are not, so it waits for those.

When the leadership of the log ends, all who wait are told NOT_CONTROLLER, and the state is the last committed one again. What was
not committed may still become so under another leader, and then comes as it does to every standby.

Model: Kafka's QuorumController.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import ClusterImage
from ....metadata.types import LogPosition
from ....wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ....wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ....wire.metadata_records import VersionedRecord, encode_metadata_record
from ....wire.schema import Message
from .activation import activate
from .broker_heartbeat import HeartbeatReply, fence_stale_broker, process_heartbeat
from .brokers import register_broker
from .committed_metadata import CommittedMetadata
from .context import ActiveSettings, OperationContext
from .elections import balance_leaders, elect_unclean_leaders
from .heartbeats import BrokerHeartbeats
from .periodic import PeriodicTask, PeriodicTasks
from .result import MAX_RECORDS, ControllerResult
from .state import ControllerState
from .topic_log import log_topics

MAX_BATCH_BYTES = 8 * 1024 * 1024
"""Of the values of one batch's records; what is around them is left out of the count (Kafka's MAX_BATCH_SIZE_BYTES)."""
_RECORD_OVERHEAD = 32
"""More than the fields of a record around its value take."""
_NO_TIME = -1
"""Of the position of records that the log has not written yet: nobody asks a controller for it."""

T = TypeVar("T")
Respond = Callable[[T | KafkaError], None]
Operation = Callable[[OperationContext], ControllerResult[T]]


class MetadataLogWriter(Protocol):
    """The log of the leader of a quorum, as its controller writes it."""

    @property
    def next_offset(self) -> int:
        """That of the record which is appended next."""
        ...

    def append(self, epoch: int, values: Sequence[bytes]) -> int:
        """Append records, by their values, as one batch; returns the offset of the last one.

        That they are committed is reported later, never from within. Raises KafkaError NOT_CONTROLLER where this node does
        not lead the log in ``epoch`` any more.
        """
        ...


class _PendingResponse(NamedTuple):
    offset: int
    """Of the record whose commit it waits for."""
    respond: Callable[[], None]
    fail: Callable[[KafkaError], None]


class _Claim:
    """What an active controller has beside the state, from claiming the leadership until it ends."""

    def __init__(self, epoch: int, heartbeats: BrokerHeartbeats, tasks: PeriodicTasks) -> None:
        self.epoch = epoch
        self.heartbeats = heartbeats
        self.tasks = tasks
        self.uncommitted: deque[tuple[int, ControllerState]] = deque()
        """States by the offset of their last record, in the order in which they were made."""
        # By rising offsets, as each waits for the newest record there was.
        self.waiting: deque[_PendingResponse] = deque()


class ActiveController:
    """See the module. Times are ms of a monotonic clock."""

    def __init__(
        self,
        settings: ActiveSettings,
        log: MetadataLogWriter,
        bootstrap: Sequence[VersionedRecord],
        randomness: random.Random,
        further_tasks: Iterable[PeriodicTask] = (),
    ) -> None:
        self._settings = settings
        self._log = log
        self._bootstrap = bootstrap
        self.randomness = randomness
        self._tasks = [*_tasks(settings), *further_tasks]
        self._committed = ControllerState()
        # With all records that were appended, committed or not. The next operation goes by it.
        self._latest = self._committed
        self.metadata = CommittedMetadata()
        """The image of ``committed_state``, for who follows it."""
        self._claim: _Claim | None = None
        self.operations_started = 0
        """Operations that this controller was asked for, active or not, and its own tasks."""
        self.known_alive: Callable[[], Iterable[int]] = tuple
        """The brokers that are known to be alive without a heartbeat, to whoever runs them in the same process."""
        self.leader_id: int | None = None
        """The node that leads the quorum, as far as is known here; whoever drives this sets it."""

    @property
    def is_active(self) -> bool:
        return self._claim is not None

    @property
    def state(self) -> ControllerState:
        """With everything that was applied, committed or not."""
        return self._latest

    @property
    def committed_state(self) -> ControllerState:
        return self._committed

    def silent_ms(self, now_ms: int) -> dict[int, int]:
        """By broker that is registered, how long it has not been heard of, at most a session; empty for a standby."""
        if self._claim is None:
            return {}
        return self._claim.heartbeats.silent_ms(self._latest.image.quorum_brokers.newest(), now_ms)

    # --- standby ------------------------------------------------------------------------------------------------------

    def load(self, image: ClusterImage) -> None:
        """Replace the state by what a snapshot holds. Only a standby loads one."""
        assert self._claim is None, "the active controller has everything"
        self._committed = self._latest = ControllerState.of(image, self._latest.counts)
        if self.metadata.is_loaded:
            self.metadata.load(image)

    def apply_committed(self, records: Sequence[Message], position: LogPosition) -> None:
        """A batch is committed, of which ``position`` is the last record's. Raises ReplayError: the node cannot go on then."""
        if self._claim is None:
            self._committed = self._latest = self._committed.apply(records, position)
            self._publish()
        else:
            self.committed(position.offset)

    # --- the leadership -----------------------------------------------------------------------------------------------

    def claim(self, epoch: int, now_ms: int) -> None:
        """This node leads the log in ``epoch``, and everything before it is applied. The activation's records come first."""
        assert self._claim is None, "the leadership is claimed once in an epoch"
        heartbeats = BrokerHeartbeats(self._settings.session_timeout_ms)
        heartbeats.begin(self._latest.image.quorum_brokers.newest(), now_ms, self._settings.node_id)
        self._claim = _Claim(epoch, heartbeats, PeriodicTasks(self._tasks, now_ms))
        self.run(lambda context: activate(context, self._bootstrap), _of_its_own)

    def renounce(self) -> None:
        """This node does not lead any more, or must not."""
        # Before callers are told: one that asks again at once must find no active controller.
        claim, self._claim = self._claim, None
        assert claim is not None, "who renounces was active"
        self._latest = self._committed
        while claim.waiting:
            claim.waiting.popleft().fail(self._not_controller())

    def committed(self, offset: int) -> None:
        """Everything up to ``offset`` is committed: responses that waited for it are sent."""
        claim = self._claim
        assert claim is not None, "a standby applies committed records"
        while claim.uncommitted and claim.uncommitted[0][0] <= offset:
            before, self._committed = self._committed, claim.uncommitted.popleft()[1]
            if self._committed.delta.topics:
                log_topics(before.image, self._committed.delta, self._committed.image)
            self._publish()
        while claim.waiting and claim.waiting[0].offset <= offset:
            claim.waiting.popleft().respond()

    def caught_up(self) -> None:
        """Everything that is known to be committed is applied. From the first image on that has a record, it is published."""
        if not self.metadata.is_loaded and self._committed.image.position is not None:
            self.metadata.load(self._committed.image)

    def _publish(self) -> None:
        self.metadata.publish(self._committed.delta, self._committed.image)

    def _not_controller(self) -> KafkaError:
        if self.leader_id is None or self.leader_id == self._settings.node_id:
            return KafkaError(ErrorCode.NOT_CONTROLLER, "No controller appears to be active.")
        return KafkaError(ErrorCode.NOT_CONTROLLER, f"The active controller appears to be node {self.leader_id}.")

    # --- operations ---------------------------------------------------------------------------------------------------

    def run(self, operation: Operation[T], respond: Respond[T]) -> None:
        """Carry out an operation. ``respond`` is called with its response once that is committed, or with the error.

        What an operation raises beside KafkaError ends the leadership, and is raised on: it is a bug, and the next controller
        may not have it.
        """
        self._run(operation, respond)

    def register(
        self,
        request: BrokerRegistrationRequest,
        version: int,
        kraft_version: int,
        now_ms: int,
        respond: Respond[BrokerRegistrationResponse],
    ) -> None:
        """A broker registers; ``version`` is the request's."""
        claim = self._claim

        def operation(context: OperationContext) -> ControllerResult[BrokerRegistrationResponse]:
            assert claim is not None
            return register_broker(
                context,
                request,
                claim.heartbeats,
                version=version,
                next_offset=self._log.next_offset,
                kraft_version=kraft_version,
                now_ms=now_ms,
            )

        self._run(operation, respond)

    def heartbeat(
        self, request: BrokerHeartbeatRequest, now_ms: int, respond: Respond[BrokerHeartbeatResponse]
    ) -> bool:
        """A broker says that it is alive. True if a session begins: ``tick`` may have to come sooner than it has said."""
        claim = self._claim
        # Before the operation, which may be refused: whoever sends a heartbeat is alive (KAFKA-17793).
        begins = claim is not None and claim.heartbeats.track(request.broker_id, request.broker_epoch, now_ms)

        def operation(context: OperationContext) -> ControllerResult[HeartbeatReply]:
            assert claim is not None
            return process_heartbeat(context, request, claim.heartbeats)

        def appended(reply: HeartbeatReply, last_offset: int) -> None:
            assert claim is not None
            if reply.is_in_controlled_shutdown:
                claim.heartbeats.begin_shutdown(request.broker_id, last_offset)

        def responded(reply: HeartbeatReply | KafkaError) -> None:
            respond(reply if isinstance(reply, KafkaError) else reply.response)

        self._run(operation, responded, appended)
        return begins

    def tick(self, now_ms: int) -> int | None:
        """Do what is due. Returns when to come again; None for a standby, which has nothing to do."""
        while (claim := self._claim) is not None:
            expiry = self._next_expiry(claim.heartbeats, now_ms)
            if expiry is not None and expiry <= now_ms:
                self._fence_stale_broker(claim.heartbeats, now_ms)
            elif (task := claim.tasks.take_due(now_ms)) is not None:
                self._run_task(claim, task, now_ms)
            else:
                times = [time for time in (expiry, claim.tasks.next_due()) if time is not None]
                return min(times, default=None)
        return None

    def _next_expiry(self, heartbeats: BrokerHeartbeats, now_ms: int) -> int | None:
        """When the first session is over. Before one ends, the brokers that are known to be alive count as heard of."""
        expiry = heartbeats.next_expiry()
        if expiry is None or expiry > now_ms:
            return expiry
        brokers = self._latest.image.quorum_brokers.newest()
        for broker_id in self.known_alive():
            if (broker := brokers.get(broker_id)) is not None and not broker.is_fenced:
                heartbeats.track(broker_id, broker.epoch, now_ms)
        return heartbeats.next_expiry()

    def _fence_stale_broker(self, heartbeats: BrokerHeartbeats, now_ms: int) -> None:
        self.run(lambda context: fence_stale_broker(context, heartbeats, now_ms), _of_its_own)

    def _run_task(self, claim: _Claim, task: PeriodicTask, now_ms: int) -> None:
        def appended(has_more: bool, last_offset: int) -> None:
            if has_more:
                claim.tasks.run_soon(task, now_ms)

        self._run(task.work, _of_its_own, appended)

    def _run(
        self, operation: Operation[T], respond: Respond[T], appended: Callable[[T, int], None] = lambda *_: None
    ) -> None:
        """``appended`` is called with the response and the offset of the last record, as soon as that is in the log."""
        claim = self._claim
        self.operations_started += 1
        if claim is None:
            respond(self._not_controller())
            return
        try:
            result = operation(OperationContext(self._latest, self._settings))
            last_offset = self._append(claim, result)
        except KafkaError as error:
            respond(error)
            if error.code is ErrorCode.NOT_CONTROLLER and self._claim is claim:
                self.renounce()
            return
        except Exception:
            respond(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            if self._claim is claim:
                self.renounce()
            raise
        appended(result.response, last_offset)
        if claim.uncommitted:
            # Also without records of its own: what the operation has read may still be taken back with the leadership.
            offset = claim.uncommitted[-1][0]
            claim.waiting.append(_PendingResponse(offset, lambda: respond(result.response), respond))
        else:
            respond(result.response)

    def _append(self, claim: _Claim, result: ControllerResult[Any]) -> int:
        """Apply the records and append them, batch by batch; returns the last offset of the log."""
        for records, values in list(_batches(result)):  # all of them, or none if one is refused
            last_offset = self._log.next_offset + len(records) - 1
            # Applied first: a record that cannot be applied must not come into the log, where it would stop every node.
            state = self._latest.apply(records, LogPosition(last_offset, claim.epoch, _NO_TIME))
            appended = self._log.append(claim.epoch, values)
            assert appended == last_offset, f"the records end at {appended} and not at {last_offset}"
            claim.heartbeats.follow(self._latest.image.quorum_brokers, state.image.quorum_brokers)
            self._latest = state
            claim.uncommitted.append((last_offset, state))
        return self._log.next_offset - 1


def _tasks(settings: ActiveSettings) -> Iterator[PeriodicTask]:
    if settings.imbalance_check_interval_ms is not None:
        yield PeriodicTask("electPreferred", balance_leaders, settings.imbalance_check_interval_ms)
    yield PeriodicTask("electUnclean", elect_unclean_leaders, settings.unclean_election_interval_ms)


def _batches(result: ControllerResult[Any]) -> Iterator[tuple[list[Message], list[bytes]]]:
    """The records of a result and their values, in batches that the log takes. Raises KafkaError POLICY_VIOLATION."""
    records: list[Message] = []
    values: list[bytes] = []
    size = 0
    for record, version in result.records:
        value = encode_metadata_record(record, version)
        is_full = len(records) >= MAX_RECORDS or size + len(value) + _RECORD_OVERHEAD > MAX_BATCH_BYTES
        if records and is_full and not result.is_atomic:
            yield records, values
            records, values, size = [], [], 0
        records.append(record)
        values.append(value)
        size += len(value) + _RECORD_OVERHEAD
    if size > MAX_BATCH_BYTES or len(records) > MAX_RECORDS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    if records:
        yield records, values


def _of_its_own(response: object) -> None:
    """The response to an operation of the controller's own, of which the end of the leadership is the only error."""
    if isinstance(response, KafkaError):
        assert response.code is ErrorCode.NOT_CONTROLLER, f"an operation of the controller's own failed: {response}"
