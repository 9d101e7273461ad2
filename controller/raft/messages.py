"""Builders of the requests and responses that Raft nodes exchange about the metadata partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...base.errors import ErrorCode
from ...log.metadata_snapshots import MetadataSnapshotId
from ...wire.messages import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from .election_file import NOBODY
from .metadata_log import TOPIC, TOPIC_ID
from .voter_set import Endpoints, QuorumVoter, ReplicaKey
from .voters import ControllerAddress

_NO_SNAPSHOT = MetadataSnapshotId(-1, -1)


class KnownLeader(NamedTuple):
    """What each response says: the epoch, its leader, and where that is reached by the listener of the request."""

    epoch: int
    leader_id: int
    address: ControllerAddress | None


# --- responses --------------------------------------------------------------------------------------------------------


def vote_response(leader: KnownLeader, error: ErrorCode, is_granted: bool) -> vote.VoteResponse:
    partition = vote.ResponsePartitionData(
        partition_index=0,
        error_code=error,
        leader_id=leader.leader_id,
        leader_epoch=leader.epoch,
        vote_granted=is_granted,
    )
    return vote.VoteResponse(
        topics=[vote.ResponseTopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=[
            vote.NodeEndpoint(node_id=leader.leader_id, host=host, port=port) for host, port in _addresses(leader)
        ],
    )


def begin_quorum_epoch_response(leader: KnownLeader, error: ErrorCode) -> begin_quorum_epoch.BeginQuorumEpochResponse:
    partition = begin_quorum_epoch.ResponsePartitionData(
        partition_index=0, error_code=error, leader_id=leader.leader_id, leader_epoch=leader.epoch
    )
    return begin_quorum_epoch.BeginQuorumEpochResponse(
        topics=[begin_quorum_epoch.ResponseTopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=[
            begin_quorum_epoch.NodeEndpoint(node_id=leader.leader_id, host=host, port=port)
            for host, port in _addresses(leader)
        ],
    )


def end_quorum_epoch_response(leader: KnownLeader, error: ErrorCode) -> end_quorum_epoch.EndQuorumEpochResponse:
    partition = end_quorum_epoch.ResponsePartitionData(
        partition_index=0, error_code=error, leader_id=leader.leader_id, leader_epoch=leader.epoch
    )
    return end_quorum_epoch.EndQuorumEpochResponse(
        topics=[end_quorum_epoch.ResponseTopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=[
            end_quorum_epoch.NodeEndpoint(node_id=leader.leader_id, host=host, port=port)
            for host, port in _addresses(leader)
        ],
    )


def fetch_response(
    leader: KnownLeader,
    error: ErrorCode,
    *,
    log_start_offset: int,
    high_watermark: int,
    diverging: tuple[int, int] | None = None,
    snapshot: MetadataSnapshotId | None = None,
) -> fetch.FetchResponse:
    """``diverging`` is (epoch, end offset)."""
    partition = fetch.PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.epoch),
        records=b"",
    )
    if diverging is not None:
        partition.diverging_epoch = fetch.EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    if snapshot is not None:
        partition.snapshot_id = fetch.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
    return fetch.FetchResponse(
        responses=[fetch.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
        node_endpoints=[
            fetch.NodeEndpoint(node_id=leader.leader_id, host=host, port=port) for host, port in _addresses(leader)
        ],
    )


def fetch_snapshot_response(
    leader: KnownLeader,
    error: ErrorCode,
    snapshot: MetadataSnapshotId = _NO_SNAPSHOT,
    *,
    size: int = 0,
    position: int = 0,
) -> fetch_snapshot.FetchSnapshotResponse:
    partition = fetch_snapshot.ResponsePartitionSnapshot(
        index=0,
        error_code=error,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.epoch),
        size=size,
        position=position,
        unaligned_records=b"",
    )
    return fetch_snapshot.FetchSnapshotResponse(
        topics=[fetch_snapshot.ResponseTopicSnapshot(name=TOPIC, partitions=[partition])],
        node_endpoints=[
            fetch_snapshot.NodeEndpoint(node_id=leader.leader_id, host=host, port=port)
            for host, port in _addresses(leader)
        ],
    )


def unknown_snapshot_response(partitions: Sequence[tuple[str, int]]) -> fetch_snapshot.FetchSnapshotResponse:
    """To a request for a partition that is not the quorum's; for none or several it is malformed."""
    if len(partitions) != 1:
        return fetch_snapshot.FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    name, index = partitions[0]
    partition = fetch_snapshot.ResponsePartitionSnapshot(
        index=index,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=-1, epoch=-1),
        unaligned_records=b"",
    )
    topic = fetch_snapshot.ResponseTopicSnapshot(name=name, partitions=[partition])
    return fetch_snapshot.FetchSnapshotResponse(topics=[topic])


def update_voter_response(leader: KnownLeader, error: ErrorCode) -> update_raft_voter.UpdateRaftVoterResponse:
    host, port = leader.address or ("", 0)
    current = update_raft_voter.CurrentLeader(
        leader_id=leader.leader_id, leader_epoch=leader.epoch, host=host, port=port
    )
    return update_raft_voter.UpdateRaftVoterResponse(error_code=error, current_leader=current)


def _addresses(leader: KnownLeader) -> list[ControllerAddress]:
    return [] if leader.leader_id == NOBODY or leader.address is None else [leader.address]


# --- requests ---------------------------------------------------------------------------------------------------------


def vote_request(
    cluster_id: str, candidate: ReplicaKey, voter: ReplicaKey, epoch: int, end: tuple[int, int], is_pre_vote: bool
) -> vote.VoteRequest:
    """``end`` is the (epoch, offset) of the candidate's log."""
    partition = vote.PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=candidate.node_id,
        replica_directory_id=candidate.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=end[0],
        last_offset=end[1],
        pre_vote=is_pre_vote,
    )
    return vote.VoteRequest(
        cluster_id=cluster_id,
        voter_id=voter.node_id,
        topics=[vote.TopicData(topic_name=TOPIC, partitions=[partition])],
    )


def begin_quorum_epoch_request(
    cluster_id: str, leader_id: int, epoch: int, voter: ReplicaKey, endpoints: Endpoints
) -> begin_quorum_epoch.BeginQuorumEpochRequest:
    partition = begin_quorum_epoch.PartitionData(
        partition_index=0, voter_directory_id=voter.directory_id, leader_id=leader_id, leader_epoch=epoch
    )
    return begin_quorum_epoch.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.node_id,
        topics=[begin_quorum_epoch.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            begin_quorum_epoch.LeaderEndpoint(name=name, host=host, port=port) for name, host, port in endpoints
        ],
    )


def end_quorum_epoch_request(
    cluster_id: str, leader_id: int, epoch: int, successors: Sequence[ReplicaKey], endpoints: Endpoints
) -> end_quorum_epoch.EndQuorumEpochRequest:
    partition = end_quorum_epoch.PartitionData(
        partition_index=0,
        leader_id=leader_id,
        leader_epoch=epoch,
        preferred_successors=[key.node_id for key in successors],
        preferred_candidates=[
            end_quorum_epoch.ReplicaInfo(candidate_id=key.node_id, candidate_directory_id=key.directory_id)
            for key in successors
        ],
    )
    return end_quorum_epoch.EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[end_quorum_epoch.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            end_quorum_epoch.LeaderEndpoint(name=name, host=host, port=port) for name, host, port in endpoints
        ],
    )


def fetch_request(
    cluster_id: str,
    replica: ReplicaKey,
    epoch: int,
    end: tuple[int, int],
    high_watermark: int,
    *,
    max_wait_ms: int,
    max_bytes: int,
) -> fetch.FetchRequest:
    """``end`` is the (epoch, offset) of the replica's log."""
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=end[1],
        last_fetched_epoch=end[0],
        replica_directory_id=replica.directory_id,
        high_watermark=high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(replica_id=replica.node_id),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=[fetch.FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
    )


def fetch_snapshot_request(
    cluster_id: str, replica: ReplicaKey, epoch: int, snapshot: MetadataSnapshotId, position: int, max_bytes: int
) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.PartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
        position=position,
        replica_directory_id=replica.directory_id,
    )
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=replica.node_id,
        max_bytes=max_bytes,
        topics=[fetch_snapshot.TopicSnapshot(name=TOPIC, partitions=[partition])],
    )


def update_voter_request(cluster_id: str, voter: QuorumVoter, epoch: int) -> update_raft_voter.UpdateRaftVoterRequest:
    return update_raft_voter.UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=voter.key.node_id,
        voter_directory_id=voter.key.directory_id,
        listeners=[update_raft_voter.Listener(name=name, host=host, port=port) for name, host, port in voter.endpoints],
        kraft_version_feature=update_raft_voter.KRaftVersionFeature(
            min_supported_version=voter.min_version, max_supported_version=voter.max_version
        ),
    )


def add_voter_request(cluster_id: str, voter: QuorumVoter, timeout_ms: int) -> add_raft_voter.AddRaftVoterRequest:
    """Of a node that adds itself: it learns from the log what becomes of it, and does not wait."""
    return add_raft_voter.AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=voter.key.node_id,
        voter_directory_id=voter.key.directory_id,
        listeners=[add_raft_voter.Listener(name=name, host=host, port=port) for name, host, port in voter.endpoints],
        ack_when_committed=False,
    )


def remove_voter_request(cluster_id: str, key: ReplicaKey) -> remove_raft_voter.RemoveRaftVoterRequest:
    return remove_raft_voter.RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=key.node_id, voter_directory_id=key.directory_id
    )
