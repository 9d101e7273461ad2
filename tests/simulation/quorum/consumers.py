"""A consumer group of KIP-848 in a KRaft cluster: its clients, and whether it is where it is to be when faults have ended."""

from __future__ import annotations

import importlib.util

import trio

from ottla.base.errors import ErrorCode
from ottla.group_coordinator.topics import TopicSize
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest

from ..clients import Actor
from ..consumer_group.consumer import GroupConsumer, GroupKnowledge
from ..consumer_group.convergence import GroupView, MemberView, unconverged
from ..consumer_group.membership import Subscription
from ..history import History
from .world import QuorumClusterWorld

CONSUMER_GROUP = "readers"
_SETTLED_SECONDS = 60.0
_DESCRIBE_VERSION = 1


def subscriptions() -> list[Subscription]:
    """Those of the clients; by expressions only where these can be read."""
    named = [Subscription(("plain",)), Subscription(("plain", "compact")), Subscription(("aged",))]
    if importlib.util.find_spec("re2") is None:
        return named
    return [*named, Subscription((), "p.*"), Subscription(("aged",), "comp.*")]


class ConsumerGroupActors(Actor):
    """The clients, and one that has the group described. The topics that an expression has come and go in some seeds."""

    world: QuorumClusterWorld

    def __init__(self, world: QuorumClusterWorld, history: History) -> None:
        super().__init__(world, history, CONSUMER_GROUP)  # type: ignore[arg-type]
        knowledge = GroupKnowledge(CONSUMER_GROUP, world.violate)
        knowledge.has_overlaps = not world.mode.may_lose
        statics = self.rng.choice((0, 1, 2))
        self.consumers = [
            GroupConsumer(
                world,
                history,
                f"c{number}",
                knowledge,
                subscriptions(),
                self._topic_name,
                self._topics,
                instance_id=f"i{number}" if number < statics else None,
            )
            for number in range(self.rng.randint(1, 4))
        ]

    def _topics(self) -> dict[str, TopicSize]:
        return {
            name: TopicSize(topic.topic_id, len(topic.partitions)) for name, topic in self.world.image.topics.items()
        }

    def _topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, size in self._topics().items() if size.topic_id == topic_id), None)

    async def run(self, until: trio.Event) -> None:
        async with trio.open_nursery() as nursery:
            for consumer in self.consumers:
                nursery.start_soon(consumer.run, until)

    async def settle(self) -> None:
        """Wait until the group is stable. Faults have ended."""
        for consumer in self.consumers:
            consumer.calm = True
        deadline = trio.current_time() + _SETTLED_SECONDS
        while (why := unconverged(await self._described(), self.consumers, self._topics())) is not None:
            if trio.current_time() > deadline:
                self.world.violate(f"the group {CONSUMER_GROUP}, {_SETTLED_SECONDS} s after the last fault: {why}")
                return
            await trio.sleep(0.5)
        self.log("is stable")

    async def _described(self) -> GroupView | None:
        request = ConsumerGroupDescribeRequest(group_ids=[CONSUMER_GROUP])
        response = await self.insist(request, _DESCRIBE_VERSION, lambda answer: [answer.groups[0].error_code])
        [group] = response.groups
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        members = {
            member.member_id: MemberView(
                member.member_epoch,
                frozenset(
                    (topic.topic_id, number)
                    for topic in member.assignment.topic_partitions
                    for number in topic.partitions
                ),
            )
            for member in group.members
        }
        return GroupView("consumer", group.group_state, group.group_epoch, members)


__all__ = ["ConsumerGroupActors"]
