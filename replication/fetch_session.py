"""Incremental fetch sessions: the partitions that a consumer or follower fetches, stored between requests (KIP-227).

Rules:

- Session id 0 with epoch 0 asks for a new session, with epoch -1 for none. Epoch -1 with an id ends that session.
- Else the epoch must be the one expected next (INVALID_FETCH_SESSION_EPOCH) of a known id (FETCH_SESSION_ID_NOT_FOUND);
  the request then adds, changes and forgets partitions of the session.
- A session that has forgotten its last partition has ended: it is answered once more, with id 0 and no partitions.
- An incremental response holds the partitions with data, an error, or a high watermark, last stable offset or log start that
  changed. Only those are read that have changed since they were read (``delayed_fetch``). A partition that had data goes to the
  end of their order, so that none starves.
- The cache is bounded: when it is full, the session used longest ago is dropped if it was idle for two minutes; for a
  follower's session a consumer's is dropped at once. Otherwise the fetch gets no session.
- What sessions hold is bounded, too: the partitions that consumers' fetches name, whether or not they exist, are remembered up
  to ``MOST_PARTITIONS``, and none whose name is too long for a topic. Beyond that a fetch gets no session. (Kafka has no bound.)
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable

import trio

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.fetch import FetchRequest, ForgottenTopic
from .delayed_fetch import DelayedFetch, FetchedPartition

logger = logging.getLogger(__name__)

_MIN_EVICTION_SECONDS = 120.0
_MAX_ID = (1 << 31) - 1
_MAX_EPOCH = (1 << 31) - 1
_LONGEST_TOPIC = 249
MOST_PARTITIONS = 500_000
"""Of all sessions of a broker together: about 200 MB."""

PartitionKey = tuple[str | bytes, int]
"""Topic name, or topic id from version 13 on, and partition number."""


class FetchSession:
    """The partitions of one consumer or follower."""

    __slots__ = (
        "last_used",
        "news",
        "next_epoch",
        "partitions",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        uses_topic_ids: bool,
        partitions: dict[PartitionKey, FetchedPartition],
        news: DelayedFetch,
    ) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.partitions = partitions
        self.news = news
        """Those of the partitions that have changed."""
        self.next_epoch = 1
        self.last_used = trio.current_time()

    @property
    def is_followers(self) -> bool:
        return self.news.is_followers

    def forget(self, topics: Iterable[ForgottenTopic]) -> None:
        """Fetch these partitions no more."""
        for forgotten in topics:
            name = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for number in forgotten.partitions:
                fetched = self.partitions.pop((name, number), None)
                if fetched is not None:
                    fetched.leave()

    def end(self) -> None:
        """No partition is to tell of its changes any more; a fetch that waits is answered."""
        self.news.wake()
        for fetched in self.partitions.values():
            fetched.leave()


def update_session(
    request: FetchRequest, by_id: bool, partitions: dict[PartitionKey, FetchedPartition], news: DelayedFetch
) -> bool:
    """Add and change partitions as a request says; all that it lists are ``news``.

    Returns whether one of the added is of a topic that cannot exist, because its name is too long.
    """
    has_no_topics_name = False
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            known = partitions.get((name, asked.partition))
            if known is not None:
                known.ask(asked)
                continue
            partitions[name, asked.partition] = FetchedPartition(topic.topic, topic.topic_id, asked, news)
            has_no_topics_name |= len(topic.topic) > _LONGEST_TOPIC
    return has_no_topics_name


class FetchSessionCache:
    """All sessions of this broker, at most ``slots``, with ``most_partitions`` in them."""

    def __init__(self, slots: int, randomness: random.Random, most_partitions: int = MOST_PARTITIONS) -> None:
        self._slots = slots
        self._randomness = randomness
        self._most_partitions = most_partitions
        self._partitions = 0
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0
        """Sessions that were dropped to make room for others."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """The partitions of all sessions."""
        return self._partitions

    def partitions(self, session_id: int) -> list[FetchedPartition]:
        """What a session fetches; nothing where there is no such session."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.partitions.values())

    def close(self, session_id: int) -> None:
        """Drop a session, if it is there."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)
            session.end()

    def create(
        self, by_id: bool, partitions: dict[PartitionKey, FetchedPartition], news: DelayedFetch
    ) -> FetchSession | None:
        """A new session, or None when there is no room. ``news`` are those of the fetch that begins it."""
        for fetched in partitions.values():
            if len(fetched.topic) > _LONGEST_TOPIC:
                return None
        if self._partitions + len(partitions) > self._most_partitions and not news.is_followers:
            return None
        if not self._make_room(news.is_followers):
            return None
        self._partitions += len(partitions)
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._randomness.randint(1, _MAX_ID)
        session = self._sessions[session_id] = FetchSession(session_id, by_id, partitions, news)
        return session

    def _make_room(self, for_follower: bool) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        # Sessions are kept in the order of their last use.
        oldest = next(iter(self._sessions.values()))
        if trio.current_time() - oldest.last_used < _MIN_EVICTION_SECONDS:
            consumers = (session for session in self._sessions.values() if not session.is_followers)
            evicted = next(consumers, None) if for_follower else None
            if evicted is None:
                return False
            oldest = evicted
        self.close(oldest.session_id)
        self.evictions += 1
        logger.debug("Fetch session %d makes room for another; %d is the most", oldest.session_id, self._slots)
        return True

    def resume(self, request: FetchRequest, by_id: bool) -> FetchSession | None:
        """The session an incremental request goes on with; None when it ends it. Raises KafkaError by the rules above."""
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no session {request.session_id}")
        if session.next_epoch != request.session_epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"session {request.session_id} expects epoch {session.next_epoch}, not {request.session_epoch}",
            )
        if session.uses_topic_ids != by_id:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "the session was begun with the other topic naming"
            )
        before = len(session.partitions)
        has_no_topics_name = update_session(request, by_id, session.partitions, session.news)
        if request.forgotten_topics_data:
            session.forget(request.forgotten_topics_data)
        # Before ``close`` below, which takes off all that the session holds by now.
        self._partitions += len(session.partitions) - before
        if has_no_topics_name or (
            before < len(session.partitions) and self._partitions > self._most_partitions and not session.is_followers
        ):
            self.close(session.session_id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"session {request.session_id} holds too much")
        del self._sessions[session.session_id]  # and put at the end, since the order is that of the last use
        if not session.partitions:
            return None  # it has ended; what it forgot tells it nothing any more
        session.next_epoch = session.next_epoch + 1 if session.next_epoch < _MAX_EPOCH else 1
        session.last_used = trio.current_time()
        self._sessions[session.session_id] = session
        return session
