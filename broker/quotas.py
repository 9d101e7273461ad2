"""Applies the quotas that are set in the cluster's store to a broker's ``ClientQuotas``."""

from __future__ import annotations

from collections.abc import Mapping

from ..controller.zookeeper.config_store import CLIENTS, USERS, ConfigStore
from ..security.client_quotas import ClientQuotas
from ..security.entities import EntityName, UserClient
from ..security.quota_precedence import QuotaEntity


def follow_quotas(configs: ConfigStore, quotas: ClientQuotas) -> None:
    """Have ``quotas`` follow what is set on users and client ids."""

    def user_changed(name: EntityName, values: Mapping[str, str]) -> None:
        quotas.update(QuotaEntity(*name) if isinstance(name, UserClient) else QuotaEntity(name), values)

    def client_changed(name: EntityName, values: Mapping[str, str]) -> None:
        assert not isinstance(name, UserClient), "such a pair is of the kind users"
        quotas.update(QuotaEntity(client_id=name), values)

    for kind, listeners, changed in (
        (USERS, configs.on_user_config, user_changed),
        (CLIENTS, configs.on_client_config, client_changed),
    ):
        for name in configs.entities(kind):
            changed(name, configs.overrides(kind, name))
        listeners.append(changed)
