"""The consumer protocol inside JoinGroup and SyncGroup: subscriptions and assignments that the coordinator reads and writes.

Classic groups pass these bytes on unread. A coordinator that assigns partitions itself reads and writes them, as a leader does.
They are an int16 version and a message of that version. Newer versions add fields at the end, and are read as the newest known.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import TypeVar

from ..base.errors import ProtocolError
from ..wire.codec import decode, encode_bytes
from ..wire.messages.consumer_protocol import (
    AssignedTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ..wire.schema import Message
from .topics import TopicSizes

_VERSION = struct.Struct(">h")

_M = TypeVar("_M", bound=Message)


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """The subscription that a member offers for an assignor. Raises ProtocolError."""
    return _read(ConsumerProtocolSubscription, metadata)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """The assignment that a member has been given. Raises ProtocolError."""
    return _read(ConsumerProtocolAssignment, assignment)


def write_assignment(assigned: Mapping[bytes, Iterable[int]], topics: TopicSizes, metadata: bytes) -> bytes:
    """The assignment of these partitions (topic id -> partitions), at the version of the member's subscription ``metadata``.

    Topics that are gone are left out. Every consumer reads version 0, so that stands for a version that cannot be read.
    """
    try:
        version = min(_version(metadata), ConsumerProtocolAssignment.valid_versions.stop - 1)
    except ProtocolError:
        version = 0
    named = sorted(
        (found[0], sorted(partitions))
        for topic_id, partitions in assigned.items()
        if (found := topics.find_by_id(topic_id)) is not None
    )
    message = ConsumerProtocolAssignment(
        assigned_partitions=[AssignedTopicPartition(topic=topic, partitions=partitions) for topic, partitions in named]
    )
    return _VERSION.pack(version) + encode_bytes(message, version)


def partitions_by_id(
    listed: Iterable[TopicPartition | AssignedTopicPartition], topics: TopicSizes
) -> dict[bytes, frozenset[int]]:
    """Partitions by the ids of their topics. Topics that there are not are left out."""
    found: dict[bytes, frozenset[int]] = {}
    for part in listed:
        topic = topics.find(part.topic)
        if topic is not None and part.partitions:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | frozenset(part.partitions)
    return found


def _version(data: bytes) -> int:
    try:
        (version,) = _VERSION.unpack_from(data)
    except struct.error:
        raise ProtocolError("there is no version") from None
    if version < 0:
        raise ProtocolError(f"there is no version {version}")
    return int(version)


def _read(message_class: type[_M], data: bytes) -> _M:
    version = min(_version(data), message_class.valid_versions.stop - 1)
    return decode(message_class, version, data[_VERSION.size :], ignore_rest=True)
