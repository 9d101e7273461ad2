"""DescribeQuorum: the leader's view of the quorum's replicas (KIP-595, KIP-836)."""

from __future__ import annotations

import math

from ...base.errors import ErrorCode
from ...wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from ...wire.schema import ZERO_UUID
from .leader import RaftLeader, ReplicaProgress
from .metadata_log import TOPIC
from .quorum_state import QuorumState

_DIRECTORIES_SINCE = 2
"""The version from which on the response has directory ids, and the nodes' addresses."""


def describe_quorum(
    quorum: QuorumState, request: DescribeQuorumRequest, now_ms: float, wall_ms: int, version: int | None
) -> DescribeQuorumResponse:
    """Only the leader describes the quorum. ``wall_ms`` is ``now_ms`` by the wall clock, by which the response's times are."""
    state = quorum.state
    is_new = version is None or version >= _DIRECTORIES_SINCE
    if [(topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions] != [
        (TOPIC, 0)
    ]:
        topics = [
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    ResponsePartitionData(
                        partition_index=each.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return DescribeQuorumResponse(topics=topics)
    if not isinstance(state, RaftLeader):
        refused = ResponsePartitionData(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return DescribeQuorumResponse(topics=[ResponseTopicData(topic_name=TOPIC, partitions=[refused])])
    state.clear_inactive_observers(now_ms)

    def described(progress: ReplicaProgress) -> ReplicaState:
        is_own = progress.key.node_id == state.own.node_id
        return ReplicaState(
            replica_id=progress.key.node_id,
            replica_directory_id=progress.key.directory_id if is_new else ZERO_UUID,
            log_end_offset=-1 if progress.end_offset is None else progress.end_offset,
            last_fetch_timestamp=_wall(now_ms if is_own else progress.last_fetch_ms, now_ms, wall_ms),
            last_caught_up_timestamp=_wall(now_ms if is_own else progress.last_caught_up_ms, now_ms, wall_ms),
        )

    partition = ResponsePartitionData(
        partition_index=0,
        leader_id=state.leader_id,
        leader_epoch=state.epoch,
        high_watermark=-1 if state.high_watermark is None else state.high_watermark,
        current_voters=[described(progress) for progress in state.voters.values()],
        observers=[described(progress) for progress in state.observers.values()],
    )
    nodes = [
        Node(
            node_id=voter.key.node_id,
            listeners=[Listener(name=name, host=host, port=port) for name, host, port in voter.endpoints],
        )
        for voter in (quorum.voters.voters.values() if is_new else ())
    ]
    return DescribeQuorumResponse(topics=[ResponseTopicData(topic_name=TOPIC, partitions=[partition])], nodes=nodes)


def _wall(time_ms: float, now_ms: float, wall_ms: int) -> int:
    return -1 if time_ms == -math.inf else int(wall_ms - (now_ms - time_ms))
