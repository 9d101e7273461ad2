"""``RemoteKafkaRequests``: the remote cluster as the target of the console's actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..view.remote.cluster_client import ClusterClient
from ..view.remote.cluster_view import ClusterView
from ..view.remote.group_requests import coordinator
from ..view.remote.topic_requests import cluster_state
from ..wire.api_keys import ApiKey
from ..wire.error_codes import error_finder
from ..wire.schema import Message
from .kafka_requests import HIGHEST, AnyBrokerTarget, ControllerTarget, GroupCoordinatorTarget, LeaderTarget, To

_ATTEMPTS = 3
_PAUSE = 0.5
_MOST_LEADERS = 10_000
_ELSEWHERE = {ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR}
_ASKS_ONLY = (
    "DESCRIBE_",
    "CONSUMER_GROUP_DESCRIBE",
    "SHARE_GROUP_DESCRIBE",
    "LIST_",
    "FIND_",
    "OFFSET_FETCH",
    "METADATA",
    "FETCH",
    "PRODUCE",
)
"""What the names of APIs begin with that change nothing which the view would have to ask for anew at once.

Offsets go on with every record anyway.
"""


class RemoteKafkaRequests:
    """``KafkaRequests`` of a cluster elsewhere.

    After a change the view is renewed, so that the next page shows it. Leaders are remembered until a broker says that one is
    wrong.
    """

    def __init__(self, client: ClusterClient, view: ClusterView) -> None:
        self._client = client
        self._view = view
        self._leaders: dict[TopicPartition, int] = {}

    async def ask(self, request: Message, to: To) -> Any:
        key = ApiKey(request.api_key)
        try:
            response = await self._asked(request, to, HIGHEST.get(key))
        except OSError as error:
            self._leaders.clear()
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from None
        if not key.name.startswith(_ASKS_ONLY):
            await self._view.renew()
        return response

    async def _asked(self, request: Message, to: To, highest: int | None) -> Any:
        """The response of the broker that it is up to; where that has changed, of the next one. Raises KafkaError, OSError."""
        if isinstance(to, AnyBrokerTarget):
            return await self._client.ask_any(request, highest=highest)
        for attempt in range(1, _ATTEMPTS + 1):
            response = await self._client.ask(await self._broker(to), request, highest)
            if attempt == _ATTEMPTS or _ELSEWHERE.isdisjoint(error_finder(type(response))(response)):
                break
            self._leaders.clear()
            await trio.sleep(_PAUSE)
        return response

    async def _broker(self, to: ControllerTarget | LeaderTarget | GroupCoordinatorTarget) -> int:
        if isinstance(to, GroupCoordinatorTarget):
            return await coordinator(self._client, to.group)
        if isinstance(to, ControllerTarget):
            controller_id = (await cluster_state(self._client, [])).controller_id
            if controller_id not in self._client.nodes:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, "no broker is the controller just now")
            return controller_id
        partition = TopicPartition(to.topic, to.partition)
        if partition not in self._leaders:
            await self._find_leaders([partition])
        return self._leaders[partition]

    async def by_leader(self, partitions: Iterable[TopicPartition]) -> Sequence[Sequence[TopicPartition]]:
        """See ``KafkaRequests``; by one request, whatever was known."""
        asked = list(partitions)
        try:
            await self._find_leaders(asked)
        except OSError as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from None
        found: dict[int, list[TopicPartition]] = {}
        for each in asked:
            found.setdefault(self._leaders[each], []).append(each)
        return list(found.values())

    async def _find_leaders(self, partitions: Sequence[TopicPartition]) -> None:
        """Raises KafkaError where one is not there, or has no leader; OSError."""
        state = await cluster_state(self._client, dict.fromkeys(each.topic for each in partitions))
        if len(self._leaders) + len(partitions) > _MOST_LEADERS:
            self._leaders.clear()
        for each in partitions:
            topic = state.topics.get(each.topic)
            found = None if topic is None else topic.partitions.get(each.partition)
            if found is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {each}")
            if found.leader is None:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{each} has no leader")
            self._leaders[each] = found.leader
