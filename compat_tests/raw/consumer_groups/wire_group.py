"""A group as the wire tests see it: its members, which send single requests, and what other requests say of it.

Topics stand in expected values by name: ids and names are translated here. Partitions are given as ``{name: [0, 1]}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, describe
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.messages.consumer_protocol import (
    AssignedTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

Partitions = Mapping[str, Sequence[int]]
NOT_YET = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
REBALANCE_TIMEOUT_MS = 60_000
SUBSCRIPTION_VERSION = 1


class Beat(NamedTuple):
    """A response to ConsumerGroupHeartbeat: the member's epoch, and its partitions, None where none are given."""

    epoch: int
    assigned: dict[str, list[int]] | None = None


class Joined(NamedTuple):
    """A response to JoinGroup."""

    generation: int
    leader: str
    members: list[str]


class TopicNames:
    """Topic ids and names, as Metadata tells them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._ids: dict[str, bytes] = {}
        self._names: dict[bytes, str] = {}

    def id_of(self, name: str) -> bytes:
        """Asks when it is new."""
        if name not in self._ids:
            found = describe(self._connection, name).topics[0]
            assert found.error_code == ErrorCode.NONE, (name, ErrorCode(found.error_code))
            self._ids[name], self._names[found.topic_id] = found.topic_id, name
        return self._ids[name]

    def learn(self, *names: str) -> None:
        """Know these topics from now on."""
        for name in names:
            self.id_of(name)

    def to_ids(self, partitions: Partitions) -> list[TopicPartitions]:
        """For a request."""
        return [TopicPartitions(topic_id=self.id_of(name), partitions=list(some)) for name, some in partitions.items()]

    def to_names(self, found: Sequence[Any]) -> dict[str, list[int]]:
        """Of a response, sorted."""
        return {self._names[each.topic_id]: sorted(each.partitions) for each in found}


class WireGroup:
    """One group, asked through one connection to its coordinator."""

    def __init__(self, connection: Connection, group_id: str, *topics: str) -> None:
        self.connection = connection
        self.group_id = group_id
        self.names = TopicNames(connection)
        self.names.learn(*topics)

    def member(self, member_id: str, *, version: int = 1, **always: Any) -> ConsumerMember:
        """One of the consumer protocol; ``always`` is in each of its requests."""
        return ConsumerMember(self, member_id, version, always)

    def classic(self, connection: Connection | None = None, **always: Any) -> ClassicMember:
        """One of the classic protocol; a connection of its own lets its JoinGroup wait."""
        return ClassicMember(self, connection or self.connection, always)

    def state(self) -> tuple[str, int, int]:
        """State, group epoch and assignment epoch, as ConsumerGroupDescribe tells them."""
        group = self.described()
        return group.group_state, group.group_epoch, group.assignment_epoch

    def described(self, version: int = 1) -> Any:
        """Its part of a response to ConsumerGroupDescribe."""
        (group,) = self.connection.call(ConsumerGroupDescribeRequest(group_ids=[self.group_id]), version).groups
        return group

    def listed(self, version: int = 5, **filters: list[str]) -> tuple[str, ...] | None:
        """Protocol type, state and type in ListGroups; None where it is not listed."""
        found = self.connection.call(ListGroupsRequest(**filters), version).groups
        rows = [(g.protocol_type, g.group_state, g.group_type) for g in found if g.group_id == self.group_id]
        return rows[0] if rows else None


class ConsumerMember:
    """A member of the consumer protocol."""

    def __init__(self, group: WireGroup, member_id: str, version: int, always: Mapping[str, Any]) -> None:
        self.group = group
        self.member_id = member_id
        self._version = version
        self._always = always

    def heartbeat(self, epoch: int, owned: Partitions | None = None, **fields: Any) -> Any:
        """One request; the whole response, once the coordinator is there."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            topic_partitions=None if owned is None else self.group.names.to_ids(owned),
            **{**self._always, **fields},
        )

        def answered() -> Any:
            response = self.group.connection.call(request, self._version)
            return None if response.error_code in NOT_YET else response

        return eventually(answered)

    def beat(self, epoch: int, owned: Partitions | None = None, **fields: Any) -> Beat | ErrorCode:
        """One request, and what there is to see in its response."""
        response = self.heartbeat(epoch, owned, **fields)
        if response.error_code != ErrorCode.NONE:
            return ErrorCode(response.error_code)
        given = response.assignment
        return Beat(response.member_epoch, None if given is None else self.group.names.to_names(given.topic_partitions))

    def full(self, epoch: int, owned: Partitions, *topics: str, **fields: Any) -> Beat | ErrorCode:
        """A heartbeat that has all fields."""
        fields = {"subscribed_topic_names": list(topics), "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS} | fields
        return self.beat(epoch, owned, **fields)

    def join(self, *topics: str, **fields: Any) -> Beat | ErrorCode:
        """The first heartbeat."""
        return self.full(0, {}, *topics, **fields)

    def settle(self, epoch: int, owned: Partitions) -> Beat:
        """Heartbeats, each with what has been given, until one gives nothing and leaves the epoch; the last state."""
        now = Beat(epoch, {name: sorted(some) for name, some in owned.items()})
        while True:
            found = self.beat(now.epoch, now.assigned)
            assert isinstance(found, Beat), found
            after = Beat(found.epoch, now.assigned if found.assigned is None else found.assigned)
            if after == now:
                return now
            now = after


class ClassicMember:
    """A member of the classic protocol; ``member_id`` and ``generation`` are what its last JoinGroup has said."""

    def __init__(self, group: WireGroup, connection: Connection, always: Mapping[str, Any]) -> None:
        self.group = group
        self.connection = connection
        self.member_id = ""
        self.generation = -1
        self._instance_id = always.get("group_instance_id")
        self._always = always
        self._topics: Sequence[str] = ()

    def join_request(self, *topics: str, owned: Partitions | None = None, **fields: Any) -> JoinGroupRequest:
        """JoinGroup with one protocol, ``range``."""
        self._topics = topics
        subscription = ConsumerProtocolSubscription(
            topics=list(topics),
            owned_partitions=[
                TopicPartition(topic=name, partitions=list(some)) for name, some in (owned or {}).items()
            ],
            user_data=fields.pop("user_data", None),
        )
        encoded_subscription = SUBSCRIPTION_VERSION.to_bytes(2) + encode_bytes(subscription, SUBSCRIPTION_VERSION)
        metadata = fields.pop("metadata", encoded_subscription)
        names = fields.pop("protocols", ["range"])
        return JoinGroupRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            **{
                "session_timeout_ms": 30_000,
                "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
                "protocol_type": "consumer",
                "protocols": [JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names],
                **self._always,
                **fields,
            },
        )

    def send_join(self, *topics: str, owned: Partitions | None = None, version: int = 9, **fields: Any) -> None:
        """Send JoinGroup; ``receive_join`` takes the response."""
        self.connection.send(self.join_request(*topics, owned=owned, **fields), version)

    def receive_join(self) -> Any:
        """The response to JoinGroup, of which this member keeps its id and generation."""
        response = self.connection.receive()
        if response.member_id:
            self.member_id = response.member_id
        if response.error_code == ErrorCode.NONE:
            self.generation = response.generation_id
        return response

    def join(
        self, *topics: str, owned: Partitions | None = None, version: int = 9, **fields: Any
    ) -> Joined | ErrorCode:
        """JoinGroup, a second one with the id that the first one was answered with."""

        def answered() -> Any:
            self.send_join(*topics, owned=owned, version=version, **fields)
            response = self.receive_join()
            return None if response.error_code in (*NOT_YET, ErrorCode.MEMBER_ID_REQUIRED) else response

        response = eventually(answered)
        if response.error_code != ErrorCode.NONE:
            return ErrorCode(response.error_code)
        return Joined(response.generation_id, response.leader, sorted(each.member_id for each in response.members))

    def sync(
        self,
        assignments: Mapping[str, Partitions] | None = None,
        generation: int | None = None,
        user_data: bytes | None = None,
        **fields: Any,
    ) -> dict[str, list[int]] | ErrorCode:
        """SyncGroup, with the assignments of all members where it leads."""
        request = SyncGroupRequest(
            group_id=self.group.group_id,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=encoded(some, user_data))
                for member_id, some in (assignments or {}).items()
            ],
            **{"protocol_type": "consumer", "protocol_name": "range", **fields},
        )
        response = self.connection.call(request, 5)
        if response.error_code != ErrorCode.NONE:
            return ErrorCode(response.error_code)
        return decoded(response.assignment)

    def heartbeat(self, generation: int | None = None, member_id: str | None = None) -> ErrorCode:
        """Heartbeat."""
        request = HeartbeatRequest(
            group_id=self.group.group_id,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id if member_id is None else member_id,
            group_instance_id=self._instance_id,
        )
        return ErrorCode(self.connection.call(request, 4).error_code)

    def leave(self, *, by_instance: bool = False) -> ErrorCode:
        """LeaveGroup."""
        identity = MemberIdentity(
            member_id="" if by_instance else self.member_id,
            group_instance_id=self._instance_id if by_instance else None,
        )
        response = self.connection.call(LeaveGroupRequest(group_id=self.group.group_id, members=[identity]), 5)
        return ErrorCode(response.error_code or response.members[0].error_code)


def encoded(partitions: Partitions, user_data: bytes | None = None) -> bytes:
    """An assignment of the classic protocol."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopicPartition(topic=name, partitions=list(some)) for name, some in partitions.items()
        ],
        user_data=user_data,
    )
    return SUBSCRIPTION_VERSION.to_bytes(2) + encode_bytes(message, SUBSCRIPTION_VERSION)


def decoded(assignment: bytes) -> dict[str, list[int]]:
    """Its partitions, sorted."""
    if not assignment:
        return {}
    message = decode(ConsumerProtocolAssignment, int.from_bytes(assignment[:2]), memoryview(assignment)[2:])
    return {each.topic: sorted(each.partitions) for each in message.assigned_partitions}
