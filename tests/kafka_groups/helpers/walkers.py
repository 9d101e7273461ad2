"""The clients of a walk: members of the consumer and of the classic protocol, which mostly do as they should."""

from __future__ import annotations

import dataclasses
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.wire.codec import encode_bytes
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
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.schema import Message

from .hash_order import member_ids
from .steps import Ask, Response, topic_id

Owned = Mapping[str, Sequence[int]]
LONG_MS = 1_800_000
SUBSCRIPTION_VERSION = 1
INCARNATIONS = 6
AWAY = -2
"""The epoch of a static member that has gone, and comes back."""


@dataclasses.dataclass
class World:
    """Partitions of each topic."""

    counts: dict[str, int]


class Walker(ABC):
    """A client. Its member ids begin with its letter, which is its client id."""

    def __init__(
        self,
        letter: str,
        instance_id: str | None,
        chance: random.Random,
        group_id: str,
        topics: Sequence[str],
        world: World,
    ) -> None:
        self.letter = letter
        self.instance_id = instance_id
        self.group_id = group_id
        self.is_waiting = False
        self.given: Owned = {}
        """Partitions, as the broker has said last."""
        self._chance = chance
        self._all_topics = topics
        self._world = world
        self._topics = self._some_topics()

    @property
    def who(self) -> str:
        """Its connection."""
        return f"{self.group_id}/{self.letter}"

    def may_follow(self, other: Walker) -> bool:
        """Whether it may take the place of another one, as the same instance.

        With the same topics it calls for no new target in Kafka, whose leader may have left partitions to nobody.
        """
        return self.instance_id != other.instance_id or (bool(self._topics) and self._topics != other._topics)

    @property
    @abstractmethod
    def is_in_hurry(self) -> bool:
        """Whether others wait for it."""

    @property
    @abstractmethod
    def is_member(self) -> bool:
        """Whether it takes itself for a member."""

    @abstractmethod
    def next_step(self) -> Ask:
        """Its next request."""

    @abstractmethod
    def do_well(self) -> Ask:
        """The request that a client makes to have its partitions at last."""

    @abstractmethod
    def leave(self) -> Ask:
        """The request by which it leaves."""

    @abstractmethod
    def learn(self, request: Message | None, response: Response) -> None:
        """A response; the request is None where it has come late."""

    @abstractmethod
    def commits_as(self) -> tuple[str, int]:
        """Member id, and epoch or generation."""

    def _some_topics(self) -> list[str]:
        if self._chance.random() < 0.5:
            return [*self._all_topics[:3]]  # so that groups often read the same
        return sorted(self._chance.sample(self._all_topics, self._chance.randrange(1, 4)))


class ConsumerWalker(Walker):
    """A client of the consumer protocol (KIP-848)."""

    def __init__(self, letter: str, instance_id: str | None, assignors: Sequence[str | None], *common: Any) -> None:
        super().__init__(letter, instance_id, *common)
        self._assignors = assignors
        self._ids = member_ids(letter)[:INCARNATIONS]
        self._member_id = self._ids[0]
        self._epoch = 0
        self._before = 0
        self._is_away = False
        """Whether its instance has a place in the group and no process."""
        self._owned: Owned = {}
        """What it has not revoked yet."""
        self.regex: str | None = None
        """A regular expression that the group has resolved, which the member may take."""
        self.holds_regex = False
        """Whether it keeps its regular expression, and does nothing else but heartbeats."""

    @property
    def is_in_hurry(self) -> bool:
        return self._owned != self.given

    def commits_as(self) -> tuple[str, int]:
        return self._member_id, self._epoch or -1

    @property
    def is_member(self) -> bool:
        return self._epoch > 0 or self._is_away

    def next_step(self) -> Ask:
        return Ask(self.who, self._request(), 1)

    def leave(self) -> Ask:
        return Ask(self.who, self._beat(-1, None), 1)

    def do_well(self) -> Ask:
        return self.heartbeat() if self._epoch else Ask(self.who, self._join(), 1)

    def heartbeat(self, **fields: Any) -> Ask:
        """One that does as it should."""
        return Ask(self.who, self._beat(self._epoch, self.given, **fields), 1)

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        chance = self._chance
        if self.holds_regex:
            return self._beat(self._epoch, self.given)
        if self._epoch == 0:
            return self._join() if chance.random() < 0.9 else self._beat(chance.choice([1, 5, -1]), self._owned)
        kind = chance.random()
        if kind < 0.5:
            return self._beat(self._epoch, self.given)
        if kind < 0.62:
            return self._beat(self._epoch, None)
        if kind < 0.7:
            return self._beat(self._epoch, chance.choice([self._owned, self._more(), self._less()]))
        if kind < 0.75:
            return self._full(self._epoch, chance.choice([self.given, self._owned]))
        if kind < 0.84:
            return self._at_wrong_epoch()
        if kind < 0.9:
            self._topics = self._some_topics()
            return self._beat(self._epoch, chance.choice([None, self.given]), subscribed_topic_names=self._topics)
        if kind < 0.95:
            return self._changed()
        return self._leave()

    def _at_wrong_epoch(self) -> ConsumerGroupHeartbeatRequest:
        epoch = self._chance.choice([self._before, self._before, self._epoch - 1, self._epoch + 1, 0])
        owned = self._chance.choice([None, self.given, self._owned, {}, self._less()])
        return self._join() if epoch == 0 else self._beat(epoch, owned)

    def _changed(self) -> ConsumerGroupHeartbeatRequest:
        fields: dict[str, Any] = self._chance.choice(
            [
                {"server_assignor": self._chance.choice(self._assignors)},
                {"server_assignor": "sticky"},
                {"rack_id": self._chance.choice(["r1", "r2"])},
                {"rebalance_timeout_ms": LONG_MS - self._chance.randrange(3)},
                {"instance_id": "nobody"},
                {"instance_id": None},
                {"subscribed_topic_names": []},
                {"subscribed_topic_regex": "("} if self.regex is None else {"subscribed_topic_regex": self.regex},
                {"subscribed_topic_regex": ""},
            ]
        )
        if fields == {"subscribed_topic_names": []}:
            self._topics = []
        return self._beat(self._epoch, self._chance.choice([None, self.given]), **fields)

    def _leave(self) -> ConsumerGroupHeartbeatRequest:
        if self.instance_id is not None and self._chance.random() < 0.7:
            return self._beat(AWAY, None)
        return self._beat(-1, None)

    def _join(self) -> ConsumerGroupHeartbeatRequest:
        if self.instance_id is not None and self._chance.random() < 0.6:
            self._member_id = self._chance.choice(self._ids)
        if not self._topics:
            # Kafka 4.3.1 forgets that such a member is unlike the others, if the next target is due at its first heartbeat.
            self._topics = self._some_topics()
        assignor = self._chance.choice(self._assignors)
        return self._full(0, {}, server_assignor=assignor)

    def _full(self, epoch: int, owned: Owned, **fields: Any) -> ConsumerGroupHeartbeatRequest:
        return self._beat(epoch, owned, subscribed_topic_names=self._topics, rebalance_timeout_ms=LONG_MS, **fields)

    def _beat(self, epoch: int, owned: Owned | None, **fields: Any) -> ConsumerGroupHeartbeatRequest:
        if owned is not None:
            fields["topic_partitions"] = [
                TopicPartitions(topic_id=topic_id(name), partitions=list(some)) for name, some in owned.items() if some
            ]
        if self.instance_id is not None:
            fields.setdefault("instance_id", self.instance_id)
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self._member_id, member_epoch=epoch, **fields
        )

    def _more(self) -> Owned:
        name = self._chance.choice(self._all_topics)
        return {**self.given, name: [*range(self._world.counts.get(name, 0))]}

    def _less(self) -> Owned:
        return {name: some[1:] for name, some in self.given.items()}

    def learn(self, request: Message | None, response: Response) -> None:
        if not isinstance(request, ConsumerGroupHeartbeatRequest):
            return
        code = response["error_code"]
        if code == ErrorCode.NONE:
            self._accepted(request, response)
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID):
            if request.member_epoch == self._epoch or self._chance.random() < 0.3:
                self._forget()
        elif code == ErrorCode.GROUP_ID_NOT_FOUND:
            self._forget()

    def _accepted(self, request: ConsumerGroupHeartbeatRequest, response: Response) -> None:
        epoch = response["member_epoch"]
        if epoch < 0:
            self._forget()
            self._is_away = epoch == AWAY
            return
        self._is_away = False
        if epoch != self._epoch:
            self._before, self._epoch = self._epoch, epoch
        if request.topic_partitions is not None:
            self._owned = {each.topic_id.rstrip(b"\0").decode(): each.partitions for each in request.topic_partitions}
        if response["assignment"] is not None:
            self.given = {each["topic_id"]: each["partitions"] for each in response["assignment"]["topic_partitions"]}

    def _forget(self) -> None:
        self._is_away = False
        self._epoch = self._before = 0
        self._owned = self.given = {}


class ClassicWalker(Walker):
    """A client of the classic protocol."""

    def __init__(self, letter: str, instance_id: str | None, *common: Any, in_place: bool = False) -> None:
        super().__init__(letter, instance_id, *common)
        self._in_place = in_place
        self._member_id = ""
        self._generation = -1
        self._protocol: str | None = None
        self._members: Sequence[Mapping[str, Any]] = []
        """Those it has to assign partitions to."""
        self._wants: str = "join"
        self.is_beside_consumers = False
        """Whether the group has members of the consumer protocol, who wait until this one says that it has revoked."""

    @property
    def is_in_hurry(self) -> bool:
        return bool(self._wants) and bool(self._member_id)

    def commits_as(self) -> tuple[str, int]:
        return self._member_id, self._generation

    @property
    def has_joined(self) -> bool:
        """Whether it takes itself for a member that has been in a generation."""
        return self._generation >= 0

    @property
    def lacks_id(self) -> bool:
        """Whether it has to ask for ids until one is in place, and give the others back."""
        return self._in_place and not self._member_id

    def notice(self, *, is_beside_consumers: bool) -> None:
        """What kind of group it is: one that has become classic rebalances."""
        if self.is_beside_consumers and not is_beside_consumers:
            self._wants = "join"
        # Kafka 4.3.1 loses an empty consumer group when a member of unknown id joins it.
        if not is_beside_consumers and self._generation < 0 and not self._member_id.endswith("prefixed"):
            self._forget()
        self.is_beside_consumers = is_beside_consumers

    @property
    def is_member(self) -> bool:
        return bool(self._member_id)

    def next_step(self) -> Ask:
        chance = self._chance
        kind = chance.random()
        if not self._member_id:
            return self._join()
        if self._wants and kind < 0.8:
            return self._join() if self._wants == "join" else self._sync(self._generation)
        if kind < 0.86:
            return self._heartbeat(self._generation)
        if kind < 0.9:
            return self._heartbeat(self._generation + chance.choice([-1, 1]))
        if kind < 0.92:
            return self._sync(self._generation + chance.choice([-1, 0, 1]))
        if kind < 0.97:
            if chance.random() < 0.4:
                self._topics = self._some_topics()
            return self._join()
        return self.leave()

    def do_well(self) -> Ask:
        if self._wants == "join" or not self._member_id:
            return self._join()
        return self._sync(self._generation) if self._wants else self._heartbeat(self._generation)

    def _join(self) -> Ask:
        # In a classic group it gives up everything first: what it kept, an upgrade would leave to it in Ottla, but not in Kafka.
        kept = self.given if self.is_beside_consumers else {}
        owned = [TopicPartition(topic=name, partitions=list(some)) for name, some in kept.items() if some]
        subscription = ConsumerProtocolSubscription(topics=self._topics, owned_partitions=owned)
        metadata = SUBSCRIPTION_VERSION.to_bytes(2) + encode_bytes(subscription, SUBSCRIPTION_VERSION)
        # All have ``range`` first. Kafka 4.3.1 fails to convert a group whose members have not agreed on a protocol yet.
        names = ["range"] if self._chance.random() < 0.8 else ["range", "roundrobin"]
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=LONG_MS,
            rebalance_timeout_ms=LONG_MS,
            member_id=self._member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names],
        )
        is_for_id = self._in_place and not self._member_id
        return Ask(self.who, request, self._chance.choice([7, 9]), may_wait=not is_for_id, in_place=is_for_id)

    def _sync(self, generation: int) -> Ask:
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=self._member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=self._protocol if self._chance.random() < 0.97 else "sticky",
            assignments=self._assignments(),
        )
        return Ask(self.who, request, self._chance.choice([4, 5]), may_wait=True)

    def _assignments(self) -> list[SyncGroupRequestAssignment]:
        """Of all topics; at times some partitions are given to nobody."""
        shares: dict[str, dict[str, list[int]]] = {each["member_id"]: {} for each in self._members}
        if not shares:
            return []
        for name in self._all_topics:
            for partition in range(self._world.counts.get(name, 0)):
                readers = [
                    each["member_id"]
                    for each in self._members
                    if name in ((each["metadata"] or {}).get("topics") or ())
                ]
                if readers and self._chance.random() < 0.95:
                    shares[self._chance.choice(readers)].setdefault(name, []).append(partition)
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=_encoded(share))
            for member_id, share in shares.items()
        ]

    def _heartbeat(self, generation: int) -> Ask:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=self._member_id,
            group_instance_id=self.instance_id,
        )
        return Ask(self.who, request, 4)

    def leave(self) -> Ask:
        by_instance = self.instance_id is not None and self._chance.random() < 0.5
        identity = MemberIdentity(member_id="" if by_instance else self._member_id, group_instance_id=self.instance_id)
        return Ask(self.who, LeaveGroupRequest(group_id=self.group_id, members=[identity]), 5)

    def learn(self, request: Message | None, response: Response) -> None:
        was_waiting, self.is_waiting = self.is_waiting, False
        code = response.get("error_code", ErrorCode.NONE)
        if "generation_id" in response:
            self._joined(code, response)
        elif isinstance(request, LeaveGroupRequest):
            self._forget()
        elif isinstance(request, HeartbeatRequest | SyncGroupRequest) or was_waiting:
            self._told(code, response)

    def _joined(self, code: int, response: Response) -> None:
        if code == ErrorCode.NONE:
            self._member_id, self._generation = response["member_id"], response["generation_id"]
            self._members, self._protocol = response["members"], response["protocol_name"]
            self._wants = "sync"
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            is_random = response["member_id"].endswith("random")
            self._member_id = self._chance.choice(member_ids(self.letter)) if is_random else response["member_id"]
            self._wants = "join"
        else:
            self._told(code, response)

    def _told(self, code: int, response: Response) -> None:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
            self._forget()
        elif code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self._wants = "join"
        elif code == ErrorCode.NONE and "assignment" in response:
            self._wants = ""
            given = response["assignment"] or {"assigned_partitions": []}
            self.given = {each["topic"]: each["partitions"] for each in given["assigned_partitions"]}

    def _forget(self) -> None:
        self._member_id, self._generation = "", -1
        self._members, self._wants, self.given = [], "join", {}


def _encoded(share: Owned) -> bytes:
    assigned = [AssignedTopicPartition(topic=name, partitions=list(some)) for name, some in share.items()]
    message = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return SUBSCRIPTION_VERSION.to_bytes(2) + encode_bytes(message, SUBSCRIPTION_VERSION)
