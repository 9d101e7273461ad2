"""Translation of quota entities between the form that clients send and that of the metadata.

Clients name a user, a client id, a user and a client id, or an IP address, each by its type with a name, or without one for
the default. The metadata has them as entities of the kinds ``users``, ``clients`` and ``ips``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.errors import ErrorCode, KafkaError
from .entities import CLIENTS, DEFAULT, IPS, USERS, Entity, Name, UserClient

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)

NamedEntity = Mapping[str, str | None]
"""The name by type, None for the default."""


def stored_entity(named: NamedEntity) -> Entity:
    """What clients name, as the cluster's metadata has it. Raises KafkaError INVALID_REQUEST."""
    for entity_type, name in named.items():
        if entity_type not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise _invalid(f"Empty {entity_type} not supported")
    names: dict[str, Name] = {entity_type: DEFAULT if name is None else name for entity_type, name in named.items()}
    if not names:
        raise _invalid("Invalid empty client quota entity")
    if IP in names:
        if len(names) > 1:
            raise _invalid("Invalid quota entity combination, IP entity should not be used with user/client ID entity.")
        return Entity(IPS, names[IP])
    if USER not in names:
        return Entity(CLIENTS, names[CLIENT_ID])
    if CLIENT_ID not in names:
        return Entity(USERS, names[USER])
    return Entity(USERS, UserClient(names[USER], names[CLIENT_ID]))


def named_entity(entity: Entity) -> dict[str, str | None]:
    """An entity of the metadata as clients name it."""
    kind, name = entity
    if isinstance(name, UserClient):
        return {USER: _text(name.user), CLIENT_ID: _text(name.client_id)}
    return {{CLIENTS: CLIENT_ID, IPS: IP, USERS: USER}[kind]: _text(name)}


def _text(name: Name) -> str | None:
    return name if isinstance(name, str) else None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
