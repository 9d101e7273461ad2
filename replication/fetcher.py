"""The fetcher: one task that fetches all partitions followed from one leader (Kafka's fetcher thread).

There is one request under way at a time, in one fetch session. Partitions come, go and get other leader epochs meanwhile; an
answer to what was asked before that is ignored (``follower.process_partition_data``). A partition that has to wait is left out
of the requests until then: an error is answered at once, and would be again and again. Where the leader has only not heard of
its election yet, the first waits are short (Kafka: a second), because records may be waiting for this replica to be committed.

A partition whose replication is throttled here (KIP-73) waits in the same way while the quota is exceeded, unless it has all
that is committed (shouldFollowerThrottle in Kafka). What it fetches counts, in sync or not.

What a round costs depends on the number of partitions with news, not on that of all partitions: a request in a session names
only what has ``_changed``. A partition tells of what retention has changed (``bounds_changed``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import trio

from ..base.errors import ErrorCode, KafkaError, known_code
from ..base.network import size_of
from ..wire.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from ..wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from .broker_client import BrokerClient, MalformedResponseError, NoAnswerError
from .fetch_rate import FetchRate
from .fetch_session_handler import FetchSessionHandler, Key
from .follower import (
    FollowerAction,
    Position,
    begin_following,
    position_of,
    process_partition_data,
    process_reset_error,
    reset_to_leader,
)
from .inter_broker_protocol import inter_broker_protocol
from .older_fetch import REPLICA_STATE_FROM, OlderFetch
from .partition import Partition
from .quotas import NO_LIMIT, Quota
from .settings import ReplicationSettings

logger = logging.getLogger(__name__)

_LATEST, _EARLIEST = -1, -2
_BYTES_PER_TURN = 256 << 10
_SHORTEST_PAUSE = 0.01
_SESSION_ERRORS = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


class Fetcher:
    """Follows one leader. ``connect`` gives the way to a broker and raises PeerUnavailableError where there is none."""

    def __init__(
        self,
        leader_id: int,
        broker_id: int,
        connect: Callable[[int], BrokerClient],
        settings: ReplicationSettings,
        broker_epoch: Callable[[], int],
        quota: Quota,
    ) -> None:
        self.leader_id = leader_id
        self._broker_id = broker_id
        self._connect = connect
        self._settings = settings
        self._broker_epoch = broker_epoch
        self._quota = quota
        protocol = inter_broker_protocol(settings.inter_broker_protocol_version)
        self._fetch_version = protocol.fetch
        self._list_offsets_version = protocol.list_offsets
        self._older = OlderFetch(protocol.fetch) if protocol.fetch < REPLICA_STATE_FROM else None
        self._session = FetchSessionHandler()
        self._followed: dict[Key, Partition] = {}
        self._delayed: dict[Key, float] = {}  # until when, by trio's clock
        self._pauses: dict[Key, float] = {}  # the next one, of those whose leader was asked too early
        self._changed: dict[Key, None] = {}
        self._partition_added = trio.Event()
        self._is_reachable = True
        self._leader_watermarks: dict[Key, int] = {}
        self._failed: set[Key] = set()
        self._rate = FetchRate(trio.current_time())

    # --- for metrics --------------------------------------------------------------------------------------------------

    def lags(self) -> Iterator[tuple[Partition, int]]:
        """How many records each partition is behind the leader's high watermark, where that is known (Kafka's ConsumerLag)."""
        for key, partition in self._followed.items():
            watermark = self._leader_watermarks.get(key)
            if watermark is not None:
                yield partition, max(watermark - partition.log.log_end_offset, 0)

    @property
    def failed_count(self) -> int:
        """How many partitions are not fetched until the controller sends a new state of them."""
        return len(self._failed)

    @property
    def fetches_per_second(self) -> float:
        """Over about a minute."""
        return self._rate.per_second(trio.current_time())

    # --- what is followed ---------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to fetch, now or later."""
        return not self._followed

    def follow(self, partition: Partition) -> None:
        """Fetch a partition, or go on under another leader epoch, which also starts a stopped one again."""
        key = _key(partition)
        self._remove(key)
        try:
            begin_following(partition)
        except KafkaError as error:
            partition.log.folder.log_failed(f"{partition.topic}-{key[1]} is not replicated", error)
            self._failed.add(key)
            return
        self._followed[key] = partition
        partition.fetcher = self
        if self._older is not None:
            self._older.note(partition.topic, partition.topic_id)
        self._partition_added.set()

    def unfollow(self, partition: Partition) -> None:
        """Fetch a partition no more; an answer that is under way is not appended to it."""
        self._remove(_key(partition))

    def bounds_changed(self, partition: Partition) -> None:
        """The partition's log starts or ends elsewhere: its leader is to be told."""
        self._changed[_key(partition)] = None

    def _remove(self, key: Key) -> None:
        partition = self._followed.pop(key, None)
        if partition is not None:
            partition.fetcher = None
        self._delayed.pop(key, None)
        self._pauses.pop(key, None)
        self._leader_watermarks.pop(key, None)
        self._failed.discard(key)
        self._changed[key] = None  # so that the next request of the session forgets it

    # --- rounds -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Fetch until cancelled."""
        while True:
            await self._wait_for_partitions()
            now = trio.current_time()
            self._rate.note(now)
            request = self._request()
            if self._older is not None:
                self._older.fit(request)
            try:
                response = await self._connect(self.leader_id).send(request, self._fetch_version)
            except NoAnswerError as error:
                self._session.lose()  # the leader may have seen the request, so which epoch it expects next is unknown
                await self._back_off(error)
                continue
            self._is_reachable = True
            if self._older is not None:
                self._older.read(response)
            await self._process_response(response)

    async def _wait_for_partitions(self) -> None:
        """Return when a partition can be fetched."""
        while True:
            now = trio.current_time()
            for key in [key for key, until in self._delayed.items() if until <= now]:
                del self._delayed[key]
                self._changed[key] = None
            if self._quota.limit < NO_LIMIT:
                self._delay_throttled(now)
            if len(self._followed) > len(self._delayed):
                return
            self._partition_added = trio.Event()
            with trio.move_on_at(min(self._delayed.values(), default=float("inf"))):
                await self._partition_added.wait()

    def _delay_throttled(self, now: float) -> None:
        """Delay throttled partitions that are not in sync while the quota is exceeded; not for long, as the limit may change."""
        pause = self._quota.seconds_exceeded(now)
        if not pause:
            return
        pause = min(max(pause, _SHORTEST_PAUSE), self._settings.replica_fetch_backoff_ms / 1000)
        for key, partition in self._followed.items():
            if key not in self._delayed and self._is_throttled(partition) and not self._is_in_sync(key, partition):
                self._changed[key] = None
                self._delay(key, pause)

    def _is_throttled(self, partition: Partition) -> bool:
        return (partition.log.partition, self._broker_id) in partition.log.settings.throttled_on_follower

    def _is_in_sync(self, key: Key, partition: Partition) -> bool:
        watermark = self._leader_watermarks.get(key)
        return watermark is not None and partition.log.log_end_offset >= watermark

    async def _back_off(self, error: Exception) -> None:
        """Send the leader nothing for a while; a partition that is added ends the wait, as the leader may be back."""
        level = logging.INFO if self._is_reachable else logging.DEBUG
        logger.log(level, "Nothing can be fetched from broker %d: %s", self.leader_id, error)
        self._is_reachable = False
        self._partition_added = trio.Event()
        with trio.move_on_after(self._settings.replica_fetch_backoff_ms / 1000):
            await self._partition_added.wait()

    def _request(self) -> FetchRequest:
        settings, session = self._settings, self._session
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=self._broker_id, replica_epoch=self._broker_epoch()),
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=session.session_id,
            session_epoch=session.epoch,
        )
        if session.is_full:
            self._changed |= dict.fromkeys(self._followed)
        positions = {key: self._position(key) for key in self._changed}
        self._changed = {}
        partition_max = settings.replica_fetch_max_bytes
        if session.is_full:
            wanted = {key: position for key, position in positions.items() if position is not None}
            request.topics = session.begin(wanted, partition_max)
        else:
            request.topics, request.forgotten_topics_data = session.change(positions, partition_max)
        return request

    def _position(self, key: Key) -> Position | None:
        partition = self._followed.get(key)
        return None if partition is None or key in self._delayed else position_of(partition)

    # --- answers ------------------------------------------------------------------------------------------------------

    async def _process_response(self, response: FetchResponse) -> None:
        """Apply each partition's part of the response; other tasks run in between."""
        if not self._session.take(response):
            if response.error_code not in _SESSION_ERRORS:
                await self._back_off(
                    KafkaError(known_code(response.error_code), "the response does not fit the request")
                )
            return
        taken = 0
        later: list[tuple[Key, Partition, FollowerAction]] = []
        for topic in response.responses:
            for data in topic.partitions:
                key = topic.topic_id, data.partition_index
                partition = self._followed.get(key)
                if partition is None or key in self._delayed:
                    continue
                outcome = self._process_partition(key, partition, data)
                if outcome in (FollowerAction.FLUSH, FollowerAction.RESET):
                    later.append((key, partition, outcome))
                taken += size_of(data.records or b"")
                if taken >= _BYTES_PER_TURN:
                    taken = 0
                    await trio.lowlevel.checkpoint()
        # These wait for the disk or for the leader; the other partitions of the response have not waited for that.
        for key, partition, outcome in later:
            if outcome is FollowerAction.RESET:
                await self._reset(key, partition)
            else:
                await self._flush(partition)

    def _process_partition(self, key: Key, partition: Partition, data: PartitionData) -> FollowerAction:
        outcome = process_partition_data(partition, self._session.asked[key], data)
        if not data.error_code:
            self._leader_watermarks[key] = data.high_watermark
            if partition.log.settings.follower_replication_throttled_replicas and self._is_throttled(partition):
                self._quota.record(size_of(data.records or b""), trio.current_time())
        self._apply_outcome(key, partition, outcome)
        return outcome

    def _apply_outcome(self, key: Key, partition: Partition, outcome: FollowerAction) -> None:
        if self._followed.get(key) is not partition:
            return  # its folder failed while the answer was taken
        self._changed[key] = None
        if outcome is FollowerAction.STOP:
            self._remove(key)
            self._failed.add(key)
        elif outcome is FollowerAction.REFETCH:
            self._session.lose()
        elif outcome is FollowerAction.BACK_OFF:
            self._delay(key, self._settings.replica_fetch_backoff_ms / 1000)
        elif outcome is FollowerAction.RETRY:
            pause = self._pauses.get(key, _SHORTEST_PAUSE)
            self._pauses[key] = 2 * pause
            self._delay(key, min(pause, self._settings.replica_fetch_backoff_ms / 1000))
        elif self._pauses:
            self._pauses.pop(key, None)

    def _delay(self, key: Key, seconds: float) -> None:
        self._delayed[key] = trio.current_time() + seconds

    async def _flush(self, partition: Partition) -> None:
        try:
            await partition.log.flush()
        except KafkaError as error:
            partition.log.folder.log_failed(f"flush of {partition.log.directory} failed", error)

    async def _reset(self, key: Key, partition: Partition) -> None:
        """Begin again where the leader's log allows it (Kafka's fetchOffsetAndTruncate)."""
        asked = position_of(partition)
        outcome = FollowerAction.BACK_OFF
        try:
            leader_end = await self._leader_offset(partition, _LATEST)
            leader_start = await self._leader_offset(partition, _EARLIEST) if leader_end >= asked.offset else -1
            if self._followed.get(key) is not partition or position_of(partition)[:2] != asked[:2]:
                return  # it was stopped or deleted, or has another leader
            outcome = reset_to_leader(partition, leader_start, leader_end)
        except KafkaError as error:
            outcome = process_reset_error(partition, error.code)
        except NoAnswerError as error:
            logger.info("%s-%d: the leader does not report the end of its log: %s", partition.topic, key[1], error)
        if position_of(partition).leader_epoch == asked.leader_epoch:
            self._apply_outcome(key, partition, outcome)

    async def _leader_offset(self, partition: Partition, which: int) -> int:
        """Where the leader's log starts or ends. Raises KafkaError, NoAnswerError."""
        number = partition.log.partition
        asked = ListOffsetsPartition(
            partition_index=number, current_leader_epoch=partition.leader_epoch, timestamp=which
        )
        topic = ListOffsetsTopic(name=partition.topic, partitions=[asked])
        request = ListOffsetsRequest(replica_id=self._broker_id, isolation_level=0, topics=[topic])
        response: ListOffsetsResponse = await self._connect(self.leader_id).send(request, self._list_offsets_version)
        for answered in (data for topic in response.topics for data in topic.partitions):
            if answered.error_code:
                raise KafkaError(known_code(answered.error_code), "the leader refuses to say")
            if answered.partition_index == number:
                return answered.offset
        raise MalformedResponseError(f"broker {self.leader_id} says nothing of {partition.topic}-{number}")


def _key(partition: Partition) -> Key:
    return partition.topic_id, partition.log.partition
