"""A member of a consumer group of KIP-848, as an immutable value: its subscription, and its way to the target assignment.

Two records make a member: its subscription, and its current assignment. Either may come first, and either may be missing
(compaction). A member exists while one of the two has a value.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Self

from ..wire.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)

LEFT_STATIC_EPOCH = -2
"""Epoch of a static member that has left and is expected back."""


class MemberState(enum.IntEnum):
    """The position of a member on its way to the target assignment. The value is that of the record."""

    STABLE = 0
    """It has what the target of its epoch gives it."""
    UNREVOKED_PARTITIONS = 1
    """It has to give partitions up first, and keeps its epoch until then."""
    UNRELEASED_PARTITIONS = 2
    """It is at the epoch of the target, and waits for partitions that others still have."""
    UNKNOWN = 127
    """A newer broker has written a state that this one does not know."""

    @classmethod
    def _missing_(cls, _: object) -> MemberState:
        return cls.UNKNOWN


@dataclasses.dataclass(frozen=True, slots=True)
class AssignedPartitions:
    """Partitions of a member, each with the epoch at which the member got it."""

    epochs: Mapping[bytes, Mapping[int, int]] = dataclasses.field(default_factory=dict)
    """Topic id -> partition -> epoch. No topic is without partitions."""

    @classmethod
    def from_record(cls, topics: Iterable[TopicPartitions], member_epoch: int) -> Self:
        """Of the record of a member; brokers before Kafka 4.3 write no epochs, and the member's stands for them."""
        epochs = {}
        for topic in topics:
            written = topic.assignment_epochs
            if written is None or len(written) != len(topic.partitions):
                written = [max(member_epoch, 0)] * len(topic.partitions)
            if topic.partitions:
                epochs[topic.topic_id] = dict(zip(topic.partitions, written, strict=True))
        return cls(epochs)

    def to_record(self) -> list[TopicPartitions]:
        """As the record of a member has them, in the order of the topics' ids and the partitions."""
        return [
            TopicPartitions(
                topic_id=topic_id,
                partitions=(in_order := sorted(self.epochs[topic_id])),
                assignment_epochs=list(map(self.epochs[topic_id].__getitem__, in_order)),
            )
            for topic_id in sorted(self.epochs)
        ]

    def __bool__(self) -> bool:
        return bool(self.epochs)

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        return ((topic_id, partition) for topic_id, partitions in self.epochs.items() for partition in partitions)

    def of(self, topic_id: bytes) -> Mapping[int, int]:
        """The partitions of a topic with their epochs."""
        return self.epochs.get(topic_id, {})

    def at_epoch(self, epoch: int) -> Self:
        """The same partitions, all of them assigned at ``epoch``."""
        return type(self)({topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in self.epochs.items()})


NO_PARTITIONS = AssignedPartitions()


@dataclasses.dataclass(frozen=True, slots=True)
class ClassicSupport:
    """The part of a subscription that only a member of the classic protocol has."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata of each assignor that it offers, the best first."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """One member."""

    member_id: str
    has_subscription: bool = False
    """Whether a record has its subscription. The fields down to ``classic`` are of that record."""
    instance_id: str | None = None
    """``group.instance.id`` of a static member."""
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    """The topics that it names."""
    expression: str = ""
    """The regular expression of the topics that it reads besides, or ""."""
    rebalance_timeout_ms: int = -1
    """The time that it has to give partitions up."""
    server_assignor: str | None = None
    """The assignor that it asks for."""
    classic: ClassicSupport | None = None
    """None of a member that sends heartbeats of KIP-848."""
    epoch: int = 0
    previous_epoch: int = -1
    """``epoch`` before the last write. A client that did not get the last response still sends it."""
    state: MemberState = MemberState.STABLE
    assigned: AssignedPartitions = NO_PARTITIONS
    pending_revocation: AssignedPartitions = NO_PARTITIONS
    """Partitions that the client may still read, until it says that it does not."""

    @property
    def has_current_assignment(self) -> bool:
        """Whether a record has said how far it has come."""
        return (self.epoch, self.previous_epoch) != (0, -1)

    def is_settled_at(self, epoch: int) -> bool:
        """Whether it has all that the target of ``epoch`` gives it."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def held(self) -> Iterator[tuple[bytes, int]]:
        """The partitions that nobody else may get: topic id and number."""
        yield from self.assigned
        yield from self.pending_revocation

    def topic_ids(self) -> Iterator[bytes]:
        """The topics of which it holds partitions. One may come twice."""
        yield from self.assigned.epochs
        yield from self.pending_revocation.epochs

    def held_of(self, topic_id: bytes) -> AbstractSet[int]:
        """Those of a topic."""
        assigned, pending = self.assigned.of(topic_id).keys(), self.pending_revocation.of(topic_id).keys()
        return assigned | pending if pending else assigned

    def moved(
        self,
        epoch: int,
        state: MemberState,
        assigned: AssignedPartitions,
        pending_revocation: AssignedPartitions = NO_PARTITIONS,
    ) -> ConsumerGroupMember:
        """At the next step of its way; every step makes the epoch of before the previous one."""
        return dataclasses.replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )

    def left_static(self) -> ConsumerGroupMember:
        """A static member that has stopped and is expected back: it keeps its partitions, and commits no more offsets."""
        return dataclasses.replace(
            self, epoch=LEFT_STATIC_EPOCH, assigned=self.assigned.at_epoch(0), pending_revocation=NO_PARTITIONS
        )

    def taken_over_by(self, member_id: str) -> ConsumerGroupMember:
        """The static member after its return with a new member id, at the start of its way."""
        return dataclasses.replace(self, member_id=member_id, epoch=0, previous_epoch=0)

    def with_subscription(self, value: ConsumerGroupMemberMetadataValue | None) -> ConsumerGroupMember:
        """Replay of the record of its subscription, or of its tombstone."""
        if value is None:
            return ConsumerGroupMember(
                self.member_id,
                epoch=self.epoch,
                previous_epoch=self.previous_epoch,
                state=self.state,
                assigned=self.assigned,
                pending_revocation=self.pending_revocation,
            )
        classic = value.classic_member_metadata
        return dataclasses.replace(
            self,
            has_subscription=True,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            # The members of a group name the same topics: one string of each is enough for a thousand members.
            topic_names=frozenset(map(sys.intern, value.subscribed_topic_names)),
            expression=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=None if classic is None else _classic_support(classic),
        )

    def with_current_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> ConsumerGroupMember:
        """Replay of the record of its current assignment, or of its tombstone."""
        if value is None:
            value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=0, previous_member_epoch=-1, state=0)
        return dataclasses.replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=AssignedPartitions.from_record(value.assigned_partitions, value.member_epoch),
            pending_revocation=AssignedPartitions.from_record(value.partitions_pending_revocation, value.member_epoch),
        )

    def subscription(self) -> ConsumerGroupMemberMetadataValue:
        """The record of its subscription."""
        classic = None
        if self.classic is not None:
            protocols = [ClassicProtocol(name=name, metadata=metadata) for name, metadata in self.classic.protocols]
            classic = ClassicMemberMetadata(
                session_timeout_ms=self.classic.session_timeout_ms, supported_protocols=protocols
            )
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topic_names),
            subscribed_topic_regex=self.expression,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=classic,
        )

    def current_assignment(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """The record of its current assignment."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=self.assigned.to_record(),
            partitions_pending_revocation=self.pending_revocation.to_record(),
        )


def _classic_support(classic: ClassicMemberMetadata) -> ClassicSupport:
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in classic.supported_protocols)
    return ClassicSupport(classic.session_timeout_ms, protocols)
