"""The entities that configs, quotas and SCRAM credentials are set on, each with a kind and a name.

A name is text, or ``DEFAULT`` for all of its kind that have nothing of their own; what is set on a client of a user is of the
kind users and has both names (``UserClient``).
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class EntityKind(enum.StrEnum):
    """The value is Kafka's word (``ConfigType``). Only a cluster of KRaft has configs of groups and of clients' metrics."""

    TOPICS = "topics"
    BROKERS = "brokers"
    USERS = "users"
    CLIENTS = "clients"
    IPS = "ips"
    GROUPS = "groups"
    CLIENT_METRICS = "client-metrics"


TOPICS, BROKERS, USERS, CLIENTS, IPS, GROUPS, CLIENT_METRICS = EntityKind


class Default(enum.Enum):
    """Has one member, which is equal to no text, whatever users and clients call themselves."""

    DEFAULT = "<default>"


DEFAULT = Default.DEFAULT

Name = str | Default


class UserClient(NamedTuple):
    """A client id of a user."""

    user: Name
    client_id: Name


EntityName = Name | UserClient


class Entity(NamedTuple):
    """What something is set on."""

    kind: EntityKind
    name: EntityName


def order_of(name: EntityName) -> tuple[str, ...]:
    """The key by which names are listed in order."""
    if isinstance(name, UserClient):
        return order_of(name.user) + order_of(name.client_id)
    return (name if isinstance(name, str) else name.value,)
