"""Quota precedence: the most specific quota that applies to a client, and the clients that share it.

Quotas are set for a user, a client id, or a user with a client id, each either by name or as the default for all others. Of
those that match a client the most specific one applies, in this order (Kafka's ClientQuotaManager):

1. the user, by the client id                5. any user, by any client id
2. the user, by any client id                6. any user
3. the user                                  7. the client id
4. any user, by the client id                8. any client id

A client shares a quota with others that have the same user, client id, or both, whichever the line above names: a default for
users is not one quota for all of them together, but the same quota for each. A client without a client id is matched by lines 3
and 6 only.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .entities import DEFAULT, Name

ANY = ""
"""In place of a user or client id: the quota does not depend on it."""


class QuotaEntity(NamedTuple):
    """The user, client id or both that a quota is set for, or that share one."""

    user: Name = ANY
    client_id: Name = ANY


def matching(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, QuotaEntity]]:
    """The entities that may have a quota for a client, the most specific first, each with the entity that shares it."""
    whole_user = QuotaEntity(user)
    if not client_id:
        yield whole_user, whole_user
        yield QuotaEntity(DEFAULT), whole_user
        return
    both = QuotaEntity(user, client_id)
    yield both, both
    yield QuotaEntity(user, DEFAULT), both
    yield whole_user, whole_user
    yield QuotaEntity(DEFAULT, client_id), both
    yield QuotaEntity(DEFAULT, DEFAULT), both
    yield QuotaEntity(DEFAULT), whole_user
    of_client = QuotaEntity(ANY, client_id)
    yield of_client, of_client
    yield QuotaEntity(ANY, DEFAULT), of_client


def find(limits: Mapping[QuotaEntity, float], user: str, client_id: str) -> tuple[QuotaEntity, float] | None:
    """The entity that shares the quota that applies to a client, and its limit; None for a client without one."""
    for entity, sharing in matching(user, client_id):
        limit = limits.get(entity)
        if limit is not None:
            return sharing, limit
    return None


def limit_of(limits: Mapping[QuotaEntity, float], sharing: QuotaEntity) -> float | None:
    """The present limit of an entity that shares a quota; None where there is no such quota any more."""
    names = [(name, DEFAULT) if name else (ANY,) for name in sharing]
    for user in names[0]:
        for client_id in names[1]:
            if (limit := limits.get(QuotaEntity(user, client_id))) is not None:
                return limit
    return None
