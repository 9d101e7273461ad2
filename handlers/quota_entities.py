"""The entities that a quota can be set on, as clients name them and as they are stored.

Clients name a user, a client id, a user and a client id, or an IP address, each by its type with a name, or without one for
the default. The store has them as entities of the kinds ``users``, ``clients`` and ``ips``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.errors import ErrorCode, KafkaError
from ..controller.zookeeper.config_store import CLIENTS, IPS, USERS
from ..security.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from ..security.connection_rates import CONNECTION_CREATION_RATE
from ..security.entities import DEFAULT, EntityName, Name, UserClient

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
_OF_CLIENTS: Mapping[str, int | None] = {
    PRODUCER_BYTE_RATE: LONG_MAX,
    CONSUMER_BYTE_RATE: LONG_MAX,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
QUOTA_KEYS: Mapping[str, Mapping[str, int | None]] = {
    USERS: _OF_CLIENTS,
    CLIENTS: _OF_CLIENTS,
    IPS: {CONNECTION_CREATION_RATE: INT_MAX},
}
"""By the store's kind: what can be set, with the largest value of what is a whole number, None for what is not."""

Entity = Mapping[str, str | None]
"""The name by type, None for the default."""


def stored_entity(entity: Entity) -> tuple[str, EntityName]:
    """Kind and name in the store. Raises KafkaError INVALID_REQUEST."""
    for entity_type, name in entity.items():
        if entity_type not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise _invalid(f"Empty {entity_type} not supported")
    names: dict[str, Name] = {entity_type: DEFAULT if name is None else name for entity_type, name in entity.items()}
    if not names:
        raise _invalid("Invalid empty client quota entity")
    if IP in names:
        if len(names) > 1:
            raise _invalid("Invalid quota entity combination, IP entity should not be used with user/client ID entity.")
        return IPS, names[IP]
    if USER not in names:
        return CLIENTS, names[CLIENT_ID]
    if CLIENT_ID not in names:
        return USERS, names[USER]
    return USERS, UserClient(names[USER], names[CLIENT_ID])


def named_entity(kind: str, name: EntityName) -> dict[str, str | None]:
    """An entity of the store as clients name it."""
    if isinstance(name, UserClient):
        return {USER: _text(name.user), CLIENT_ID: _text(name.client_id)}
    return {{CLIENTS: CLIENT_ID, IPS: IP, USERS: USER}[kind]: _text(name)}


def _text(name: Name) -> str | None:
    return name if isinstance(name, str) else None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
