"""The making of target assignments of consumer and share groups: within a heartbeat, or in steps for a large group.

A large group takes long in two ways: the assignor has much to distribute, and there are many records to write. Both are done in
steps, between which others run. The group may have another epoch after a step; then the target is of no use, and the next one is
begun. Its records come in several batches, the epoch of the target last: until then the parts of the members count for nothing,
and heartbeats of the group wait for the end of it. Where it is not finished, because the log refuses or the coordinator moves,
the next heartbeat makes a target: the first batch says that it is due, by an old target without a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..replication.coordinator_log import CoordinatorTime
from ..replication.coordinator_shards import CoordinatorShards
from .assignors.assignor import MemberPartitions, Steps
from .modern_group import TargetAssignment
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


class TargetedGroup(Protocol):
    """A group of any kind whose partitions the coordinator assigns."""

    @property
    def group_id(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def target(self) -> TargetAssignment: ...


class TargetedHeartbeat(Protocol):
    """A heartbeat on its way."""

    target_ms: float | None

    @property
    def group(self) -> TargetedGroup: ...
    @property
    def group_id(self) -> str: ...
    @property
    def group_epoch(self) -> int: ...


Parts = Mapping[str, MemberPartitions]
"""Of a target, by member id."""
G = TypeVar("G", bound=TargetedGroup)
H = TypeVar("H", bound=TargetedHeartbeat, contravariant=True)


class TargetRules(Protocol[G, H]):
    """The rules of one kind of group: ``consumer_membership`` and ``share_heartbeat`` are two."""

    def find_group(self, shard: GroupCoordinatorShard, group_id: str, /) -> G | None: ...
    def is_due(self, shard: GroupCoordinatorShard, group: G, epoch: int, now: CoordinatorTime, /) -> bool: ...
    def is_target_due(self, shard: GroupCoordinatorShard, heartbeat: H, now: CoordinatorTime, /) -> bool: ...
    def target_size(self, shard: GroupCoordinatorShard, heartbeat: H, /) -> int: ...
    def make_target(self, shard: GroupCoordinatorShard, heartbeat: H, now: CoordinatorTime, /) -> None: ...
    def write_first_part(self, shard: GroupCoordinatorShard, heartbeat: H, now: CoordinatorTime, /) -> None: ...
    def target_steps(self, shard: GroupCoordinatorShard, group: G, /) -> Steps[dict[str, MemberPartitions]]: ...
    def write_target(
        self,
        shard: GroupCoordinatorShard,
        group_id: str,
        parts: Parts,
        epoch: tuple[int, int] | None,
        now: CoordinatorTime,
        target_ms: float,
        /,
    ) -> None: ...


class _Batch(NamedTuple):
    """A batch of the records of a target."""

    parts: Parts
    epoch: tuple[int, int] | None = None
    is_last: bool = False
    """Whether it has the epoch of the target, which is not known before it is written."""


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

    async def make(self, shard: GroupCoordinatorShard, heartbeat: H, rules: TargetRules[G, H]) -> None:
        """Make the next target, if it is due at this heartbeat: part of its change, or written already. Raises KafkaError."""
        group_id = heartbeat.group_id
        if heartbeat.group.target.epoch >= heartbeat.group_epoch:
            return
        now = self._now()
        if not rules.is_target_due(shard, heartbeat, now):
            return
        if self._holds.is_held(group_id):
            return
        if rules.target_size(shard, heartbeat) <= MOST_AT_ONCE:
            began = self._elapsed()
            rules.make_target(shard, heartbeat, now)
            heartbeat.target_ms = (self._elapsed() - began) * 1000
            return
        rules.write_first_part(shard, heartbeat, now)
        done = self._under_way[group_id] = trio.Event()
        try:
            while not await self._try_to_make(shard, group_id, rules):
                pass
        finally:
            del self._under_way[group_id]
            done.set()
        # A shard that has moved away writes nothing more, even if this broker leads the partition again: another one serves it.
        self._served(shard, group_id, rules)

    async def _try_to_make(self, shard: GroupCoordinatorShard, group_id: str, rules: TargetRules[G, H]) -> bool:
        """Whether there is nothing left to do; False where the group has another epoch by now."""
        group = self._served(shard, group_id, rules)
        if group is None or not rules.is_due(shard, group, group.epoch, self._now()):
            return True
        epoch, began = group.epoch, self._elapsed()
        parts = await self._taken(rules.target_steps(shard, group))
        for batch in _batches(group.target, parts):
            served = self._served(shard, group_id, rules)
            if served is None or served.epoch != epoch:
                return False
            now = self._now()
            written = (epoch, now.wall_ms) if batch.is_last else batch.epoch
            rules.write_target(shard, group_id, batch.parts, written, now, (self._elapsed() - began) * 1000)
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

    def _served(self, shard: GroupCoordinatorShard, group_id: str, rules: TargetRules[G, H]) -> G | None:
        """The group as it is now. KafkaError NOT_COORDINATOR where its partition has moved away meanwhile."""
        if not self._shards.is_current(shard):
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"the coordinator of {group_id} has moved")
        return rules.find_group(shard, group_id)


def _batches(before: TargetAssignment, parts: Parts) -> Iterator[_Batch]:
    """Parts of members in batches of about the same work, and the epoch that makes them valid."""
    # The old target has new parts from here on. Without a time the next one is due on every broker, whatever its clock says.
    epoch = (before.epoch, 0) if before.timestamp_ms else None
    some: dict[str, MemberPartitions] = {}
    size = 0
    for member_id, part in parts.items():
        some[member_id] = part
        size += 1 + sum(map(len, part.values()))
        if size >= _PARTITIONS_PER_BATCH:
            yield _Batch(some, epoch)
            some, epoch, size = {}, None, 0
    if some:
        yield _Batch(some, epoch)
    yield _Batch({}, is_last=True)
