"""Events of a Raft node: everything that can happen to it, the input of ``RaftNode.step``.

A node learns of the world only by these. Times are not in them: the caller gives the time of a step on its monotonic clock.
Requests and responses are the messages of the wire. ``request_id`` is the caller's for requests that arrive, and the node's
own, taken from ``effects.SendRequest``, for responses to its requests.
"""

from __future__ import annotations

from typing import NamedTuple

from ...base.errors import ErrorCode
from ...log.disk import Bytes
from ...log.metadata_snapshots import MetadataSnapshotId
from ...wire.schema import Message


class Tick(NamedTuple):
    """Time has passed: the node's ``deadline_ms`` is reached. An early or a late one does no harm."""


class RequestReceived(NamedTuple):
    """A request of another node or of a client.

    It is Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot, AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter or
    DescribeQuorum. It gets one ``effects.Respond`` with the same id, in this step or in a later one.
    """

    request_id: int
    request: Message
    listener: str
    """Name of the listener that it came by: addresses in the response are those of this listener."""
    wall_ms: int = 0
    """When it came by the wall clock, from which the times in a DescribeQuorum response are computed."""
    version: int | None = None
    """Of the request; None for the newest. An older DescribeQuorum response has no directory ids."""


class ResponseReceived(NamedTuple):
    """The response to a request of the node's own. One that the node waits for no more is dropped."""

    request_id: int
    response: Message


class RequestFailed(NamedTuple):
    """A request of the node's own got no response."""

    request_id: int
    error: ErrorCode = ErrorCode.BROKER_NOT_AVAILABLE
    """UNSUPPORTED_VERSION where the receiver does not know the request in a version that has all of it."""
    is_refused: bool = False
    """Nothing listens at the receiver's address: its process has ended, or has not begun yet."""


class FlushFinished(NamedTuple):
    """The flush in flight has ended: what the log had when it began is on stable storage."""


class PreparedBatch(NamedTuple):
    """A record batch of the active controller. Base offset and leader epoch are set in it where it is appended."""

    records: Bytes
    record_count: int


class AppendRequested(NamedTuple):
    """The active controller appends. The first record gets the node's ``quorum.log.end_offset``."""

    epoch: int
    """The epoch in which it leads. ``effects.AppendRefused`` says that the node does not lead in it any more."""
    batches: tuple[PreparedBatch, ...]


class SnapshotWritten(NamedTuple):
    """A snapshot of what this node has applied is on stable storage under its name."""

    snapshot: MetadataSnapshotId
    size: int
    """Of the file, in bytes."""


class CleanRequested(NamedTuple):
    """The log may begin at the end of this snapshot, and older snapshots may go."""

    snapshot: MetadataSnapshotId


class KRaftVersionRequested(NamedTuple):
    """The active controller raises ``kraft.version``, in the epoch that it leads.

    Where ``voter_changes.check_upgrade`` would refuse it nothing happens.
    """

    epoch: int
    level: int


class ResignRequested(NamedTuple):
    """The active controller gives up its leadership."""

    epoch: int
    """The epoch in which it leads. Where the node does not lead in it, the event is ignored."""


class ShutdownRequested(NamedTuple):
    """The node stops: a leader resigns first, and stays until another leads.

    ``effects.ShutdownFinished`` says when it may go.
    """

    timeout_ms: int
    """How long it stays at most."""


RaftEvent = (
    Tick
    | RequestReceived
    | ResponseReceived
    | RequestFailed
    | FlushFinished
    | AppendRequested
    | SnapshotWritten
    | CleanRequested
    | KRaftVersionRequested
    | ResignRequested
    | ShutdownRequested
)
