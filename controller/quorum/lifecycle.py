"""The lifecycle of a broker in a quorum: registration, heartbeats and controlled shutdown (KIP-631).

The broker registers under an incarnation id of its own, and is fenced: no client is told of it. It sends a heartbeat at once, and
each 10 ms and when it has applied its own registration, until the controller says that it has caught up. Once it is ready
it wants to be unfenced. From then on a heartbeat goes out every ``broker.heartbeat.interval.ms``, one at a time. A broker that
wants to stop says so; the controller moves its leaderships, and then tells it to go.

Model: Kafka's BrokerLifecycleManager.
"""

from __future__ import annotations

import enum
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import trio

from ...base.errors import ErrorCode, KafkaError, known_code
from ...metadata.types import SECURITY_PROTOCOLS, BrokerRegistration, VersionRange
from ...replication.broker_client import PeerUnavailableError
from ...wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ...wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from ...wire.schema import ZERO_UUID
from .channel import QuorumChannel
from .metadata_version import has_cordoned_directories
from .settings import QuorumSettings

logger = logging.getLogger(__name__)

NO_EPOCH = -1
_CATCH_UP_SECONDS = 0.01
_SHUTDOWN_SECONDS = 0.05
_REQUEST_SECONDS = 4.5
"""How long a request is repeated before it is made anew: half a session at the default."""


class RegistrationPhase(enum.Enum):
    """How far the broker is, in the controller's eyes."""

    STARTING = enum.auto()
    CAUGHT_UP = enum.auto()
    UNFENCED = enum.auto()
    LEAVING = enum.auto()
    GONE = enum.auto()


class Directories(NamedTuple):
    """The broker's log directories by their ids."""

    ids: Sequence[bytes]
    """One that could not be read since the start has the id 0, and is not registered (LogManager ``loadDirectoryIds``)."""
    offline: Sequence[bytes]
    """Those that have failed."""


class BrokerLifecycle:
    """``run`` it in a task of its own, once ``registration`` is known.

    ``applied_offset`` gives the last offset of the metadata log whose records this broker has applied. ``previous_epoch`` is the
    broker epoch that the last clean stop has left, -1 after any other.
    """

    def __init__(
        self,
        cluster_id: str,
        incarnation_id: bytes,
        channel: QuorumChannel,
        settings: QuorumSettings,
        features: Mapping[str, VersionRange],
        directories: Callable[[], Directories],
        applied_offset: Callable[[], int],
        previous_epoch: int,
        metadata_version: Callable[[], int],
    ) -> None:
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._channel = channel
        self._settings = settings
        self._features = features
        self._directories = directories
        self._applied_offset = applied_offset
        self._previous_epoch = previous_epoch
        self._metadata_version = metadata_version
        self.broker_epoch = NO_EPOCH
        self.standing = RegistrationPhase.STARTING
        self.refusal = ErrorCode.NONE
        """Why the controller does not register this broker."""
        self.registration: BrokerRegistration | None = None
        """What is registered; to be set before ``run``."""
        self._is_ready = False
        self._is_leaving = False
        self._heard_at = -math.inf
        """When a controller has last responded to a heartbeat, by trio's clock."""
        self._is_amending = False
        self._woken = trio.Event()
        self._changed = trio.Event()

    # --- what others say ----------------------------------------------------------------------------------------------

    def ready(self) -> None:
        """Everything is there to serve clients: ask to be unfenced."""
        self._is_ready = True
        self.wake()

    def leave(self) -> None:
        """Ask the controller to move what this broker leads, and then for permission to stop."""
        self._is_leaving = True
        self.standing = RegistrationPhase.LEAVING
        self.wake()

    def loaded(self) -> None:
        """More of the metadata log is applied; with the own registration in it the broker has caught up, and says so at once."""
        if self.standing is RegistrationPhase.STARTING and self._applied_offset() >= self.broker_epoch != NO_EPOCH:
            self.wake()

    def amend(self, registration: BrokerRegistration) -> None:
        """Register again, as the same incarnation: the broker stays what it is, with its epoch (``resendBrokerRegistration``)."""
        self.registration = registration
        self._is_amending = True
        self.wake()

    def wake(self) -> None:
        """Send the next heartbeat now."""
        self._woken.set()

    async def wait_until(self, standing: RegistrationPhase) -> None:
        """Return once the broker is so far, or further."""
        while self.standing.value < standing.value:
            await self._changed.wait()

    def _set_standing(self, standing: RegistrationPhase) -> None:
        self.standing = standing
        self._note()

    def _note(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def wait_refused_or(self, standing: RegistrationPhase) -> None:
        """As ``wait_until``; returns as well where the controller refuses the registration."""
        while self.standing.value < standing.value and not self.refusal:
            await self._changed.wait()

    async def wait_gone(self) -> bool:
        """Return once the controller lets the broker go: True; False where it has not responded for a whole session."""
        asked_at, session = trio.current_time(), self._settings.session_timeout_ms / 1000
        # A controller that has not heard of this broker for a session has fenced it, and so has moved what it led.
        while self.standing is not RegistrationPhase.GONE:
            given_up_at = max(asked_at, self._heard_at) + session
            if given_up_at <= trio.current_time():
                return False
            with trio.move_on_at(given_up_at):
                await self._changed.wait()
        return True

    # --- the conversation ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Register, and send heartbeats, until the controller lets the broker go."""
        interval = self._settings.heartbeat_interval_ms / 1000
        while self.broker_epoch == NO_EPOCH:
            if not await self._register():
                await trio.sleep(interval)
        while self.standing is not RegistrationPhase.GONE:
            # Made before the heartbeat: a wake while its response is awaited brings the next heartbeat at once.
            self._woken = trio.Event()
            if self._is_amending:
                self._is_amending = False
                if not await self._register():
                    self._is_amending = True  # no other assignment: it may have been set while the response was awaited
            pause = await self._beat()
            with trio.move_on_after(interval if pause is None else pause):
                await self._woken.wait()

    async def _register(self) -> bool:
        registration = self.registration
        assert registration is not None
        request = BrokerRegistrationRequest(
            broker_id=registration.broker_id,
            cluster_id=self._cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                Listener(
                    name=each.listener,
                    host=each.host,
                    port=each.port,
                    security_protocol=SECURITY_PROTOCOLS[each.security_protocol],
                )
                for each in registration.endpoints
            ],
            features=[
                Feature(name=name, min_supported_version=each.lowest, max_supported_version=each.highest)
                for name, each in self._features.items()
            ],
            rack=registration.rack,
            log_dirs=[each for each in self._directories().ids if each != ZERO_UUID],
            previous_broker_epoch=self._previous_epoch,
        )
        try:
            response: BrokerRegistrationResponse = await self._channel.send(request, timeout=_REQUEST_SECONDS)
        except (PeerUnavailableError, KafkaError) as error:
            logger.warning("This broker is not registered yet: %s", error)
            return False
        told, self.refusal = self.refusal, known_code(response.error_code)
        if self.refusal:
            if self.refusal != told:
                logger.warning("The controller does not register this broker: %s", self.refusal.name)
            self._note()
            return False
        self.broker_epoch = response.broker_epoch
        logger.info("Registered at the quorum with broker epoch %d", self.broker_epoch)
        return True

    async def _beat(self) -> float | None:
        """Send a heartbeat; how long to wait for the next, None for the interval."""
        directories = self._directories()
        tells_cordoned = self.standing is not RegistrationPhase.STARTING and has_cordoned_directories(
            self._metadata_version()
        )
        request = BrokerHeartbeatRequest(
            broker_id=self.registration.broker_id if self.registration is not None else -1,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._applied_offset(),
            want_fence=not self._is_ready,
            want_shut_down=self._is_leaving,
            offline_log_dirs=list(directories.offline),
            cordoned_log_dirs=[] if tells_cordoned else None,
        )
        try:
            response: BrokerHeartbeatResponse = await self._channel.send(request, timeout=_REQUEST_SECONDS)
        except (PeerUnavailableError, KafkaError) as error:
            logger.warning("No heartbeat has reached the controller: %s", error)
            return None
        self._heard_at = trio.current_time()
        if response.error_code:
            logger.warning("The controller answers a heartbeat with %s", known_code(response.error_code).name)
            return None
        return self._take(response)

    def _take(self, response: BrokerHeartbeatResponse) -> float | None:
        if self.standing is RegistrationPhase.STARTING:
            if response.is_caught_up:
                self._set_standing(RegistrationPhase.CAUGHT_UP)
            return _CATCH_UP_SECONDS
        if self.standing is RegistrationPhase.CAUGHT_UP and not response.is_fenced:
            logger.info("The controller has unfenced this broker")
            self._set_standing(RegistrationPhase.UNFENCED)
        elif self.standing is RegistrationPhase.LEAVING:
            if response.should_shut_down:
                self._set_standing(RegistrationPhase.GONE)
            return _SHUTDOWN_SECONDS
        return None
