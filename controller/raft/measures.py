"""Measurements of a Raft node's driver: election and commit times, record counts, and the newest snapshot.

Meanings are those of Kafka's KafkaRaftMetrics: a commit's time is counted from the append to the high watermark, divided by the
records of its batch, and that of an election from the last round in which this node asked for votes until it leads or follows.
"""

from __future__ import annotations

from collections import deque

from ...base.recent_values import RecentValues
from .election import Prospective, RaftCandidate
from .follower import RaftFollower
from .leader import RaftLeader
from .quorum_state import RaftState


class RaftMeasures:
    """See the module. Methods take trio's time in seconds; the times that they record are in ms."""

    def __init__(self, now: float) -> None:
        self.commit_times = RecentValues()
        self.election_times = RecentValues()
        self.appended = RecentValues()
        """Records that this node has appended as the leader."""
        self.fetched = RecentValues()
        """Records that this node has fetched from the leader."""
        self.snapshot_bytes = 0
        """Of the newest snapshot that this node has made itself; 0 before it has made one."""
        self.snapshot_at = now
        """When that was; before the first one the time of the start."""
        self._uncommitted: deque[tuple[int, int, float]] = deque()
        """The end of each batch that this leader has appended, its records, and when that was."""
        self._election_since: float | None = None

    def note_state(self, state: RaftState, now: float) -> None:
        """The node is in another state, in which it has appended nothing yet."""
        self._uncommitted.clear()
        if isinstance(state, Prospective | RaftCandidate):
            self._election_since = now
        elif isinstance(state, RaftLeader | RaftFollower) and self._election_since is not None:
            self.election_times.note((now - self._election_since) * 1000, now)
            self._election_since = None

    def note_appended(self, base_offset: int, count: int, now: float) -> None:
        self.appended.note(count, now)
        self._uncommitted.append((base_offset + count, count, now))

    def note_fetched(self, count: int, now: float) -> None:
        self.fetched.note(count, now)

    def note_committed(self, high_watermark: int, now: float) -> None:
        while self._uncommitted and self._uncommitted[0][0] <= high_watermark:
            _, count, appended_at = self._uncommitted.popleft()
            self.commit_times.note((now - appended_at) * 1000 / count, now)

    def note_snapshot(self, size: int, now: float) -> None:
        """A snapshot of what is committed was made; ``size`` in bytes."""
        self.snapshot_bytes, self.snapshot_at = size, now
