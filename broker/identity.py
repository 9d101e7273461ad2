"""Which id a broker has: the one that it was given, else that of its data folders, else 1, or the next of its ZooKeeper.

Source: KafkaServer ``getOrGenerateBrokerId`` and KafkaConfig ``validateValues``.
"""

from __future__ import annotations

from ..base.config import Config
from ..base.settings import SettingError
from ..controller.quorum.settings import BROKER_ROLE, CONTROLLER_ROLE, QuorumSettings
from ..controller.zookeeper.registration import generate_broker_id
from ..controller.zookeeper.store.cluster_store import ClusterStore
from ..controller.zookeeper.store.zookeeper_settings import ZooKeeperSettings
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


def is_of_quorum(config: Config) -> bool:
    """Whether the node is a broker of a cluster of KRaft whose controllers are other nodes."""
    return config.settings(QuorumSettings).process_roles == (BROKER_ROLE,)


def check_roles(config: Config) -> None:
    """Whether the node can be what ``process.roles`` says. Raises SettingError.

    One that is broker and controller by itself keeps the metadata of its cluster, as without the property.
    """
    settings = config.settings(QuorumSettings)
    roles = settings.process_roles
    if CONTROLLER_ROLE in roles:
        is_alone = len(settings.voters) <= 1 and len(settings.bootstrap_servers) <= 1
        if BROKER_ROLE not in roles or not is_alone:
            raise SettingError("process.roles", ",".join(roles), "the controllers of a quorum are Apache Kafka's")
    elif roles:
        if configured_broker_id(config) is None:
            raise SettingError("node.id", "", "a node of a cluster of KRaft needs one")
        store = config.settings(ZooKeeperSettings).connect
        if store is not None:
            raise SettingError("zookeeper.connect", store, "process.roles is set as well")


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
