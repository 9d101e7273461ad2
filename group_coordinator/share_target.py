"""The next target assignment of a share group: what its assignor is given. It works in steps."""

from __future__ import annotations

from .assignors.assignor import MemberPartitions, MemberSubscription, Steps, Target
from .assignors.simple import SimpleAssignor
from .share_group import ShareGroup
from .share_group_member import ShareGroupMember
from .topics import TopicSizes

_ASSIGNOR = SimpleAssignor()
_MEMBERS_OF_A_STEP = 200


class ShareTargetInput:
    """The input of the assignor at one moment. ``updated`` is a member as its heartbeat makes it."""

    def __init__(self, group: ShareGroup, topics: TopicSizes, updated: ShareGroupMember | None = None) -> None:
        self.before: dict[str, MemberPartitions] = dict(group.target.members.newest())
        """The target of before, by member id."""
        self._members = dict(group.members.newest())
        if updated is not None:
            self._members[updated.member_id] = updated
        self._states = group.states
        self._topics = topics

    def target(self) -> Steps[Target]:
        """The new target, by member id."""
        ids: dict[frozenset[str], frozenset[bytes]] = {}
        subscriptions: dict[str, MemberSubscription] = {}
        for count, member in enumerate(self._members.values(), 1):
            topic_ids = ids.get(member.topic_names)
            if topic_ids is None:
                topic_ids = ids[member.topic_names] = self._topics.ids_of(member.topic_names)
            before = self.before.get(member.member_id, {})
            subscriptions[member.member_id] = MemberSubscription(topic_ids, before, rack_id=member.rack_id)
            if count % _MEMBERS_OF_A_STEP == 0:
                yield
        assignable = {topic_id: self._assignable(topic_id) for topic_id in frozenset().union(*ids.values())}
        yield
        return (yield from _ASSIGNOR.steps(subscriptions, assignable, subscribed_alike=len(ids) == 1))

    def _assignable(self, topic_id: bytes) -> frozenset[int]:
        found = self._topics.find_by_id(topic_id)
        return self._states.of(topic_id).intersection(range(0 if found is None else found[1]))
