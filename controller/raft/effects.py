"""Effects of a Raft node: everything it requests of its environment, the output of ``RaftNode.step``.

Who performs them keeps these rules:

- Effects are performed in the order in which steps return them, each step's behind those of the step before. The next one
  begins when the one before has ended.
- ``Flush`` is the exception. It begins in its place and ends at any time later; ``events.FlushFinished`` is reported then. What
  was appended behind it does not count as flushed. There is one flush in flight.
- ``Persist`` and ``FinishSnapshot`` have ended when all of it is on stable storage, names included.
- No step waits for effects. The node counts as done what it has asked for, except for a flush. One that fails ends the node.

So a ``Respond`` or ``SendRequest`` behind a ``Persist`` waits for it, and one that depends on a flush is returned by the step
that hears of its end.
"""

from __future__ import annotations

from typing import NamedTuple

from ...base.errors import ErrorCode
from ...log.disk import Bytes
from ...log.metadata_snapshots import MetadataSnapshotId
from ...wire.schema import Message
from .election_file import ElectionState
from .voters import ControllerAddress


class Persist(NamedTuple):
    """Replace ``quorum-state``, in the form of the level of ``kraft.version``."""

    election: ElectionState
    kraft_version: int


# --- the log ----------------------------------------------------------------------------------------------------------


class Append(NamedTuple):
    """Append a batch of the active controller, with this base offset and leader epoch set in it."""

    base_offset: int
    epoch: int
    records: Bytes
    record_count: int


class AppendControl(NamedTuple):
    """Append a control batch of these messages, each with the version that it is written in. Its time is the wall clock's."""

    base_offset: int
    epoch: int
    messages: tuple[tuple[Message, int], ...]


class AppendFetched(NamedTuple):
    """Append batches as a leader has sent them: whole, checked, the first one at the log's end, the last one before
    ``end_offset``."""

    records: Bytes
    end_offset: int


class Truncate(NamedTuple):
    """Cut off the log at ``end_offset``, which begins a batch."""

    end_offset: int


class Flush(NamedTuple):
    """Bring the log as it is, up to ``end_offset``, to stable storage."""

    end_offset: int


class DeleteBefore(NamedTuple):
    """Let the log begin at the end of this snapshot: delete older snapshots, and segments that end below."""

    snapshot: MetadataSnapshotId


# --- a snapshot that is fetched ---------------------------------------------------------------------------------------


class BeginSnapshot(NamedTuple):
    """Begin a file for a snapshot that is fetched, under its temporary name."""

    snapshot: MetadataSnapshotId


class AppendToSnapshot(NamedTuple):
    """Append a piece to the file, which has ``position`` bytes."""

    snapshot: MetadataSnapshotId
    position: int
    data: Bytes


class FinishSnapshot(NamedTuple):
    """Bring the file to stable storage under its name; then the log is emptied and begins at its end, and older snapshots go."""

    snapshot: MetadataSnapshotId


class DropSnapshot(NamedTuple):
    """Remove the unfinished file."""

    snapshot: MetadataSnapshotId


# --- messages ---------------------------------------------------------------------------------------------------------


class RaftPeer(NamedTuple):
    """Where a request goes. ``node_id`` is that of a node, or -2 and below for a bootstrap server."""

    node_id: int
    address: ControllerAddress


class SendRequest(NamedTuple):
    """Send a request; ``events.ResponseReceived`` or ``RequestFailed`` reports what becomes of it, with the same id.

    The node waits no longer than ``timeout_ms``, of which it need not be told.
    """

    request_id: int
    peer: RaftPeer
    request: Message
    timeout_ms: int


class LogRead(NamedTuple):
    """Batches of the log that a FetchResponse gets as its ``records``.

    They are whole, from ``offset`` on and below ``end_offset``, at most ``max_bytes``, and at least one.
    """

    offset: int
    end_offset: int
    max_bytes: int


class SnapshotRead(NamedTuple):
    """A piece of a snapshot that a FetchSnapshotResponse gets as its ``unaligned_records``; at most ``max_bytes``."""

    snapshot: MetadataSnapshotId
    position: int
    max_bytes: int


class Respond(NamedTuple):
    """Answer a request that has arrived; first complete the response by what is read, if that is not None."""

    request_id: int
    response: Message
    read: LogRead | SnapshotRead | None = None


# --- news for the node's own controller -------------------------------------------------------------------------------


class HighWatermarkAdvanced(NamedTuple):
    """All records below ``high_watermark`` are committed, and may be applied."""

    high_watermark: int


class LeaderChanged(NamedTuple):
    """Another leader or epoch; ``leader_id`` is -1 while nobody is known to lead.

    This node leads from when it is told so: by then all records of earlier epochs are committed, by the step's
    ``HighWatermarkAdvanced`` before. It leads no more as soon as it is told of anything else.
    """

    epoch: int
    leader_id: int


class AppendRefused(NamedTuple):
    """An ``events.AppendRequested`` of an epoch in which this node does not lead; nothing was appended."""

    epoch: int


class PeerRefused(NamedTuple):
    """A peer refuses to be followed, or says what it never should. It is asked again slowly."""

    peer: RaftPeer
    code: ErrorCode
    why: str


class ShutdownFinished(NamedTuple):
    """The node may go. ``in_time`` is False where the timeout has passed before another has led."""

    in_time: bool


RaftEffect = (
    Persist
    | Append
    | AppendControl
    | AppendFetched
    | Truncate
    | Flush
    | DeleteBefore
    | BeginSnapshot
    | AppendToSnapshot
    | FinishSnapshot
    | DropSnapshot
    | SendRequest
    | Respond
    | HighWatermarkAdvanced
    | LeaderChanged
    | AppendRefused
    | PeerRefused
    | ShutdownFinished
)
