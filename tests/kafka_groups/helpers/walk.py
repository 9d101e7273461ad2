"""A random walk of requests to consumer groups, which goes on from the responses it is given.

It is a function of its seed and of the responses: a generator of steps, which is sent the responses to each. So two brokers that
give the same responses are asked the same. No step depends on time. Each group lives for a while:

=========  ========================================================================================================
kind       members
=========  ========================================================================================================
``ranged`` of both protocols, dynamic and static, that change from one to the other; on topics that come and go
``mixed``  of both protocols, dynamic; with the assignors range and uniform. Their ids are in place (``hash_order``).
``regex``  of the consumer protocol, dynamic and static; in the end with a regular expression
=========  ========================================================================================================
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

from .steps import ADMIN, LATER, TOPICS, Ask, AwaitEpoch, HangUp, Responses, SetTopic, Step, topic_id
from .walkers import ClassicWalker, ConsumerWalker, Owned, Walker, World

Steps = Generator[Step, Responses, None]
MOST_PARTITIONS = 6
KINDS = ("ranged", "mixed", "regex")
LIFE = (60, 220)
"""Steps of a group, from and to."""
LEAVING: tuple[type[Walker] | tuple[()], ...] = ((), (), ConsumerWalker, ClassicWalker)
"""The kinds of clients that leave a group at times, so that it changes over."""
CALM = 30
REGEX_STEPS = 50
"""Those at the end, with a regular expression."""


class Walk:
    """The state of a walk: the groups as their members see them."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._numbers = itertools.count()
        self.world = World(dict(TOPICS))
        self.left_alone: set[str] = set()
        """Groups that are asked no more, because brokers differ in them. Another one takes the place of each."""
        self._groups = [_Group(kind, self._new_name(kind), self._chance, self.world) for kind in KINDS]

    def _new_name(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers)}"

    def steps(self) -> Steps:
        """Steps without end."""
        while True:
            if self._chance.random() < 0.01:
                yield from self._topics_change()
            place = self._chance.randrange(len(self._groups))
            group = self._groups[place]
            if group.is_over or group.name in self.left_alone:
                yield from self._replace(place)
                continue
            if group.may_take_regex:
                yield from self._take_regex(group)
            step = group.next_step(self._names())
            if step is not None:
                yield from self._ask(group, step)

    def _ask(self, group: _Group, step: Ask) -> Generator[Step, Responses, Responses]:
        responses = yield step
        group.learn(step, responses)
        for other in self._groups:
            if other is not group:
                other.learn(None, responses)
        return responses

    def _take_regex(self, group: _Group) -> Steps:
        """One member takes a regular expression, which the broker resolves in the background; then others may."""
        holder = next(each for each in group.walkers if isinstance(each, ConsumerWalker))
        for _ in range(3):  # there is nothing new to it afterwards
            if holder.is_member:
                yield from self._ask(group, holder.heartbeat())
        if not holder.is_member:
            return
        about = Ask(ADMIN, ConsumerGroupDescribeRequest(group_ids=[group.name]), 1)
        (described,) = (yield from self._ask(group, about))[ADMIN]["groups"]
        regex = self._chance.choice(["{t0}", "{t1}|{t3}", "({t0}|{t1}|{t2})"])
        responses = yield from self._ask(group, holder.heartbeat(subscribed_topic_regex=regex))
        if responses[holder.who]["error_code"] == ErrorCode.NONE:
            yield AwaitEpoch(group.name, described["group_epoch"])
            holder.holds_regex = group.has_regex = True
            for each in group.walkers:
                if isinstance(each, ConsumerWalker):
                    each.regex = regex

    def _replace(self, place: int) -> Steps:
        old = self._groups[place]
        yield HangUp(tuple(sorted({each.who for each in old.walkers})))
        self._groups[place] = _Group(old.kind, self._new_name(old.kind), self._chance, self.world)

    def _names(self) -> list[str]:
        return [group.name for group in self._groups]

    def _topics_change(self) -> Steps:
        counts, chance = self.world.counts, self._chance
        growing = [name for name in TOPICS if counts[name] < MOST_PARTITIONS]
        if chance.random() < 0.5 and growing:
            name = chance.choice(growing)
            counts[name] += 1
        else:
            if any(group.has_regex for group in self._groups):
                return  # a new topic has it looked up again, ten seconds after the last time
            name = chance.choice(sorted(LATER))
            counts[name] = 0 if counts.get(name) else chance.randrange(1, 4)
        yield SetTopic(name, counts[name])


class _Group:
    """One group, and the clients that are or may be its members."""

    def __init__(self, kind: str, name: str, chance: random.Random, world: World) -> None:
        self.kind = kind
        self.name = name
        self._chance = chance
        self._world = world
        self.has_regex = False
        self._leaving: type[Walker] | tuple[()] = ()
        """Those who leave at this time, and do not come back yet."""
        self._calm = 0
        """Steps of clients that do well in turn."""
        self._left = chance.randrange(*LIFE)
        topics = [*TOPICS, *sorted(LATER)] if kind == "ranged" else [*TOPICS]
        assignors = {"ranged": (None, "range"), "mixed": (None, "range", "uniform"), "regex": ("uniform", None)}[kind]
        common = (chance, name, topics, world)
        self.walkers: list[Walker] = []
        for letter in "BCD" if kind != "regex" else "BCDE":
            self.walkers.append(ConsumerWalker(letter, None, assignors, *common))
        if kind == "ranged":
            self.walkers += [ConsumerWalker(letter, f"i{letter}", assignors, *common) for letter in "EF"]
            self.walkers.append(ClassicWalker("G", None, *common))
            self.walkers.append(ClassicWalker("H", None, *common))
            self.walkers.append(ClassicWalker("I", "iF", *common))  # the instance changes its protocol
        elif kind == "mixed":
            self.walkers += [ClassicWalker(letter, None, *common, in_place=True) for letter in "GH"]
            self.walkers.append(ConsumerWalker("F", "iF", assignors, *common))
        else:
            self.walkers.append(ConsumerWalker("F", "iF", assignors, *common))

    @property
    def is_over(self) -> bool:
        return self._left <= 0

    @property
    def may_take_regex(self) -> bool:
        return self.kind == "regex" and not self.has_regex and self._left < REGEX_STEPS

    def next_step(self, names: Sequence[str]) -> Ask | None:
        self._left -= 1
        chance = self._chance
        if chance.random() < 0.12:
            return self._look(names)
        free = self._free()
        if not free:
            self._left = 0
            return None
        if self._calm and not self._leaving:
            self._calm -= 1
            return free[self._calm % len(free)].do_well()
        if chance.random() < 0.03:
            self._leaving, self._calm = chance.choice(LEAVING), CALM
        go = [walker for walker in free if isinstance(walker, self._leaving) and walker.is_member]
        if go and not self.has_regex and chance.random() < 0.7:
            return chance.choice(go).leave()
        stay = [walker for walker in free if not isinstance(walker, self._leaving)] or free
        hurried = [walker for walker in stay if walker.is_in_hurry]
        walker = chance.choice(hurried if hurried and chance.random() < 0.6 else stay)
        return self._offsets(walker) if chance.random() < 0.15 else walker.next_step()

    def _free(self) -> list[Walker]:
        """The clients that may ask for something now, of those who don't wait.

        Where a group changes over in the middle of a rebalance, Ottla keeps what its classic members may still read, and Kafka
        gives it to others. So a member of the consumer protocol does not join a classic group then, and no classic member takes
        the place of the last one of the consumer protocol.
        """
        consumers = [each for each in self.walkers if isinstance(each, ConsumerWalker) and each.is_member]
        classics = [each for each in self.walkers if isinstance(each, ClassicWalker)]
        for each in classics:
            each.notice(is_beside_consumers=bool(consumers))
        kept: list[Walker] = []
        if len(consumers) == 1:
            last = consumers[0].instance_id
            kept = [each for each in classics if last is not None and each.instance_id == last]
        elif not consumers and any(each.has_joined for each in classics):
            kept = [each for each in classics if each.lacks_id]  # an id that is given back makes a group rebalance
            static = [each for each in classics if each.instance_id is not None and each.has_joined]
            kept += [each for each in self.walkers if not all(map(each.may_follow, static)) and each not in classics]
        free = [each for each in self.walkers if not each.is_waiting and each not in kept]
        if not consumers and any(each.is_waiting or each.is_in_hurry for each in classics):
            return [each for each in free if isinstance(each, ClassicWalker)]
        return free

    def learn(self, step: Ask | None, responses: Responses) -> None:
        for walker in self.walkers:
            asked = step.request if step is not None and step.who == walker.who else None
            if asked is not None and step is not None and step.may_wait and walker.who not in responses:
                walker.is_waiting = True
            if walker.who in responses:
                walker.learn(asked, responses[walker.who])

    def _look(self, names: Sequence[str]) -> Ask:
        chance = self._chance
        kind = chance.choice(["describe"] * 5 + ["classic describe", "list", "list", "delete", "delete offsets"])
        if kind == "describe":
            wanted = [self.name] if chance.random() < 0.8 else [*names, "nobody's"]
            return Ask(ADMIN, ConsumerGroupDescribeRequest(group_ids=wanted), chance.randrange(2))
        if kind == "classic describe":
            return Ask(ADMIN, DescribeGroupsRequest(groups=[self.name]), chance.choice([5, 6]))
        if kind == "list":
            states = chance.choice(
                [[], [], ["stable"], ["Assigning", "Reconciling"], ["empty"], ["PreparingRebalance"]]
            )
            types = chance.choice([[], [], ["consumer"], ["Classic"], ["share"]])
            return Ask(ADMIN, ListGroupsRequest(states_filter=states, types_filter=types), 5)
        if kind == "delete":
            return Ask(ADMIN, DeleteGroupsRequest(groups_names=[self.name]), 2)
        topic = OffsetDeleteRequestTopic(
            name=chance.choice([*TOPICS]), partitions=[OffsetDeleteRequestPartition(partition_index=0)]
        )
        return Ask(ADMIN, OffsetDeleteRequest(group_id=self.name, topics=[topic]), 0)

    def _offsets(self, walker: Walker) -> Ask:
        chance = self._chance
        member_id, epoch = walker.commits_as()
        kind = chance.random()
        if kind < 0.15:
            member_id, epoch = "", -1
        elif kind < 0.25:
            epoch += chance.choice([-2, -1, 1])
        elif kind < 0.3:
            member_id = "nobody"
        names = chance.sample([*TOPICS], chance.randrange(1, 3))
        if chance.random() < 0.6:
            names = [name for name in walker.given if name in TOPICS] or names
        version = chance.choice([8, 9, 9, 10])
        if chance.random() < 0.6:
            topics = [self._commits(name, walker.given, version) for name in names]
            commit = OffsetCommitRequest(
                group_id=self.name,
                generation_id_or_member_epoch=epoch,
                member_id=member_id,
                group_instance_id=walker.instance_id if chance.random() < 0.5 else None,
                topics=topics,
            )
            return Ask(walker.who, commit, version)
        found = [OffsetFetchRequestTopics(partition_indexes=[*range(3)], **_named(name, version)) for name in names]
        fetched = OffsetFetchRequestGroup(
            group_id=self.name,
            # Kafka fails where the member is null and the epoch is not -1.
            member_id=None if epoch < 0 and chance.random() < 0.5 else member_id,
            member_epoch=epoch,
            topics=found,
        )
        return Ask(walker.who, OffsetFetchRequest(groups=[fetched]), version)

    def _commits(self, name: str, given: Owned, version: int) -> OffsetCommitRequestTopic:
        """Of the partitions it has, or of others."""
        some: Sequence[int] = given.get(name, []) if self._chance.random() < 0.8 else []
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=self._chance.randrange(100), committed_metadata=""
            )
            for partition in some or [self._chance.randrange(self._world.counts[name])]
        ]
        return OffsetCommitRequestTopic(partitions=partitions, **_named(name, version))


def _named(name: str, version: int) -> Mapping[str, Any]:
    return {"topic_id": topic_id(name)} if version >= 10 else {"name": name}
