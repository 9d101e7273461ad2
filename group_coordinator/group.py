"""A group and its members: what is known, and the questions that can be answered from it. No transitions.

Two kinds of state live side by side. *Durable* is what the records of ``__consumer_offsets`` say of the last completed
rebalance: its generation, protocol, leader, members and assignments; it changes in ``replay`` alone. *Soft* is the
rebalance going on now: members that wait for an answer, pending members, a generation that has no assignment yet. It is
lost with the coordinator, whose successor starts from the durable state, and the members then find out by
ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID and join again.

The states, as DescribeGroups names them::

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance --leader syncs--> Stable
      ^                   | none left          ^                             | join, leave, expiry            |
      +-------------------+                    +-----------------------------+--------------------------------+

A group that never had a member, made by a commit of offsets alone, is called *simple*: Empty, and without a protocol type.

Rules: Kafka's classic group protocol; KIP-345 (static members), KIP-394 (pending members), KIP-814.
"""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.join_group import JoinGroupResponse
from ..wire.messages.sync_group import SyncGroupResponse
from .subscription import subscribed_topics
from .waiter import Waiter

CONSUMER_PROTOCOL_TYPE = "consumer"

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
class Member:
    """A member of a group. ``is_new`` until its first generation: it may not know its own id yet."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    join_waiter: Waiter[JoinGroupResponse] | None = None
    sync_waiter: Waiter[SyncGroupResponse] | None = None

    def metadata(self, protocol_name: str | None) -> bytes:
        """What the member offered for ``protocol_name``; empty when it offered nothing."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")


@dataclasses.dataclass(slots=True)
class InitialRebalance:
    """The wait for more members at the first rebalance of an empty group, in milliseconds."""

    delay_ms: int
    remaining_ms: int
    member_added: bool = False


class Group:
    """One group of the classic protocol."""

    def __init__(self, group_id: str, state_timestamp_ms: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_timestamp_ms = state_timestamp_ms
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader_id: str | None = None
        self.rebalance_reason = ""
        self.rebalance_began_ms: float | None = None
        """Monotonic; None before the first rebalance that this coordinator saw."""
        self.last_to_join: str | None = None
        """The member that joined last in the present rebalance, or in the last one."""
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending_members: set[str] = set()
        self.pending_sync: set[str] = set()
        self.initial_rebalance: InitialRebalance | None = None
        self.subscribed_topics: frozenset[str] | None = None

    # Members

    def add(self, member: Member) -> None:
        """Add a member; the first one leads."""
        assert member.member_id not in self.members
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        self.members[member.member_id] = member
        self.pending_members.discard(member.member_id)
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Forget a member or a pending one. The next member in order of joining leads when the leader goes."""
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_sync.discard(member_id)
        return member

    def replace_static(self, group_instance_id: str, new_member_id: str) -> tuple[Member, Member]:
        """A new process under a known instance id: the old member, and the new one with all that the old one had."""
        old_member_id = self.static_members[group_instance_id]
        old = self.members[old_member_id]
        new = dataclasses.replace(old, member_id=new_member_id, is_new=False, join_waiter=None, sync_waiter=None)
        was_leader = self.leader_id == old_member_id
        self.remove(old_member_id)
        self.add(new)
        if was_leader:
            self.leader_id = new_member_id
        return old, new

    def validate_member(self, member_id: str, group_instance_id: str | None) -> Member:
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
        if generation_id != self.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"the generation is {self.generation_id}")

    @property
    def all_joined(self) -> bool:
        """Whether every member waits for its answer to JoinGroup and none is pending."""
        return not self.pending_members and all(member.join_waiter for member in self.members.values())

    @property
    def awaiting_join(self) -> int:
        """How many members wait for their answer to JoinGroup."""
        return sum(member.join_waiter is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest any member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member that offers this can take part: with the others it has one protocol in common."""
        if not self.members:
            return bool(protocol_type and protocols)
        common = self._common_protocols()
        return protocol_type == self.protocol_type and any(name in common for name, _ in protocols)

    def _common_protocols(self) -> set[str]:
        return set.intersection(*({name for name, _ in member.protocols} for member in self.members.values()))

    def select_protocol(self) -> str:
        """The protocol that all members support and most of them like best."""
        common = self._common_protocols()
        votes = Counter(
            next(name for name, _ in member.protocols if name in common) for member in self.members.values()
        )
        return max(votes, key=votes.__getitem__)

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """The topics the members read, or None when that cannot be known."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not self.members:
            return frozenset()
        topics: set[str] = set()
        for member in self.members.values():
            of_member = subscribed_topics(member.metadata(self.protocol_name))
            if of_member is None:
                return None
            topics |= of_member
        return frozenset(topics)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read ``topic``; consumers whose subscription cannot be read are taken to read everything."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.subscribed_topics
