"""Who a node is: its id, and its roles in a cluster of KRaft.

The id is the one that it was given, else that of its data folders, else 1, or the next of its ZooKeeper.

Source: KafkaServer ``getOrGenerateBrokerId`` and KafkaConfig ``validateValues``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from ..base.config import Config
from ..base.settings import SettingError
from ..controller.quorum.settings import BROKER_ROLE, CONTROLLER_ROLE, QuorumSettings
from ..controller.raft.settings import RaftSettings
from ..controller.raft.voters import ControllerAddress, parse_addresses, parse_static_voters
from ..controller.zookeeper.registration import generate_broker_id
from ..controller.zookeeper.store.cluster_home import STATE_FOLDER
from ..controller.zookeeper.store.cluster_store import ClusterStore
from ..controller.zookeeper.store.zookeeper_settings import ZooKeeperSettings
from ..log.checkpoints import CorruptFileError, read_meta_properties
from ..log.data_folders import metadata_folder_of
from ..log.disk import Disk, join
from .listeners import Endpoint, configured_listeners
from .settings import BrokerSettings

logger = logging.getLogger(__name__)


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


def static_voters(settings: QuorumSettings) -> dict[int, ControllerAddress]:
    """What ``controller.quorum.voters`` has, by node. Raises SettingError."""
    try:
        return parse_static_voters(settings.voters)
    except ValueError as error:
        raise SettingError("controller.quorum.voters", ",".join(settings.voters), str(error)) from None


def bootstrap_controllers(settings: QuorumSettings) -> list[ControllerAddress]:
    """What ``controller.quorum.bootstrap.servers`` has. Raises SettingError."""
    try:
        return parse_addresses(settings.bootstrap_servers)
    except ValueError as error:
        given = ",".join(settings.bootstrap_servers)
        raise SettingError("controller.quorum.bootstrap.servers", given, str(error)) from None


def log_directories(config: Config) -> tuple[str, ...]:
    """The entries of ``log.dirs``; the first one has the cluster's state, if the node keeps it itself."""
    settings = config.settings(BrokerSettings)
    return settings.log_dirs or (settings.log_dir,)


def has_role(config: Config, role: str) -> bool:
    """Whether ``process.roles`` names it."""
    return role in config.settings(QuorumSettings).process_roles


def is_of_quorum(config: Config, disk: Disk) -> bool:
    """Whether the node is one of a cluster of KRaft, and no broker by itself with a store of its own.

    The file that Apache Kafka is shipped with has both roles and one controller. ``ottla serve`` starts with it on an empty
    folder, without a word about formatting, and has done so before it had controllers; what such a broker has stored stays in
    use. So both roles make a quorum only where a folder was formatted for one, or others are named that can be in it. Who
    formats a folder wants the metadata log: other nodes can join later.
    """
    settings = config.settings(QuorumSettings)
    if not settings.process_roles:
        return False
    names_others = len(settings.voters) > 1 or len(settings.bootstrap_servers) > 1
    if names_others or {*settings.process_roles} != {BROKER_ROLE, CONTROLLER_ROLE}:
        return True
    directories = log_directories(config)
    try:
        meta = read_meta_properties(disk, metadata_folder_of(settings.metadata_log_dir, directories))
    except (CorruptFileError, OSError):
        return False  # the start itself says why
    return meta is not None and meta.version == 1 and not disk.is_dir(join(directories[0], STATE_FOLDER))


def check_roles(config: Config) -> None:
    """Whether a node of KRaft can be what ``process.roles`` says. Raises SettingError, in Kafka's words."""
    settings, broker = config.settings(QuorumSettings), config.settings(BrokerSettings)
    if configured_broker_id(config) is None:
        raise SettingError("node.id", "", "a node of a cluster of KRaft needs one")
    store = config.settings(ZooKeeperSettings).connect
    if store is not None:
        raise SettingError("zookeeper.connect", store, "process.roles is set as well")
    voters, node_id = static_voters(settings), configured_broker_id(config)
    if not voters and not bootstrap_controllers(settings):
        why = (
            "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap controllers or "
            "controller.quorum.voters must contain a parseable set of controllers."
        )
        raise SettingError("controller.quorum.bootstrap.servers", "", why)
    listeners, _ = configured_listeners(broker)
    names = [name.upper() for name in broker.controller_listener_names]
    own = [each for each in listeners if each.name in names]
    if CONTROLLER_ROLE in settings.process_roles:
        _check_controller(settings, broker, own, len(listeners), voters, node_id)
    else:
        _check_broker_only(config, own, names, voters, node_id)
    if 2 * settings.heartbeat_interval_ms > settings.session_timeout_ms:
        logger.error(
            "broker.heartbeat.interval.ms (%d ms) must be less than or equal to half of the broker.session.timeout.ms (%d ms)",
            settings.heartbeat_interval_ms,
            settings.session_timeout_ms,
        )


def _check_controller(
    settings: QuorumSettings,
    broker: BrokerSettings,
    own: Sequence[Endpoint],
    listener_count: int,
    voters: Mapping[int, ControllerAddress],
    node_id: int | None,
) -> None:
    """``own`` are the endpoints of the controller among ``listeners``."""
    given = ",".join(broker.controller_listener_names)
    if voters and node_id not in voters:
        why = (
            f"If process.roles contains the 'controller' role, the node id {node_id} must be included in the set of voters "
            f"controller.quorum.voters={sorted(voters)}"
        )
        raise SettingError("controller.quorum.voters", ",".join(settings.voters), why)
    if not own:
        why = (
            "controller.listener.names must contain at least one value appearing in the 'listeners' configuration when running "
            "the KRaft controller role"
        )
        raise SettingError("controller.listener.names", given, why)
    if len(own) < len(broker.controller_listener_names):
        why = (
            "controller.listener.names must only contain values appearing in the 'listeners' configuration when running the "
            "KRaft controller role"
        )
        raise SettingError("controller.listener.names", given, why)
    if settings.process_roles == (CONTROLLER_ROLE,) and len(own) < listener_count:
        why = (
            "The listeners config must only contain KRaft controller listeners from controller.listener.names when "
            "process.roles=controller"
        )
        raise SettingError("listeners", broker.listeners, why)


def _check_broker_only(
    config: Config,
    own: Sequence[Endpoint],
    names: Sequence[str],
    voters: Mapping[int, ControllerAddress],
    node_id: int | None,
) -> None:
    given = ",".join(names)
    if node_id in voters:
        why = (
            f"If process.roles contains just the 'broker' role, the node id {node_id} must not be included in the set of voters "
            f"controller.quorum.voters={sorted(voters)}"
        )
        raise SettingError("controller.quorum.voters", ",".join(config.settings(QuorumSettings).voters), why)
    if not names:
        why = "controller.listener.names must contain at least one value when running KRaft with just the broker role"
        raise SettingError("controller.listener.names", given, why)
    if own:
        why = (
            "controller.listener.names must not contain a value appearing in the 'listeners' configuration when running KRaft "
            "with just the broker role"
        )
        raise SettingError("controller.listener.names", given, why)
    if config.settings(RaftSettings).auto_join_enable:
        why = "controller.quorum.auto.join.enable is only supported when process.roles contains the 'controller' role."
        raise SettingError("controller.quorum.auto.join.enable", "true", why)


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
