"""A bounded history of group events: joins, leaves, rebalances and assignments, as the coordinator saw them.

It is kept in memory, of the groups that this broker coordinates, and is bounded: so many events of a group, and so many in all,
of which those of the groups that changed longest ago go first. So a group that rebalances all the time pushes out no other's.
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..base.wording import shortened
from ..replication.coordinator_log import CoordinatorTime

EVENTS_PER_GROUP = 200
MOST_EVENTS = 20_000
"""About 6 MB."""
_LONGEST_GROUP_ID = 1000
"""Groups with longer ids, which only a test has, have no timeline: ids are kept beyond the group's end."""
_LONGEST_NAME = 300


class EventKind(enum.Enum):
    """The value is for people."""

    JOINED = "joined"
    TOOK_OVER = "took over"
    LEFT = "left"
    SESSION_ENDED = "session ended"
    NOT_REJOINED = "did not join again in time"
    NOT_SYNCED = "did not ask for its assignment in time"
    NOT_REVOKED = "did not give up its partitions in time"
    GONE = "connection lost while joining"
    REBALANCE = "rebalance begins"
    GENERATION = "generation begins"
    ASSIGNED = "assignments are made"
    EPOCH = "epoch begins"
    SHARE_EPOCH = "epoch of the share group begins"
    TARGET = "target assignment is made"
    SETTLED = "members have their assignments"
    EMPTIED = "group is empty"
    UPGRADED = "group changes to the consumer protocol"
    DOWNGRADED = "group changes to the classic protocol"


class Event(NamedTuple):
    """One event of a group."""

    at_ms: int
    """Wall time."""
    kind: EventKind
    epoch: int
    """The generation of a classic group, the epoch of another one: the one that begins, else that of the group then."""
    member_id: str
    """"" where the event is about the group as a whole; ``client_id`` and ``host`` likewise."""
    client_id: str
    host: str
    detail: str
    duration_ms: int | None
    """How long the rebalance has taken so far."""


class NotedMember(Protocol):
    """A member of a group of any kind."""

    @property
    def member_id(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...


class Timeline:
    """Of one coordinator."""

    counts: Counter[EventKind]
    """How often each kind of event has happened to any group."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self.counts = Counter()
        self._most = most
        self._count = 0
        self._groups: dict[str, deque[Event]] = {}

    def __len__(self) -> int:
        return self._count

    def of(self, group_id: str) -> Sequence[Event]:
        """The events of a group, oldest first."""
        return tuple(self._groups.get(group_id, ()))

    def note(
        self,
        group_id: str,
        epoch: int,
        kind: EventKind,
        now: CoordinatorTime,
        member: NotedMember | None = None,
        detail: str | None = None,
        duration_ms: int | None = None,
    ) -> None:
        """Something happened to a group, or to one of its members."""
        self.counts[kind] += 1
        if len(group_id) > _LONGEST_GROUP_ID:
            return
        who = ("", "", "") if member is None else (member.member_id, member.client_id, member.client_host)
        member_id, client_id, host = (name[:_LONGEST_NAME] for name in who)
        why = shortened(detail or "")
        self._add(group_id, Event(now.wall_ms, kind, epoch, member_id, client_id, host, why, duration_ms))

    def _add(self, group_id: str, event: Event) -> None:
        events = self._groups.pop(group_id, None)
        if events is None:
            events = deque(maxlen=EVENTS_PER_GROUP)
        self._groups[group_id] = events  # the one that changed last stands last
        self._count += len(events) < EVENTS_PER_GROUP
        events.append(event)
        while self._count > self._most:
            oldest = next(iter(self._groups))
            self._groups[oldest].popleft()
            self._count -= 1
            if not self._groups[oldest]:
                del self._groups[oldest]
