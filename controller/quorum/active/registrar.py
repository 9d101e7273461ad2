"""The registration of this controller's addresses and features with the active controller (KIP-919).

It happens once in the lifetime of a process.

It is due while the log has no registration of this life, from the level of ``metadata.version`` on that has such records. A
request that fails is repeated after a pause that grows. Source: Kafka's ControllerRegistrationManager.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio

from ....base.errors import ErrorCode, KafkaError, known_code
from ....metadata.image import ClusterImage
from ....replication.broker_client import NoAnswerError
from ....wire.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from .. import metadata_version

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 120.0


class ControllerRegistrar:
    """``run`` it in a task, and have it ``look`` whenever the image changes, or another node leads.

    ``send`` brings the request to the active controller. It raises KafkaError and NoAnswerError where there is none.
    """

    def __init__(
        self,
        request: ControllerRegistrationRequest,
        image: Callable[[], ClusterImage],
        send: Callable[[ControllerRegistrationRequest], Awaitable[ControllerRegistrationResponse]],
    ) -> None:
        self._request = request
        self._image = image
        self._send = send
        self._changed = trio.Event()

    def look(self) -> None:
        if self._is_due():
            self._changed.set()

    def _is_due(self) -> bool:
        image = self._image()
        if not metadata_version.has_controller_registrations(metadata_version.finalized_level(image.features)):
            return False
        known = image.quorum_controllers.newest().get(self._request.controller_id)
        return known is None or known.incarnation_id != self._request.incarnation_id

    async def run(self) -> None:
        """Register when it is due, until cancelled."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            while self._is_due():
                if await self._is_registered():
                    pause = _FIRST_PAUSE_SECONDS
                    break
                await trio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _is_registered(self) -> bool:
        """Whether the active controller has taken the registration; it comes by the log then."""
        try:
            response = await self._send(self._request)
        except (KafkaError, NoAnswerError) as error:
            logger.info("This controller is not registered yet: %s", error)
            return False
        if response.error_code == ErrorCode.NOT_CONTROLLER:
            logger.info("This controller is not registered yet: %s", response.error_message or "NOT_CONTROLLER")
            return False
        if response.error_code:
            level = logging.INFO if response.error_code == ErrorCode.NOT_CONTROLLER else logging.ERROR
            logger.log(
                level,
                "This controller is not registered: %s %s",
                known_code(response.error_code).name,
                response.error_message or "",
            )
            return False
        return True
