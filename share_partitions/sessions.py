"""Share sessions: which share partitions a member fetches from this broker, and how far it is with its requests (KIP-932).

A session is begun by a ShareFetch with epoch 0, which replaces an earlier session of the member and releases nothing. Each later
request, of either API, names the epoch that is next; it counts even if all its partitions fail. Epoch -1 ends the session.

A session is bound to the connection that began it: with the connection it ends, and what the member has is released at once. When
the last session of a group ends, the broker forgets the group's share partitions (``SharePartitions.retire``).

Source: Kafka's ShareSessionCache and SharePartitionManager. Kafka forgets a group's share partitions only where the last session
ended with its connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..base.errors import ErrorCode, KafkaError
from ..share_coordinator.state import SharePartitionKey
from .led_partition import Outcome
from .manager import SharePartitions

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_LAST_EPOCH = (1 << 31) - 1


class ShareSession:
    """The session of one member."""

    __slots__ = ("epoch", "group_id", "keys", "member_id")

    def __init__(self, group_id: str, member_id: str, keys: Iterable[SharePartitionKey]) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.keys: dict[SharePartitionKey, None] = dict.fromkeys(keys)
        """What it fetches."""
        self.epoch = 1
        """Of the next request."""

    def advance(self, epoch: int) -> None:
        """A request has come. Raises KafkaError INVALID_SHARE_SESSION_EPOCH, and the session lives on."""
        if epoch != self.epoch:
            raise KafkaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH, f"the share session is at {self.epoch}, not {epoch}"
            )
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1


class ShareSessions:
    """The sessions of a broker."""

    def __init__(self, share_partitions: SharePartitions, most: int) -> None:
        """At most ``most`` sessions at a time."""
        self._share_partitions = share_partitions
        self._most = most
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._of_group: dict[str, int] = {}
        self.evictions = 0
        """How many ended with their connection."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """How many share partitions they have together."""
        return sum(len(session.keys) for session in self._sessions.values())

    def begin(self, group_id: str, member_id: str, keys: Iterable[SharePartitionKey]) -> ShareSession:
        """A new session of a member. Raises KafkaError SHARE_SESSION_LIMIT_REACHED, and the earlier one is over even then."""
        replaced = self._remove(self._sessions.get((group_id, member_id)))
        if len(self._sessions) >= self._most:
            if replaced:
                self._share_partitions.release(group_id, member_id)
                self._retire_if_last(group_id)
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, f"there are {self._most} share sessions")
        session = self._sessions[group_id, member_id] = ShareSession(group_id, member_id, keys)
        self._of_group[group_id] = self._of_group.get(group_id, 0) + 1
        return session

    def find(self, group_id: str, member_id: str) -> ShareSession:
        """The session of a member. Raises KafkaError SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, "the member has no share session here")
        return session

    def update(
        self, session: ShareSession, added: Iterable[SharePartitionKey], forgotten: Sequence[SharePartitionKey]
    ) -> None:
        """What a request changes of a session's share partitions."""
        session.keys.update(dict.fromkeys(added))
        for key in forgotten:
            session.keys.pop(key, None)

    def end(self, session: ShareSession) -> list[Outcome]:
        """The member has ended its session: release what it has."""
        if not self._remove(session):
            return []
        outcomes = self._share_partitions.release(session.group_id, session.member_id)
        self._retire_if_last(session.group_id)
        return outcomes

    def disconnected(self, session: ShareSession) -> None:
        """The connection that began a session is gone; that of a session that was replaced has nothing to end."""
        if self._sessions.get((session.group_id, session.member_id)) is session:
            self.evictions += 1
            self.end(session)

    def _remove(self, session: ShareSession | None) -> bool:
        if session is None or self._sessions.get((session.group_id, session.member_id)) is not session:
            return False
        del self._sessions[session.group_id, session.member_id]
        left = self._of_group[session.group_id] - 1
        if left:
            self._of_group[session.group_id] = left
        else:
            del self._of_group[session.group_id]
        return True

    def _retire_if_last(self, group_id: str) -> None:
        if group_id not in self._of_group:
            self._share_partitions.retire(group_id)
