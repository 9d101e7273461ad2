"""Which id a broker has: the one that it was given, else that of its data folders, else 1, or the next of its ZooKeeper.

Source: KafkaServer ``getOrGenerateBrokerId`` and KafkaConfig ``validateValues``.
"""

from __future__ import annotations

from ..base.config import Config
from ..base.settings import SettingError
from ..controller.zookeeper.registration import generate_broker_id
from ..controller.zookeeper.store.cluster_store import ClusterStore
from .settings import BrokerSettings


def configured_broker_id(config: Config) -> int | None:
    """What ``node.id`` or ``broker.id`` say; None where nothing is given, or -1."""
    settings = config.settings(BrokerSettings)
    if config.is_given("node.id"):
        return settings.node_id
    return settings.broker_id if settings.broker_id >= 0 else None


def check_broker_id(config: Config) -> None:
    """Whether a broker of a ZooKeeper cluster may have the id that it was given. Raises SettingError."""
    settings = config.settings(BrokerSettings)
    broker_id = configured_broker_id(config)
    if broker_id is None:
        if not settings.broker_id_generation_enable:
            raise SettingError("broker.id", str(settings.broker_id), "broker.id must be greater than or equal to 0")
    elif settings.broker_id_generation_enable and broker_id > settings.reserved_broker_max_id:
        raise SettingError(
            "broker.id",
            str(broker_id),
            "broker.id must be greater than or equal to -1 and not greater than reserved.broker.max.id",
        )


async def find_broker_id(config: Config, known: int | None, store: ClusterStore | None) -> int:
    """The id of a broker whose data folders belong to ``known``; ``store`` is the ZooKeeper that makes up ids.

    Raises StoreError.
    """
    settings = config.settings(BrokerSettings)
    configured = configured_broker_id(config)
    if configured is not None:
        return configured
    if known is not None:
        return known
    if store is None:
        return settings.node_id
    return await generate_broker_id(store, settings.reserved_broker_max_id)
