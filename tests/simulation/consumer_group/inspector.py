"""The state of a consumer group as its records say it, read without the product's replay; and the invariants of that state.

Looked at after each append:

* No partition is held by two members, assigned or pending revocation.
* A partition has the epoch at which its member got it.
* The group's epoch never decreases, and the target's is never ahead of it.
* A member has partitions of topics alone that it reads.
* When a target becomes valid, each member has a part of it, nobody else has, and no partition is in two parts.
* A member goes only if it has left, was silent for its session timeout, did not give up in time, or another takes over from it.

At a request:

* A heartbeat with the previous epoch is accepted exactly from a client that has no more than its member.
* A commit with an old epoch is accepted exactly for the partitions that the member has had since then.
* As long as its member is in the group, what a client reads is held for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import trio

from ottla.base.errors import ErrorCode
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest

from .group_log import StoredBatch, compacted, records_of
from .membership import LEAVES_STATIC, TopicIdPartition

if TYPE_CHECKING:
    from .consumer import GroupConsumer
    from .world import CoordinatorLife, GroupWorld

_UNREVOKED = 1
_COMMIT, _CLASSIC, _TARGET_EPOCH, _CURRENT = 1, 2, 6, 8
_LONG_AGO = float("-inf")
_EPSILON_SECONDS = 0.002
_AGAIN = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)


@dataclasses.dataclass
class MemberRecords:
    """One member."""

    instance_id: str | None = None
    names: frozenset[str] = frozenset()
    expression: str = ""
    is_classic: bool = False
    rebalance_seconds: float = 0.0
    is_subscribed: bool = False
    epoch: int = 0
    previous_epoch: int = -1
    is_unrevoked: bool = False
    since: dict[TopicIdPartition, int] = dataclasses.field(default_factory=dict)
    """The partitions that it holds, with the epoch at which it got each."""
    assigned: frozenset[TopicIdPartition] = frozenset()


class GroupRecords:
    """A group as its records say it."""

    def __init__(self) -> None:
        self.epoch = 0
        self.newest_epoch = 0
        """The last epoch of the group, or generation, whatever it was."""
        self.target_epoch = 0
        self.target_ms = 0
        self.members: dict[str, MemberRecords] = {}
        self.targets: dict[str, frozenset[TopicIdPartition]] = {}
        self.expressions: dict[str, frozenset[str]] = {}
        """The topics that each regular expression stands for."""
        self.offsets: dict[tuple[str, int], int] = {}
        self.handed_over: dict[str, dict[TopicIdPartition, int]] = {}
        """By instance id, the partitions of static members whose assignment has gone in this batch, with their epochs."""
        self.wrong: list[str] = []
        """Assignment epochs that are not the true ones."""

    def take(self, record: CoordinatorRecord, *, is_new: bool) -> None:
        """After one more record. ``is_new``: it comes behind all others of its group, of which none is missing."""
        key: Any = record.key
        value: Any = record.value
        match key.api_key:
            case _ if key.api_key == _COMMIT:
                if value is None:
                    self.offsets.pop((key.topic, key.partition), None)
                else:
                    self.offsets[key.topic, key.partition] = value.offset
            case 3:
                self.epoch = 0 if value is None else value.epoch
                self.newest_epoch = self.epoch or self.newest_epoch
            case _ if key.api_key == _CLASSIC and value is not None:
                self.newest_epoch = value.generation
            case _ if key.api_key == _TARGET_EPOCH:
                self.target_epoch = 0 if value is None else value.assignment_epoch
                self.target_ms = 0 if value is None else value.assignment_timestamp or self.target_ms
            case 7:
                if value is None:
                    self.targets.pop(key.member_id, None)
                else:
                    self.targets[key.member_id] = frozenset(_each(value.topic_partitions))
            case 5:
                member = self.members.setdefault(key.member_id, MemberRecords())
                member.is_subscribed = value is not None
                if value is not None:
                    member.instance_id = value.instance_id
                    member.is_classic = value.classic_member_metadata is not None
                    member.names = frozenset(value.subscribed_topic_names)
                    member.expression = value.subscribed_topic_regex or ""
                    member.rebalance_seconds = value.rebalance_timeout_ms / 1000
                self._forget_if_nothing(key.member_id)
            case 16:
                self.expressions.pop(key.regular_expression, None)
                if value is not None:
                    self.expressions[key.regular_expression] = frozenset(value.topics)
            case 8:
                self._current(key.member_id, value, is_new=is_new)
                self._forget_if_nothing(key.member_id)

    def _current(self, member_id: str, value: Any, *, is_new: bool) -> None:
        member = self.members.setdefault(member_id, MemberRecords())
        if value is None:
            if member.instance_id is not None:
                self.handed_over[member.instance_id] = member.since
            member.epoch, member.previous_epoch, member.is_unrevoked = 0, -1, False
            member.since, member.assigned = {}, frozenset()
            return
        assigned, pending = frozenset(_each(value.assigned_partitions)), set(_each(value.partitions_pending_revocation))
        epoch = value.member_epoch
        since = {each: member.since[each] if each in member.assigned else max(epoch, 0) for each in assigned}
        since |= {each: member.since.get(each, epoch) for each in pending}
        if epoch == LEAVES_STATIC:
            since = dict.fromkeys(since, 0)
        elif epoch == 0 and member.instance_id in self.handed_over:
            since = self.handed_over[member.instance_id]
        told = {
            (topic.topic_id, partition): at
            for topic in (*value.assigned_partitions, *value.partitions_pending_revocation)
            for partition, at in zip(topic.partitions, topic.assignment_epochs, strict=True)
        }
        if is_new and told != since:
            self.wrong.append(f"{member_id} has partitions since {told}, in truth since {since}")
        member.epoch, member.previous_epoch = epoch, value.previous_member_epoch
        member.is_unrevoked = value.state == _UNREVOKED
        member.since, member.assigned = told, assigned

    def _forget_if_nothing(self, member_id: str) -> None:
        member = self.members[member_id]
        if not member.is_subscribed and (member.epoch, member.previous_epoch) == (0, -1):
            del self.members[member_id]


def is_valid_target(record: CoordinatorRecord) -> bool:
    """Whether it says that a target is complete. One without a time begins a target in several batches."""
    value: Any = record.value
    return record.key.api_key == _TARGET_EPOCH and value is not None and value.assignment_timestamp != 0


def _each(topics: Iterable[Any]) -> Iterable[TopicIdPartition]:
    return ((topic.topic_id, partition) for topic in topics for partition in topic.partitions)


class GroupInspector:
    """Looks at the group of a world."""

    def __init__(self, world: GroupWorld) -> None:
        self.consumers: list[GroupConsumer] = []
        self.on_new_era: Callable[[], None] = lambda: None
        """Called when the epochs of the group begin anew."""
        self.records = GroupRecords()
        self.is_stepwise = False
        """Whether targets are made in steps, so that a request may find another state than it came to."""
        self.writes = 0
        """Batches of records of the group, other than commits."""
        self._world = world
        self._heard: dict[str, float] = {}
        """When a heartbeat of a member was accepted last."""
        self._leaving: set[str] = set()
        self._unrevoked: dict[str, float] = {}
        """When a member was told last to give partitions up."""
        self._loaded_at = 0.0

    # --- the log ------------------------------------------------------------------------------------------------------

    def began(self, stored: list[StoredBatch]) -> None:
        """A leader begins with these batches."""
        self.records = GroupRecords()
        for record in records_of(stored):
            self.records.take(record, is_new=False)

    def loaded(self, life: CoordinatorLife) -> None:
        """A coordinator serves the group from now on."""
        self._loaded_at = trio.current_time()
        self.compare(life)

    def appended(self, batch: StoredBatch) -> None:
        """A batch was appended, and is not replayed yet."""
        records, world, now = self.records, self._world, trio.current_time()
        before = {member_id: dataclasses.replace(member) for member_id, member in records.members.items()}
        newest = records.newest_epoch
        epoch, target_epoch, target_ms = records.epoch, records.target_epoch, records.target_ms
        records.handed_over.clear()
        new = batch.records()
        self.writes += any(record.key.api_key != _COMMIT for record in new)
        for record in new:
            records.take(record, is_new=True)
            if record.key.api_key == _CURRENT and record.value is not None:
                self._unrevoked[record.key.member_id] = now  # type: ignore[attr-defined]
        if records.newest_epoch < newest:
            self.on_new_era()
        for wrong in records.wrong:
            world.violate(wrong)
        records.wrong.clear()
        self._check_owners()
        if not any(record.key.api_key == _CLASSIC for record in new):
            self._check_topics(new)
        if records.members and records.epoch < epoch:
            world.violate(f"the group goes from epoch {epoch} to {records.epoch}")
        if records.members and records.target_epoch > records.epoch:
            world.violate(f"the target is of epoch {records.target_epoch}, and the group at {records.epoch}")
        if any(is_valid_target(record) for record in new):
            self._check_target(target_epoch, target_ms)
        is_downgraded = any(record.key.api_key == _CLASSIC and record.value is not None for record in new)
        for member_id in before.keys() - records.members.keys():
            if not is_downgraded and not before[member_id].is_classic:
                self._check_removal(member_id, before[member_id])
        self.check_readers()

    def _check_owners(self) -> None:
        owners: dict[TopicIdPartition, str] = {}
        for member_id, member in self.records.members.items():
            for partition in member.since:
                other = owners.setdefault(partition, member_id)
                if other != member_id:
                    self._world.violate(f"{partition} is held by {other} and by {member_id}")

    def _check_topics(self, new: list[CoordinatorRecord]) -> None:
        moved = {record.key.member_id for record in new if record.key.api_key == _CURRENT}  # type: ignore[attr-defined]
        for member_id in sorted(moved & self.records.members.keys()):
            member = self.records.members[member_id]
            read = member.names | self.records.expressions.get(member.expression, frozenset())
            for topic_id, number in member.assigned if member.epoch > 0 else ():
                if (name := self._world.topic_names[topic_id]) not in read:
                    self._world.violate(f"{member_id} has {name}-{number}, and reads {sorted(read)}")

    def _check_target(self, epoch_before: int, ms_before: int) -> None:
        records, world = self.records, self._world
        owners: dict[TopicIdPartition, str] = {}
        for member_id, part in records.targets.items():
            if member_id not in records.members:
                world.violate(f"{member_id} has a part of the target {records.target_epoch}, and is no member")
            for partition in part:
                other = owners.setdefault(partition, member_id)
                if other != member_id:
                    world.violate(f"{partition} is {other}'s and {member_id}'s in the target {records.target_epoch}")
        for member_id, member in records.members.items():
            if member.names and member_id not in records.targets:
                world.violate(f"{member_id} has no part of the target {records.target_epoch}")
        if records.target_epoch <= epoch_before:
            world.violate(f"a target of epoch {records.target_epoch} follows that of {epoch_before}")
        passed_ms = records.target_ms - ms_before
        if ms_before and passed_ms < world.settings.assignment_interval_ms and not world.has_jumped:
            world.violate(f"a target comes {passed_ms} ms after the last one")

    def _check_removal(self, member_id: str, member: MemberRecords) -> None:
        now, loaded_at = trio.current_time(), self._loaded_at
        is_replaced = member.instance_id is not None and any(
            other.instance_id == member.instance_id for other in self.records.members.values()
        )
        silent = now - max(self._heard.get(member_id, _LONG_AGO), loaded_at)
        session = self._world.settings.session_timeout_ms / 1000
        unrevoked = now - max(self._unrevoked.get(member_id, _LONG_AGO), loaded_at)
        is_late = member.is_unrevoked and unrevoked >= member.rebalance_seconds - _EPSILON_SECONDS
        if member_id in self._leaving or is_replaced or is_late or silent >= session - _EPSILON_SECONDS:
            return
        self._world.violate(f"{member_id} is removed {silent:.3f} s after it was heard, and has not left")

    def compare(self, life: CoordinatorLife) -> None:
        """The coordinator's state is that of the records, read one by one, and replayed again, also when compacted."""
        world, group, records = self._world, life.group, self.records
        for stored in (
            life.log.stored,
            compacted(life.log.stored, keeps_tombstones=True),
            compacted(life.log.stored, keeps_tombstones=False),
        ):
            if world.replayed(stored) != group:
                world.violate("the group is another one after a replay of its records")
        live = {} if group is None else {member.member_id: member for member in group.members.newest().values()}
        if live.keys() != records.members.keys():
            world.violate(f"the members are {sorted(live)}, and in the records {sorted(records.members)}")
            return
        for member_id, member in live.items():
            told = records.members[member_id]
            if (member.epoch, frozenset(member.assigned), frozenset(member.held())) != (
                told.epoch,
                told.assigned,
                told.since.keys(),
            ):
                world.violate(f"{member_id} is {member}, and in the records {told}")
        if (
            group is not None
            and live
            and (group.epoch, group.target.epoch) != (records.epoch or 1, records.target_epoch or 1)
        ):
            world.violate(f"the group is at epoch {group.epoch}, and in the records at {records.epoch}")

    # --- clients ------------------------------------------------------------------------------------------------------

    def check_readers(self) -> None:
        """As long as its member is in the group, what a client reads is held for it."""
        if self._world.is_lenient:
            return
        for consumer in self.consumers:
            member = consumer.member
            known = self.records.members.get(member.member_id)
            if known is not None and member.is_member and not member.owned <= known.since.keys():
                lost = member.owned - known.since.keys()
                self._world.violate(f"{consumer.name} reads {sorted(lost)}, which is not held for {member.member_id}")

    def heartbeat_begins(self, request: ConsumerGroupHeartbeatRequest) -> Callable[[ErrorCode], None]:
        """A heartbeat is about to be handled. The function is told of the response."""
        member_id, epoch, began = request.member_id, request.member_epoch, trio.current_time()
        if epoch < 0:
            self._leaving.add(member_id)
            return lambda code: None
        expected = self._of_previous_epoch(request)

        def answered(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self.heard(member_id, began)
                self._leaving.discard(member_id)
            if expected not in (None, code) and code not in _AGAIN:
                self._world.violate(f"{member_id} misses a response of epoch {epoch}, and gets {code.name}")

        return answered

    def heard(self, member_id: str, at: float) -> None:
        """A request of a member was accepted."""
        self._heard[member_id] = at

    def _of_previous_epoch(self, request: ConsumerGroupHeartbeatRequest) -> ErrorCode | None:
        """The response to a client that has missed a response, if that can be said now."""
        member, epoch = self.records.members.get(request.member_id), request.member_epoch
        is_certain = not self.is_stepwise and not request.subscribed_topic_regex
        if not is_certain or member is None or epoch != member.previous_epoch or not 0 < epoch < member.epoch:
            return None
        owned = request.topic_partitions
        is_well = owned is not None and member.assigned.issuperset(_each(owned))
        return ErrorCode.NONE if is_well else ErrorCode.FENCED_MEMBER_EPOCH

    def commit_begins(self, life: CoordinatorLife, request: OffsetCommitRequest) -> Callable[[ErrorCode], None]:
        """A commit is about to be handled. The function is told of the response."""
        if life.group is None:
            return lambda code: None
        member = self.records.members.get(request.member_id)
        [topic] = request.topics
        partition = topic.topic_id, topic.partitions[0].partition_index
        epoch = request.generation_id_or_member_epoch
        if member is None:
            expected = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}
        elif epoch == member.epoch or (epoch >= member.since.get(partition, epoch + 1) and epoch < member.epoch):
            expected = {ErrorCode.NONE}
        else:
            expected = {ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH}
        why = f"at epoch {epoch} of {request.member_id}, which is {member}"

        def answered(code: ErrorCode) -> None:
            if code not in expected and code not in _AGAIN:
                self._world.violate(f"the commit of {partition} {why}, gets {code.name}")

        return answered
