"""Heartbeats of KIP-848 in miniature, so that the state and the reconciliation of a group can be tested without a coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator import current_assignment
from ottla.group_coordinator.consumer_group import ConsumerGroup
from ottla.group_coordinator.consumer_group_member import ConsumerGroupMember
from ottla.group_coordinator.consumer_group_records import ConsumerGroupChange
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.wire.coordinator_records import (
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator_record,
)

Partitions = Mapping[bytes, Iterable[int]]


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b".")


def partitions_of(name: str, *numbers: int) -> dict[bytes, set[int]]:
    return {topic_id(name): set(numbers)} if numbers else {}


@dataclass(frozen=True)
class Answer:
    """The part of a response to a heartbeat that a client acts on."""

    epoch: int
    assigned: dict[bytes, set[int]] | None
    """None where it says nothing of the assignment."""


Bytes = tuple[bytes, bytes | None]


def encoded(record: CoordinatorRecord) -> Bytes:
    value = None if record.value is None else encode_coordinator_record(record.value, record.version)
    return encode_coordinator_record(record.key, 0), value


def replayed(log: Iterable[Bytes], group: ConsumerGroup | None = None) -> ConsumerGroup:
    """The group of these records, on top of another state if there is one."""
    group = group or ConsumerGroup("g")
    for raw_key, raw_value in log:
        key = decode_coordinator_key(raw_key)
        assert key is not None
        group = group.with_record(key, None if raw_value is None else decode_coordinator_value(key, raw_value))
    return group


class Heartbeats:
    """The coordinator of one group. ``is_interval_over`` lets it compute the next target."""

    def __init__(self, topics: Mapping[str, int]) -> None:
        self.topics = dict(topics)
        self.group = ConsumerGroup("g")
        self.log: list[Bytes] = []
        self.written: list[CoordinatorRecord] = []
        """Of the last request."""
        self.is_interval_over = True

    def __call__(
        self,
        member_id: str,
        epoch: int,
        owned: Partitions | None = None,
        names: Iterable[str] | None = None,
        instance_id: str | None = None,
        *,
        is_full: bool = False,
    ) -> Answer:
        owned_sets = None if owned is None else {topic: set(numbers) for topic, numbers in owned.items()}
        change = ConsumerGroupChange("g")
        member = self._member(change, member_id, epoch, owned_sets, instance_id)
        if epoch == -1:
            return self._leave(member)
        if epoch == -2:
            change.assignments.append(member.left_static())
            self.write(change)
            return Answer(-2, None)
        updated = replace(member, has_subscription=True, instance_id=instance_id, client_id="c", client_host="/h")
        if names is not None:
            updated = replace(updated, topic_names=frozenset(names))
        is_changed = member.topic_names != updated.topic_names
        if updated != member and updated not in change.subscriptions:
            change.subscriptions.append(updated)
        if is_changed:
            change.epoch = self.group.epoch + 1, 0
        target_epoch, target = self._target(change, updated)
        moved = current_assignment.reconciled(
            updated,
            target_epoch,
            target.get(updated.member_id, {}),
            {topic_id(name) for name in updated.topic_names & self.topics.keys()},
            self.group.owner_epoch,
            owned_sets,
            has_subscription_changed=is_changed,
        )
        if moved != updated:
            change.assignments.append(moved)
        self.write(change)
        is_told = epoch == 0 or is_full or moved.assigned != member.assigned
        assigned = {topic: set(numbers) for topic, numbers in moved.assigned.epochs.items()}
        return Answer(moved.epoch, assigned if is_told else None)

    def expire(self, member_id: str) -> None:
        self._leave(self.group.members[member_id])

    def _member(
        self,
        change: ConsumerGroupChange,
        member_id: str,
        epoch: int,
        owned: dict[bytes, set[int]] | None,
        instance_id: str | None,
    ) -> ConsumerGroupMember:
        member = self.group.members.get(member_id)
        holder = None if instance_id is None else self.group.member_of_instance(instance_id)
        if holder is not None and holder.member_id != member_id:
            if epoch != 0:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
            if holder.epoch != -2:
                raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID)
            member = holder.taken_over_by(member_id)
            change.removed.append(holder.member_id)
            change.subscriptions.append(member)
            change.targets[member_id] = self.group.target.of(holder.member_id)
            change.assignments.append(member)
            return member
        if member is None:
            if epoch != 0:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            return ConsumerGroupMember(member_id)
        if epoch > 0 and epoch != member.epoch:
            assigned = set(member.assigned)
            pairs = None if owned is None else {(topic, number) for topic in owned for number in owned[topic]}
            if epoch != member.previous_epoch or epoch > member.epoch or pairs is None or not pairs <= assigned:
                raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH)
        return member

    def _target(
        self, change: ConsumerGroupChange, updated: ConsumerGroupMember
    ) -> tuple[int, dict[str, Mapping[bytes, Iterable[int]]]]:
        group = self.group
        epoch = group.epoch if change.epoch is None else change.epoch[0]
        target: dict[str, Mapping[bytes, Iterable[int]]] = {**group.target.members, **change.targets}
        if group.target.epoch >= epoch or not self.is_interval_over:
            return group.target.epoch, target
        members = {**group.members, updated.member_id: updated}
        for removed in change.removed:
            del members[removed]
            target.pop(removed, None)
        for member_id, part in self._ranges(members).items():
            if target.get(member_id) != part:
                change.targets[member_id] = target[member_id] = part
        change.target_epoch = epoch, 1000 + epoch
        return epoch, target

    def _ranges(self, members: Mapping[str, ConsumerGroupMember]) -> dict[str, dict[bytes, frozenset[int]]]:
        parts: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in members}
        for name, count in self.topics.items():
            readers = sorted(member_id for member_id, member in members.items() if name in member.topic_names)
            at = 0
            for index, member_id in enumerate(readers):
                size = count // len(readers) + (index < count % len(readers))
                if size:
                    parts[member_id][topic_id(name)] = frozenset(range(at, at + size))
                at += size
        return parts

    def _leave(self, member: ConsumerGroupMember) -> Answer:
        change = ConsumerGroupChange("g", removed=[member.member_id], epoch=(self.group.epoch + 1, 0))
        self.write(change)
        return Answer(-1, None)

    def write(self, change: ConsumerGroupChange) -> None:
        self.written = change.records()
        log = [encoded(record) for record in self.written]
        self.group = replayed(log, self.group)
        self.log += log


def told(records: Iterable[CoordinatorRecord]) -> str:
    """Records in short: type, member, epoch; "t" for tombstones."""
    words = []
    for record in records:
        value = record.value
        word = f"{'t' if value is None else ''}{record.key.api_key}{getattr(record.key, 'member_id', '')}"
        if value is not None and record.key.api_key in (3, 6, 8):
            epochs = {3: "epoch", 6: "assignment_epoch", 8: "member_epoch"}
            word += f"({getattr(value, epochs[record.key.api_key])})"
        words.append(word)
    return " ".join(words)
