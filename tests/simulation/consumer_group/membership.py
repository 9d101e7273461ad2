"""A client's side of KIP-848: the requests of one member, and what it makes of the responses (Kafka's ConsumerMembershipManager).

A client owns the partitions that it was given, until it has given them up: only then does it say so. It gives all up when it is
fenced. Fields that have not changed are left out of a request, except when it joins and after a request without a response.
It takes no new partitions while a request of its own is under way.

A request with all fields says as well that there is no regular expression. Kafka's client does not: where it has been fenced, or
is the next process of a static member, the group keeps an expression that the client does not have any more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

TopicIdPartition = tuple[bytes, int]

JOINS, LEAVES, LEAVES_STATIC = 0, -1, -2


@dataclasses.dataclass(frozen=True)
class Subscription:
    """Topics by name, and by a regular expression or ""."""

    names: tuple[str, ...] = ()
    expression: str = ""


class ClientMembership:
    """One process of a consumer."""

    is_classic = False

    def __init__(
        self,
        group_id: str,
        member_id: str,
        subscription: Subscription,
        *,
        instance_id: str | None = None,
        server_assignor: str | None = None,
        rebalance_timeout_ms: int = 5000,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id
        self.subscription = subscription
        self.server_assignor = server_assignor
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.epoch = JOINS
        self.owned: frozenset[TopicIdPartition] = frozenset()
        """The partitions that it reads."""
        self.target: frozenset[TopicIdPartition] | None = None
        """The partitions that it was told to have; None before it was told."""
        self.has_news = False
        """Whether it has come to an assignment that it has not told yet."""
        self._sent: Subscription | None = None
        """As of the last request, if that has had a response."""

    @property
    def to_give_up(self) -> frozenset[TopicIdPartition]:
        """The partitions that it owns and was told to give up."""
        return frozenset() if self.target is None else self.owned - self.target

    @property
    def owner(self) -> str:
        """Its name among the clients of the group."""
        return self.instance_id or self.member_id

    @property
    def is_member(self) -> bool:
        """Whether it has joined, as far as it knows."""
        return self.epoch > 0

    def reconcile(self) -> None:
        """Stop reading what it has to give up, and then begin to read what it was given."""
        if self.target is not None and self.owned != self.target:
            self.owned = self.target
            self.has_news = True

    def lose_all(self) -> None:
        """It was fenced: it reads nothing any more, and is about to join again."""
        self.epoch, self.owned, self.target, self.has_news, self._sent = JOINS, frozenset(), None, False, None

    # --- requests and responses ---------------------------------------------------------------------------------------

    def request(self) -> ConsumerGroupHeartbeatRequest:
        """The next heartbeat."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance_id
        )
        sent, wanted = self._sent, self.subscription
        if sent is None:
            request.rebalance_timeout_ms = self.rebalance_timeout_ms
            request.server_assignor = self.server_assignor
        if sent is None or sent.names != wanted.names:
            request.subscribed_topic_names = list(wanted.names)
        if sent is None or sent.expression != wanted.expression:
            request.subscribed_topic_regex = wanted.expression
        if sent is None or self.has_news:
            request.topic_partitions = by_topic(self.owned)
        self._sent, self.has_news = wanted, False
        return request

    def leaving(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        """The last request: ``LEAVES`` or ``LEAVES_STATIC``. It reads nothing any more."""
        self.lose_all()
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )

    def failed(self) -> None:
        """There was no response, or an error that says nothing of the member: the next request has all fields."""
        self._sent = None

    def told(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Take over a response without an error."""
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.target = frozenset(
                (topic.topic_id, partition)
                for topic in response.assignment.topic_partitions
                for partition in topic.partitions
            )


def by_topic(partitions: Iterable[TopicIdPartition]) -> list[TopicPartitions]:
    """As requests have them."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        topics.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in topics.items()]
