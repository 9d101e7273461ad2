"""The order in which Java goes through small hash maps of strings and of Kafka's topic ids.

Apache Kafka's assignor ``uniform`` goes through members and topics in this order, Ottla's in the order of their ids. A comparison
uses ids for which both are the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

SLOTS = 16
"""Of a map with at most 12 entries."""


def _slot(hash_code: int) -> int:
    hash_code &= 0xFFFFFFFF
    return (hash_code ^ hash_code >> 16) % SLOTS


def slot_of_text(text: str) -> int:
    """Of a string."""
    hash_code = 0
    for character in text:
        hash_code = (31 * hash_code + ord(character)) & 0xFFFFFFFF
    return _slot(hash_code)


def slot_of_topic(topic_id: bytes) -> int:
    """Of a topic id."""
    halves = int.from_bytes(topic_id[:8]) ^ int.from_bytes(topic_id[8:])
    return _slot(halves >> 32 ^ halves)


def is_in_place(member_id: str, letter: str) -> bool:
    """Whether a member id that begins with this capital letter comes where it comes among other letters, in either order."""
    return member_id.startswith(letter) and slot_of_text(member_id) == ord(letter) % SLOTS


def member_ids(letter: str) -> Sequence[str]:
    """Some ids for a member, all of them in place."""
    made = (f"{letter}{number}" for number in itertools.count())
    return list(itertools.islice((each for each in made if is_in_place(each, letter)), 8))


def in_both_orders(topic_ids: Sequence[bytes], count: int) -> list[bytes] | None:
    """So many of these topic ids that come one after the other in both orders; None if there are not so many.

    Kafka compares ids as signed numbers in some places, so all are positive.
    """
    chains: list[list[bytes]] = []
    for topic_id in sorted(each for each in topic_ids if each[0] < 0x80):
        slot = slot_of_topic(topic_id)
        before = [chain for chain in chains if slot_of_topic(chain[-1]) < slot]
        chain = [*max(before, key=len, default=[]), topic_id]
        if len(chain) == count:
            return chain
        chains.append(chain)
    return None
