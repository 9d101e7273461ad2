"""Random groups for the assignors, and what holds of every assignment."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.group_coordinator.assignors.assignor import Assignor, MemberSubscription, Target, finished


def topic_id(number: int) -> bytes:
    """Kafka's hash of this id is the number."""
    return number.to_bytes(16)


@dataclass
class Group:
    """A group that changes, with a target that follows."""

    chance: random.Random
    is_homogeneous: bool
    counts: dict[bytes, int] = field(default_factory=dict)
    members: dict[str, MemberSubscription] = field(default_factory=dict)
    joined: int = 0

    def change(self) -> None:
        """Topics, their partitions, members and their subscriptions: some of these."""
        chance = self.chance
        for _ in range(chance.choice([0, 0, 1, 4])):
            self.counts.setdefault(topic_id(chance.randrange(1, 12)), 0)
        for topic in self.counts:
            if chance.random() < 0.3 or not self.counts[topic]:
                self.counts[topic] += chance.choice([1, 1, 2, 5, 20])
        for member_id in list(self.members):
            if chance.random() < 0.2:
                del self.members[member_id]
        for _ in range(chance.choice([0, 1, 1, 3, 8])):
            self.joined += 1
            instance_id = f"s-{chance.randrange(1000)}-{self.joined}" if chance.random() < 0.3 else None
            name = f"m-{chance.randrange(1000)}-{self.joined}"
            self.members[name] = MemberSubscription(self._some_topics(), {}, instance_id)
        common = self._some_topics()
        for member_id, member in self.members.items():
            if self.is_homogeneous or chance.random() < 0.15:
                topics = common if self.is_homogeneous else self._some_topics()
                self.members[member_id] = dataclasses.replace(member, topic_ids=topics)

    def _some_topics(self) -> frozenset[bytes]:
        return frozenset(self.chance.sample(list(self.counts), self.chance.randrange(len(self.counts) + 1)))

    def follow(self, target: Target) -> None:
        for member_id, partitions in target.items():
            self.members[member_id] = dataclasses.replace(self.members[member_id], target=partitions)


def every_partition_once(
    members: Mapping[str, MemberSubscription], counts: Mapping[bytes, int], target: Target
) -> None:
    assert set(target) == set(members)
    owners: dict[tuple[bytes, int], str] = {}
    for member_id, topics in target.items():
        for topic, partitions in topics.items():
            assert partitions and topic in members[member_id].topic_ids
            for partition in partitions:
                assert (topic, partition) not in owners
                owners[topic, partition] = member_id
    read = {topic for member in members.values() for topic in member.topic_ids}
    assert set(owners) == {(topic, partition) for topic in read for partition in range(counts[topic])}


def sizes(target: Target) -> list[int]:
    return [sum(map(len, topics.values())) for topics in target.values()]


def pairs(topics: Mapping[bytes, frozenset[int]]) -> set[tuple[bytes, int]]:
    return {(topic, partition) for topic, partitions in topics.items() for partition in partitions}


def assigned(assignor: Assignor, group: Group) -> Target:
    """A new target, which holds what all do, in whatever order the members come."""
    target = finished(assignor.steps(group.members, group.counts))
    every_partition_once(group.members, group.counts, target)
    names = list(group.members)
    group.chance.shuffle(names)
    assert finished(assignor.steps({name: group.members[name] for name in names}, group.counts)) == target
    return target
