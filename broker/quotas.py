"""Applies the quotas of the cluster's metadata to a broker's ``ClientQuotas``."""

from __future__ import annotations

from collections.abc import Mapping

from ..metadata.published import PublishedMetadata
from ..security.client_quotas import ClientQuotas
from ..security.entities import IPS, USERS, Entity, UserClient
from ..security.quota_precedence import QuotaEntity


def follow_quotas(metadata: PublishedMetadata, quotas: ClientQuotas) -> None:
    """Have ``quotas`` follow what is set on users and client ids."""

    def apply(changes: Mapping[Entity, Mapping[str, float]]) -> None:
        for entity, limits in changes.items():
            if entity.kind is not IPS:
                quotas.update(_limited(entity), limits)

    apply(metadata.image.quotas)
    metadata.publishers.append(lambda delta, image: apply(delta.quotas))


def _limited(entity: Entity) -> QuotaEntity:
    kind, name = entity
    if isinstance(name, UserClient):
        return QuotaEntity(*name)
    return QuotaEntity(name) if kind is USERS else QuotaEntity(client_id=name)
