"""A process of a consumer with the classic protocol, in a group that may be a classic group or a consumer group at any time.

It is eager, and reads nothing while it joins, or cooperative, and gives up only what it was not given again. A leader gives
nobody what another member has not given up. Partitions go by the names of their topics, so it is for topics that stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import trio

from ottla.base.errors import ErrorCode
from ottla.group_coordinator.embedded_protocol import read_subscription
from ottla.group_coordinator.topics import TopicSize
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

from ...group_coordinator.helpers.embedded_protocol import assigned, read_assigned, subscribed
from ..clients import RETRIABLE
from ..network import Lost
from .membership import Subscription, TopicIdPartition

if TYPE_CHECKING:
    from .consumer import GroupConsumer

HEARTBEAT_VERSION, JOIN_VERSION, LEAVE_VERSION, SYNC_VERSION = 4, 9, 5, 5
_NOT_JOINED = -1
_HEARTBEAT_SECONDS = 1.0


class ClassicMembership:
    """What a process knows of its membership. Its generation is the epoch of its member in a consumer group."""

    is_classic = True

    def __init__(
        self, group_id: str, subscription: Subscription, *, instance_id: str | None, is_cooperative: bool
    ) -> None:
        self.group_id = group_id
        self.member_id = ""
        self.instance_id = instance_id
        self.subscription = subscription
        self.is_cooperative = is_cooperative
        self.epoch = _NOT_JOINED
        self.owned: frozenset[TopicIdPartition] = frozenset()

    @property
    def is_member(self) -> bool:
        """Whether it has joined, as far as it knows."""
        return self.epoch != _NOT_JOINED

    @property
    def owner(self) -> str:
        """Its name among the clients of the group."""
        return self.instance_id or self.member_id

    def lose_all(self) -> None:
        """It reads nothing any more."""
        self.epoch, self.owned = _NOT_JOINED, frozenset()


class ClassicProcess:
    """Joins, synchronizes and sends heartbeats, for a consumer."""

    def __init__(self, consumer: GroupConsumer, member: ClassicMembership, session_ms: int, rebalance_ms: int) -> None:
        self.member = member
        self._consumer = consumer
        self._session_ms, self._rebalance_ms = session_ms, rebalance_ms
        self._is_joined = False
        self._known: Mapping[str, TopicSize] = {}
        """Of a leader, the topics that it has assigned."""
        self._read: frozenset[str] = frozenset()
        """Of a leader, the names of the topics that the members read."""

    def tell_all(self) -> None:
        """It joins again. So there is a leader, which nobody knows to be one after a downgrade."""
        self._is_joined = False

    async def live(self, until: trio.Event) -> None:
        consumer, rng = self._consumer, self._consumer.rng
        while not until.is_set():
            if not self._is_joined:
                if not await self._join():
                    return
                continue
            await trio.sleep(_HEARTBEAT_SECONDS * rng.uniform(0.5, 1))
            if not await self._heartbeat():
                return
            if self._is_joined and rng.random() < 0.3:
                await consumer.commit()
            if self._known != self._topics(self._read):
                self._is_joined = False
            if not consumer.calm and rng.random() < 0.12 and await self._act():
                return

    def _topics(self, names: Iterable[str]) -> dict[str, TopicSize]:
        present = self._consumer.topics()
        return {name: present[name] for name in names if name in present}

    async def _call(self, request: Any, version: int) -> Any:
        """The response; None where there is none."""
        try:
            return await self._consumer.client.call(request, version)
        except Lost as error:
            self._consumer.log(f"{type(request).__name__} lost: {error}")
            return None

    # --- a rebalance --------------------------------------------------------------------------------------------------

    async def _join(self) -> bool:
        """Take part in a rebalance; False if the process ends with it."""
        member, consumer = self.member, self._consumer
        if not member.is_cooperative:
            member.owned = frozenset()
            consumer.knowledge.reads(member)
        owned: dict[str, list[int]] = {}
        for topic_id, number in sorted(member.owned):
            owned.setdefault(consumer.topic_name(topic_id) or "", []).append(number)
        metadata = subscribed(*member.subscription.names, owned=owned, version=3 if member.is_cooperative else 0)
        request = JoinGroupRequest(
            group_id=member.group_id,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="share", metadata=metadata)],
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self._rebalance_ms,
        )
        joined = await self._call(request, JOIN_VERSION)
        if joined is None:
            return True
        code = ErrorCode(joined.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            member.member_id = joined.member_id
            return True
        if code is not ErrorCode.NONE:
            return await self._failed("join", code)
        consumer.log(f"joined at {joined.generation_id}")
        member.member_id, member.epoch = joined.member_id, joined.generation_id
        return await self._sync(joined)

    async def _sync(self, joined: Any) -> bool:
        member = self.member
        self._known, self._read = {}, frozenset()
        shares = self._shares(joined.members) if joined.leader == member.member_id else {}
        if joined.skip_assignment:
            # The topics may have changed since its former process knew them. It has a rebalance made, as Kafka's client has not.
            shares, self._known = {}, {}
        request = SyncGroupRequest(
            group_id=member.group_id,
            generation_id=member.epoch,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=share) for name, share in shares.items()
            ],
        )
        synced = await self._call(request, SYNC_VERSION)
        if synced is None:
            return True
        if synced.error_code:
            return await self._failed("sync", ErrorCode(synced.error_code))
        await self._take(read_assigned(bytes(synced.assignment))[1] if synced.assignment else {})
        return True

    def _shares(self, members: Iterable[Any]) -> dict[str, bytes]:
        """Of a leader: the assignments, in which nobody has what another one has not given up."""
        read = {member.member_id: read_subscription(member.metadata) for member in members}
        owners = {
            (part.topic, number): name
            for name, subscription in read.items()
            for part in subscription.owned_partitions
            for number in part.partitions
        }
        self._read = frozenset(topic for subscription in read.values() for topic in subscription.topics)
        self._known = self._topics(self._read)
        shares: dict[str, dict[str, list[int]]] = {name: {} for name in read}
        for topic, size in self._known.items():
            names = sorted(name for name, subscription in read.items() if topic in subscription.topics)
            for number in range(size.partition_count):
                name = names[number % len(names)]
                if owners.get((topic, number), name) == name:
                    shares[name].setdefault(topic, []).append(number)
        return {name: assigned(**share) for name, share in shares.items()}

    async def _take(self, given: Mapping[str, Iterable[int]]) -> None:
        """Give up what it was not given, and read the rest."""
        member, consumer = self.member, self._consumer
        topics = self._topics(given)
        target = frozenset((topics[name].topic_id, number) for name, numbers in given.items() for number in numbers)
        lost = member.owned - target
        self._is_joined = True
        if lost:
            await trio.sleep(consumer.rng.choice((0, 0.2) if consumer.calm else (0, 0.2, 1.5, 6.0)))
            self._is_joined = False
        member.owned = target
        consumer.knowledge.reads(member)
        consumer.log(f"at {member.epoch}, assigned {len(target)}, {len(lost)} given up")

    # --- between rebalances -------------------------------------------------------------------------------------------

    async def _heartbeat(self) -> bool:
        member = self.member
        request = HeartbeatRequest(
            group_id=member.group_id,
            generation_id=member.epoch,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
        )
        response = await self._call(request, HEARTBEAT_VERSION)
        if response is None:
            return True
        if response.error_code:
            return await self._failed("heartbeat", ErrorCode(response.error_code))
        self._consumer.is_heard = self._consumer.calm
        return True

    async def _failed(self, what: str, code: ErrorCode) -> bool:
        """Go on after an error; False if the process ends with it."""
        member, consumer = self.member, self._consumer
        consumer.log(f"{what} at {member.epoch}: {code.name}")
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._is_joined = False
            member.lose_all()
            consumer.knowledge.reads(member)
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                member.member_id = ""
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._is_joined = False
        elif code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
            return False
        elif code in RETRIABLE:
            await trio.sleep(consumer.rng.uniform(0, 0.2))
        else:
            consumer.knowledge.violate(f"{consumer.name}: {what} at {member.epoch} gets {code.name}")
        return True

    async def _act(self) -> bool:
        """Do something else than its part. Returns whether the process has ended."""
        consumer, member = self._consumer, self.member
        action = consumer.rng.choice(("die", "leave", "leave", "stand still", "subscribe", "rejoin", "go"))
        consumer.log(action)
        if action in ("leave", "go") and (member.instance_id is None or action == "go"):
            identity = MemberIdentity(member_id=member.member_id, group_instance_id=member.instance_id)
            member.lose_all()
            await self._call(LeaveGroupRequest(group_id=member.group_id, members=[identity]), LEAVE_VERSION)
        if action == "stand still":
            await trio.sleep(consumer.rng.uniform(0, consumer.standstill_seconds))
        if action == "subscribe":
            member.subscription = consumer.rng.choice(consumer.named_subscriptions)
            self._is_joined = False
        if action == "rejoin":
            self._is_joined = False
        if action == "die":
            consumer.client.close()
        consumer.is_gone = action == "go" and consumer.rng.random() < 0.3
        return action in ("die", "leave", "go")
