"""The assembly of one broker: its parts are started in dependency order and stopped in the reverse order.

``start`` starts the ``BrokerCore``, makes the ``BrokerComponents`` and joins the cluster, ``run_in`` starts the background
loops, ``stop`` stops everything and marks the log directories clean.

When the log directory with the cluster's state fails, or all of them have failed, the broker cannot go on: ``on_failure`` is told
why. Otherwise the controller is told of a failed log directory, as in Kafka's ZooKeeper mode.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import trio

from ..handlers.services import Services
from ..log.log_directory import LogDirectory
from ..log.log_manager import LogManager
from ..log.settings import LogSettings
from ..metadata.delta import ClusterDelta
from ..metadata.image import ClusterImage
from ..metadata.types import AdvertisedListener, BrokerRegistration
from ..replication.peers import Peers
from ..replication.settings import QuotaSettings
from ..security.entities import TOPICS
from .broker_core import BrokerCore
from .components import BrokerComponents
from .dependencies import BrokerDependencies
from .listeners.addresses import ListenerAddress
from .quotas import follow_quotas
from .settings import BrokerSettings

if TYPE_CHECKING:
    from .controller_role import ControllerRole

logger = logging.getLogger(__name__)


class ClusterKind(NamedTuple):
    """What depends on who keeps the cluster's metadata."""

    core: BrokerCore
    make_components: Callable[[], BrokerComponents]
    """Called once ``core`` has started."""


class Assembly:
    """The parts of one broker."""

    services: Services
    """What handlers see of the broker. It exists once the broker ``is_started``."""
    _components: BrokerComponents

    def __init__(self, dependencies: BrokerDependencies, kind: ClusterKind, on_failure: Callable[[str], None]) -> None:
        self._config = dependencies.config
        self._dependencies = dependencies
        self._on_failure = on_failure
        self._log_dir_failed = trio.Event()
        self._kind = kind
        self._core = kind.core
        self.logs.offline_listeners.append(self._on_log_dir_failure)
        self.is_started = False
        self._is_member = False
        self._loads: trio.Nursery | None = None
        self._early_loads: list[tuple[str, int, int]] = []

    @property
    def logs(self) -> LogManager:
        return self._core.logs

    @property
    def broker_id(self) -> int:
        """-1 until the start has found it (``identity``)."""
        return self._core.broker_id

    @property
    def cluster_id(self) -> str:
        """Empty until the start has read it from the cluster's store, or made it."""
        return self._core.cluster_id

    @property
    def controller(self) -> ControllerRole | None:
        """See ``BrokerServer.controller``."""
        return self._core.controller

    @property
    def knows_controller(self) -> bool:
        """Whether this broker was told that there is a controller."""
        return self.is_started and self.services.metadata.controller_id >= 0

    @property
    def peers(self) -> Peers:
        """The ways to the other brokers; of a broker that has started."""
        return self._components.peers

    # --- start --------------------------------------------------------------------------------------------------------

    async def start(self, listen: Callable[[], Awaitable[Sequence[ListenerAddress]]]) -> None:
        """Start everything; ``listen`` binds the listeners that the store's settings add, and returns the advertised addresses.

        Raises KafkaError, OSError, SettingError; ``abandon`` then releases the log directories.
        """
        core = self._core
        await core.start()
        components = self._components = self._kind.make_components()
        services = self.services = components.services
        services.metadata.publishers.append(self._update_topic_settings)
        if services.authorizer is not None:
            authorizer = services.authorizer
            services.metadata.publishers.append(lambda delta, image: authorizer.change(delta.acls))
        follow_quotas(services.metadata, services.client_quotas)
        self._settings_changed()
        self._config.on_change.append(self._settings_changed)
        services.replicas.leadership_listeners.append(self._leadership_changed)
        services.metadata.publishers.append(self._forget_deleted_topics)
        self._is_member = True  # from here on ``abandon`` has connections to close, even if the next step fails
        await components.cluster.start(self._registration(await listen()))
        await self._finish_early_loads()
        self.is_started = True

    async def register(self, endpoints: Sequence[ListenerAddress]) -> None:
        """Advertise other addresses."""
        await self._components.cluster.change_registration(self._registration(endpoints))

    def _registration(self, endpoints: Sequence[ListenerAddress]) -> BrokerRegistration:
        return BrokerRegistration(
            self._core.broker_id,
            tuple(AdvertisedListener(e.name, e.host, e.port, e.security_protocol) for e in endpoints),
            self._config.settings(BrokerSettings).rack,
        )

    async def _finish_early_loads(self) -> None:
        """Load the coordinators' partitions that this broker came to lead during the start, before the first client comes.

        It may come to lead others meanwhile, and until ``run_in``, which begins with them.
        """
        while self._early_loads:
            topic, partition, leader_epoch = self._early_loads.pop(0)
            await self._components.coordinators()[topic].load(partition, leader_epoch)

    # --- while it runs ------------------------------------------------------------------------------------------------

    def run_in(self, nursery: trio.Nursery) -> None:
        """Start the background loops; an exception in one of them ends the broker."""
        services, components = self.services, self._components
        self._loads = nursery
        nursery.start_soon(self._finish_early_loads)
        nursery.start_soon(self.logs.run)
        nursery.start_soon(services.log_dir_moves.run)
        nursery.start_soon(services.replicas.run)
        nursery.start_soon(components.fetchers.run)
        nursery.start_soon(components.isr_changes.run)
        nursery.start_soon(self._report_log_dir_failures)
        nursery.start_soon(components.cluster.run)
        nursery.start_soon(services.groups.run)
        nursery.start_soon(services.transactions.run)
        nursery.start_soon(services.share_coordinator.run)
        nursery.start_soon(services.share_partitions.run)

    def _forget_deleted_topics(self, delta: ClusterDelta, image: ClusterImage) -> None:
        gone = {topic.name for topic in delta.topics if topic.name not in image.topics}
        if gone:
            self.services.groups.delete_topics(gone)
            self.services.share_coordinator.topics_deleted()

    def _update_topic_settings(self, delta: ClusterDelta, image: ClusterImage) -> None:
        for kind, name in delta.configs:
            if kind is TOPICS and isinstance(name, str):
                self.services.replicas.update_topic_settings(name)

    def _settings_changed(self) -> None:
        """Settings were changed while the broker runs: tell the parts that keep a copy of them."""
        settings = self._config.settings(LogSettings)
        self._core.update_log_settings()
        self.services.replicas.update_settings(settings)
        self.services.replicas.quotas.update(self._config.settings(QuotaSettings))

    def _leadership_changed(self, topic: str, partition: int, leader_epoch: int | None) -> None:
        """This broker began or ceased to lead a partition: a coordinator loads or unloads it if it is one of its own."""
        coordinator = self._components.coordinators().get(topic)
        if coordinator is None:
            return
        if leader_epoch is None:
            coordinator.unload(partition)
        elif self._loads is None:
            self._early_loads.append((topic, partition, leader_epoch))
        else:
            self._loads.start_soon(coordinator.load, partition, leader_epoch)

    def _on_log_dir_failure(self, folder: LogDirectory) -> None:
        if self.logs.is_offline:
            self._on_failure(f"every log directory has failed, {folder.path} with: {folder.failure}")
        elif folder is self._core.state_log_dir:
            self._on_failure(f"{folder.path}, which has the cluster's state, has failed: {folder.failure}")
        self._log_dir_failed.set()

    async def _report_log_dir_failures(self) -> None:
        """Tell the controller of each failed folder."""
        while True:
            await self._log_dir_failed.wait()
            self._log_dir_failed = trio.Event()
            await self._components.cluster.report_log_dir_failure()

    # --- stop ---------------------------------------------------------------------------------------------------------

    async def run_controlled_shutdown(self) -> None:
        """Before the stop, while everything still works: have other brokers lead instead of this one."""
        await self._components.run_controlled_shutdown()

    async def resign(self) -> None:
        """Let another broker become the controller at once, and not only when this one has flushed its logs."""
        if not self._core.is_alone:
            await self._components.cluster.resign()
            await self._core.resign()

    async def stop(self) -> None:
        """Flush, mark the log directories clean, and release everything.

        The broker leaves the cluster last (KafkaServer ``shutdown``).
        """
        self._loads = None
        self.services.groups.stop()
        self.services.transactions.stop()
        self.services.share_coordinator.stop()
        self.services.share_state.stop()
        self._components.peers.close()
        await self.logs.stop(self._core.clean_epoch)
        await self._core.close()

    async def abandon(self) -> None:
        """After a start that failed: release what was taken, without marking anything clean."""
        if self._is_member:
            self._components.peers.close()
        await self._core.close()
        await self.logs.stop()
