"""The follower's side of a fetch session: the partitions that its leader knows, and the changes to send next (KIP-227).

A full request names every partition and asks for a session. In the session a request names only those that have changed,
and those to forget; an answer only those with news. After anything unexpected the next request is a full one, which ends
the session before it. Kafka: FetchSessionHandler.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.errors import ErrorCode
from ..wire.messages.fetch import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic
from .follower import Position

Key = tuple[bytes, int]
"""Topic id and partition number."""

_FULL = 0
_MAX_EPOCH = (1 << 31) - 1


class FetchSessionHandler:
    """One follower's session with one leader."""

    def __init__(self) -> None:
        self.session_id = 0
        """That of the next request, as ``epoch``."""
        self.epoch = _FULL
        self.asked: dict[Key, Position] = {}
        """What the leader was last asked of each partition."""

    @property
    def is_full(self) -> bool:
        """Whether the next request is to name every partition."""
        return self.epoch == _FULL

    def begin(self, wanted: Mapping[Key, Position], partition_max_bytes: int) -> list[FetchTopic]:
        """What a full request names."""
        assert self.is_full
        self.asked = dict(wanted)
        return _topics(wanted, partition_max_bytes)

    def change(
        self, changed: Mapping[Key, Position | None], partition_max_bytes: int
    ) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """What a request in the session names of the ``changed`` partitions, and forgets; None is for one to forget."""
        assert not self.is_full
        news: dict[Key, Position] = {}
        forgotten: dict[bytes, ForgottenTopic] = {}
        for key, position in changed.items():
            if position is not None:
                if self.asked.get(key) != position:
                    self.asked[key] = news[key] = position
            elif self.asked.pop(key, None) is not None:
                topic_id, number = key
                forgotten.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(number)
        return _topics(news, partition_max_bytes), list(forgotten.values())

    def take(self, response: FetchResponse) -> bool:
        """Go on as the answer says; False when it has an error or does not fit the request, and is not to be used."""
        if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = 0  # after any other error it stays, so that the next request ends that session
        named = {(topic.topic_id, data.partition_index) for topic in response.responses for data in topic.partitions}
        is_sound = named == self.asked.keys() if self.is_full else named <= self.asked.keys()
        if response.error_code or not is_sound:
            self.lose()
            return False
        if response.session_id == 0:
            self.session_id, self.epoch = 0, _FULL
        else:
            self.session_id = response.session_id
            self.epoch = self.epoch + 1 if self.epoch < _MAX_EPOCH else 1
        return True

    def lose(self) -> None:
        """Forget the session: the next request is a full one, which also ends the session that the leader may have."""
        self.epoch = _FULL


def _topics(positions: Mapping[Key, Position], partition_max_bytes: int) -> list[FetchTopic]:
    topics: dict[bytes, FetchTopic] = {}
    for (topic_id, number), position in positions.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = FetchTopic(topic_id=topic_id)
        topic.partitions.append(
            FetchPartition(
                partition=number,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.log_start_offset,
                partition_max_bytes=partition_max_bytes,
            )
        )
    return list(topics.values())
