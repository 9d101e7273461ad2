"""The content of a ConsumerGroupHeartbeat: the checks of the request by itself, and its parts in the coordinator's types.

The checks come in Kafka's order (GroupCoordinatorService ``throwIfConsumerGroupHeartbeatRequestIsInvalid``), because a client
sees the first one that fails.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from .client import Client
from .consumer_group_member import LEFT_STATIC_EPOCH, ClassicSupport
from .current_assignment import OwnedPartitions

JOIN_EPOCH = 0
"""Member epoch of a client that joins, or joins again."""
LEAVE_EPOCH = -1
"""Member epoch of a client that leaves."""
_OWN_MEMBER_ID_FROM = 1
"""Version from which a client makes its member id itself (KIP-1082)."""


@dataclasses.dataclass(frozen=True, slots=True)
class MemberReport:
    """The part of a request that is about its member. None where it says nothing, so that what is known stays."""

    group_id: str
    member_id: str
    client: Client
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int | None
    topic_names: frozenset[str] | None
    expression: str | None
    server_assignor: str | None
    owned: OwnedPartitions | None
    """The partitions that the client has."""
    classic: ClassicSupport | None = None
    """None of a member that sends heartbeats of KIP-848."""

    @property
    def says_nothing(self) -> bool:
        """Whether it has nothing of its member but its partitions, as most heartbeats have."""
        said = (self.instance_id, self.rack_id, self.rebalance_timeout_ms)
        subscription = (self.topic_names, self.expression, self.server_assignor)
        return said == subscription == (None, None, None)

    @property
    def is_full(self) -> bool:
        """Whether it says all, as a client does that joins or is not sure whether the last response has come."""
        has_topics = self.topic_names is not None or self.expression is not None
        return self.rebalance_timeout_ms is not None and has_topics and self.owned is not None


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """KafkaError INVALID_REQUEST or UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if version >= _OWN_MEMBER_ID_FROM or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _refuse_if(request.member_id == "", "MemberId can't be empty.")
    _refuse_if(request.group_id == "", "GroupId can't be empty.")
    _refuse_if(request.instance_id == "", "InstanceId can't be empty.")
    _refuse_if(request.rack_id == "", "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        _refuse_if(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request.")
        _refuse_if(request.topic_partitions != [], "TopicPartitions must be empty when (re-)joining.")
        _refuse_if(
            request.subscribed_topic_names is None and request.subscribed_topic_regex is None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        )
    elif epoch == LEFT_STATIC_EPOCH:
        _refuse_if(request.instance_id is None, "InstanceId can't be null.")
    _refuse_if(epoch < LEFT_STATIC_EPOCH, "MemberEpoch is invalid.")
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _refuse_if(is_wrong: bool, why: str) -> None:
    if is_wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)


def member_report(request: ConsumerGroupHeartbeatRequest, member_id: str, client: Client) -> MemberReport:
    """The parts of a heartbeat."""
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return MemberReport(
        group_id=request.group_id,
        member_id=member_id,
        client=client,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        topic_names=None if names is None else frozenset(names),
        expression=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None if owned is None else _owned(owned),
    )


def _owned(topics: Sequence[TopicPartitions]) -> OwnedPartitions:
    owned: dict[bytes, set[int]] = {}
    for topic in topics:
        owned.setdefault(topic.topic_id, set()).update(topic.partitions)
    return owned
