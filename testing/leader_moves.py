"""Simulated leader moves: a client gets NOT_LEADER_OR_FOLLOWER until it has requested the metadata again.

The leader after the move is this broker again, with a new leader epoch, which the client finds in the metadata. Clients are told
apart by their client ids.
"""

from __future__ import annotations

from typing import Any

from ..base.errors import ErrorCode, KafkaError
from ..handlers.call import Call
from ..wire.api_keys import ApiKey
from . import names

_OF_LEADERS = {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DELETE_RECORDS}
ERROR = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader has moved")


class LeaderMoves:
    """Which partitions moved, and which clients have found out."""

    def __init__(self) -> None:
        self._moved: dict[tuple[str, int], set[str]] = {}

    def __len__(self) -> int:
        return len(self._moved)

    def move(self, topic: str, partition: int) -> None:
        """Move a partition: from now on no client knows its leader."""
        self._moved[topic, partition] = set()

    def is_lost(self, client_id: str, topic: str, partition: int | None) -> bool:
        """Whether the client has not read the metadata since the move."""
        known_to = self._moved.get((topic, partition)) if partition is not None else None
        return known_to is not None and client_id not in known_to

    def concerns(self, api: ApiKey, call: Call, request: Any) -> bool:
        """Whether the request needs the leader of a partition that has moved without the client's knowledge."""
        if api not in _OF_LEADERS:
            return False
        lost = {topic for (topic, _), known_to in self._moved.items() if call.client_id not in known_to}
        return bool(lost) and not lost.isdisjoint(names.topics_of(call, request))

    def refreshed(self, call: Call, response: Any) -> None:
        """Note that the client was sent this metadata."""
        told = {topic.name for topic in response.topics}
        for (topic, _), known_to in self._moved.items():
            if topic in told:
                known_to.add(call.client_id)
