"""The way to the share coordinators: this broker's by a call, those of other brokers over the network.

The coordinator of a share partition is the leader of its partition of ``__share_group_state``, by the metadata cache; the first
request makes the topic. A request that a coordinator cannot answer now is made again for 15 s, as long as Kafka's
PersisterStateManager does with its five attempts; the first pauses are shorter, because a topic is there soon. A request that was
carried out, and whose response was lost, may be made again: it changes nothing then. Only the one that begins anew undoes, as in
Kafka, what leaders have written since.

To each broker one request of each API and group is under way at a time. The share partitions of the group that are asked for
meanwhile go together with the next one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError, known_code
from ..replication.broker_client import NoAnswerError
from ..replication.metadata_cache import MetadataCache
from ..replication.peers import Peers
from ..wire.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ..wire.schema import Message
from .coordinator import Applied, ShareCoordinator, no_flush
from .settings import TOPIC
from .state import UNKNOWN_COUNT, SharePartitionKey, ShareState, StateBatch

R = TypeVar("R")

_PURPOSE = "share-coordinator"
_PATIENCE_SECONDS = 15.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 2.0
_RETRIABLE = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # a topic of which the coordinator was not told yet
    ErrorCode.UNSUPPORTED_VERSION,  # likewise ``share.version``, when it has just been finalized
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
)


class _Api(NamedTuple):
    """A request, and the struct in it that has a topic's partitions."""

    request: type[Message]
    topic: type[Any]


_INITIALIZE = _Api(
    initialize_share_group_state.InitializeShareGroupStateRequest, initialize_share_group_state.InitializeStateData
)
_READ = _Api(read_share_group_state.ReadShareGroupStateRequest, read_share_group_state.ReadStateData)
_WRITE = _Api(write_share_group_state.WriteShareGroupStateRequest, write_share_group_state.WriteStateData)
_DELETE = _Api(delete_share_group_state.DeleteShareGroupStateRequest, delete_share_group_state.DeleteStateData)
_SUMMARY = _Api(
    read_share_group_state_summary.ReadShareGroupStateSummaryRequest,
    read_share_group_state_summary.ReadStateSummaryData,
)


class _Destination(NamedTuple):
    """What goes in one request: it has one group id."""

    broker_id: int
    api: _Api
    group_id: str


@dataclasses.dataclass(eq=False, slots=True)
class _Pending:
    """A share partition that is to be asked for, or is."""

    topic_id: bytes
    data: Any
    """The struct of the request."""
    result: Any = None
    """The struct of the response, ..."""
    error: KafkaError | None = None
    """... or why there is none."""


@dataclasses.dataclass(slots=True)
class _RequestQueue:
    """What waits for one destination. The task that has the turn sends everything that waits."""

    waiting: list[_Pending] = dataclasses.field(default_factory=list)
    turn: trio.StrictFIFOLock = dataclasses.field(default_factory=trio.StrictFIFOLock)


class ShareStateClient:
    """``ShareStateStore`` of all share partitions. ``create_topic`` makes ``__share_group_state``, and raises KafkaError."""

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        peers: Peers,
        local: ShareCoordinator,
        create_topic: Callable[[], Awaitable[None]],
    ) -> None:
        self._broker_id = broker_id
        self._metadata = metadata
        self._peers = peers
        self._local = local
        self._create_topic = create_topic
        self._creating = trio.Lock()
        self._queues: dict[_Destination, _RequestQueue] = {}
        self._is_stopped = False
        self._pauses: set[trio.CancelScope] = set()

    def stop(self) -> None:
        """Ask nobody a second time from now on, so that no request goes on waiting."""
        self._is_stopped = True
        for pause in self._pauses:
            pause.cancel()

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        data = initialize_share_group_state.PartitionData(
            partition=key.partition, state_epoch=state_epoch, start_offset=start_offset
        )
        await self._ask(
            _INITIALIZE, key, data, lambda: self._local.initialize(key, state_epoch, start_offset), _nothing
        )

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        data = read_share_group_state.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
        return await self._ask(_READ, key, data, lambda: self._local.read(key, leader_epoch), _state)

    async def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        written = write_share_group_state.StateBatch
        data = write_share_group_state.PartitionData(
            partition=key.partition,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=[written(**batch._asdict()) for batch in batches],
        )
        change = (state_epoch, leader_epoch, start_offset, delivery_complete_count, batches)
        await self._ask(_WRITE, key, data, lambda: self._local.write(key, *change), _nothing)

    async def delete(self, key: SharePartitionKey) -> None:
        data = delete_share_group_state.PartitionData(partition=key.partition)
        await self._ask(_DELETE, key, data, lambda: self._local.delete(key), _nothing)

    async def summary(self, key: SharePartitionKey, leader_epoch: int) -> tuple[int, int, int, int]:
        data = read_share_group_state_summary.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
        return await self._ask(_SUMMARY, key, data, lambda: self._local.summary(key), _summary)

    async def _ask(
        self,
        api: _Api,
        key: SharePartitionKey,
        data: Any,
        apply: Callable[[], Applied[R]],
        decode: Callable[[Any], R],
    ) -> R:
        """``apply`` where this broker is the coordinator; else ``data`` is sent, and ``decode`` gives what the response means."""
        deadline = trio.current_time() + _PATIENCE_SECONDS
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                coordinator = await self._find(key)
                if coordinator == self._broker_id:
                    return await self._local.committed(apply(), no_flush)
                return decode(await self._send(_Destination(coordinator, api, key.group_id), key.topic_id, data))
            except KafkaError as error:
                if error.code not in _RETRIABLE or trio.current_time() + pause > deadline or self._is_stopped:
                    raise
            with trio.move_on_after(pause) as scope:
                self._pauses.add(scope)
                try:
                    await self._settled(key)
                finally:
                    self._pauses.discard(scope)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _find(self, key: SharePartitionKey) -> int:
        """The broker that is the coordinator. KafkaError COORDINATOR_NOT_AVAILABLE where there is none now."""
        if self._metadata.topic(TOPIC) is None:
            async with self._creating:
                if self._metadata.topic(TOPIC) is None:
                    await self._create_topic()
        number = self._local.partition_for(key.coordinator_key())
        state = self._metadata.partition(TOPIC, number)
        if state is None or state.leader < 0:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{TOPIC}-{number} has no leader")
        return state.leader

    async def _settled(self, key: SharePartitionKey) -> None:
        """Return when it is worth asking again, if that can be told: when this broker has loaded the partition it leads."""
        number = self._local.partition_for(key.coordinator_key())
        state = self._metadata.partition(TOPIC, number)
        if state is not None and state.leader == self._broker_id and not self._local.serves(number):
            await self._local.wait_loaded(number)
        else:
            await trio.sleep_forever()

    # Other brokers

    async def _send(self, destination: _Destination, topic_id: bytes, data: Any) -> Any:
        """The struct of the response that is about a share partition. Raises KafkaError."""
        queue = self._queues.setdefault(destination, _RequestQueue())
        pending = _Pending(topic_id, data)
        queue.waiting.append(pending)
        try:
            async with queue.turn:
                if pending.result is None and pending.error is None:
                    await self._exchange(destination, _distinct([pending, *queue.waiting]))
        finally:
            queue.waiting.remove(pending)
            if not queue.waiting:
                self._queues.pop(destination, None)
        if pending.error is not None:
            raise pending.error
        if pending.result is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response has nothing about the share partition")
        if pending.result.error_code:
            raise KafkaError(known_code(pending.result.error_code), pending.result.error_message or "")
        return pending.result

    async def _exchange(self, destination: _Destination, asked: list[_Pending]) -> None:
        """Send one request for all of them, and take its response apart."""
        topics: dict[bytes, Any] = {}
        for each in asked:
            if each.topic_id not in topics:
                topics[each.topic_id] = destination.api.topic(topic_id=each.topic_id)
            topics[each.topic_id].partitions.append(each.data)
        request: Any = destination.api.request(group_id=destination.group_id, topics=list(topics.values()))  # type: ignore[call-arg]
        try:
            client = self._peers.client(destination.broker_id, _PURPOSE)
            version = await client.negotiate(destination.api.request)
            response = await client.send(request, version)
        except (NoAnswerError, KafkaError) as failure:
            error = (
                failure if isinstance(failure, KafkaError) else KafkaError(ErrorCode.NETWORK_EXCEPTION, str(failure))
            )
            for each in asked:
                each.error = error
            return
        results = {
            (topic.topic_id, result.partition): result for topic in response.results for result in topic.partitions
        }
        for each in asked:
            each.result = results.get((each.topic_id, each.data.partition))


def _distinct(waiting: Sequence[_Pending]) -> list[_Pending]:
    """Those that can go in one request: the earliest for each share partition that has no result yet."""
    chosen: dict[tuple[bytes, int], _Pending] = {}
    for each in waiting:
        if each.result is None and each.error is None:
            chosen.setdefault((each.topic_id, each.data.partition), each)
    return list(chosen.values())


def _nothing(result: Any) -> None:
    """Of a response that says no more than that it was done."""


def _state(result: read_share_group_state.PartitionResult) -> ShareState:
    batches = tuple(
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in result.state_batches
    )
    return ShareState(result.state_epoch, result.start_offset, batches, UNKNOWN_COUNT)


def _summary(result: read_share_group_state_summary.PartitionResult) -> tuple[int, int, int, int]:
    return result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count
