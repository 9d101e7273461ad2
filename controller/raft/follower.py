"""The follower state of a Raft node: its timers, the snapshot it fetches, and the fetched batches it may append."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

from ...base.errors import ErrorCode, KafkaError, ProtocolError
from ...log.checkpoints import CorruptFileError
from ...log.disk import Bytes
from ...log.metadata_snapshots import MetadataSnapshotId, SnapshotHead, parse_snapshot_head
from ...wire.records import RecordBatch, iter_complete_batches
from .voter_set import Endpoints, ReplicaKey


@dataclasses.dataclass(eq=False)
class SnapshotDownload:
    """A snapshot that is fetched."""

    snapshot: MetadataSnapshotId
    size: int = 0
    """How many bytes of it have come, and where the next piece begins."""
    _beginning: bytearray = dataclasses.field(default_factory=bytearray)
    _head: SnapshotHead | None = None

    def append(self, data: Bytes) -> None:
        self.size += len(data)
        if self._head is None:
            self._beginning += data
            self._head = parse_snapshot_head(self._beginning)

    def head(self) -> SnapshotHead:
        """What it says of the quorum. Raises KafkaError(CORRUPT_MESSAGE)."""
        if self._head is None:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.snapshot.file_name} does not begin with a header")
        return self._head


@dataclasses.dataclass(eq=False)
class RaftFollower:
    """The node follows a leader."""

    epoch: int
    leader_id: int
    endpoints: Endpoints
    """Where the leader is reached."""
    voted: ReplicaKey | None
    """The vote that this node has given in the epoch; None for none."""
    deadline_ms: float
    """When a voter asks for votes, unless a fetch succeeds before."""
    update_deadline_ms: float
    """When it is looked at next whether the leader knows this voter rightly, or whether to join the voters."""
    has_fetched: bool = False
    """Whether the leader has been heard of, and has not gone since."""
    has_updated_leader: bool = False
    """Whether the leader has been told addresses and versions, which it keeps in memory with ``kraft.version`` 0."""
    download: SnapshotDownload | None = None

    def may_grant(self, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        """A pre-vote only while the leader has not been heard of: it must not be deposed by one that cannot reach it."""
        return is_pre_vote and is_up_to_date and not self.has_fetched


class FetchedBatch(NamedTuple):
    """A batch that may be appended, and where it ends in the response."""

    batch: RecordBatch
    position: int


def appendable(records: Bytes, end_offset: int, epoch: int) -> Iterator[FetchedBatch]:
    """The batches of a response that fit to the log's end, up to the first that does not.

    One of an epoch above the follower's ends it (KAFKA-18723), and so does one that is damaged or not whole.
    """
    position = 0
    try:
        for batch in iter_complete_batches(records):
            if batch.partition_leader_epoch > epoch or batch.base_offset != end_offset or batch.last_offset_delta < 0:
                return
            batch.check_crc()
            end_offset = batch.next_offset
            position += batch.size
            yield FetchedBatch(batch, position)
    except (KafkaError, ProtocolError, CorruptFileError):
        return
