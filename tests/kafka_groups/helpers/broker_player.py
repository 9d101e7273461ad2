"""One broker that a walk is played on: steps go out in its names, responses come back in the walk's."""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.transactional import GROUP, find_coordinator
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator, describe
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.schema import Message, Struct

from .hash_order import in_both_orders, is_in_place
from .steps import ADMIN, LATER, TOPICS, Ask, AwaitEpoch, HangUp, Response, SetTopic, Step, client_id, topic_id

PROPERTIES = {
    "auto.create.topics.enable": "false",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignors": "range,uniform",
    "group.consumer.max.session.timeout.ms": "1800000",
    "group.consumer.session.timeout.ms": "1800000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
"""Of the broker: no time is up during a walk, and one coordinator has all groups."""
LATE_S = 0.05
"""A response that is not there so long after a later one has come is taken as one that waits."""
CANDIDATES = 40
SESSION_MS = 1_800_000
_PROBE = "probe"
_SHORTEST_MADE = 22
"""The length of a random member id; others begin with the client id or the instance id."""
_NAMES = frozenset({"name", "topic", "topic_name", "subscribed_topic_names", "topics"})
_MEMBERS = frozenset({"member_id", "leader"})
_LEFT_OUT = frozenset({"throttle_time_ms", "unknown_tagged_fields"})
_EMBEDDED = {
    ("JoinGroupRequestProtocol", "metadata"): ConsumerProtocolSubscription,
    ("JoinGroupResponseMember", "metadata"): ConsumerProtocolSubscription,
    ("DescribedGroupMember", "member_metadata"): ConsumerProtocolSubscription,
    ("SyncGroupRequestAssignment", "assignment"): ConsumerProtocolAssignment,
    ("SyncGroupResponse", "assignment"): ConsumerProtocolAssignment,
    ("DescribedGroupMember", "member_assignment"): ConsumerProtocolAssignment,
}
"""Fields that hold a message of the consumer protocol."""


class BrokerPlayer:
    """Plays steps on the broker at an address. The topics of walks are made first."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._operator = Operator(bootstrap)
        self._connections: dict[str, Connection] = {}
        self._waiting: set[str] = set()
        self._actual: dict[str, str] = {}
        """Names of topics, member ids and topic ids by those of the walk."""
        self._ids: dict[bytes, bytes] = {}
        self._named: dict[Any, Any] = {}
        """The walk's names by those of the broker."""
        self._counts: dict[str, int] = {}
        self._member_counts: dict[str, int] = {}
        """Ids that the broker has made, by connection."""
        admin = self._connection(ADMIN)
        find_coordinator(admin, GROUP, _PROBE)
        self._make_topics()
        for name in LATER:
            self._actual[name] = self._named[name] = name
        for name, count in TOPICS.items():
            self._set_topic(SetTopic(name, count))

    def _connection(self, who: str) -> Connection:
        if who not in self._connections:
            self._connections[who] = Connection(self._bootstrap)
        return self._connections[who]

    def close(self) -> None:
        """Close all connections."""
        self._hang_up({*self._connections})

    def play(self, step: Step) -> dict[str, Any]:
        """The responses that have come by connection, as the broker has sent them; that of the step may not be there yet."""
        if isinstance(step, HangUp):
            self._hang_up(set(step.who))
        elif isinstance(step, SetTopic):
            self._set_topic(step)
        elif isinstance(step, AwaitEpoch):
            eventually(lambda: self._epoch_of(step.group_id) > step.epoch)
        elif isinstance(step, Ask):
            return self._ask(step)
        return {}

    def _ask(self, step: Ask) -> dict[str, Any]:
        if step.in_place:
            return {step.who: self._ask_until_in_place(step), **self._come()}
        self._send(step)
        if not step.may_wait:
            return {step.who: self.wait(step.who), **self._come()}
        return self._come()

    def wait(self, who: str) -> Any:
        """The response that this connection waits for; None where none comes."""
        try:
            response = self._connections[who].receive()
        except (EOFError, TimeoutError):
            self._hang_up({who})
            return None
        self._waiting.discard(who)
        return response

    def _send(self, step: Ask) -> None:
        assert step.who not in self._waiting, step
        self._connection(step.who).send(self._to_broker(step.request), step.version, client_id=client_id(step.who))
        self._waiting.add(step.who)

    def _come(self) -> dict[str, Any]:
        """The responses to requests that have waited, if there are any."""
        if not self._waiting:
            return {}
        self._connection(ADMIN).call(HeartbeatRequest(group_id="nobody's", member_id="nobody"), 4)
        by_socket = {self._connections[who].socket: who for who in self._waiting}
        found: dict[str, Any] = {}
        while by_socket:
            ready, _, _ = select.select([*by_socket], [], [], LATE_S)
            if not ready:
                break
            found |= {who: self.wait(who) for who in map(by_socket.pop, ready)}
        return found

    def _ask_until_in_place(self, step: Ask) -> Any:
        """A member id that does not fit is given back. Where ids don't begin with the client id, the first one is taken."""
        while True:
            self._send(step)
            response = self.wait(step.who)
            letter = client_id(step.who)
            is_given = response.error_code == ErrorCode.MEMBER_ID_REQUIRED
            if (
                not is_given
                or not response.member_id.startswith(letter + "-")
                or is_in_place(response.member_id, letter)
            ):
                return response
            leave = LeaveGroupRequest(
                group_id=step.request.group_id,  # type: ignore[attr-defined]
                members=[MemberIdentity(member_id=response.member_id)],
            )
            left = self._connection(step.who).call(leave, 5)
            assert left.members[0].error_code == ErrorCode.NONE, left

    def _epoch_of(self, group_id: str) -> int:
        (group,) = self._connection(ADMIN).call(ConsumerGroupDescribeRequest(group_ids=[group_id]), 1).groups
        return int(group.group_epoch)

    def _hang_up(self, who: set[str]) -> None:
        for each in who & {*self._connections}:
            self._connections.pop(each).close()
        self._waiting -= who

    # ---- topics

    def _make_topics(self) -> None:
        """Of many topics with one partition those stay whose ids are in both orders of ``hash_order``."""
        ids: dict[bytes, str] = {}
        chosen = None
        while chosen is None:
            ids |= self._make_candidates(len(ids))
            chosen = in_both_orders([*ids], len(TOPICS))
        for walks, actual_id in zip(sorted(TOPICS), chosen, strict=True):
            self._actual[walks], self._named[ids[actual_id]] = ids[actual_id], walks
            self._ids[topic_id(walks)], self._named[actual_id] = actual_id, walks
            self._counts[walks] = 1
        for name in ids.values():
            if name not in self._named:
                self._operator.delete_topic(name)

    def _make_candidates(self, first: int) -> dict[bytes, str]:
        names = [f"walk-{number:03}" for number in range(first, first + CANDIDATES)]
        made = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        created = self._connection(ADMIN).call(CreateTopicsRequest(topics=made, timeout_ms=20_000), 7)
        assert all(each.error_code == ErrorCode.NONE for each in created.topics), created
        return {each.topic_id: each.name for each in created.topics}

    def _set_topic(self, step: SetTopic) -> None:
        actual, before = self._actual[step.name], self._counts.get(step.name, 0)
        if step.partitions == 0:
            self._operator.delete_topic(actual)
        elif before == 0:
            self._operator.create_topic(actual, step.partitions, {})
            found = describe(self._connection(ADMIN), actual).topics[0].topic_id
            self._ids[topic_id(step.name)], self._named[found] = found, step.name
        elif before < step.partitions:
            more = CreatePartitionsTopic(name=actual, count=step.partitions, assignments=None)
            request = CreatePartitionsRequest(topics=[more], timeout_ms=20_000)
            (result,) = self._connection(ADMIN).call(request, 3).results
            assert result.error_code == ErrorCode.NONE, result
        self._counts[step.name] = step.partitions
        eventually(self._coordinator_knows)

    def _coordinator_knows(self) -> bool:
        """Whether a member that reads all topics is given all partitions there are."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=_PROBE,
            member_id=_PROBE,
            member_epoch=0,
            rebalance_timeout_ms=SESSION_MS,
            subscribed_topic_names=sorted(self._actual.values()),
            topic_partitions=[],
        )
        response = self._connection(ADMIN).call(request, 1)
        if response.error_code != ErrorCode.NONE:
            return False
        given = {each.topic_id: len(each.partitions) for each in response.assignment.topic_partitions}
        return given == {self._ids[topic_id(name)]: count for name, count in self._counts.items() if count}

    # ---- names

    def _to_broker(self, request: Message) -> Message:
        rewritten: Message = self._rewritten(request, self._name_of_broker)
        return rewritten

    def _name_of_broker(self, field: str, value: Any) -> Any:
        if field == "topic_id":
            return self._ids.get(value, value)
        if field == "subscribed_topic_regex":
            return value.format_map(_Names(self._actual))
        return self._actual.get(value, value)

    def _rewritten(self, struct: Any, rename: Callable[[str, Any], Any]) -> Any:
        """A copy with other names."""
        values: dict[str, Any] = {}
        for spec in struct.fields:
            value = getattr(struct, spec.name)
            embedded = _EMBEDDED.get((type(struct).__name__, spec.name))
            if embedded is not None:
                values[spec.name] = self._rewritten_bytes(embedded, value, rename)
            elif isinstance(value, Struct):
                values[spec.name] = self._rewritten(value, rename)
            elif isinstance(value, list):
                values[spec.name] = [
                    self._rewritten(each, rename)
                    if isinstance(each, Struct)
                    else self._renamed(spec.name, each, rename)
                    for each in value
                ]
            else:
                values[spec.name] = self._renamed(spec.name, value, rename)
        return type(struct)(**values)

    @staticmethod
    def _renamed(field: str, value: Any, rename: Callable[[str, Any], Any]) -> Any:
        known = field in _NAMES or field in _MEMBERS or field in ("topic_id", "subscribed_topic_regex")
        return rename(field, value) if known and value is not None else value

    def _rewritten_bytes(self, kind: type[Message], value: bytes, rename: Callable[[str, Any], Any]) -> bytes:
        try:
            version = int.from_bytes(value[:2])
            message = decode(kind, version, memoryview(value)[2:])
        except Exception:  # a malformed one goes as it is
            return value
        return version.to_bytes(2) + encode_bytes(self._rewritten(message, rename), version)

    def in_walks_names(self, who: str, response: Any) -> Response:
        """A response as walks know it. Those of a connection are to be translated in their order."""
        if response is None:
            return {"error_code": "no response"}
        if getattr(response, "member_id", ""):
            self._learn_member(who, response.member_id)
        result: Response = self._canonical(response)
        return result

    def _learn_member(self, who: str, member_id: str) -> None:
        """An id that the broker has made is called by the connection that was given it, and by how it looks."""
        is_made = len(member_id) >= _SHORTEST_MADE and member_id not in self._actual
        if is_made and member_id not in self._named:
            number = self._member_counts[who] = self._member_counts.get(who, 0) + 1
            looks = "random" if len(member_id) == _SHORTEST_MADE else "prefixed"
            name = f"{client_id(who)}#{number} of {who}, {looks}"
            self._named[member_id], self._actual[name] = name, member_id

    def _canonical(self, value: Any, field: str = "", owner: str = "") -> Any:
        if isinstance(value, Struct):
            kind = type(value).__name__
            return {
                spec.name: self._canonical(getattr(value, spec.name), spec.name, kind)
                for spec in value.fields
                if spec.name not in _LEFT_OUT
            }
        if isinstance(value, list):
            return sorted((self._canonical(each, field, owner) for each in value), key=repr)
        if field == "error_message":
            return value is not None
        embedded = _EMBEDDED.get((owner, field))
        if embedded is not None:
            return self._canonical_bytes(embedded, value)
        if field == "topic_id":
            return self._named.get(value, "no topic of the walk")
        if field == "subscribed_topic_regex" and value:
            for actual in sorted((each for each in self._named if isinstance(each, str)), key=len, reverse=True):
                value = value.replace(actual, self._named[actual])
            return value
        if field in _MEMBERS and value not in self._named and len(value or "") >= _SHORTEST_MADE:
            # Of a member whose JoinGroup waits.
            return f"{value.partition('-')[0] if len(value) > _SHORTEST_MADE else 'random'}, not told yet"
        return self._named.get(value, value) if field in _NAMES or field in _MEMBERS else value

    def _canonical_bytes(self, kind: type[Message], value: bytes) -> Any:
        if not value:
            return None
        version = int.from_bytes(value[:2])
        try:
            return {"version": version, **self._canonical(decode(kind, version, memoryview(value)[2:]))}
        except Exception:  # a malformed one
            return value.hex()


class _Names(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "{" + key + "}"
