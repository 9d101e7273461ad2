"""Parts of a quorum for tests of one node: ids, times, voters, batches and snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.controller.raft.log_outline import QuorumEntry
from ottla.controller.raft.voter_set import ListenerEndpoint, QuorumVoter, ReplicaKey, VoterSet
from ottla.controller.raft.voters import ControllerAddress
from ottla.log.metadata_snapshots import MetadataSnapshotId
from ottla.tests.simulation.raft.machine import encode_model_snapshot, endpoint_of, key_of
from ottla.wire.control_records import build_quorum_batch
from ottla.wire.record_codec import Record
from ottla.wire.records import RecordBatch, build_batch
from ottla.wire.schema import Message

OWN = 1
"""The node's id. 2 and 3 are the other voters unless a scenario has other ones; 4 is not a voter."""
START_MS = 50_000.0
ELECTION_MS = 1000
FETCH_MS = 2000
REQUEST_MS = 2000
CHECK_QUORUM_MS = 3000
BEGIN_QUORUM_MS = 1000
BOOTSTRAP = -2
"""The id by which a request to the first bootstrap server goes."""


def voter_of(
    node_id: int, *, versions: tuple[int, int] = (0, 1), others: Sequence[ListenerEndpoint] = ()
) -> QuorumVoter:
    """A voter with its own directory; ``others`` are endpoints of other listeners."""
    return QuorumVoter(key_of(node_id), (endpoint_of(node_id), *others), *versions)


def voters_of(*node_ids: int) -> VoterSet:
    return VoterSet(voter_of(node_id) for node_id in node_ids)


def static_voters_of(*node_ids: int) -> VoterSet:
    """As of ``controller.quorum.voters``: without directories, and without a level of ``kraft.version``."""
    return VoterSet(QuorumVoter(ReplicaKey(node_id), (endpoint_of(node_id),)) for node_id in node_ids)


def address_of_node(node_id: int) -> ControllerAddress:
    endpoint = endpoint_of(node_id)
    return ControllerAddress(endpoint.host, endpoint.port)


def batch_of(base_offset: int, epoch: int, count: int = 1) -> bytes:
    records = [Record(offset=each, timestamp=0, key=None, value=b"value", headers=()) for each in range(count)]
    batch = build_batch(records)
    RecordBatch(memoryview(batch)).stamp(base_offset, epoch)
    return bytes(batch)


def control_of(base_offset: int, epoch: int, *said: Message) -> bytes:
    return bytes(
        build_quorum_batch([(each, 0) for each in said], base_offset=base_offset, leader_epoch=epoch, timestamp=0)
    )


def snapshot_of(snapshot: MetadataSnapshotId, voters: VoterSet | None = None) -> bytes:
    """The file of a snapshot; without voters it is one of ``kraft.version`` 0."""
    level = 0 if voters is None else 1
    return encode_model_snapshot(QuorumEntry(snapshot.end_offset - 1, level, voters), snapshot, b"image")
