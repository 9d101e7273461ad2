"""``ottla cluster quorum``: the quorum of controllers as its leader describes it (DescribeQuorum, KIP-595, KIP-836, KIP-853).

What Kafka's kafka-metadata-quorum tells in two ways is told in one. Times are by the leader's clock: how long ago it was when
the leader responded. Apache Kafka's clusters are described as well.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, NamedTuple

from ....base.addresses import join_host_port
from ....base.errors import ErrorCode, known_code
from ....wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    PartitionData,
    ReplicaState,
    TopicData,
)
from ....wire.schema import ZERO_UUID, uuid_to_text
from ..client import ClusterConnection
from ..output import OutputColumn, as_object, is_terminal, print_json, print_rows, text
from ..running import ToolError, refusal
from .quorum_client import QuorumClient, quorum_client

_TOPIC = "__cluster_metadata"
_VERSIONS = (0, 2)
_UNKNOWN = -1
_WITHOUT_LEADER = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)

COLUMNS = (
    OutputColumn("node", is_number=True),
    OutputColumn("status"),
    OutputColumn("directory_id"),
    OutputColumn("endpoints"),
    OutputColumn("end_offset", is_number=True),
    OutputColumn("lag", is_number=True),
    OutputColumn("last_fetch_ms", is_number=True),
    OutputColumn("caught_up_ms", is_number=True),
)
_TABLES = (
    ("node", "status", "directory_id", "endpoints"),
    ("node", "end_offset", "lag", "last_fetch_ms", "caught_up_ms"),
)
"""A terminal of 80 columns has no room for all in one."""


class NoLeaderError(ToolError):
    """The quorum cannot be described just now."""


class Quorum(NamedTuple):
    """What the leader says. Times are milliseconds of its clock; the leader's own are of this moment."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: dict[int, ReplicaState]
    observers: list[ReplicaState]
    endpoints: dict[int, list[Listener]]
    """Of voters only."""

    @property
    def leader(self) -> ReplicaState | None:
        """None where the leader is not a voter any more."""
        return self.voters.get(self.leader_id)

    @property
    def kraft_version(self) -> int:
        """1 where voters are records with their directories, so that they can change."""
        return int(any(voter.replica_directory_id != ZERO_UUID for voter in self.voters.values()))

    @property
    def end_offset(self) -> int:
        """That of the leader's log, or the highest there is where the leader is not a voter."""
        if self.leader is not None:
            return self.leader.log_end_offset
        return max(each.log_end_offset for each in (*self.voters.values(), *self.observers))

    @property
    def now_ms(self) -> int:
        """When it was described."""
        every = (*self.voters.values(), *self.observers)
        return max((each.last_fetch_timestamp for each in every), default=_UNKNOWN)

    def ms_ago(self, timestamp: int) -> int | None:
        return None if _UNKNOWN in (timestamp, self.now_ms) else max(0, self.now_ms - timestamp)


def describe_quorum(client: QuorumClient) -> Quorum:
    """Raises NoLeaderError, ToolError, KafkaError."""
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name=_TOPIC, partitions=[PartitionData(partition_index=0)])]
    )
    response: DescribeQuorumResponse = client.ask(request, *_VERSIONS)
    code, message = response.error_code, response.error_message
    if not code:
        partition = response.topics[0].partitions[0]
        code, message = partition.error_code, partition.error_message
    if code in _WITHOUT_LEADER:
        raise NoLeaderError(
            "no controller is active just now: one is being elected, or a majority of the voters is down "
            f"({known_code(code).name})"
        )
    if code:
        raise ToolError(refusal(code, message))
    return Quorum(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        {each.replica_id: each for each in sorted(partition.current_voters, key=lambda each: each.replica_id)},
        sorted(partition.observers, key=lambda each: each.replica_id),
        {node.node_id: list(node.listeners) for node in response.nodes},
    )


def quorum(connection: ClusterConnection, controller: str | None, *, as_json: bool) -> None:
    """Facts about the quorum, then a row for each voter and observer."""
    with closing(quorum_client(connection, controller)) as client:
        cluster_id, found = client.cluster_id, describe_quorum(client)
    facts = {
        "cluster_id": cluster_id,
        "leader": found.leader_id if found.leader_id >= 0 else None,
        "leader_epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "max_follower_lag": found.end_offset - min(max(each.log_end_offset, 0) for each in found.voters.values()),
        "max_follower_lag_time_ms": _lag_time_ms(found),
        "kraft_version": found.kraft_version,
    }
    rows = [_row(found, each, _status(found, each)) for each in found.voters.values()]
    rows += [_row(found, each, "observer") for each in found.observers]
    if as_json:
        print_json({**facts, "replicas": [as_object(COLUMNS, row) for row in rows]})
        return
    for name, value in facts.items():
        print(f"{name.replace('_', ' ')}: {text(value)}")
    if not is_terminal():
        print_rows(COLUMNS, rows)
        return
    for names in _TABLES:
        shown = [(place, column) for place, column in enumerate(COLUMNS) if column.name in names]
        print_rows([column for _, column in shown], [[row[place] for place, _ in shown] for row in rows])


def _lag_time_ms(found: Quorum) -> int | None:
    """How long ago the voter that is the furthest behind had the whole log; None where it never had."""
    slowest = min(found.voters.values(), key=lambda each: each.log_end_offset)
    if slowest.replica_id == found.leader_id or slowest.log_end_offset == found.end_offset:
        return 0
    return found.ms_ago(slowest.last_caught_up_timestamp)


def _status(found: Quorum, voter: ReplicaState) -> str:
    return "leader" if voter.replica_id == found.leader_id else "follower"


def _row(found: Quorum, replica: ReplicaState, status: str) -> tuple[Any, ...]:
    has_directory = replica.replica_directory_id != ZERO_UUID
    endpoints = found.endpoints.get(replica.replica_id, []) if status != "observer" else []
    return (
        replica.replica_id,
        status,
        uuid_to_text(replica.replica_directory_id) if has_directory else None,
        [endpoint_text(each) for each in endpoints],
        replica.log_end_offset if replica.log_end_offset >= 0 else None,
        found.end_offset - replica.log_end_offset if replica.log_end_offset >= 0 else None,
        found.ms_ago(replica.last_fetch_timestamp),
        found.ms_ago(replica.last_caught_up_timestamp),
    )


def endpoint_text(listener: Listener) -> str:
    """``NAME://HOST:PORT``."""
    return f"{listener.name}://{join_host_port(listener.host, listener.port)}"
