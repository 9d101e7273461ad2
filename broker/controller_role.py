"""The controller role of a node: its state, request handling and listeners on the node's Raft driver.

``run`` has it take part in the quorum. It accepts connections from then on: the other controllers need it before there is a
leader. A clean stop ``leave``s first, so that another controller leads at once.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

import trio

from ..base.config import Config
from ..base.seams import Clock, Workers
from ..controller.configs.broker_configs import declared_settings
from ..controller.quorum.active.context import ActiveSettings
from ..controller.quorum.active.controller import ActiveController
from ..controller.quorum.active.node import ControllerNode, RaftWriter, raise_kraft_version, token_expiry
from ..controller.quorum.bootstrap import bootstrap_records, read_bootstrap
from ..controller.quorum.metadata_version import FEATURE, HIGHEST
from ..controller.quorum.settings import QuorumSettings
from ..controller.quorum.supported_features import SUPPORTED
from ..controller.raft.driver import RaftDriver
from ..controller.random_uuids import random_uuid
from ..controller.settings import ControllerSettings
from ..controller.token_settings import DelegationTokenSettings
from ..handlers.controller.call import ControllerCall
from ..log.checkpoints import CorruptFileError
from ..log.disk import Disk
from ..log.log_directories import LogStartError
from ..log.settings import LogSettings
from ..metadata.types import SECURITY_PROTOCOLS
from ..wire.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from ..wire.messages.setting_records import FeatureLevelRecord
from ..wire.metadata_records import VersionedRecord
from .controller_listeners import ControllerListeners
from .controller_services import controller_services
from .listeners.acceptor import Acceptor
from .listeners.connection_limits import ConnectionLimits
from .listeners.monitor import Monitor
from .raft_manager import RaftManager

if TYPE_CHECKING:
    from ..controller.quorum.active.figures import QuorumControllerFigures
    from ..controller.quorum.active.requests import ControllerRequests
    from ..wire.messages.create_topics import CreatableTopicConfigs

_LEAVE_MS = 5000
"""How long a stop waits for another leader, as Kafka's does."""
_LAST_RESPONSES_SECONDS = 3.0


class ControllerRole:
    """See the module. ``raft`` is open, and ``listeners`` are bound; ``bootstrap`` has the first records of a new cluster.

    The configuration is that of the listeners: the controller's own, apart from that of a broker in the same process, because
    each follows the metadata log at its own pace.
    """

    def __init__(
        self,
        raft: RaftManager,
        listeners: ControllerListeners,
        bootstrap: list[VersionedRecord],
        monitor: Monitor,
        clock: Clock,
        workers: Workers,
        randomness: random.Random,
    ) -> None:
        config, driver = listeners.config, raft.driver
        identity = driver.node.quorum.identity
        node_id = identity.key.node_id
        writer = RaftWriter(driver, clock)
        tokens = config.settings(DelegationTokenSettings)
        controller = ActiveController(
            active_settings(config, node_id, identity.cluster_id),
            writer,
            bootstrap,
            randomness,
            [token_expiry(clock, tokens.expiry_check_interval_ms)],
        )
        self.node = ControllerNode(
            node_id,
            driver,
            writer,
            controller,
            functools.partial(_make_requests, config, driver, node_id, randomness),
            _registration(listeners, node_id, random_uuid(randomness)),
            raft.connect("registration"),
            raft.log_settings,
            clock,
            workers,
        )
        self.services = controller_services(config, clock, workers, identity.cluster_id, self.node)
        raft.own_controller = self.services
        self.monitor = monitor
        names = {served.name for served in listeners.served}
        self._listeners = listeners
        new_call = functools.partial(ControllerCall, self.services)
        self._acceptor = Acceptor(self.services, new_call, monitor, ConnectionLimits(config, "", names))

    def figures(self) -> QuorumControllerFigures:
        """For metrics."""
        from ..controller.quorum.active.figures import controller_figures  # few starts need it

        return controller_figures(self.node)

    async def run(self) -> None:
        """Take part in the quorum until cancelled. Raises as ``ControllerNode.run``, in a group."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.node.run)
            self._acceptor.start(self._listeners.served, nursery)

    async def leave(self) -> None:
        """Have another node lead if this one does, then end the connections. ``run`` goes on until it is cancelled."""
        await self.node.driver.leave(_LEAVE_MS)
        self._listeners.close()
        self._acceptor.stop()
        with trio.move_on_after(_LAST_RESPONSES_SECONDS):
            await self._acceptor.wait_empty()


def bootstrap_of(disk: Disk, directory: str) -> list[VersionedRecord]:
    """The first records of a new cluster, as formatting has left them; without the file, those of the newest level.

    Raises LogStartError, OSError. Source: Kafka's BootstrapDirectory.
    """
    try:
        return read_bootstrap(disk, directory)
    except FileNotFoundError:
        return list(bootstrap_records({FEATURE: HIGHEST}, []))
    except CorruptFileError as error:
        raise LogStartError(str(error)) from None


def check_bootstrap(driver: RaftDriver, bootstrap: list[VersionedRecord]) -> None:
    """Whether a cluster that begins with these records can have this node. Raises LogStartError.

    Kafka's controller would begin it, and then refuse every broker.
    """
    quorum = driver.node.quorum
    if quorum.log.end_offset or not quorum.is_voter:
        return  # the cluster has begun, and its log says what is finalized
    lacking = []
    for record, _ in bootstrap:
        if isinstance(record, FeatureLevelRecord):
            supported = SUPPORTED.get(record.name)
            highest = 0 if supported is None else supported.highest
            if record.feature_level > highest:
                lacking.append(f"--feature {record.name}={highest}")
    if lacking:
        raise LogStartError(
            f"the log directories were formatted with features that Ottla lacks: format them with {' '.join(lacking)}"
        )


def active_settings(config: Config, node_id: int, cluster_id: str) -> ActiveSettings:
    """What the controller's file says of clusters."""
    controller, quorum, log = (
        config.settings(ControllerSettings),
        config.settings(QuorumSettings),
        config.settings(LogSettings),
    )
    imbalance_check_ms = controller.leader_imbalance_check_interval_seconds * 1000
    return ActiveSettings(
        node_id,
        cluster_id,
        num_partitions=controller.num_partitions,
        default_replication_factor=controller.default_replication_factor,
        min_insync_replicas=log.min_insync_replicas,
        unclean_leader_election=log.unclean_leader_election_enable,
        session_timeout_ms=quorum.session_timeout_ms,
        imbalance_check_interval_ms=imbalance_check_ms if controller.auto_leader_rebalance_enable else None,
        unclean_election_interval_ms=quorum.unclean_election_interval_ms,
    )


def _make_requests(config: Config, driver: RaftDriver, node_id: int, randomness: random.Random) -> ControllerRequests:
    from ..controller.configs.unused_configs import UNUSED
    from ..controller.quorum.active.configs import ConfigRules  # what a start does not need
    from ..controller.quorum.active.requests import ControllerRequests, ControllerRules
    from ..controller.quorum.active.tokens import TokenRules
    from ..group_coordinator.group_configs import check_group_configs
    from ..handlers.create_topics import described_configs

    quorum, tokens = driver.node.quorum, config.settings(DelegationTokenSettings)

    def describe(overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        return described_configs(config, overrides)

    def check_group(configs: Mapping[str, str]) -> None:
        check_group_configs(config, configs)

    log_settings = config.settings(LogSettings)
    rules = ControllerRules(
        configs=ConfigRules(node_id, (), log_settings, {**UNUSED, **declared_settings(config)}, check_group),
        tokens=TokenRules(tokens.secret, tokens.lifetimes),
        supported=SUPPORTED,
        describe_configs=describe,
        may_delete_topics=config.settings(ControllerSettings).delete_topic_enable,
        min_insync_replicas=log_settings.min_insync_replicas,
    )
    return ControllerRequests(
        node_id,
        rules,
        randomness,
        lambda: quorum.voters.ids,
        lambda: quorum.kraft_version,
        lambda level, only_checks: raise_kraft_version(driver, level, only_checks),
    )


def _registration(listeners: ControllerListeners, node_id: int, incarnation_id: bytes) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=node_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        listeners=[
            Listener(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=SECURITY_PROTOCOLS[each.security_protocol],
            )
            for each in listeners.advertised
        ],
        features=[
            Feature(name=name, min_supported_version=levels.lowest, max_supported_version=levels.highest)
            for name, levels in SUPPORTED.items()
        ],
    )
