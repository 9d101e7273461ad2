"""The world of one group coordinator: its lives one after the other, the log that they share, requests to it, and the topics.

A life is a broker that leads the partition. It dies or is deposed, and the next one begins with what is left of the log
(``group_log.remaining``), which may have been compacted. Each broker hears of changes of topics in its own time.

Requests are lost, are late, or their responses are lost. As long as a client waits, its request may be handled, and not
afterwards: KIP-848 is not made for a heartbeat that is handled when its client has gone on without a response, and may take new
partitions meanwhile. With ``is_lenient`` such requests come, and the log loses what was acknowledged. Then clients may read a
partition at the same time, but the state of the group stays sound.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import InlineWorkers
from ottla.group_coordinator.client import Client
from ottla.group_coordinator.consumer_group import ConsumerGroup
from ottla.group_coordinator.consumer_group_settings import ConsumerGroupSettings
from ottla.group_coordinator.coordinator import GroupCoordinator
from ottla.group_coordinator.group_context import GroupContext
from ottla.group_coordinator.settings import GroupSettings
from ottla.group_coordinator.shard import GroupCoordinatorShard
from ottla.group_coordinator.share_group_settings import ShareGroupSettings
from ottla.group_coordinator.timeline import Timeline
from ottla.group_coordinator.topics import TopicSize, TopicSizes
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.records import RecordBatch
from ottla.wire.schema import Message, replace

from ..faults import JumpingClock
from ..network import Lost
from ..run import Mode, Run
from .group_log import GroupLog, StoredBatch, compacted, remaining
from .inspector import GroupInspector

GROUP = "readers"
REQUEST_SECONDS = 2.0
REBALANCE_SECONDS = 10.0
"""As ``REQUEST_SECONDS``, of requests that wait for other members."""
SESSION_MS = 6000
HEARTBEAT_MS = 1000


class CoordinatorLife:
    """A broker that leads the partition, once or several times, until it dies."""

    def __init__(self, world: GroupWorld, number: int) -> None:
        self.number = number
        self.log = GroupLog(world.random_for(f"log {number}"), world.inspector.appended)
        self.topics = TopicSizes()
        self.clock = JumpingClock()
        context = GroupContext.of(world.settings, self.topics, world.share_settings)
        randomness = world.random_for(f"coordinator {number}")
        self.groups = GroupCoordinator(
            self.log,
            GroupSettings({"offsets_topic_num_partitions": 1, "group_initial_rebalance_delay_ms": 0}),
            context,
            self.clock,
            randomness,
            InlineWorkers(),
            world.share_store,
        )
        self.scope = trio.CancelScope()
        self.is_serving = False
        self.requests: set[trio.CancelScope] = set()
        """Those that are being handled."""

    def die(self) -> None:
        for scope in (self.scope, *self.requests):
            scope.cancel()

    async def run(self) -> None:
        with self.scope:
            await self.groups.run()

    @property
    def group(self) -> ConsumerGroup | None:
        """The group, as its present coordinator has it."""
        found = self.groups.find(GROUP)
        return found.group if found is not None and isinstance(found.group, ConsumerGroup) else None


class GroupWorld(Run):
    """See the module."""

    def __init__(self, seed: int, *, is_lenient: bool, settings: ConsumerGroupSettings) -> None:
        super().__init__(seed, Mode.POWER if is_lenient else Mode.KILLS)
        self.is_lenient = is_lenient
        self.settings = settings
        self.share_settings: ShareGroupSettings | None = None
        self.share_store: Any = None
        """Of share groups, if there are any."""
        self.nursery: trio.Nursery | None = None
        self.trouble = 0.0
        """The share of requests that are lost, or whose response is."""
        self.has_jumped = False
        """Whether the clock of a broker was ever set wrong."""
        self.late = 0
        """Requests that are still to come, although their clients wait no more."""
        self.refusals = 0.0
        self.delay_seconds = 0.0
        """See ``GroupLog``."""
        self.topics: dict[str, TopicSize] = {}
        self.topic_names: dict[bytes, str] = {}
        """By id, of those that are gone as well."""
        self.deleted: set[str] = set()
        """The topics that have been deleted once."""
        self.inspector = GroupInspector(self)
        self.life: CoordinatorLife | None = None
        self.epoch = 0
        """Of the leader."""
        self._metadata_offset = 100
        """Of the last change of topics in the metadata log."""
        self._told_at = 0.0
        """When the coordinator hears of it."""
        self._rng = self.random_for("world")
        self._stored: tuple[list[StoredBatch], int] = ([], 0)
        """The log while nobody leads, and its end."""
        self._clean_end = 0
        """The offset up to which it has been compacted. No replica cuts its log below that."""

    def client(self, name: str) -> GroupClient:
        return GroupClient(self, name)

    @property
    def serving(self) -> CoordinatorLife | None:
        """The life that serves the group now."""
        return self.life if self.life is not None and self.life.is_serving else None

    # --- lives of the coordinator -------------------------------------------------------------------------------------

    async def begin_life(self) -> None:
        """A broker becomes the leader, and loads the log."""
        assert self.nursery is not None
        self.lives += 1
        life = self.life = CoordinatorLife(self, self.lives)
        life.topics.update(self.topics, self._metadata_offset)
        self.nursery.start_soon(life.run)
        await self._lead(life)

    async def _lead(self, life: CoordinatorLife) -> None:
        self.epoch += 1
        stored, end = self._stored
        self.inspector.began(stored)
        life.log.lead(stored, end)
        self.obey(life)
        await life.groups.load(0, self.epoch)
        life.is_serving = True
        self.log("coordinator", f"life {life.number} leads at {self.epoch} with {end} offsets")
        self.inspector.loaded(life)

    def obey(self, life: CoordinatorLife) -> None:
        life.log.refusals, life.log.delay_seconds = self.refusals, self.delay_seconds

    async def move(self, *, is_killed: bool, may_compact: bool = True) -> None:
        """The coordinator dies or is deposed; the next one has what is left of the log. The same broker may come back."""
        life, rng = self.life, self._rng
        assert life is not None
        self._end_leadership(life, may_compact=may_compact)
        if is_killed:
            life.die()
        else:
            life.groups.unload(0)
        self.log("coordinator", f"life {life.number} {'dies' if is_killed else 'is deposed'}")
        await trio.sleep(rng.choice((0, 0, 0.3, 2.0)))
        if not is_killed and rng.random() < 0.4:
            await self._lead(life)
            return
        life.die()
        await self.begin_life()

    def _end_leadership(self, life: CoordinatorLife, *, may_compact: bool) -> None:
        rng, log = self._rng, life.log
        life.is_serving = False
        least = log.committed
        if self.is_lenient and rng.random() < 0.3:
            least = rng.randint(min(self._clean_end, least), least)
        stored = remaining(log.stored, least, rng)
        end = stored[-1].end if stored else 0
        if may_compact and rng.random() < 0.5:
            clean = rng.randint(0, sum(1 for batch in stored if batch.end <= least))
            self._clean_end = max(self._clean_end, stored[clean - 1].end if clean else 0)
            stored = compacted(stored[:clean], keeps_tombstones=rng.random() < 0.5) + stored[clean:]
        self._stored = stored, end
        log.lose()

    def elect_again(self) -> Awaitable[None]:
        """The same broker is elected without having lost the partition: it goes on."""
        self.epoch += 1
        assert self.life is not None
        return self.life.groups.load(0, self.epoch)

    def replayed(self, batches: list[StoredBatch]) -> ConsumerGroup | None:
        """The group that a log makes."""
        return self.replayed_shard(batches).consumer_group(GROUP)

    def replayed_shard(self, batches: list[StoredBatch]) -> GroupCoordinatorShard:
        """All that a log makes."""
        assert self.life is not None
        shard = GroupCoordinatorShard(
            0,
            0,
            self.life.log,
            self.life.groups.settings,
            random.Random(0),
            Timeline(),
            GroupContext.of(self.settings, self.life.topics),
        )
        for batch in batches:
            for _ in shard.load(RecordBatch(bytearray(batch.content)), SkippedRecords()):
                pass
        return shard

    # --- topics -------------------------------------------------------------------------------------------------------

    def set_topic(self, name: str, count: int | None) -> None:
        """Make a topic, enlarge it, or with None delete it. The coordinator hears of it some time later."""
        before = self.topics.get(name)
        self._metadata_offset += self._rng.randint(1, 3)
        if count is None:
            self.topics.pop(name, None)
            self.deleted.add(name)
        elif before is None:
            topic_id = name.encode().ljust(4, b".") + self._rng.randbytes(12)
            self.topics[name] = TopicSize(topic_id, count)
            self.topic_names[topic_id] = name
        else:
            self.topics[name] = before._replace(partition_count=count)
        self.log("topics", f"{name} has {count} partitions")
        if (life := self.life) is not None:
            clock: Any = trio.lowlevel.current_clock()
            told = name, self.topics.get(name), self._metadata_offset
            self._told_at = max(self._told_at, trio.current_time() + self._rng.choice((0, 0.1, 1.0)))
            clock.call_at(self._told_at, lambda: self._tell(life, *told))

    def _tell(self, life: CoordinatorLife, name: str, size: TopicSize | None, offset: int) -> None:
        life.topics.put(name, size, offset)
        if size is None:
            life.groups.delete_topics([name])

    # --- requests -----------------------------------------------------------------------------------------------------

    async def serve(self, request: Message) -> Message:
        """Handle a request as a broker does. Raises Lost where there is none, or it dies."""
        life = self.life
        if life is None or life.scope.cancel_called:
            raise Lost("nobody is there")
        with trio.CancelScope() as scope:
            life.requests.add(scope)
            try:
                return await self._response(life, request)
            finally:
                life.requests.discard(scope)
        raise Lost("the broker died")

    async def _response(self, life: CoordinatorLife, request: Message) -> Message:
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            verdict = self.inspector.heartbeat_begins(request)
            try:
                response = await life.groups.consumer_group_heartbeat(request, Client("c", "/127.0.0.1", 1), _flush)
            except KafkaError as error:
                response = ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
            verdict(ErrorCode(response.error_code))
            return response
        if isinstance(request, OffsetCommitRequest):
            return await self._commit(life, request)
        return await self._classic(life, request)

    async def _classic(self, life: CoordinatorLife, request: Message) -> Message:
        """Handle a request of the classic protocol."""
        groups, began = life.groups, trio.current_time()
        response: JoinGroupResponse | SyncGroupResponse | HeartbeatResponse | LeaveGroupResponse
        try:
            match request:
                case JoinGroupRequest():
                    response = await groups.join_group(request, Client("c", "/127.0.0.1", 9), _flush)
                case SyncGroupRequest():
                    response = await groups.sync_group(request, _flush)
                case HeartbeatRequest():
                    response = await groups.heartbeat(request, _flush)
                case LeaveGroupRequest():
                    return await groups.leave_group(request, _flush)
                case _:
                    raise AssertionError(request)
        except KafkaError as error:
            kinds = {JoinGroupRequest: JoinGroupResponse, SyncGroupRequest: SyncGroupResponse}
            kind = {**kinds, HeartbeatRequest: HeartbeatResponse, LeaveGroupRequest: LeaveGroupResponse}[type(request)]
            return kind(error_code=error.code)
        if not response.error_code:
            self.inspector.heard(request.member_id, began)
        return response

    async def _commit(self, life: CoordinatorLife, request: OffsetCommitRequest) -> Message:
        [topic] = request.topics
        [part] = topic.partitions
        size = life.topics.find(topic.name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if size is not None and part.partition_index < size.partition_count:
            wanted = replace(request, topics=[replace(topic, topic_id=size.topic_id)])
            verdict = self.inspector.commit_begins(life, wanted)
            try:
                response = await life.groups.commit_offsets(wanted, 9, _flush)
                code = ErrorCode(response.topics[0].partitions[0].error_code)
            except KafkaError as error:
                code = error.code
            verdict(code)
        answer = OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name=topic.name, partitions=[answer])])


async def _flush() -> None:
    pass


class GroupClient:
    """The connection of one client."""

    def __init__(self, world: GroupWorld, name: str) -> None:
        self._world = world
        self._rng = world.random_for(f"network {name}")

    def close(self) -> None:
        """A client that dies."""

    async def call(self, request: Message, version: int) -> Any:
        """Send a request; returns the response. Raises Lost."""
        world, rng = self._world, self._rng
        fate = rng.random() if rng.random() < world.trouble else 1.0
        await trio.sleep(rng.uniform(0, 0.02))
        if fate < 0.35:
            await trio.sleep(rng.choice((0, REQUEST_SECONDS)))
            raise Lost("the request was lost")
        if fate < 0.6 and world.is_lenient:
            assert world.nursery is not None
            world.nursery.start_soon(self._deliver_late, request)
            await trio.sleep(rng.choice((0, REQUEST_SECONDS)))
            raise Lost("the request is late")
        seconds = REBALANCE_SECONDS if isinstance(request, (JoinGroupRequest, SyncGroupRequest)) else REQUEST_SECONDS
        with trio.move_on_after(seconds) as limit:
            if fate < 0.7:
                await trio.sleep(rng.uniform(0, 0.9 * REQUEST_SECONDS))
            response = await world.serve(request)
            await trio.sleep(rng.uniform(0, 0.02))
            if fate < 1:
                raise Lost("the response was lost")
        if limit.cancelled_caught:
            raise Lost("no response in time")
        return response

    async def _deliver_late(self, request: Message) -> None:
        self._world.late += 1
        await trio.sleep(self._rng.uniform(0, 8))
        with suppress(Lost):
            await self._world.serve(request)
        self._world.late -= 1
