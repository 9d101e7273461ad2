"""The quota names for each kind of entity, and the parsing and formatting of their values."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

from .client_quotas import CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from .connection_rates import CONNECTION_CREATION_RATE
from .entities import CLIENTS, IPS, USERS, Entity, EntityKind

logger = logging.getLogger(__name__)

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
_OF_CLIENTS: Mapping[str, int | None] = {
    PRODUCER_BYTE_RATE: LONG_MAX,
    CONSUMER_BYTE_RATE: LONG_MAX,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
QUOTA_KEYS: Mapping[EntityKind, Mapping[str, int | None]] = {
    USERS: _OF_CLIENTS,
    CLIENTS: _OF_CLIENTS,
    IPS: {CONNECTION_CREATION_RATE: INT_MAX},
}
"""What can be set, with the largest value of what is a whole number, None for what is not."""


def read_limits(entity: Entity, stored: Mapping[str, str]) -> dict[str, float]:
    """The quotas among what is stored of an entity. A value that is no finite number is left out, with a line in the log."""
    limits = {}
    for key in QUOTA_KEYS[entity.kind]:
        if (text := stored.get(key)) is not None:
            if (limit := _finite(text)) is None:
                logger.warning("%s=%r of %s %s is ignored: it is no number", key, text, *entity)
            else:
                limits[key] = limit
    return limits


def render_limit(key: str, limit: float) -> str:
    """A quota's value as Kafka stores it."""
    is_whole = any(keys.get(key) is not None for keys in QUOTA_KEYS.values())
    return str(int(limit) if is_whole else float(limit))


def _finite(text: str) -> float | None:
    """The number; None where it is none, or infinite, or what Java calls NaN."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
