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
    """Append batches as a leader has sent them: whole, checked, the first one at the log's end."""

    records: Bytes
    end_offset: int
    """Where the last batch ends, and so the log behind it."""


class Truncate(NamedTuple):
    """Cut off the end of the log."""

    end_offset: int
    """The log's end from then on. A batch begins there."""


class Flush(NamedTuple):
    """Bring the log as it is to stable storage."""

    end_offset: int
    """The log's end now. What is appended behind it belongs to the next flush."""


class DeleteBefore(NamedTuple):
    """Let the log begin at the end of this snapshot: delete older snapshots, and segments that end below."""

    snapshot: MetadataSnapshotId


# --- a snapshot that is fetched ---------------------------------------------------------------------------------------


class BeginSnapshot(NamedTuple):
    """Begin a file for a snapshot that is fetched, under its temporary name."""

    snapshot: MetadataSnapshotId


class AppendToSnapshot(NamedTuple):
    """Append a piece to the file."""

    snapshot: MetadataSnapshotId
    position: int
    """How many bytes the file has before the piece."""
    data: Bytes


class FinishSnapshot(NamedTuple):
    """Bring the file to stable storage under its name; then the log is emptied and begins at its end, and older snapshots go."""

    snapshot: MetadataSnapshotId


class DropSnapshot(NamedTuple):
    """Remove the unfinished file."""

    snapshot: MetadataSnapshotId


# --- messages ---------------------------------------------------------------------------------------------------------


class RaftPeer(NamedTuple):
    """Where a request goes."""

    node_id: int
    """Of a node; -2 and below for a bootstrap server, whose id is not known."""
    address: ControllerAddress


class SendRequest(NamedTuple):
    """Send a request; ``events.ResponseReceived`` or ``RequestFailed`` reports what becomes of it, with the same id."""

    request_id: int
    peer: RaftPeer
    request: Message
    timeout_ms: int
    """How long the node waits. It ends the wait by its own timer, so no event has to report that."""


class LogRead(NamedTuple):
    """Whole batches of the log that a FetchResponse gets as its ``records``."""

    offset: int
    """Where the first batch begins."""
    end_offset: int
    """All batches are below it."""
    max_bytes: int
    """The most that is read, apart from the first batch, which is read at any size."""


class SnapshotRead(NamedTuple):
    """A piece of a snapshot that a FetchSnapshotResponse gets as its ``unaligned_records``."""

    snapshot: MetadataSnapshotId
    position: int
    max_bytes: int


class Respond(NamedTuple):
    """Respond to a request that has arrived."""

    request_id: int
    response: Message
    read: LogRead | SnapshotRead | None = None
    """What is read into the response before it goes; None where it is complete."""


# --- news for the node's own controller -------------------------------------------------------------------------------


class HighWatermarkAdvanced(NamedTuple):
    """All records below ``high_watermark`` are committed, and may be applied."""

    high_watermark: int


class LeaderChanged(NamedTuple):
    """Another leader or epoch.

    This node leads from when it is told so: by then all records of earlier epochs are committed, by the step's
    ``HighWatermarkAdvanced`` before. It leads no more as soon as it is told of anything else.
    """

    epoch: int
    leader_id: int
    """-1 while nobody is known to lead."""


class AppendRefused(NamedTuple):
    """An ``events.AppendRequested`` of an epoch in which this node does not lead; nothing was appended."""

    epoch: int


class PeerRefused(NamedTuple):
    """A peer refuses to be followed, or says what it never should. It is asked again slowly."""

    peer: RaftPeer
    code: ErrorCode
    why: str


class ShutdownFinished(NamedTuple):
    """The node may go."""

    in_time: bool
    """False where the timeout has passed before another node has led."""


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
