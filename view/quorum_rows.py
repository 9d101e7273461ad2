"""Row types of a KRaft quorum: its leader's DescribeQuorum response, and a node's own state.

As in ``rows``: never changed, times in milliseconds since the epoch, None for what is not known. How long ago a replica has
fetched is by the leader's clock, and was so when the leader told it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from ..base.errors import ErrorCode, KafkaError, known_code
from ..base.wording import counted
from ..wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    ResponsePartitionData,
    TopicData,
)
from ..wire.schema import ZERO_UUID, uuid_to_text

_LOG = "__cluster_metadata"
_WITHOUT_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
SILENT_MS = 5_000
"""A voter that has not fetched for so long is missed; it fetches at least twice a second."""
_BEHIND_MS = 10_000
"""A voter that has not been at the end of the log for so long is behind."""

Listeners = tuple[tuple[str, str, int], ...]
"""Each with name, host and port."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuorumReplicaRow:
    """A voter or an observer."""

    node_id: int
    directory_id: str | None
    listeners: Listeners
    is_leader: bool
    end_offset: int | None
    lag: int | None
    """In records, behind the leader's end."""
    fetched_ago_ms: int | None
    """None also if it has not fetched from this leader yet."""
    caught_up_ago_ms: int | None
    """None also if it has not caught up with this leader yet."""
    trouble: str
    """What is wrong with it, as the end of a sentence; empty where nothing is."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuorumRow:
    """A quorum as its leader describes it."""

    leader: int | None
    """None while there is none."""
    epoch: int | None = None
    high_watermark: int | None = None
    end_offset: int | None = None
    voters: tuple[QuorumReplicaRow, ...] = ()
    observers: tuple[QuorumReplicaRow, ...] = ()
    why: str = ""
    """Why nothing is known, in words; empty if something is, or if the quorum merely has no leader."""

    def warnings(self) -> Iterator[str]:
        """Sentences, for the overview."""
        if self.leader is None and not self.why:
            yield "The quorum of controllers has no leader: nothing in the cluster can be changed until it has one."
        for voter in self.voters:
            if voter.trouble:
                yield f"Controller {voter.node_id}, a voter of the quorum, {voter.trouble}."


@dataclasses.dataclass(frozen=True, slots=True)
class FeatureRow:
    """A feature: the level that is finalized, 0 for none, and those that nodes support, both included."""

    name: str
    finalized: int
    lowest: int | None
    highest: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class MetadataSnapshotRow:
    """A snapshot of the metadata on a node: the offset at which it ends, and when its newest record was written."""

    end_offset: int
    epoch: int
    size: int
    newest_ms: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class VoterChangeRow:
    """A voter whose change is not committed."""

    node_id: int
    what: str
    """The end of a sentence."""


@dataclasses.dataclass(frozen=True, slots=True)
class RegisteredControllerRow:
    """A controller as it has registered."""

    node_id: int
    listeners: Listeners
    lacks: tuple[str, ...]
    """Finalized features, each with its level, that it does not support."""


@dataclasses.dataclass(frozen=True, slots=True)
class OwnQuorumRow:
    """A node's own state in the quorum."""

    node_id: int
    state: str
    """Kafka's word for it."""
    leader: int | None
    epoch: int
    high_watermark: int | None
    start_offset: int
    end_offset: int
    size: int
    segments: int
    applied: int | None
    """The last offset that it has applied."""
    snapshots: tuple[MetadataSnapshotRow, ...]
    changes: tuple[VoterChangeRow, ...]
    controllers: tuple[RegisteredControllerRow, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class QuorumDetail:
    """The quorum, the cluster's features, and the node's own state."""

    quorum: QuorumRow
    features: tuple[FeatureRow, ...]
    own: OwnQuorumRow | None
    """None if the cluster is known only by requests."""


def describe_quorum_request() -> DescribeQuorumRequest:
    return DescribeQuorumRequest(topics=[TopicData(topic_name=_LOG, partitions=[PartitionData(partition_index=0)])])


def quorum_row(response: DescribeQuorumResponse) -> QuorumRow:
    """What a response tells, be it only that there is no leader."""
    partitions = [each for topic in response.topics for each in topic.partitions]
    code, message = response.error_code, response.error_message
    if not code and partitions:
        code, message = partitions[0].error_code, partitions[0].error_message
    if code:
        return untold(KafkaError(known_code(code), message))
    if not partitions:
        return QuorumRow(None, why="the response has nothing about the metadata log")
    listeners = {
        node.node_id: tuple((each.name, each.host, each.port) for each in node.listeners) for node in response.nodes
    }
    return _told(partitions[0], listeners)


def untold(error: KafkaError) -> QuorumRow:
    """Nothing is told, because of an error."""
    if error.code in _WITHOUT_LEADER:
        return QuorumRow(None)
    return QuorumRow(None, why=f"{error.message or error.code.name} ({error.code.name})")


def _told(partition: ResponsePartitionData, listeners: Mapping[int, Listeners]) -> QuorumRow:
    leader_id, voters = partition.leader_id, partition.current_voters
    every = [*voters, *partition.observers]
    leaders = [each for each in every if each.replica_id == leader_id]
    end_offset = max((each.log_end_offset for each in leaders or every), default=-1)
    now_ms = max((each.last_fetch_timestamp for each in leaders), default=-1)

    def row(state: ReplicaState) -> QuorumReplicaRow:
        fetched, caught_up = _ago(now_ms, state.last_fetch_timestamp), _ago(now_ms, state.last_caught_up_timestamp)
        lag = max(end_offset - state.log_end_offset, 0) if state.log_end_offset >= 0 and end_offset >= 0 else None
        directory_id = state.replica_directory_id
        return QuorumReplicaRow(
            state.replica_id,
            None if directory_id == ZERO_UUID else uuid_to_text(directory_id),
            listeners.get(state.replica_id, ()),
            state.replica_id == leader_id,
            _known(state.log_end_offset),
            lag,
            fetched,
            caught_up,
            "" if now_ms < 0 or state.replica_id == leader_id else _trouble(lag, fetched, caught_up),
        )

    return QuorumRow(
        _known(leader_id),
        partition.leader_epoch,
        _known(partition.high_watermark),
        _known(end_offset),
        tuple(row(each) for each in sorted(voters, key=lambda each: each.replica_id)),
        tuple(row(each) for each in sorted(partition.observers, key=lambda each: each.replica_id)),
    )


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _ago(now_ms: int, then_ms: int) -> int | None:
    return max(now_ms - then_ms, 0) if now_ms >= 0 and then_ms >= 0 else None


def _trouble(lag: int | None, fetched_ago_ms: int | None, caught_up_ago_ms: int | None) -> str:
    if fetched_ago_ms is None:
        return "has not fetched since the leader was elected"
    if fetched_ago_ms > SILENT_MS:
        return f"has not fetched for {counted(fetched_ago_ms // 1000, 'second')}"
    if lag and (caught_up_ago_ms is None or caught_up_ago_ms > _BEHIND_MS):
        return f"is {counted(lag, 'record')} behind"
    return ""
