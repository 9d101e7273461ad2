"""The channel for a broker's requests to the current controller (Kafka's NodeToControllerChannelManager).

The controller is the one that the metadata cache names. If it cannot be reached, or is no longer the controller, it is looked
up again after a moment and the request is sent to the one there is then; so a request may be executed twice. Versions are
negotiated, because brokers of a cluster are updated one after the other. When this broker is the controller itself, the
request is a call.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Protocol, TypeVar

import trio

from ..base.errors import ErrorCode
from ..wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ..wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ..wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ..wire.schema import Message, replace
from .broker_client import NoAnswerError, PeerUnavailableError
from .metadata_cache import MetadataCache
from .peers import Peers

RETRY_SECONDS = 0.1
"""Before the controller is looked up again, as in Kafka."""

REQUEST_SECONDS = 30.0
"""How long one controller has for its answer (controller.socket.timeout.ms)."""

_EPOCHS_FROM = 3
"""The version of AlterPartition that names in-sync replicas with their broker epochs."""

ControllerRequest = AlterPartitionRequest | ControlledShutdownRequest | AllocateProducerIdsRequest
Request = TypeVar("Request", bound=Message)


class LocalController(Protocol):
    """This broker's controller. Errors are in the answers; NOT_CONTROLLER where another broker is."""

    async def alter_partition(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse: ...

    async def controlled_shutdown(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse: ...

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse: ...


class RequestChannel(Protocol):
    """The way to the controller, whichever node that is."""

    async def send(
        self,
        request: Any,
        *,
        highest: int | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> Any:
        """The controller's response, which never is NOT_CONTROLLER; ``highest`` bounds the version.

        ``timeout`` limits all of it, ``patience`` the search for a controller; both in seconds. Raises PeerUnavailableError
        when either is over, and KafkaError (UNSUPPORTED_VERSION) for a controller that is too old.
        """
        ...


class SearchingChannel(ABC):
    """A ``RequestChannel`` with one request at a time, for each of which the controller is looked up."""

    def __init__(self) -> None:
        self._turn = trio.StrictFIFOLock()  # not round state: the next request is sent after this one's answer

    async def send(
        self,
        request: Any,
        *,
        highest: int | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> Any:
        given_up_at = math.inf if patience is None else trio.current_time() + patience
        try:
            with trio.fail_after(math.inf if timeout is None else timeout):
                async with self._turn:
                    while True:
                        response = await self._ask(request, highest, given_up_at)
                        if response is not None and not _is_elsewhere(response):
                            return response
                        if trio.current_time() >= given_up_at:
                            raise PeerUnavailableError("no controller was found")
                        await trio.sleep(RETRY_SECONDS)
        except trio.TooSlowError:
            raise PeerUnavailableError(f"no controller has answered within {timeout:g} s") from None

    @abstractmethod
    async def _ask(self, request: Any, highest: int | None, given_up_at: float) -> Any:
        """The answer of the node that is the controller as far as this one knows; None when there was none.

        It is looked for until ``given_up_at``, by trio's clock.
        """


def _is_elsewhere(response: Any) -> bool:
    """Whether a node says that it is not the controller; a response without an error of its own says so of each topic."""
    if hasattr(response, "error_code"):
        return bool(response.error_code == ErrorCode.NOT_CONTROLLER)
    return any(topic.error_code == ErrorCode.NOT_CONTROLLER for topic in response.topics)


class ControllerChannel(SearchingChannel):
    """To a broker that is the controller; ``purpose`` names the connection."""

    def __init__(
        self, broker_id: int, metadata: MetadataCache, peers: Peers, local: LocalController, purpose: str
    ) -> None:
        super().__init__()
        self._broker_id = broker_id
        self._metadata = metadata
        self._peers = peers
        self._local = local
        self._purpose = purpose

    async def _ask(self, request: ControllerRequest, highest: int | None, given_up_at: float) -> Any:
        controller_id = self._metadata.controller_id
        if controller_id == self._broker_id:
            return await self._call(request, highest)
        try:
            client = self._peers.client(controller_id, self._purpose, timeout=REQUEST_SECONDS, max_in_flight=1)
            with trio.move_on_at(given_up_at) as reaching:  # its answer to the request itself may take longer
                version = await client.negotiate(type(request), highest)
            if reaching.cancelled_caught:
                return None
            return await client.send(fitting(request, version), version)
        except NoAnswerError:
            return None

    async def _call(self, request: ControllerRequest, highest: int | None) -> Any:
        if isinstance(request, AlterPartitionRequest):
            version = type(request).valid_versions.stop - 1 if highest is None else highest
            return await self._local.alter_partition(fitting(request, version), version)
        if isinstance(request, ControlledShutdownRequest):
            return await self._local.controlled_shutdown(request)
        return await self._local.allocate_producer_ids(request)


def fitting(request: Request, version: int) -> Request:
    """The request as this version has it: before 3, AlterPartition names in-sync replicas without their broker epochs."""
    if not isinstance(request, AlterPartitionRequest) or version >= _EPOCHS_FROM:
        return request
    topics = [
        replace(
            topic,
            partitions=[
                replace(each, new_isr=[state.broker_id for state in each.new_isr_with_epochs], new_isr_with_epochs=[])
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return replace(request, topics=topics)
