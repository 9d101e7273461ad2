"""Kafka's rules for topic names: legal names, collisions and internal topics (pure functions)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...base.errors import ErrorCode, KafkaError

MAX_LENGTH = 249
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def why_invalid(name: str) -> str | None:
    """What is wrong with a topic name; None for a legal one."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def check_name(name: str) -> None:
    """Raises KafkaError INVALID_TOPIC_EXCEPTION."""
    why = why_invalid(name)
    if why is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Refuse a name that differs from another one only in '.' and '_', since names of metrics can't tell them apart.

    Raises KafkaError INVALID_TOPIC_EXCEPTION.
    """
    if "." not in name and "_" not in name:
        return
    unified = name.replace(".", "_")
    colliding = sorted(other for other in existing if other != name and other.replace(".", "_") == unified)
    if colliding:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topics: {', '.join(colliding)}"
        )
