"""The controller's request senders: for each live broker a queue, and a task that sends one request at a time.

A broker gets them in order. Each is repeated until the broker has responded or has left the cluster, because nothing else would
tell it of a state that it has missed (Kafka: ControllerChannelManager, RequestSendThread). The controller itself waits for no
broker: responses come back to it as events. A request has no time limit of its own, since a broker that starts may respond
slowly. It ends with the broker's registration, and a channel that has given up raises OSError.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import trio

from ....base.distribution import Distribution
from ....base.errors import ErrorCode
from ....base.partitions import TopicPartition
from ....wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ....wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ....wire.messages.update_metadata import UpdateMetadataRequest
from ..state.context import LiveBroker
from .channels import BrokerChannel, Connect
from .request_batch import ControllerBrokerRequestBatch, batches, partitions_of

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.1
"""Between two attempts, as in Kafka."""

_RESPONSES_SECONDS = 1.0

Request = TypeVar("Request")
Response = TypeVar("Response")


class Answer(NamedTuple):
    """A broker's response to a request of the controller."""

    broker_id: int
    broker_epoch: int
    """The epoch of the registration to which the request was sent."""
    is_stop_replica: bool
    """Whether it is a response to StopReplica; else it is one to LeaderAndIsr."""
    codes: Mapping[TopicPartition, int]
    """Error codes; of StopReplica only for the partitions that were to be deleted."""


class ControllerChannelManager:
    """A sender for each live broker, with a channel of its own that goes with the registration."""

    def __init__(self, connect: Connect, on_response: Callable[[Answer], None]) -> None:
        self._connect = connect
        self._on_response = on_response
        self._senders: dict[int, BrokerSender] = {}
        self._nursery: trio.Nursery | None = None

    def follow(self, brokers: Mapping[int, LiveBroker]) -> None:
        """These brokers are alive now: drop what waits for one that is gone or was restarted."""
        for broker_id, sender in list(self._senders.items()):
            if broker_id not in brokers or brokers[broker_id].epoch != sender.broker_epoch:
                del self._senders[broker_id]
                sender.end()
        for broker_id, broker in brokers.items():
            if broker_id not in self._senders:
                sender = BrokerSender(broker_id, broker.epoch, self._connect(broker), self._on_response)
                self._senders[broker_id] = sender
                if self._nursery is not None:
                    self._nursery.start_soon(sender.run)

    def send(
        self,
        leader_and_isr: Mapping[int, LeaderAndIsrRequest],
        update_metadata: Mapping[int, UpdateMetadataRequest],
        stop_replica: Mapping[int, StopReplicaRequest],
    ) -> None:
        """Queue requests, by broker id."""
        for broker_id, batch in batches(leader_and_isr, update_metadata, stop_replica).items():
            sender = self._senders.get(broker_id)
            if sender is not None:
                sender.put(batch)

    def unanswered(self, broker_id: int) -> trio.Event | None:
        """Set when a broker has responded to all requests queued by now, or is gone; None if there are none."""
        sender = self._senders.get(broker_id)
        return None if sender is None else sender.unanswered

    async def wait_responses(self) -> None:
        """Return when all brokers have responded to the requests queued by now, or after a second: one may be dead."""
        with trio.move_on_after(_RESPONSES_SECONDS):
            for unanswered in [sender.unanswered for sender in self._senders.values()]:
                if unanswered is not None:
                    await unanswered.wait()

    def queues(self) -> Iterator[tuple[int, BrokerSender]]:
        """By broker id."""
        yield from self._senders.items()

    async def run(self) -> None:
        """Send until cancelled. The next ``run`` sends again what had no response by then."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                for sender in self._senders.values():
                    nursery.start_soon(sender.run)
                await trio.sleep_forever()
            finally:
                self._nursery = None  # not later: it takes no new task while it waits for those it has


class BrokerSender:
    """One registration of a broker, and what waits for it: the first batch is under way, new ones are merged into the last."""

    def __init__(
        self, broker_id: int, broker_epoch: int, channel: BrokerChannel, on_response: Callable[[Answer], None]
    ) -> None:
        self._broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._channel = channel
        self._on_response = on_response
        self._batches: deque[ControllerBrokerRequestBatch] = deque()
        self._arrived = trio.Event()
        self._ended = trio.Event()
        self._scope = trio.CancelScope()
        self.times = Distribution()
        """How long requests have waited until they were sent, in ms."""

    @property
    def size(self) -> int:
        """How many requests have no response yet."""
        return sum(batch.size for batch in self._batches)

    @property
    def unanswered(self) -> trio.Event | None:
        return self._batches[-1].done if self._batches else None

    def put(self, batch: ControllerBrokerRequestBatch) -> None:
        # The first batch is under way, so nothing is merged into it: parts of it may have been sent.
        if len(self._batches) < 2 or not self._batches[-1].take(batch):
            batch.queued_at = trio.current_time()
            self._batches.append(batch)
        self._arrived.set()

    def end(self) -> None:
        """The registration has ended: send nothing more."""
        self._ended.set()
        self._scope.cancel()
        self._channel.close()
        for batch in self._batches:
            batch.done.set()

    async def run(self) -> None:
        with trio.CancelScope() as self._scope:
            while not self._ended.is_set():
                if self._batches:
                    await self._deliver(self._batches[0])
                    self._batches.popleft().done.set()
                else:
                    self._arrived = trio.Event()
                    await self._arrived.wait()

    async def _deliver(self, batch: ControllerBrokerRequestBatch) -> None:
        """Each request is taken out once its response is there, as ``run`` may be cancelled and called again."""
        channel = self._channel
        if batch.leader_and_isr is not None:
            led = await self._until_answered(channel.leader_and_isr, batch.leader_and_isr, batch.queued_at)
            codes = _led_codes(batch.leader_and_isr, led)
            batch.leader_and_isr = None
            # A leader epoch that the broker knows already is usual: a new controller sends everything again.
            refused = set(codes.values()) - {ErrorCode.STALE_CONTROLLER_EPOCH}
            self._log_refusals("LeaderAndIsr", {led.error_code, *refused})
            self._on_response(Answer(self._broker_id, self.broker_epoch, False, codes))
        if batch.update_metadata is not None:
            updated = await self._until_answered(channel.update_metadata, batch.update_metadata, batch.queued_at)
            batch.update_metadata = None
            self._log_refusals("UpdateMetadata", {updated.error_code})
        if batch.stop_replica is not None:
            stopped = await self._until_answered(channel.stop_replica, batch.stop_replica, batch.queued_at)
            codes = _stopped_codes(batch.stop_replica, stopped)
            deleted = {key: codes[key] for key in _deleted(batch.stop_replica)}
            batch.stop_replica = None
            self._log_refusals("StopReplica", set(codes.values()))
            self._on_response(Answer(self._broker_id, self.broker_epoch, True, deleted))

    async def _until_answered(
        self, ask: Callable[[Request], Awaitable[Response]], request: Request, queued_at: float
    ) -> Response:
        self.times.note((trio.current_time() - queued_at) * 1000)
        failures = 0
        while True:
            try:
                response = await ask(request)
            except OSError as error:
                failures += 1
                level = logging.WARNING if failures == 1 else logging.DEBUG
                logger.log(level, "Broker %d cannot be reached and is tried again: %s", self._broker_id, error)
                await trio.sleep(RETRY_SECONDS)
                continue
            if failures:
                logger.info("Broker %d is reached again", self._broker_id)
            return response

    def _log_refusals(self, request: str, codes: set[int]) -> None:
        refused = sorted(codes - {ErrorCode.NONE})
        if refused:
            names = ", ".join(map(_name_of, refused))
            # By this a broker tells of the partitions in a failed folder, which it has logged as an error itself.
            level = logging.INFO if refused == [ErrorCode.KAFKA_STORAGE_ERROR] else logging.WARNING
            logger.log(level, "Broker %d answered %s with %s", self._broker_id, request, names)


def _name_of(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:  # of another broker, which may be newer
        return f"error {code}"


def _led_codes(request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> dict[TopicPartition, int]:
    names = {state.topic_id: state.topic_name for state in request.topic_states}
    return {
        TopicPartition(names[topic.topic_id], error.partition_index): error.error_code
        for topic in response.topics
        if topic.topic_id in names
        for error in topic.partition_errors
    }


def _stopped_codes(request: StopReplicaRequest, response: StopReplicaResponse) -> dict[TopicPartition, int]:
    codes: dict[TopicPartition, int] = dict.fromkeys(partitions_of(request), response.error_code)
    for error in response.partition_errors:
        codes[TopicPartition(error.topic_name, error.partition_index)] = error.error_code
    return codes


def _deleted(request: StopReplicaRequest) -> set[TopicPartition]:
    return {
        TopicPartition(topic.topic_name, state.partition_index)
        for topic in request.topic_states
        for state in topic.partition_states
        if state.delete_partition
    }
