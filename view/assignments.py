"""Assignments of consumers in the classic protocol, as topics and partition numbers."""

from __future__ import annotations

import struct

from ..base.errors import ProtocolError
from ..wire.codec import decode
from ..wire.messages.consumer_protocol import ConsumerProtocolAssignment
from .rows import AssignedTopics

_VERSION = struct.Struct(">h")
_HIGHEST_VERSION = 3


def assigned(assignment: bytes) -> AssignedTopics | None:
    """The partitions that a consumer was given, by topic; None where its assignment is of another kind."""
    if not assignment:
        return ()
    try:
        (version,) = _VERSION.unpack_from(assignment)
        if version < 0:
            return None
        body = memoryview(assignment)[_VERSION.size :]
        read = decode(ConsumerProtocolAssignment, min(version, _HIGHEST_VERSION), body, ignore_rest=True)
    except (ProtocolError, struct.error):
        return None
    return tuple(sorted((topic.topic, tuple(sorted(topic.partitions))) for topic in read.assigned_partitions))
