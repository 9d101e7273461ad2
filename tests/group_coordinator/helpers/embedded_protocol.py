"""Subscriptions and assignments as classic members of protocol type "consumer" send and get them; partitions by topic name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.wire.codec import decode, encode_bytes
from ottla.wire.messages.consumer_protocol import (
    AssignedTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

Partitions = Mapping[str, Iterable[int]]
NO_BYTES = b""


def subscribed(
    *topics: str,
    owned: Partitions | None = None,
    rack: str | None = None,
    user_data: bytes | None = None,
    version: int = 3,
) -> bytes:
    """A subscription. Version 0 names no partitions."""
    parts = [TopicPartition(topic=topic, partitions=list(some)) for topic, some in (owned or {}).items()]
    message = ConsumerProtocolSubscription(
        topics=list(topics), owned_partitions=parts, rack_id=rack, user_data=user_data
    )
    return version.to_bytes(2) + encode_bytes(message, version)


def assigned(user_data: bytes | None = None, /, **partitions: Iterable[int]) -> bytes:
    """An assignment."""
    parts = [AssignedTopicPartition(topic=topic, partitions=list(some)) for topic, some in partitions.items()]
    return b"\0\1" + encode_bytes(ConsumerProtocolAssignment(assigned_partitions=parts, user_data=user_data), 1)


def read_assigned(assignment: bytes) -> tuple[int, dict[str, list[int]]]:
    """The version of an assignment, and its partitions."""
    version = int.from_bytes(assignment[:2])
    message = decode(ConsumerProtocolAssignment, version, assignment[2:])
    return version, {part.topic: list(part.partitions) for part in message.assigned_partitions}
