"""Requests of a broker to the quorum's active controller, whichever node that is.

The controller is the leader that the observer knows. Where it cannot be reached, or says NOT_CONTROLLER, the leader there is then
is asked, after a moment; so a request may be executed twice (Kafka's NodeToControllerChannelManager). Each purpose has a
connection of its own with one request in flight, so that none waits behind the requests of another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import trio

from ...base.errors import ErrorCode
from ...replication.broker_client import BrokerClient, NoAnswerError, PeerUnavailableError
from ...replication.controller_channel import fitting
from ...wire.schema import Message
from ..raft.voters import Address

RETRY_SECONDS = 0.1
"""Before the controller is looked up again, as in Kafka."""


class QuorumChannel:
    """A ``RequestChannel``. ``leader`` tells where the active controller is, if that is known; ``connect`` makes the way."""

    def __init__(self, leader: Callable[[], Address | None], connect: Callable[[Address], BrokerClient]) -> None:
        self._leader = leader
        self._connect = connect
        self._turn = trio.StrictFIFOLock()  # not round state: the next request is sent after this one's answer
        self._client: BrokerClient | None = None
        self._address: Address | None = None

    async def send(
        self,
        request: Message,
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
                        response = await self._ask(request, highest)
                        if response is not None and not _is_elsewhere(response):
                            return response
                        if trio.current_time() >= given_up_at:
                            raise PeerUnavailableError("no active controller was found")
                        await trio.sleep(RETRY_SECONDS)
        except trio.TooSlowError:
            raise PeerUnavailableError(f"no controller has answered within {timeout:g} s") from None

    async def _ask(self, request: Message, highest: int | None) -> Any:
        """The answer of the node that leads as far as this one knows; None when there was none."""
        address = self._leader()
        if address is None:
            return None
        client = self._client_of(address)
        try:
            version = await client.negotiate(type(request), highest)
            return await client.send(fitting(request, version), version)
        except NoAnswerError:
            return None

    def _client_of(self, address: Address) -> BrokerClient:
        if self._client is None or self._address != address:
            self.close()
            self._client, self._address = self._connect(address), address
        return self._client

    def close(self) -> None:
        """End the connection; a request in flight gets no answer."""
        if self._client is not None:
            self._client.close()
            self._client = None


def _is_elsewhere(response: Any) -> bool:
    """Whether a node says that it is not the active controller; a response without an error of its own says so of each topic."""
    if hasattr(response, "error_code"):
        return bool(response.error_code == ErrorCode.NOT_CONTROLLER)
    return any(topic.error_code == ErrorCode.NOT_CONTROLLER for topic in response.topics)
