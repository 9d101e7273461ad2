"""One seed of a share group's members (KIP-932): heartbeats that are lost or come twice, moved coordinators, topics that grow.

When faults end the group converges within a bounded time: those that live are its members, each has exactly the partitions of its
target, and of each topic that is read every partition is somebody's. No member is ever told of a partition whose state nobody has
been asked to keep, and a coordinator has what a replay of its log gives. In the end the log is cut somewhere: the group converges
again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.client import Client
from ottla.group_coordinator.consumer_group_settings import ConsumerGroupSettings
from ottla.group_coordinator.share_group import ShareGroup
from ottla.group_coordinator.share_group_settings import ShareGroupSettings
from ottla.share_coordinator.state import SharePartitionKey
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from ottla.wire.schema import Message

from ..network import Lost
from ..outcome import Result, play
from .group_log import StoredBatch
from .world import GROUP, HEARTBEAT_MS, SESSION_MS, CoordinatorLife, GroupWorld

SECONDS_OF_FAULTS = (10.0, 30.0)
SETTLED_WITHIN_SECONDS = 30.0
_LEAVES, _JOINS = -1, 0
_REJOINS = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
_VERSION = 1


def simulate_sharing(seed: int) -> Result:
    """Run one seed."""
    return play(seed, lambda: SharingWorld(seed), lambda world: Sharing(world).run())


class KeptPartitions:
    """What a group's coordinator needs of a ``ShareStateStore``. Requests are lost, or take their time."""

    def __init__(self, rng: random.Random) -> None:
        self.trouble = 0.0
        self.keys: set[SharePartitionKey] = set()
        self._rng = rng

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        await trio.sleep(self._rng.choice((0, 0.01, 0.5)))
        if self._rng.random() < self.trouble:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.keys.add(key)
        if self._rng.random() < self.trouble:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)

    async def delete(self, key: SharePartitionKey) -> None:
        self.keys.discard(key)


class SharingInspector:
    """Compares a coordinator with the replay of its log."""

    def __init__(self, world: SharingWorld) -> None:
        self._world = world

    def appended(self, stored: StoredBatch) -> None:
        pass

    def began(self, stored: list[StoredBatch]) -> None:
        pass

    def loaded(self, life: CoordinatorLife) -> None:
        """It may have written already, of sessions."""
        self.compare(life)

    def compare(self, life: CoordinatorLife) -> None:
        found, replayed = self._world.group_of(life), self._world.replay(life.log.stored)
        if found is not None and replayed is not None and _facts(found) != _facts(replayed):
            self._world.violate(f"the coordinator has {_facts(found)}, and its log {_facts(replayed)}")


def _facts(group: ShareGroup) -> tuple[Any, ...]:
    """All that records say of a group."""
    target = group.target
    return (
        *(group.epoch, group.metadata_hash, dict(group.members.newest()), dict(group.topic_subscribers.newest())),
        *(target.epoch, target.timestamp_ms, dict(target.members.newest()), group.states),
    )


class SharingWorld(GroupWorld):
    """The coordinators of a share group, one after the other."""

    inspector: Any

    def __init__(self, seed: int) -> None:
        super().__init__(seed, is_lenient=False, settings=ConsumerGroupSettings())
        share = {"session_timeout_ms": SESSION_MS, "min_session_timeout_ms": 1, "heartbeat_interval_ms": HEARTBEAT_MS}
        share |= {"min_heartbeat_interval_ms": 1, "initialize_retry_interval_ms": 1000}
        self.share_settings = ShareGroupSettings(share)
        self.inspector = SharingInspector(self)
        self.kept = self.share_store = KeptPartitions(self.random_for("kept"))

    def group_of(self, life: CoordinatorLife) -> ShareGroup | None:
        found = life.groups.find(GROUP)
        return found.group if found is not None and isinstance(found.group, ShareGroup) else None

    def replay(self, stored: list[StoredBatch]) -> ShareGroup | None:
        return self.replayed_shard(stored).share_group(GROUP)

    async def go_on_from(self, rng: random.Random) -> None:
        """The next coordinator has any part of the log from its beginning on, and the members stay as they are."""
        life = self.life
        assert life is not None
        stored = life.log.stored[: rng.randint(0, len(life.log.stored))]
        life.log.lose()
        life.die()
        life.is_serving = False
        self._stored = stored, stored[-1].end if stored else 0
        self.log("world", f"{len(stored)} batches are left of {len(life.log.stored)}")
        await self.begin_life()

    async def _response(self, life: CoordinatorLife, request: Message) -> Message:
        assert isinstance(request, ShareGroupHeartbeatRequest)
        try:
            return await life.groups.share_group_heartbeat(request, Client("c", "/127.0.0.1", _VERSION), _no_flush)
        except KafkaError as error:
            return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


async def _no_flush() -> None:
    pass


class SharingMember:
    """A process of the group, and those that take its place."""

    def __init__(self, world: SharingWorld, name: str) -> None:
        self._world = world
        self._name = name
        self._rng = world.random_for(name)
        self._client = world.client(name)
        self._number = 0
        self.is_calm = False
        self.member_id = ""
        self.topics: list[str] = []
        self.epoch = _JOINS
        self._is_sure = False
        """Whether the last heartbeat was answered."""
        self.assigned: dict[bytes, frozenset[int]] = {}

    async def run(self) -> None:
        while True:
            self._number += 1
            self.member_id, self.epoch, self.assigned = f"{self._name}.{self._number}", _JOINS, {}
            self._is_sure = False
            self.topics = sorted(self._rng.sample(("t", "u", "v"), self._rng.randint(1, 3)))
            until = trio.current_time() + self._rng.expovariate(1 / 15)
            while self.is_calm or trio.current_time() < until:
                await self._beat()
                await trio.sleep(HEARTBEAT_MS / 1000)
            if self._rng.random() < 0.5:
                await self._send(_LEAVES, is_full=False)

    async def _send(self, epoch: int, *, is_full: bool) -> ShareGroupHeartbeatResponse | None:
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            subscribed_topic_names=self.topics if is_full else None,
        )
        try:
            response: ShareGroupHeartbeatResponse = await self._client.call(request, _VERSION)
        except Lost as error:
            self._world.log(self.member_id, f"{epoch}: {error}")
            return None
        return response

    async def _beat(self) -> None:
        """Only a heartbeat that has the topics is answered with an assignment that may have been told before."""
        epoch, is_full = self.epoch, not self._is_sure
        response = await self._send(epoch, is_full=is_full)
        if response is not None and self._rng.random() < 0.1 and not self.is_calm:
            self._obey(response)
            response = await self._send(epoch, is_full=is_full)  # it comes twice
        self._is_sure = response is not None and not response.error_code
        if response is not None:
            self._obey(response)

    def _obey(self, response: ShareGroupHeartbeatResponse) -> None:
        code = ErrorCode(response.error_code)
        self._world.log(self.member_id, f"{self.epoch}: {code.name} {response.member_epoch} {response.assignment}")
        if code in _REJOINS:
            self.epoch, self.assigned = _JOINS, {}
        if code:
            return
        if response.member_epoch < self.epoch:
            self._world.violate(f"{self.member_id} goes back from {self.epoch} to {response.member_epoch}")
        self.epoch = response.member_epoch
        if response.assignment is not None:
            found = response.assignment.topic_partitions
            self.assigned = {each.topic_id: frozenset(each.partitions) for each in found if each.partitions}
            for topic_id, partitions in self.assigned.items():
                for number in partitions:
                    if SharePartitionKey(GROUP, topic_id, number) not in self._world.kept.keys:
                        self._world.violate(f"{self.member_id} gets {number} of {topic_id!r}, which nobody keeps")


class Sharing:
    """The members, and the faults."""

    def __init__(self, world: SharingWorld) -> None:
        self._world = world
        self._rng = rng = world.random_for("sharing")
        self._members = [SharingMember(world, f"s{number}") for number in range(rng.choice((1, 2, 3, 5)))]

    async def run(self) -> None:
        """Run everything of this seed."""
        world = self._world
        for name, count in (("t", 3), ("u", 1)):
            world.set_topic(name, count)
        async with trio.open_nursery() as nursery:
            world.nursery = nursery
            await world.begin_life()
            for member in self._members:
                nursery.start_soon(member.run)
            await self._make_trouble()
            self._heal()
            await self._settle("without faults")
            await self._world.go_on_from(self._rng)
            await self._settle("after a cut")
            nursery.cancel_scope.cancel()

    async def _make_trouble(self) -> None:
        world, rng = self._world, self._rng
        world.trouble, world.kept.trouble = rng.choice((0, 0.1, 0.4)), rng.choice((0, 0.2))
        world.refusals, world.delay_seconds = rng.choice((0, 0, 0.1)), rng.choice((0, 0.1, 1.5))
        kinds: list[Callable[[], Any]] = [self._move, self._move, world.elect_again, self._grow, self._compare]
        pause = rng.choice((0.3, 2.0))
        deadline = trio.current_time() + rng.uniform(*SECONDS_OF_FAULTS)
        while trio.current_time() < deadline:
            await trio.sleep(rng.expovariate(1 / pause))
            await rng.choice(kinds)()

    async def _move(self) -> None:
        await self._world.move(is_killed=self._rng.random() < 0.5)

    async def _grow(self) -> None:
        name = self._rng.choice(("t", "u", "v"))
        size = self._world.topics.get(name)
        self._world.set_topic(name, (0 if size is None else size.partition_count) + 1)

    async def _compare(self) -> None:
        if (life := self._world.serving) is not None:
            self._world.inspector.compare(life)

    def _heal(self) -> None:
        world = self._world
        world.trouble = world.kept.trouble = world.refusals = world.delay_seconds = 0.0
        for member in self._members:
            member.is_calm = True
        assert world.life is not None
        world.obey(world.life)
        world.log("world", "no more faults")

    async def _settle(self, when: str) -> None:
        world = self._world
        deadline = trio.current_time() + SETTLED_WITHIN_SECONDS
        while (why := self._unsettled()) is not None:
            if trio.current_time() > deadline:
                world.violate(f"{SETTLED_WITHIN_SECONDS} s {when} {why}")
                return
            await trio.sleep(0.5)
        await self._compare()

    def _unsettled(self) -> str | None:
        """Why the group is not where it is to be."""
        world = self._world
        group = None if world.serving is None else world.group_of(world.serving)
        if group is None:
            return "nobody serves the group"
        members = {member.member_id: member for member in self._members}
        if members.keys() != group.members.newest().keys():
            return f"its members are {sorted(group.members.newest())}, not {sorted(members)}"
        if group.target.epoch != group.epoch:
            return f"its target is of epoch {group.target.epoch}, not {group.epoch}"
        for member_id, member in members.items():
            if member.epoch != group.epoch or member.assigned != dict(group.target.of(member_id)):
                return f"{member_id} has {member.assigned} at {member.epoch}, not {group.target.of(member_id)}"
        for name, size in world.topics.items():
            readers = [member for member in members.values() if name in member.topics]
            taken = frozenset[int]().union(*(member.assigned.get(size.topic_id, frozenset()) for member in readers))
            if readers and taken != frozenset(range(size.partition_count)):
                return f"of {name} the partitions {sorted(taken)} are read, of {size.partition_count}"
        return None
