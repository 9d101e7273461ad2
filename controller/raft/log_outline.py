"""The outline of a metadata log: the offsets, epochs, snapshots and voters known without reading the log.

Offsets: ``start_offset`` <= ``flushed_offset`` <= ``end_offset``. Leader epochs never decrease along the log. A log that begins
above 0 has a snapshot that reaches to its start. What the log says of the quorum is kept for each offset from the oldest
snapshot on, committed or not, because a node follows the newest voter set at once (KIP-853) and goes back where the log is cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...log.leader_epochs import LeaderEpochCache
from ...log.metadata_snapshots import BOOTSTRAP_ID, MetadataSnapshotId
from ...wire.messages.control_records import KRaftVersionRecord, VotersRecord
from ...wire.schema import Message
from .voter_set import VoterSet


class QuorumEntry(NamedTuple):
    """What the log says of the quorum from one record on."""

    offset: int
    """Of that record; for a snapshot the last offset that it stands for."""
    kraft_version: int = 0
    voters: VoterSet | None = None
    """None where the log says nothing of voters."""


class Divergence(NamedTuple):
    """An epoch, and where it ends in a leader's log: a follower has to cut off what it has beyond."""

    epoch: int
    end_offset: int


class LogOutline:
    """See the module. ``epochs`` has (epoch, first offset) of each epoch."""

    def __init__(
        self,
        start_offset: int = 0,
        end_offset: int = 0,
        flushed_offset: int = 0,
        epochs: list[tuple[int, int]] | None = None,
        snapshots: dict[MetadataSnapshotId, int] | None = None,
        quorum: list[QuorumEntry] | None = None,
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.flushed_offset = flushed_offset
        """The end of what is on stable storage for certain. A node that starts cannot know what was flushed before its stop."""
        self.snapshots = dict(sorted((snapshots or {}).items()))
        """The size of each snapshot in bytes, the oldest snapshot first."""
        self.history = quorum or []
        """What the log says of the quorum, by rising offsets."""
        self._epochs = LeaderEpochCache(list(epochs or []))
        # The log's end when the flush in flight began; None without one.
        self._flushing_to: int | None = None
        newest = self.newest_snapshot
        self.committed_offset = max(start_offset, 0 if newest is None else newest.end_offset)
        """What is known to be committed, so that the log is never cut below."""

    # --- what there is ------------------------------------------------------------------------------------------------

    @property
    def newest_snapshot(self) -> MetadataSnapshotId | None:
        """The newest one, that of formatting apart."""
        newest = next(reversed(self.snapshots), BOOTSTRAP_ID)
        return None if newest == BOOTSTRAP_ID else newest

    @property
    def oldest_snapshot(self) -> MetadataSnapshotId | None:
        return next((each for each in self.snapshots if each != BOOTSTRAP_ID), None)

    @property
    def last_epoch(self) -> int:
        """That of the last record; of a log without records that of the snapshot before it, else 0."""
        if self._epochs.latest_epoch >= 0:
            return self._epochs.latest_epoch
        newest = self.newest_snapshot
        return 0 if newest is None else newest.epoch

    @property
    def end(self) -> tuple[int, int]:
        """(epoch, offset): by these, logs are compared in an election."""
        return self.last_epoch, self.end_offset

    @property
    def quorum(self) -> QuorumEntry:
        return self.history[-1] if self.history else QuorumEntry(-1)

    def quorum_at(self, offset: int) -> QuorumEntry:
        """What a snapshot that ends behind ``offset`` says of the quorum."""
        return next((entry for entry in reversed(self.history) if entry.offset <= offset), QuorumEntry(-1))

    def epoch_at(self, offset: int) -> int:
        """The epoch of a record in the log; -1 where it is not known."""
        return self._epochs.epoch_for_offset(offset)

    def end_offset_for_epoch(self, epoch: int) -> Divergence:
        """Where an epoch ends here, or the newest one before it; before the log begins, its oldest snapshot's end.

        Kafka's ``KafkaRaftLog.endOffsetForEpoch``.
        """
        found, end = self._epochs.end_offset_for(epoch, self.end_offset)
        if end < 0:
            return Divergence(self.last_epoch, self.end_offset)
        oldest = self.oldest_snapshot
        if oldest is not None and end == oldest.end_offset and found == epoch:
            return Divergence(oldest.epoch, oldest.end_offset)
        return Divergence(found, end)

    def check_fetch(self, offset: int, epoch: int) -> Divergence | MetadataSnapshotId | None:
        """Compare the end of a follower's log; None where it is the beginning of this one.

        Otherwise the follower has to cut its log, or to fetch a snapshot (``KafkaRaftLog.validateOffsetAndEpoch``).
        """
        newest, oldest = self.newest_snapshot, self.oldest_snapshot
        if offset == 0:
            # A new replica: it loads the snapshot rather than replay the log, even where the log still begins at 0.
            return newest
        if oldest is not None and newest is not None:
            if offset < self.start_offset or epoch < oldest.epoch:
                return newest
            if offset == self.start_offset and epoch != oldest.epoch:
                return newest
        own = self.end_offset_for_epoch(epoch)
        return own if own.epoch != epoch or own.end_offset < offset else None

    # --- changes ------------------------------------------------------------------------------------------------------

    def append(self, epoch: int, record_count: int) -> int:
        """Returns the offset of the first record."""
        offset = self.end_offset
        assert epoch >= self.last_epoch, f"epoch {epoch} behind {self.last_epoch}"
        self._epochs.assign(epoch, offset)
        self.end_offset += record_count
        return offset

    def note_control(self, offset: int, messages: Iterable[Message | None]) -> None:
        """Control records were appended, the first one at ``offset``."""
        for message in messages:
            if isinstance(message, KRaftVersionRecord):
                self.note_quorum(offset, message.k_raft_version, None)
            elif isinstance(message, VotersRecord):
                self.note_quorum(offset, None, VoterSet.of_record(message))
            offset += 1

    def note_quorum(self, offset: int, kraft_version: int | None, voters: VoterSet | None) -> None:
        """A record about the quorum was appended; None is what it does not say."""
        known = self.quorum
        self.history.append(
            QuorumEntry(
                offset,
                known.kraft_version if kraft_version is None else kraft_version,
                known.voters if voters is None else voters,
            )
        )

    def truncate(self, offset: int) -> None:
        assert self.committed_offset <= offset <= self.end_offset, f"{self.committed_offset} is committed, not {offset}"
        self.end_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)
        if self._flushing_to is not None:
            self._flushing_to = min(self._flushing_to, offset)
        self._epochs.truncate_from_end(offset)
        while self.history and self.history[-1].offset >= offset:
            self.history.pop()

    def start_after(self, snapshot: MetadataSnapshotId, size: int, kraft_version: int, voters: VoterSet | None) -> None:
        """The log is empty and begins at the end of a snapshot that was fetched."""
        self.start_offset = self.end_offset = self.flushed_offset = self.committed_offset = snapshot.end_offset
        if self._flushing_to is not None:
            # The flush in flight is of the log that is gone, and its end still comes: it must not count for new offsets.
            self._flushing_to = snapshot.end_offset
        self._epochs.clear()
        self.snapshots = {snapshot: size}
        self.history = [QuorumEntry(snapshot.end_offset - 1, kraft_version, voters)]

    def add_snapshot(self, snapshot: MetadataSnapshotId, size: int) -> None:
        self.snapshots = dict(sorted({**self.snapshots, snapshot: size}.items()))

    def delete_before(self, snapshot: MetadataSnapshotId) -> bool:
        """Let the log begin at the end of a snapshot that there is; False where it cannot, or does so already."""
        if snapshot not in self.snapshots or not self.start_offset < snapshot.end_offset <= self.committed_offset:
            return False
        self.start_offset = snapshot.end_offset
        self.flushed_offset = max(self.flushed_offset, self.start_offset)
        self._epochs.truncate_from_start(self.start_offset)
        self.snapshots = {each: size for each, size in self.snapshots.items() if each >= snapshot}
        while len(self.history) > 1 and self.history[1].offset < self.start_offset:
            del self.history[0]
        return True

    # --- flushes ------------------------------------------------------------------------------------------------------

    def begin_flush(self) -> bool:
        """Whether a flush is to begin: there is something to flush, and none is in flight."""
        if self._flushing_to is not None or self.flushed_offset >= self.end_offset:
            return False
        self._flushing_to = self.end_offset
        return True

    def end_flush(self) -> None:
        assert self._flushing_to is not None, "there is a flush in flight"
        # ``delete_before`` may have moved the start of the log, and this offset with it, beyond the flush's end.
        self.flushed_offset = max(self.flushed_offset, self._flushing_to)
        self._flushing_to = None
