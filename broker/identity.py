"""The identity of a node: its id, and its roles in a KRaft cluster.

Source: KafkaConfig ``validateValues``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from ..base.config import Config
from ..base.settings import SettingError
from ..controller.quorum.settings import BROKER_ROLE, CONTROLLER_ROLE, QuorumSettings
from ..controller.raft.settings import RaftSettings
from ..controller.raft.voters import ControllerAddress, parse_addresses, parse_static_voters
from ..controller.zookeeper.store.zookeeper_settings import ZooKeeperSettings
from .listeners.addresses import ListenerAddress, configured_listeners
from .settings import BrokerSettings

logger = logging.getLogger(__name__)

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")


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


def is_lone(config: Config) -> bool:
    """Whether the node is a cluster by itself: it was given neither roles nor a ZooKeeper.

    It has both roles, and its controller has no listener. So no other node can join it before it is given one.
    """
    return not config.settings(QuorumSettings).process_roles


def forms_itself(config: Config) -> bool:
    """Whether empty log directories are formatted by the start, as a quorum of this node alone.

    Apache Kafka's nodes want each to be formatted by a tool. That is left to a tool here where another controller is named: only
    who sets the cluster up can tell a new cluster from one that this node joins.
    """
    settings = config.settings(QuorumSettings)
    if is_lone(config):
        return True
    if {*settings.process_roles} != {BROKER_ROLE, CONTROLLER_ROLE}:
        return False
    return _own_addresses(config).issuperset({*static_voters(settings).values(), *bootstrap_controllers(settings)})


def _own_addresses(config: Config) -> set[ControllerAddress]:
    """Where this node's controller may be said to be by its own file."""
    broker = config.settings(BrokerSettings)
    names = [name.upper() for name in broker.controller_listener_names]
    found = set()
    for endpoint in (each for configured in configured_listeners(broker) for each in configured):
        if endpoint.name in names:
            hosts = {endpoint.host} if endpoint.host else {"", *_LOOPBACK}
            found |= {ControllerAddress(host, endpoint.port) for host in hosts}
    return found


def check_roles(config: Config) -> None:
    """Whether a node of KRaft can be what ``process.roles`` says. Raises SettingError, in Kafka's words."""
    settings, broker = config.settings(QuorumSettings), config.settings(BrokerSettings)
    if configured_broker_id(config) is None:
        raise SettingError("node.id", "", "a node of a cluster of KRaft needs one")
    store = config.settings(ZooKeeperSettings).connect
    if store is not None:
        raise SettingError("zookeeper.connect", store, "process.roles is set")
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
    own: Sequence[ListenerAddress],
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
    own: Sequence[ListenerAddress],
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
