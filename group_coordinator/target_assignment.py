"""The next target assignment of a consumer group: what an assignor is given, and the parts that are new in its result.

Both parts work in steps, as the assignors do, because a group may have thousands of members. What they need of the group is taken
at once at the beginning; whoever lets others run between two steps has to look whether the group is at the same epoch afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .assignors.assignor import Assignor, MemberPartitions, MemberSubscription, Steps, Target
from .assignors.registry import assignor_of_group
from .consumer_group import ConsumerGroup, most_voted
from .consumer_group_member import ConsumerGroupMember
from .topics import TopicSizes

_MEMBERS_OF_A_STEP = 200
_WORK_OF_A_STEP = 2000
"""In topics that are looked up."""
_WORK_OF_A_MEMBER = _WORK_OF_A_STEP // _MEMBERS_OF_A_STEP


class TargetInput:
    """The input of an assignor at one moment. ``updated`` is a member as its heartbeat makes it, ``replaced`` an id that goes.

    A static member that takes over gets the part of the one that it replaces.
    """

    def __init__(
        self,
        group: ConsumerGroup,
        topics: TopicSizes,
        configured: Sequence[str],
        updated: ConsumerGroupMember | None = None,
        replaced: str | None = None,
    ) -> None:
        members = dict(group.members.newest())
        self.before: dict[str, MemberPartitions] = dict(group.target.members.newest())
        """The target of before, by member id."""
        if replaced is not None:
            del members[replaced]
            part = self.before.pop(replaced, None)
            if part is not None and updated is not None:
                self.before[updated.member_id] = part
        preferred = group.preferred_assignor
        if updated is not None:
            preferred = _preferred(group, members.get(updated.member_id), updated, replaced)
            members[updated.member_id] = updated
        self._members = members
        self._topics = topics
        self._expressions = dict(group.expressions.newest())
        self._assignor: Assignor = assignor_of_group(preferred, configured)

    @property
    def assignor_name(self) -> str:
        """The assignor that makes the target."""
        return self._assignor.name

    def target(self) -> Steps[Target]:
        """The new target, by member id."""
        ids: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}
        all_ids: set[bytes] = set()
        done = 0
        subscriptions: dict[str, MemberSubscription] = {}
        for member in self._members.values():
            read = member.topic_names, member.expression
            topic_ids = ids.get(read)
            if topic_ids is None:
                resolved = self._expressions.get(member.expression)
                names = member.topic_names if resolved is None else member.topic_names | resolved.topics
                topic_ids = ids[read] = self._topics.ids_of(names)
                all_ids |= topic_ids
                done += len(names)
            subscriptions[member.member_id] = MemberSubscription(
                topic_ids, self.before.get(member.member_id, {}), member.instance_id, member.rack_id
            )
            done += _WORK_OF_A_MEMBER
            if done >= _WORK_OF_A_STEP:
                done = 0
                yield
        counts = {topic_id: self._partition_count(topic_id) for topic_id in all_ids}
        alike = len(ids) == 1 and not any(names and expression for names, expression in ids)
        target = yield from self._assignor.steps(subscriptions, counts, subscribed_alike=alike)
        ids.clear()
        yield
        while subscriptions:
            # In steps, because a thousand large sets of ids take long to be forgotten.
            done += len(subscriptions.popitem()[1].topic_ids) + _WORK_OF_A_MEMBER
            if done >= _WORK_OF_A_STEP:
                done = 0
                yield
        return target

    def _partition_count(self, topic_id: bytes) -> int:
        found = self._topics.find_by_id(topic_id)
        return 0 if found is None else found[1]


def changed_parts(before: Mapping[str, MemberPartitions], target: Target) -> Steps[dict[str, MemberPartitions]]:
    """The members whose part is another one than before, or that had none."""
    changed: dict[str, MemberPartitions] = {}
    for count, (member_id, part) in enumerate(target.items(), 1):
        if before.get(member_id) != part:
            changed[member_id] = part
        if count % _MEMBERS_OF_A_STEP == 0:
            yield
    return changed


def _preferred(
    group: ConsumerGroup, before: ConsumerGroupMember | None, updated: ConsumerGroupMember, replaced: str | None
) -> str | None:
    """The assignor that most members ask for once this member is as it is now.

    Among equals, the one whose only vote is this member's comes first (Kafka ``computePreferredServerAssignor``).
    """
    votes = group.votes_in_order()
    old = group.members.newest()[replaced] if replaced is not None else before
    if old is not None and old.server_assignor is not None:
        votes[old.server_assignor] -= 1
        if not votes[old.server_assignor]:
            del votes[old.server_assignor]
    own = updated.server_assignor
    if own in votes:
        votes[own] += 1
    elif own is not None:
        votes = {own: 1, **votes}
    return most_voted(votes)
