"""``QuorumCluster``: the ``ClusterAccess`` interface in KRaft mode, as a broker uses it.

What clients want changed is forwarded to the active controller, with their principals; what comes of it arrives as records of the
metadata log. The broker's own requests (registration, heartbeats, in-sync replicas, producer ids, its coordinators' topics) go to
the controller directly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

import trio

from ...base.errors import ErrorCode, KafkaError, known_code
from ...log.log_directories import LogStartError
from ...metadata.delta import ClusterDelta
from ...metadata.difference import delta_between
from ...metadata.image import ClusterImage
from ...metadata.types import BrokerRegistration, LogPosition
from ...replication.broker_client import PeerUnavailableError
from ...replication.metadata_cache import MetadataCache
from ...replication.replica_publisher import ReplicaPublisher
from ...security.principal import Principal
from ...wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ...wire.schema import Message
from ..new_topics import Charge, NewTopic
from ..producer_ids import ProducerIdSource
from ..raft.driver import RaftDriver
from .channel import QuorumChannel
from .envelope import enveloped, opened
from .leadership import confirmed_leader_epoch
from .lifecycle import BrokerLifecycle, RegistrationPhase
from .loader import MetadataLoader
from .metadata_version import finalized_level, has_directories
from .supported_features import unsupported_features

if TYPE_CHECKING:
    from .figures import QuorumFigures

logger = logging.getLogger(__name__)

_CREATE_SECONDS = 10.0
_SEEN_SECONDS = 2.0
"""How long a client waits for the metadata of a topic that was made for it."""
_FORWARD_SECONDS = 30.0
_LEAVE_SECONDS = 30.0
"""How long a stop waits for a controller that responds to move what this broker leads. Kafka's brokers wait five minutes."""


class QuorumCluster:
    """A ``ClusterMember``. ``nursery`` has the task of the broker's heartbeats."""

    producer_ids: ProducerIdSource
    """Set before ``start``: it is made with this cluster."""
    replica_publisher: ReplicaPublisher
    """Set before ``start``: it is made with this cluster."""

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        loader: MetadataLoader,
        driver: RaftDriver,
        lifecycle: BrokerLifecycle,
        channel: Callable[[str], QuorumChannel],
        nursery: trio.Nursery,
        registration_seconds: float,
        *,
        is_alone: bool = False,
    ) -> None:
        """``is_alone``: no other broker can be in the cluster."""
        self._broker_id = broker_id
        self._metadata = metadata
        self._loader = loader
        self.driver = driver
        self._lifecycle = lifecycle
        self._forwarding = channel("forwarding")
        self._asking = channel("asking")
        self._leadership = channel("leadership")
        self._nursery = nursery
        self._registration_seconds = registration_seconds
        self._is_alone = is_alone

    @property
    def broker_epoch(self) -> int:
        return self._lifecycle.broker_epoch

    @property
    def is_controller(self) -> bool:
        return False

    @property
    def most_brokers(self) -> int | None:
        return 1 if self._is_alone else None

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self, registration: BrokerRegistration) -> None:
        """Register, tell the parts of the cluster as it is, and have the controller tell the others of this broker."""
        lifecycle = self._lifecycle
        lifecycle.registration = registration
        self._nursery.start_soon(lifecycle.run)
        with trio.move_on_after(self._registration_seconds) as waiting:
            await lifecycle.wait_refused_or(RegistrationPhase.CAUGHT_UP)
            if lifecycle.refusal is ErrorCode.UNSUPPORTED_VERSION:
                self._explain_refusal()
            await lifecycle.wait_until(RegistrationPhase.CAUGHT_UP)
        if waiting.cancelled_caught:
            why = f" ({lifecycle.refusal.name})" if lifecycle.refusal else ""
            raise LogStartError(f"the quorum's controller has not registered this broker{why}", may_pass=True)
        # In this order: an unfenced broker is told to clients, which it could not serve without its replicas.
        self._publish_all()
        lifecycle.ready()
        await lifecycle.wait_until(RegistrationPhase.UNFENCED)

    def _explain_refusal(self) -> None:
        features = self._metadata.image.features
        for line in unsupported_features({} if features is None else features.levels):
            logger.error("This broker cannot take part: %s", line)

    def _publish_all(self) -> None:
        """Tell the parts of the whole cluster, and from now on of what changes.

        The replicas are told last, of the cluster as the registration has changed it: what this broker led before it was killed
        is led by others now.
        """
        metadata, replicas = self._metadata, self.replica_publisher
        metadata.publish(delta_between(ClusterImage(), metadata.image))
        self._loader.release()
        replicas.rename_strays(metadata.image)
        replicas.publish(delta_between(ClusterImage(), metadata.image), metadata.image)
        # First, as in Kafka's BrokerMetadataPublisher: whatever the others do with a partition, it leads or follows by then.
        metadata.publishers.insert(0, replicas.publish)
        metadata.publishers.append(self._maybe_reregister)

    def _maybe_reregister(self, delta: ClusterDelta, image: ClusterImage) -> None:
        """Register again where the log has no log directories of this broker, as it was written at an older ``metadata.version``.

        Source: Kafka's BrokerRegistrationTracker.
        """
        known = image.quorum_brokers.get(self._broker_id)
        is_affected = delta.features is not None or self._broker_id in delta.quorum_brokers
        if (
            is_affected
            and known is not None
            and not known.directories
            and has_directories(finalized_level(image.features))
        ):
            assert self._lifecycle.registration is not None
            self._lifecycle.amend(self._lifecycle.registration)

    async def run(self) -> None:
        await self.producer_ids.run()

    async def change_registration(self, registration: BrokerRegistration) -> None:
        """Others learn of it from the log, where Kafka's broker tells them at its next start."""
        self._lifecycle.amend(registration)

    async def report_log_dir_failure(self) -> None:
        self._lifecycle.wake()

    async def resign(self) -> None:
        """This node is no controller."""

    async def run_controlled_shutdown(self) -> None:
        """Return once the controller has moved what this broker leads, and lets it go, or when that takes too long.

        A broker that no controller responds to for a whole session has been fenced by then, if there is a controller at all.
        """
        self._lifecycle.leave()
        with trio.move_on_after(_LEAVE_SECONDS) as waiting:
            if not await self._lifecycle.wait_gone():
                logger.warning(
                    "This broker stops by itself: no controller has responded for as long as a session lasts"
                )
        if waiting.cancelled_caught:
            logger.warning("The controller has not moved all that this broker leads within %g s", _LEAVE_SECONDS)

    def figures(self) -> QuorumFigures:
        """For metrics."""
        from .figures import quorum_figures  # few starts need it

        image = self._metadata.image
        applied = image.position or LogPosition(-1, -1, -1)
        return quorum_figures(self.driver, applied, image.features, self._loader.snapshots_loaded)

    async def ask_controller(self, request: Message, timeout: float) -> Any:
        """The active controller's response to a request of this broker's own. Raises KafkaError REQUEST_TIMED_OUT."""
        try:
            return await self._asking.send(request, timeout=timeout)
        except PeerUnavailableError as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from None

    # --- changes ------------------------------------------------------------------------------------------------------

    async def forward(
        self, request: Message, version: int, client_id: str | None, principal: Principal, host: str
    ) -> Any:
        """The controller's response to a client's request. Raises KafkaError."""
        envelope = enveloped(request, version, client_id, principal, host)
        try:
            response = await self._forwarding.send(envelope, timeout=_FORWARD_SECONDS)
        except PeerUnavailableError as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from None
        return opened(response, request.api_key, version)

    async def create_missing_topics(
        self, topics: Collection[NewTopic], charge: Charge | None = None
    ) -> dict[str, KafkaError | None]:
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics], timeout_ms=int(_CREATE_SECONDS * 1000)
        )
        try:
            response: CreateTopicsResponse = await self._forwarding.send(request, timeout=_CREATE_SECONDS)
        except PeerUnavailableError as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from None
        outcomes = {
            result.name: KafkaError(known_code(result.error_code), result.error_message or "")
            if result.error_code
            else None
            for result in response.topics
        }
        expected = [
            name for name, error in outcomes.items() if error is None or error.code is ErrorCode.TOPIC_ALREADY_EXISTS
        ]
        with trio.move_on_after(_SEEN_SECONDS):
            await self._metadata.wait_until(lambda: all(name in self._metadata.topics for name in expected))
        return outcomes

    async def next_producer_id(self) -> int:
        return await self.producer_ids.next_producer_id()

    async def leader_epoch(self, topic: str, partition: int) -> int | None:
        image = self._metadata.image.topics.get(topic)
        if image is None or (known := image.partitions.get(partition)) is None:
            return None
        if known.leader != self._broker_id:
            return known.leader_epoch
        return await confirmed_leader_epoch(
            self._leadership, self._broker_id, self.broker_epoch, image.topic_id, partition, known
        )

    async def refresh_topic_configs(self, topics: Iterable[str]) -> None:
        """Records come in their order: the image has a topic's configs with the topic."""


def _creatable(topic: NewTopic) -> CreatableTopic:
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()]
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=configs,
    )
