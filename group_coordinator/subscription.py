"""The topics that a consumer subscribes to, read from its JoinGroup metadata.

The metadata of protocol type ``consumer`` is an int16 version and a ConsumerProtocolSubscription. Every version of that
begins with the fields of version 0, so the topics are read without knowing the version.
"""

from __future__ import annotations

import struct

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics, or None when ``metadata`` cannot be read as a subscription."""
    try:
        (version,) = _INT16.unpack_from(metadata, 0)
        (count,) = _INT32.unpack_from(metadata, 2)
        if version < 0 or count < 0:
            return None
        position = 6
        topics = []
        for _ in range(count):
            (length,) = _INT16.unpack_from(metadata, position)
            name = metadata[position + 2 : position + 2 + length]
            if length < 0 or len(name) < length:
                return None
            topics.append(name.decode())
            position += 2 + length
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)
