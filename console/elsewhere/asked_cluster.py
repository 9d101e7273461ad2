"""``AskedCluster``: where the requests of actions go when the console is no broker's own."""

from __future__ import annotations

from typing import Any

import trio

from ...base.errors import ErrorCode, KafkaError
from ...wire.api_keys import ApiKey
from ...wire.error_codes import error_finder
from ...wire.schema import Message
from ..asking import HIGHEST, AnyBroker, Controller, GroupCoordinator, Leader, To
from .cluster_client import ClusterClient
from .group_requests import coordinator
from .topic_requests import cluster_state
from .view import ClusterView

_ATTEMPTS = 3
_PAUSE = 0.5
_ELSEWHERE = {ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR}
_ASKS_ONLY = ("DESCRIBE_", "LIST_", "FIND_", "OFFSET_FETCH", "METADATA", "FETCH")
"""What the names of APIs begin with that change nothing."""


class AskedCluster:
    """``Kafka`` of a cluster elsewhere. After a change the view is renewed, so that the next page shows it."""

    def __init__(self, client: ClusterClient, view: ClusterView) -> None:
        self._client = client
        self._view = view

    async def ask(self, request: Message, to: To) -> Any:
        key = ApiKey(request.api_key)
        try:
            response = await self._asked(request, to, HIGHEST.get(key))
        except OSError as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from None
        if not key.name.startswith(_ASKS_ONLY):
            await self._view.renew()
        return response

    async def _asked(self, request: Message, to: To, highest: int | None) -> Any:
        """The answer of the broker that it is up to; where that has changed, of the next one. Raises KafkaError, OSError."""
        if isinstance(to, AnyBroker):
            return await self._client.ask_any(request, highest=highest)
        for attempt in range(1, _ATTEMPTS + 1):
            response = await self._client.ask(await self._broker(to), request, highest)
            if attempt == _ATTEMPTS or _ELSEWHERE.isdisjoint(error_finder(type(response))(response)):
                break
            await trio.sleep(_PAUSE)
        return response

    async def _broker(self, to: Controller | Leader | GroupCoordinator) -> int:
        if isinstance(to, GroupCoordinator):
            return await coordinator(self._client, to.group)
        if isinstance(to, Controller):
            controller_id = (await cluster_state(self._client, "")).controller_id
            if controller_id not in self._client.nodes:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, "no broker is the controller just now")
            return controller_id
        state = await cluster_state(self._client, to.topic)
        if to.topic not in state.topics or to.partition not in state.topics[to.topic].partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {to.topic}-{to.partition}")
        leader = state.topics[to.topic].partitions[to.partition].leader
        if leader is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{to.topic}-{to.partition} has no leader")
        return leader
