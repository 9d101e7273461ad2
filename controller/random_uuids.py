"""Random UUIDs for topics and ACLs, as Kafka generates them."""

from __future__ import annotations

import random

from ..wire.schema import ZERO_UUID, uuid_to_text

_METADATA_TOPIC_ID = bytes(15) + b"\x01"


def random_uuid(randomness: random.Random) -> bytes:
    """A version 4 UUID that Kafka would hand out: not a reserved one, and its text does not begin with a dash."""
    while True:
        value = bytearray(randomness.randbytes(16))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        uuid = bytes(value)
        if uuid not in (ZERO_UUID, _METADATA_TOPIC_ID) and not uuid_to_text(uuid).startswith("-"):
            return uuid
