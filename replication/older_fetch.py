"""Conversion of a follower's Fetch for leaders of an older Kafka: topics by name, and no broker epoch.

A fetcher knows topics by their ids and writes requests as version 17 has them; where inter.broker.protocol.version says less,
they are made to fit, and the answers too. From version 13 on topics have ids (KIP-516), from 15 on the replica's state is a
struct (KIP-903).
"""

from __future__ import annotations

from ..wire.messages.fetch import FetchRequest, FetchResponse
from ..wire.schema import ZERO_UUID

REPLICA_STATE_FROM = 15
_TOPIC_IDS_FROM = 13


class OlderFetch:
    """One fetcher's requests at a ``version`` below 15, and the names of the topics that it has been told of."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._names: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}

    def note(self, topic: str, topic_id: bytes) -> None:
        """A topic that is followed from now on; of several topics of one name, the last one noted exists."""
        self._names[topic_id] = topic
        self._ids[topic] = topic_id

    def fit(self, request: FetchRequest) -> None:
        """Change a request into what its version has."""
        assert request.replica_state is not None
        request.replica_id = request.replica_state.replica_id
        request.replica_state = None
        if self._version < _TOPIC_IDS_FROM:
            for topic in request.topics:
                topic.topic = self._names[topic.topic_id]
            for forgotten in request.forgotten_topics_data:
                forgotten.topic = self._names[forgotten.topic_id]

    def read(self, response: FetchResponse) -> None:
        """Give the topics of an answer their ids."""
        if self._version < _TOPIC_IDS_FROM:
            for topic in response.responses:
                topic.topic_id = self._ids.get(topic.topic, ZERO_UUID)
