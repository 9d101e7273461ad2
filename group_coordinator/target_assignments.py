"""The making of target assignments: at once within a heartbeat for a small group, in steps beside other work for a large one.

A large group takes long in two ways: the assignor has much to distribute, and there are many records to write. Both are done in
steps, between which others run. The group may have another epoch after a step; then the target is of no use, and the next one is
begun. Its records come in several batches, the epoch of the target last: until then the parts of the members count for nothing,
and heartbeats of the group wait for the end of it. Where it is not finished, because the log refuses or the coordinator moves,
the next heartbeat makes a target: the first batch says that it is due, by an old target without a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..replication.coordinator_log import CoordinatorTime
from ..replication.coordinator_shards import CoordinatorShards
from . import consumer_membership
from .assignors.assignor import MemberPartitions, Steps
from .consumer_group import ConsumerGroup
from .consumer_group_records import ConsumerGroupChange
from .consumer_group_writes import write_change
from .consumer_membership import Heartbeat
from .rebalance_holds import RebalanceHolds
from .shard import GroupCoordinatorShard

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_AT_ONCE = 2000
"""The size of a target (``target_size``) up to which it is made within a heartbeat: 2 to 4 ms."""
_STEP_SECONDS = 0.0005
"""How long a target is worked on before others run."""
_PARTITIONS_PER_BATCH = 500
"""How many partitions, and members, one batch of a target has about."""


class TargetAssignments:
    """Of the groups of one broker."""

    def __init__(
        self,
        shards: CoordinatorShards[GroupCoordinatorShard],
        now: Callable[[], CoordinatorTime],
        elapsed: Callable[[], float],
        holds: RebalanceHolds,
    ) -> None:
        self._shards = shards
        self._now = now
        self._elapsed = elapsed
        self._holds = holds
        self._under_way: dict[str, trio.Event] = {}
        """By group id; set when the target is made, or given up."""
        self._turn = trio.Lock()

    async def wait_written(self, group_id: str) -> None:
        """Return at once, unless the target of the group is being made.

        Those that have waited for it go on one after the other, with others running between them.
        """
        while (event := self._under_way.get(group_id)) is not None:
            await event.wait()
            async with self._turn:
                pass

    async def make(self, shard: GroupCoordinatorShard, heartbeat: Heartbeat) -> None:
        """Make the next target, if it is due at this heartbeat: part of its change, or written already. Raises KafkaError."""
        if heartbeat.group.target.epoch >= heartbeat.group_epoch:
            return
        now = self._now()
        if not consumer_membership.is_target_due(shard, heartbeat, now):
            return
        if self._holds.is_held(heartbeat.report.group_id):
            return
        if consumer_membership.target_size(shard, heartbeat) <= MOST_AT_ONCE:
            began = self._elapsed()
            consumer_membership.make_target(shard, heartbeat, now)
            heartbeat.target_ms = (self._elapsed() - began) * 1000
            return
        consumer_membership.write_first_part(shard, heartbeat, now)
        group_id = heartbeat.report.group_id
        done = self._under_way[group_id] = trio.Event()
        try:
            while not await self._try_to_make(shard, group_id):
                pass
        finally:
            del self._under_way[group_id]
            done.set()
        # A shard that has moved away writes nothing more, even if this broker leads the partition again: another one serves it.
        self._served(shard, group_id)

    async def _try_to_make(self, shard: GroupCoordinatorShard, group_id: str) -> bool:
        """Whether there is nothing left to do; False where the group has another epoch by now."""
        group = self._served(shard, group_id)
        if group is None or not consumer_membership.is_due(shard, group, group.epoch, self._now()):
            return True
        epoch, began = group.epoch, self._elapsed()
        parts = await self._taken(consumer_membership.target_steps(shard, group))
        for change in _changes(group, parts):
            group = self._served(shard, group_id)
            if group is None or group.epoch != epoch:
                return False
            now = self._now()
            if change is None:
                change = ConsumerGroupChange(group_id, target_epoch=(epoch, now.wall_ms))
            write_change(shard, change, now, target_ms=(self._elapsed() - began) * 1000)
            await trio.lowlevel.checkpoint()
        return True

    async def _taken(self, steps: Steps[T]) -> T:
        """The result of steps, with others running whenever some time has gone by."""
        began = self._elapsed()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            if self._elapsed() - began > _STEP_SECONDS:
                await trio.lowlevel.checkpoint()
                began = self._elapsed()

    def _served(self, shard: GroupCoordinatorShard, group_id: str) -> ConsumerGroup | None:
        """The group as it is now. KafkaError NOT_COORDINATOR where its partition has moved away meanwhile."""
        if not self._shards.is_current(shard):
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"the coordinator of {group_id} has moved")
        return shard.consumer_group(group_id)


def _changes(group: ConsumerGroup, parts: Mapping[str, MemberPartitions]) -> Iterator[ConsumerGroupChange | None]:
    """Parts of members in batches of about the same work; None stands for the epoch, which makes them valid."""
    change = ConsumerGroupChange(group.group_id)
    if group.target.timestamp_ms:
        # The old target has new parts from here on. Without a time the next one is due on every broker, whatever its clock says.
        change.target_epoch = group.target.epoch, 0
    size = 0
    for member_id, part in parts.items():
        change.targets[member_id] = part
        size += 1 + sum(map(len, part.values()))
        if size >= _PARTITIONS_PER_BATCH:
            yield change
            change, size = ConsumerGroupChange(group.group_id), 0
    if change.targets:
        yield change
    yield None
