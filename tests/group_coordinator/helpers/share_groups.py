"""Share groups at a running coordinator: heartbeats in short, the records that they write, and a share coordinator in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.client import Client
from ottla.group_coordinator.records import CoordinatorRecord, read_batch
from ottla.group_coordinator.share_group_settings import ShareGroupSettings
from ottla.group_coordinator.topics import TopicSize
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.share_coordinator.state import NOT_BEGUN, UNKNOWN_COUNT, SharePartitionKey, ShareState, StateBatch
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from ottla.wire.messages.share_group_records import ShareGroupStatePartitionMetadataValue
from ottla.wire.records import RecordBatch

SECOND = 1.001
EPOCHS = {11: "epoch", 12: "assignment_epoch", 14: "member_epoch"}


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b".")


class MemoryStates:
    """A ``ShareStateStore`` in memory. ``gate`` holds requests back, ``error`` refuses them, ``refuses`` some of them."""

    def __init__(self) -> None:
        self.states: dict[SharePartitionKey, ShareState] = {}
        self.leader_epochs: dict[SharePartitionKey, int] = {}
        self.gate: trio.Event | None = None
        self.error: KafkaError | None = None
        self.refuses: Callable[[SharePartitionKey], bool] = lambda key: True
        self.asked: list[tuple[str, SharePartitionKey]] = []

    async def _ask(self, what: str, key: SharePartitionKey) -> None:
        self.asked.append((what, key))
        if self.gate is not None:
            await self.gate.wait()
        await trio.lowlevel.checkpoint()
        if self.error is not None and self.refuses(key):
            raise self.error

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        await self._ask("initialize", key)
        known = self.states.get(key)
        if known is not None and known.state_epoch > state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        self.states[key] = ShareState(state_epoch, start_offset, (), UNKNOWN_COUNT)

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        return self.states[key]

    async def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        self.states[key] = ShareState(state_epoch, start_offset, tuple(batches), delivery_complete_count)
        self.leader_epochs[key] = leader_epoch

    async def delete(self, key: SharePartitionKey) -> None:
        await self._ask("delete", key)
        self.states.pop(key, None)

    async def summary(self, key: SharePartitionKey, leader_epoch: int) -> tuple[int, int, int, int]:
        await self._ask("summary", key)
        state = self.states.get(key, ShareState(0, NOT_BEGUN, (), UNKNOWN_COUNT))
        epoch = self.leader_epochs.get(key, 0)
        return state.state_epoch, epoch, state.start_offset, state.delivery_complete_count


class ShareMembers:
    """Members of the group ``g`` at a running coordinator."""

    def __init__(self, world: Any, states: MemoryStates) -> None:
        self.world = world
        self.states = states
        self._seen = 0

    def topic(self, name: str, count: int | None) -> None:
        """Make a topic, enlarge it, or with None delete it."""
        self.world.topics.put(name, None if count is None else TopicSize(topic_id(name), count))

    async def __call__(
        self, member_id: str, epoch: int, names: Iterable[str] | None = None, **fields: Any
    ) -> tuple[int, dict[str, list[int]] | None]:
        """A heartbeat: the epoch of the response, and the assignment if it has one. One that joins reads ``t`` by default."""
        response = await self.send(member_id, epoch, names, **fields)
        if response.assignment is None:
            return response.member_epoch, None
        assigned = {each.topic_id: sorted(each.partitions) for each in response.assignment.topic_partitions}
        return response.member_epoch, {key.rstrip(b".").decode(): part for key, part in assigned.items()}

    async def send(
        self, member_id: str, epoch: int, names: Iterable[str] | None = None, **fields: Any
    ) -> ShareGroupHeartbeatResponse:
        if epoch == 0 and names is None:
            names = ["t"]
        request = ShareGroupHeartbeatRequest(
            group_id=fields.pop("group", "g"),
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=None if names is None else list(names),
            **fields,
        )
        response = await self.world.groups.share_group_heartbeat(
            request, Client("c", "/127.0.0.1", 1), self.world.flush
        )
        assert isinstance(response, ShareGroupHeartbeatResponse)
        return response

    async def refused(self, *arguments: Any, **fields: Any) -> ErrorCode:
        """The error code of a heartbeat."""
        with pytest.raises(KafkaError) as refused:
            await self(*arguments, **fields)
        return refused.value.code

    async def asked(self) -> None:
        """Return when the share coordinator has responded to all that it was asked for."""
        await wait_all_tasks_blocked()

    async def next_target(self) -> None:
        """Return when the next target may be made, and what was asked for is answered."""
        await self.asked()
        await trio.sleep(SECOND)

    async def stable(self, *members: str, names: Iterable[str] | None = None) -> dict[str, int]:
        """Members that have joined and are at the same target: their epochs."""
        for member in members:
            await self(member, 0, names)
        for _ in range(2):
            await self.next_target()
            epochs = {member: (await self(member, 0, names))[0] for member in members}
        assert len(set(epochs.values())) == 1
        return epochs

    def written(self) -> str:
        """The records since the last call in short: type, member, epoch, "t" for a tombstone, partitions by state."""
        batches = self.world.log.partitions.get(0, [])
        fresh, self._seen = batches[self._seen :], len(batches)
        return " | ".join(" ".join(map(_in_short, _records(raw))) for raw in fresh)

    @property
    def group(self) -> Any:
        found = self.world.groups.find("g")
        return None if found is None else found.group


def _records(raw: bytes) -> Iterable[CoordinatorRecord]:
    for _, record in read_batch(RecordBatch(bytearray(raw)), SkippedRecords()):
        assert record is not None
        yield record


def _in_short(record: CoordinatorRecord) -> str:
    value, kind = record.value, record.key.api_key
    word = f"{'t' if value is None else ''}{kind}{getattr(record.key, 'member_id', '')}"
    if isinstance(value, ShareGroupStatePartitionMetadataValue):
        parts = (value.initializing_topics, value.initialized_topics)
        told = [",".join(f"{topic.topic_name}{topic.partitions}".replace(" ", "") for topic in part) for part in parts]
        return f"{word}({';'.join([*told, ','.join(topic.topic_name for topic in value.deleting_topics)])})"
    if value is not None and kind in EPOCHS:
        word += f"({getattr(value, EPOCHS[kind])})"
    return word


@asynccontextmanager
async def share_groups(
    make_world: Any, states: MemoryStates | None = None, **settings: Any
) -> AsyncIterator[ShareMembers]:
    """A coordinator that runs, with a topic ``t`` of two partitions. ``settings`` are of share groups."""
    states = states or MemoryStates()
    world = make_world(share_store=states, share_settings=ShareGroupSettings(settings))
    await world.groups.load(0, 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.groups.run)
        await wait_all_tasks_blocked()
        members = ShareMembers(world, states)
        members.topic("t", 2)
        yield members
        nursery.cancel_scope.cancel()
