"""The channel for a broker's requests to the active controller of the quorum.

The controller is the leader that the broker's Raft node knows. Where it cannot be reached, or says NOT_CONTROLLER, the leader
there is then is asked, after a moment; so a request may be executed twice (Kafka's NodeToControllerChannelManager). A request to
one that leads no more is given up as soon as another is known; Kafka's waits for the response of a node that hangs. Each purpose
has a connection of its own with one request in flight, so that none waits behind the requests of another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...replication.broker_client import NoAnswerError
from ...replication.controller_channel import SearchingChannel, fitting
from ...wire.schema import Message
from ..raft.voters import ControllerAddress
from .controller_client import Connect, ControllerClient


class QuorumChannel(SearchingChannel):
    """``leader`` tells where the active controller is, if that is known; ``connect`` makes the way."""

    def __init__(self, leader: Callable[[], ControllerAddress | None], connect: Connect) -> None:
        super().__init__()
        self._leader = leader
        self._controller = ControllerClient(connect)

    def follow_leader(self) -> None:
        """The Raft node has found another leader, or none. A request that waits for the one before goes to the one there is."""
        address = self._leader()
        if address is not None:
            self._controller.leave_all_but(address)

    async def _ask(self, request: Message, highest: int | None, given_up_at: float) -> Any:
        address = self._leader()
        if address is None:
            return None
        client = self._controller.at(address)
        try:
            version = await client.negotiate(type(request), highest)
            return await client.send(fitting(request, version), version)
        except NoAnswerError:
            return None
