"""Kafka requests of the console's actions: the changes, and the requests that prepare them.

What an action does is a request of Kafka's protocol, and the response is that of the handler. ``KafkaRequests`` is either this
broker (``own_broker``) or a client of any cluster; the version is the highest that both sides know, and never above the one
that an action was written for (``HIGHEST``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..wire.api_keys import ApiKey
from ..wire.schema import Message

HIGHEST: Mapping[ApiKey, int] = {
    ApiKey.OFFSET_COMMIT: 9,  # below the versions that have ids in place of names
    ApiKey.OFFSET_FETCH: 7,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.DESCRIBE_GROUPS: 5,  # the answer for a group that is not there is one that is dead
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.PRODUCE: 12,
}


@dataclasses.dataclass(frozen=True, slots=True)
class AnyBrokerTarget:
    """Every broker knows the answer."""


@dataclasses.dataclass(frozen=True, slots=True)
class ControllerTarget:
    """Only the controller does this."""


@dataclasses.dataclass(frozen=True, slots=True)
class LeaderTarget:
    """The leader of a partition."""

    topic: str
    partition: int


@dataclasses.dataclass(frozen=True, slots=True)
class GroupCoordinatorTarget:
    """The coordinator of a group."""

    group: str


To = AnyBrokerTarget | ControllerTarget | LeaderTarget | GroupCoordinatorTarget


class KafkaRequests(Protocol):
    """Where requests go."""

    async def ask(self, request: Message, to: To) -> Any:
        """The response. Error codes in it are the caller's to read (``check``).

        Raises KafkaError where no answer is to be had: no such partition, no leader or coordinator, a broker that cannot be
        reached, or a visitor without the right.
        """
        ...

    async def by_leader(self, partitions: Iterable[TopicPartition]) -> Sequence[Sequence[TopicPartition]]:
        """Those that have the same leader together; what is asked about them goes to ``LeaderTarget`` of any of them.

        Raises KafkaError where one is not there, or has no leader.
        """
        ...


def check(code: int, message: str | None = None) -> None:
    """Raises KafkaError for an error code in a response."""
    if code:
        raise KafkaError(ErrorCode(code), message or "")


def in_words(error: KafkaError) -> str:
    """What a page says of it: Kafka's name for it, and the reason where one was given."""
    return f"{error.message} ({error.code.name})" if error.message else error.code.name
