"""The soft state of a group: its current members, the rebalance in progress, and the transitions between states.

It is lost with the coordinator. A successor starts from the durable generation (``LiveGroup`` of it), and the members find out
by ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID and join again. While the group is Stable its members are those of the
durable generation. Nothing here writes, sets a timer or reads a clock; ``rebalance`` says when each transition is made.

The states, as DescribeGroups names them::

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance --leader syncs--> Stable
      ^                   | none left          ^                             | join, leave, expiry            |
      +-------------------+                    +-----------------------------+--------------------------------+

Rules: Kafka's classic group protocol; KIP-345 (static members), KIP-394 (pending members), KIP-814.
"""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from collections.abc import Collection

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.join_group import JoinGroupResponse
from ..wire.messages.sync_group import SyncGroupResponse
from .generation import CONSUMER_PROTOCOL_TYPE, NO_GENERATION, Generation, GenerationMember
from .waiter import Waiter

Protocols = list[tuple[str, bytes]]
"""Name and metadata of the protocols a member offers, the one it likes best first."""


class GroupState(enum.Enum):
    """The value is the name on the wire."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclasses.dataclass(slots=True)
class ClassicGroupMember:
    """A member of a group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    is_new: bool = False
    """Until its first generation: it may not know its own id yet."""
    join_waiter: Waiter[JoinGroupResponse] | None = None
    """The pending response to JoinGroup; None while the member does not wait for one. ``sync_waiter`` likewise."""
    sync_waiter: Waiter[SyncGroupResponse] | None = None

    def metadata(self, protocol_name: str | None) -> bytes:
        """What the member offered for ``protocol_name``; empty when it offered nothing."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def in_generation(self, protocol_name: str | None) -> GenerationMember:
        """The member of a generation with this protocol, without an assignment."""
        return GenerationMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol_name),
        )

    def offer(self, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        """What it asks for when it joins again."""
        self.protocols = protocols
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms

    def wait_to_sync(self) -> Waiter[SyncGroupResponse]:
        """It waits for its assignment; whoever waited in its name before has been answered."""
        waiter = self.sync_waiter = Waiter()
        return waiter

    def respond_to_join(self, response: JoinGroupResponse, offset: int) -> None:
        """Give it its response to JoinGroup, if it waits for one."""
        waiter, self.join_waiter = self.join_waiter, None
        if waiter is not None:
            waiter.complete(response, offset)

    def respond_to_sync(self, response: SyncGroupResponse, offset: int) -> bool:
        """Give it its response to SyncGroup; returns whether it waited for one."""
        waiter, self.sync_waiter = self.sync_waiter, None
        if waiter is not None:
            waiter.complete(response, offset)
        return waiter is not None

    def abandon_join(self) -> None:
        """The connection that waited is gone, so that the answer cannot tell the member anything any more."""
        self.join_waiter = None
        self.is_new = False

    def abandon_sync(self) -> None:
        """The connection that waited is gone."""
        self.sync_waiter = None


@dataclasses.dataclass(slots=True)
class InitialRebalance:
    """The wait for more members at the first rebalance of an empty group, in milliseconds."""

    delay_ms: int
    remaining_ms: int
    member_added: bool = False

    def extend(self, delay_ms: int) -> int | None:
        """A delay is over: the next one, at most ``delay_ms`` if members came meanwhile; None when the wait is over."""
        if not self.member_added or self.remaining_ms <= 0:
            return None
        self.member_added = False
        next_ms = min(delay_ms, self.remaining_ms)
        self.remaining_ms = max(self.remaining_ms - self.delay_ms, 0)
        self.delay_ms = next_ms
        return next_ms


def select_protocol(members: Collection[ClassicGroupMember]) -> str:
    """The protocol that all members support and most of them like best."""
    common = _common_protocols(members)
    votes = Counter(next(name for name, _ in member.protocols if name in common) for member in members)
    return max(votes, key=votes.__getitem__)


def _common_protocols(members: Collection[ClassicGroupMember]) -> set[str]:
    return set.intersection(*({name for name, _ in member.protocols} for member in members))


class LiveGroup:
    """The soft state of one group, as it begins: nobody has joined since the durable ``generation``."""

    def __init__(self, generation: Generation = NO_GENERATION) -> None:
        self.generation = generation
        """The last that began: the durable one, or one that is not in the log yet."""
        self.state = GroupState.STABLE if generation.members else GroupState.EMPTY
        self.protocol_type = generation.protocol_type
        self.leader_id = generation.leader_id
        self.members: dict[str, ClassicGroupMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by group instance id."""
        for known in generation.members.values():
            self._add(
                ClassicGroupMember(
                    known.member_id,
                    known.group_instance_id,
                    known.client_id,
                    known.client_host,
                    known.rebalance_timeout_ms,
                    known.session_timeout_ms,
                    [(generation.protocol_name or "", known.subscription)],
                )
            )
        self.pending_members: set[str] = set()
        """Ids that were given out to clients which have not joined with them yet (KIP-394)."""
        self.pending_sync_members: set[str] = set()
        """Members of the generation that have not asked for their assignment yet."""
        self.initial_rebalance: InitialRebalance | None = None
        """None unless the first rebalance waits for more members."""
        self.rebalance_reason = ""
        self.rebalance_began_ms: float | None = None
        """Monotonic; None before the first rebalance that this coordinator saw."""
        self.last_to_join: str | None = None
        """The member that joined last in the present rebalance, or in the last one."""

    # Questions

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ClassicGroupMember:
        """The member of that name. KafkaError UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"no member has the instance id {group_instance_id}")
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"{group_instance_id} is now the member {known}")
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"the group has no member {member_id}")
        return member

    def validate_generation(self, generation_id: int) -> None:
        """KafkaError ILLEGAL_GENERATION unless ``generation_id`` is the current one."""
        if generation_id != self.generation.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"the generation is {self.generation.generation_id}")

    @property
    def has_all_members_joined(self) -> bool:
        """Whether every member waits for its response to JoinGroup and none is pending."""
        return not self.pending_members and all(member.join_waiter for member in self.members.values())

    @property
    def num_awaiting_join_response(self) -> int:
        """How many members wait for their response to JoinGroup."""
        return sum(member.join_waiter is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest any member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member that offers this can take part: with the others it has one protocol in common."""
        if not self.members:
            return bool(protocol_type and protocols)
        common = _common_protocols(self.members.values())
        return protocol_type == self.protocol_type and any(name in common for name, _ in protocols)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read ``topic``; consumers whose subscription cannot be read are taken to read everything."""
        topics = self.generation.subscribed_topics
        if topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in topics

    def hand_over(self, old: ClassicGroupMember, new: ClassicGroupMember, now_ms: int) -> Generation | None:
        """The present generation with ``new`` in the place of ``old``; None where that calls for a rebalance.

        It does not while the group is Stable and the vote for the protocol stays the same.
        """
        name = self.generation.protocol_name
        members = [member for member in self.members.values() if member is not old]
        if self.state is not GroupState.STABLE or select_protocol([*members, new]) != name:
            return None
        return self.generation.handed_over(old.member_id, new.in_generation(name), now_ms)

    # Members

    def _add(self, member: ClassicGroupMember) -> None:
        assert member.member_id not in self.members
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        self.members[member.member_id] = member

    def expect(self, member_id: str) -> None:
        """A new member has been sent back to join with this id: it is pending."""
        self.pending_members.add(member_id)

    def join(self, member: ClassicGroupMember, protocol_type: str) -> Waiter[JoinGroupResponse]:
        """A new member joins and waits; the first one leads, and its protocol type is the group's."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.initial_rebalance is not None:
            self.initial_rebalance.member_added = True
        self._add(member)
        self.pending_members.discard(member.member_id)
        if self.leader_id is None:
            self.leader_id = member.member_id
        member.is_new = True
        return self.join_again(member)

    def join_again(self, member: ClassicGroupMember) -> Waiter[JoinGroupResponse]:
        """A member waits for the next generation; whoever waited in its name before has been answered."""
        self.last_to_join = member.member_id
        waiter = member.join_waiter = Waiter()
        return waiter

    def remove(self, member_id: str) -> ClassicGroupMember | None:
        """Forget a member or a pending one. The next member in order of joining leads when the leader goes."""
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_sync_members.discard(member_id)
        return member

    def replace(self, old: ClassicGroupMember, new: ClassicGroupMember) -> None:
        """A new process under a known instance id: it takes the place of the old one, and leads if that did."""
        was_leader = self.leader_id == old.member_id
        self.remove(old.member_id)
        self._add(new)
        if was_leader or self.leader_id is None:
            self.leader_id = new.member_id

    # Rebalance

    def prepare(self, reason: str, now_ms: float) -> None:
        """Call for a rebalance: nobody is waited for to sync any more."""
        self.rebalance_reason = reason
        self.rebalance_began_ms = now_ms
        self.pending_sync_members.clear()
        self.state = GroupState.PREPARING_REBALANCE

    def set_rebalance_reason(self, reason: str) -> None:
        """Why the group has no members any more."""
        self.rebalance_reason = reason

    def delay(self, delay_ms: int) -> None:
        """The first rebalance of the group waits for more members."""
        self.initial_rebalance = InitialRebalance(delay_ms, max(self.rebalance_timeout_ms - delay_ms, 0))

    def end_delay(self) -> None:
        """The rebalance waits for no more members than those it knows."""
        self.initial_rebalance = None

    def elect_leader(self) -> bool:
        """A leader that has not joined is replaced by the first member that has; whether there is one."""
        leader = None if self.leader_id is None else self.members.get(self.leader_id)
        if leader is not None and leader.join_waiter is not None:
            return True
        joined = next((member for member in self.members.values() if member.join_waiter is not None), None)
        if joined is not None:
            self.leader_id = joined.member_id
        return joined is not None

    def begin_generation(self, now_ms: int) -> None:
        """The members begin the next generation, and none has its assignment."""
        name = select_protocol(self.members.values())
        members = {member.member_id: member.in_generation(name) for member in self.members.values()}
        self.generation = Generation(self._next_id, self.protocol_type, name, self.leader_id, members, now_ms)
        self.pending_sync_members = set(members)
        self.state = GroupState.COMPLETING_REBALANCE
        for member in self.members.values():
            member.is_new = False

    def become_empty(self, now_ms: int) -> None:
        """Nobody is left: that is a generation, too."""
        self.leader_id = None
        self.generation = Generation(self._next_id, self.protocol_type, state_timestamp_ms=now_ms)
        self.state = GroupState.EMPTY

    @property
    def _next_id(self) -> int:
        return self.generation.generation_id + 1

    def remove_pending_sync_member(self, member_id: str) -> bool:
        """A member has asked for its assignment; whether all have."""
        self.pending_sync_members.discard(member_id)
        return not self.pending_sync_members

    def settle(self, generation: Generation) -> None:
        """The generation is durable, with the assignments of its members."""
        self.generation = generation
        self.state = GroupState.STABLE
