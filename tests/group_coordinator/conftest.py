"""A shard driven by hand: no clock, no disk, no network; and a log in memory whose commits can be held back."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.group_coordinator import classic_members, consumer_membership, expiry, lifecycle, membership, offsets
from ottla.group_coordinator.client import Client
from ottla.group_coordinator.consumer_group_settings import ConsumerGroupSettings
from ottla.group_coordinator.coordinator import GroupCoordinator
from ottla.group_coordinator.describe import describe
from ottla.group_coordinator.group_context import GroupContext
from ottla.group_coordinator.settings import GroupSettings
from ottla.group_coordinator.shard import GroupCoordinatorShard
from ottla.group_coordinator.share_group_settings import ShareGroupSettings
from ottla.group_coordinator.timeline import Timeline
from ottla.group_coordinator.topics import TopicSizes
from ottla.group_coordinator.waiter import Waiter
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.replication.coordinator_log import CoordinatorTime
from ottla.share_coordinator.state import ShareStateStore
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.records import RecordBatch


def subscription(*topics: str) -> bytes:
    """Metadata of the consumer protocol, version 0, without user data."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


RANGE_OF_T = (("range", subscription("t")),)


class MemoryLog:
    """``CoordinatorLog`` in memory. ``held`` keeps the high watermark where it is; ``error`` refuses the next append.

    ``led`` is False when another broker leads its partitions.
    """

    def __init__(self) -> None:
        self.partitions: dict[int, list[bytes]] = {}
        self.ends: dict[int, int] = {}
        self.high_watermarks: dict[int, int] = {}
        self.held = False
        self.led = True
        self.lost = False
        self.error: KafkaError | None = None
        self.moved = trio.Event()
        self.load_gate: trio.Event | None = None
        self.count: int | None = None

    def partition_count(self) -> int | None:
        return self.count

    def append(self, partition: int, batch: bytearray) -> int:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        view = RecordBatch(batch)
        view.check_crc()
        view.stamp(self.ends.get(partition, 0), 0)
        self.partitions.setdefault(partition, []).append(bytes(batch))
        self.ends[partition] = self.ends.get(partition, 0) + view.record_count
        if not self.held:
            self.high_watermarks[partition] = self.ends[partition]
        return self.ends[partition]

    def high_watermark(self, partition: int) -> int:
        if not self.led:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.high_watermarks.get(partition, 0)

    def release(self) -> None:
        """Commit everything that was written so far."""
        self.held = False
        self.high_watermarks.update(self.ends)
        self.moved.set()
        self.moved = trio.Event()

    def lose(self, error: KafkaError) -> None:
        """Lose the leadership: waiting requests get ``error``."""
        self.error = error
        self.lost = True
        self.moved.set()

    def is_replicated(self, partition: int) -> bool:
        return True

    async def wait_committed(self, partition: int, offset: int) -> None:
        while self.high_watermark(partition) < offset:
            await self.moved.wait()
            if self.lost:
                assert self.error is not None
                raise self.error

    async def batches(self, partition: int) -> AsyncIterator[bytes]:
        if self.load_gate is not None:
            await self.load_gate.wait()
        for batch in list(self.partitions.get(partition, [])):
            yield batch

    @property
    def batch_count(self) -> int:
        return sum(map(len, self.partitions.values()))


class Machine:
    """One shard and its time. Requests have defaults for everything that a test does not give."""

    def __init__(self, consumer_settings: Mapping[str, Any] | None = None, **settings: int) -> None:
        self.settings = GroupSettings(settings)
        self.log = MemoryLog()
        self.wall_ms = 1_700_000_000_000
        self.monotonic_ms = 5_000.0
        self.random = random.Random(7)
        self.timeline = Timeline()
        self.topics = TopicSizes()
        self.context = GroupContext.of(ConsumerGroupSettings(consumer_settings), self.topics)
        self.shard = self.new_shard()

    def new_shard(self) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(0, 0, self.log, self.settings, self.random, self.timeline, self.context)

    @property
    def now(self) -> CoordinatorTime:
        return CoordinatorTime(self.wall_ms, self.monotonic_ms)

    def group(self, group_id: str = "g"):
        return self.shard.groups[group_id].live

    def advance(self, milliseconds: float) -> None:
        """Let time pass, firing every timer at its own time."""
        end = self.monotonic_ms + milliseconds
        while True:
            deadline = self.shard.timers.next_deadline()
            if deadline is None or deadline > end:
                break
            self.wall_ms += int(max(deadline - self.monotonic_ms, 0))
            self.monotonic_ms = max(deadline, self.monotonic_ms)
            name = self.shard.timers.pop_expired(self.monotonic_ms)
            lifecycle.expire(self.shard, name, self.now)
        self.wall_ms += int(end - self.monotonic_ms)
        self.monotonic_ms = end

    def restart(self) -> None:
        """Another coordinator takes over: only the log is kept."""
        lifecycle.release(self.shard)
        self.shard = self.new_shard()
        for batch in self.log.partitions.get(0, []):
            list(self.shard.load(RecordBatch(bytearray(batch)), SkippedRecords()))
        lifecycle.resume(self.shard, self.now)

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        version: int = 9,
        client: str = "client",
        instance: str | None = None,
        protocols=RANGE_OF_T,
        protocol_type: str = "consumer",
        session: int = 10_000,
        rebalance_timeout: int = 60_000,
    ):
        request = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
            session_timeout_ms=session,
            rebalance_timeout_ms=rebalance_timeout,
        )
        sender = Client(client, "/127.0.0.1", version)
        consumer_group = classic_members.group_to_join(self.shard, group)
        if consumer_group is None:
            return membership.join(self.shard, request, sender, self.now)
        return Waiter.answered(self._join_consumer_group(consumer_group, request, sender), self.shard.depends_on(group))

    def _join_consumer_group(self, group: Any, request: JoinGroupRequest, sender: Client) -> JoinGroupResponse:
        try:
            joining = classic_members.begin_join(self.shard, group, request, sender, self.now)
            if isinstance(joining, JoinGroupResponse):
                return joining
            if consumer_membership.is_target_due(self.shard, joining, self.now):
                consumer_membership.make_target(self.shard, joining, self.now)
            return classic_members.complete_join(self.shard, joining, self.now)
        except KafkaError as error:
            return JoinGroupResponse(error_code=error.code)

    def enter(self, **arguments):
        """Join with the id that MEMBER_ID_REQUIRED gives: the member id and the waiter."""
        member_id = self.join(**arguments).answer.member_id
        return member_id, self.join(member_id, **arguments)

    def sync(self, member_id: str, generation: int, assignments=None, **fields):
        request = SyncGroupRequest(
            group_id=fields.pop("group", "g"),
            member_id=member_id,
            generation_id=generation,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=value)
                for name, value in (assignments or {}).items()
            ],
            **fields,
        )
        return membership.sync(self.shard, request, self.now)

    def stable(self, count: int = 1, **arguments) -> list[str]:
        """A Stable group of ``count`` members, whose assignments are ``a0``, ``a1``, ...; the first leads."""
        entered = []
        for _ in range(count):
            member_id, waiter = self.enter(**arguments)
            for other in entered:
                self.join(other, **arguments)
            entered.append(member_id)
        assert waiter.answer is not None
        generation = waiter.answer.generation_id
        assignments = {member_id: b"a%d" % index for index, member_id in enumerate(entered)}
        group = {"group": arguments["group"]} if "group" in arguments else {}
        for member_id in reversed(entered):
            self.sync(member_id, generation, assignments, **group)
        return entered

    def heartbeat(self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None):
        request = HeartbeatRequest(
            group_id=group, member_id=member_id, generation_id=generation, group_instance_id=instance
        )
        return membership.heartbeat(self.shard, request, self.now)

    def leave(self, *members, group: str = "g"):
        """Members are member ids, or pairs of member id and instance id."""
        identities = [member if isinstance(member, tuple) else (member, None) for member in members]
        request = LeaveGroupRequest(
            group_id=group,
            members=[MemberIdentity(member_id=name, group_instance_id=instance) for name, instance in identities],
        )
        return [member.error_code for member in membership.leave(self.shard, request, self.now).members]

    def commit(self, offset: int = 5, *, topic: str = "t", partition: int = 0, version: int = 9, **fields):
        """The error code of the commit of one partition."""
        part = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=fields.pop("epoch", -1),
            committed_metadata=fields.pop("metadata", None),
        )
        request = OffsetCommitRequest(
            group_id=fields.pop("group", "g"),
            member_id=fields.pop("member_id", ""),
            generation_id_or_member_epoch=fields.pop("generation", -1),
            topics=[
                OffsetCommitRequestTopic(name=topic, topic_id=fields.pop("topic_id", bytes(16)), partitions=[part])
            ],
            **fields,
        )
        response = offsets.commit(self.shard, request, version, self.now)
        return response.topics[0].partitions[0].error_code

    def fetch(self, topic="t", partition=0, *, group="g", require_stable=False, topic_id=bytes(16)):
        topics = [OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[partition])]
        request = OffsetFetchRequestGroup(group_id=group, topics=topics)
        return offsets.fetch(self.shard, request, require_stable=require_stable).topics[0].partitions[0]

    def fetch_all(self, group: str = "g") -> dict[tuple[str, int], int]:
        response = offsets.fetch(self.shard, OffsetFetchRequestGroup(group_id=group, topics=None), require_stable=False)
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in response.topics
            for partition in topic.partitions
        }

    def delete_offset(self, topic: str = "t", partition: int = 0, *, group: str = "g"):
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
                )
            ],
        )
        return offsets.delete(self.shard, request, self.now).topics[0].partitions[0].error_code

    def expire_offsets(self) -> None:
        for group in list(self.shard.groups.values()):
            expiry.expire_group(self.shard, group, self.now)

    def describe(self, group: str = "g", version: int = 6):
        return describe(self.shard, group, version)


class World:
    """A coordinator with one partition over a log in memory."""

    def __init__(
        self,
        log: Any,
        *,
        share_store: ShareStateStore | None = None,
        share_settings: ShareGroupSettings | None = None,
        **settings: int,
    ) -> None:
        self.log = log
        self.flushes = 0
        values = {"offsets_topic_num_partitions": 1, **settings}
        self.topics = TopicSizes()
        context = GroupContext.of(ConsumerGroupSettings(), self.topics, share_settings)
        self.clock = SimulatedClock()
        self.groups = GroupCoordinator(
            log, GroupSettings(values), context, self.clock, random.Random(3), InlineWorkers(), share_store
        )

    async def flush(self) -> None:
        self.flushes += 1

    async def join(self, member_id: str = "", *, group: str = "g", version: int = 9, session: int = 10_000) -> Any:
        request = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            session_timeout_ms=session,
            rebalance_timeout_ms=60_000,
        )
        return await self.groups.join_group(request, Client("c", "/127.0.0.1", version), self.flush)

    async def enter(self) -> str:
        member_id: str = (await self.join()).member_id
        assert (await self.join(member_id)).error_code == ErrorCode.NONE
        return member_id

    async def sync(self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None) -> Any:
        request = SyncGroupRequest(
            group_id="g",
            member_id=member_id,
            generation_id=generation,
            assignments=[SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in (assignments or {}).items()],
        )
        return await self.groups.sync_group(request, self.flush)

    async def heartbeat(self, member_id: str, generation: int, group: str = "g") -> int:
        request = HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation)
        return (await self.groups.heartbeat(request, self.flush)).error_code

    async def commit(self, offset: int, group: str = "g") -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
        request = OffsetCommitRequest(group_id=group, topics=topics)
        response = await self.groups.commit_offsets(request, 9, self.flush)
        return response.topics[0].partitions[0].error_code

    async def fetch(self, group: str = "g") -> int | None:
        request = OffsetFetchRequestGroup(group_id=group, topics=None)
        topics = (await self.groups.fetch_offsets(request, False, self.flush)).topics
        return topics[0].partitions[0].committed_offset if topics else None

    async def state(self, group: str = "g") -> str:
        return (await self.groups.describe_group(group, 6, self.flush)).group_state


@pytest.fixture
def make_machine():
    return Machine


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def memory_log():
    return MemoryLog()


@pytest.fixture
def make_world(memory_log):
    """Coordinators on the same log."""
    return functools.partial(World, memory_log)
