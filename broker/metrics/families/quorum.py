"""Metrics of a KRaft node: the metadata log, the node's place in the quorum, and the metadata it has loaded."""

from __future__ import annotations

from .family import Family, families_of, gauge

_RAFT = "kafka.server:type=raft-metrics,"
_METADATA = "kafka.server:type=broker-metadata-metrics,"
_LOADER = "kafka.server:type=MetadataLoader,name="
_EMITTER = "kafka.server:type=SnapshotEmitter,name="
_NODE = "kafka.server:type=node-metrics,feature-name=*,"


def _raft(name: str, meaning: str, labels: str = "") -> Family:
    return gauge(f"kafka_server_raft_metrics_{name.replace('-', '_')}", labels, meaning, _RAFT + name)


def _metadata(name: str, meaning: str) -> Family:
    return gauge(f"kafka_server_broker_metadata_metrics_{name.replace('-', '_')}", "", meaning, _METADATA + name)


QUORUM_LEADER = _raft("current-leader", "The id of the controller that leads the quorum; -1 while it is not known.")
QUORUM_VOTE = _raft(
    "current-vote", "The id that this node has voted for in the present epoch, a leader's own; else -1."
)
QUORUM_EPOCH = _raft("current-epoch", "The quorum's leader epoch.")
QUORUM_STATE = _raft(
    "current-state",
    "1 for the state of this node in the quorum, 0 for the others: leader, follower (a voter), observer, candidate, prospective, "
    "prospective-voted, unattached, unattached-voted. In Kafka it is text.",
    "state",
)
QUORUM_HIGH_WATERMARK = _raft(
    "high-watermark",
    "The end of the committed part of the metadata log, as reported by the leader; -1 while unknown.",
)
METADATA_LOG_END = _raft("log-end-offset", "The end of the metadata log on this node.")
METADATA_LOG_EPOCH = _raft("log-end-epoch", "The leader epoch of the last record in the metadata log on this node.")
VOTERS = _raft("number-of-voters", "Voters of the quorum, by the newest voter set in this node's log.")
OBSERVERS = _raft("number-of-observers", "Nodes that fetch the metadata log without a vote; on the leader only.")
UNCOMMITTED_VOTERS = _raft(
    "uncommitted-voter-change", "1 while a change of the voters is not committed, else 0; on the leader only."
)
UNKNOWN_VOTERS = _raft(
    "number-unknown-voter-connections",
    "Voters whose addresses are not known: 0, as in Kafka, which does not count them either.",
)
COMMIT_TIME_AVERAGE = _raft(
    "commit-latency-avg",
    "Milliseconds from the append of a batch to its commit, by the records in it, averaged over about a minute; NaN without one, "
    "as on nodes that do not lead.",
)
COMMIT_TIME_LARGEST = _raft("commit-latency-max", "The largest of these times.")
ELECTION_TIME_AVERAGE = _raft(
    "election-latency-avg",
    "Milliseconds from when this node asked for votes until it led or followed, averaged over about a minute; NaN without one.",
)
ELECTION_TIME_LARGEST = _raft("election-latency-max", "The largest of these times.")
APPENDED_RATE = _raft(
    "append-records-rate", "Records per second that this node has appended as the leader, over about a minute."
)
FETCHED_RATE = _raft(
    "fetch-records-rate", "Records per second that this node has fetched from the leader, over about a minute."
)
RAFT_IDLE = _raft(
    "poll-idle-ratio-avg", "The same value as RequestHandlerAvgIdlePercent: the same loop does the quorum's work."
)
APPLIED_OFFSET = _metadata(
    "last-applied-record-offset", "The offset of the last record of the metadata log that the broker has applied."
)
APPLIED_TIMESTAMP = _metadata(
    "last-applied-record-timestamp", "When that record was written, in milliseconds since 1970."
)
APPLIED_LAG = _metadata(
    "last-applied-record-lag-ms",
    "How long ago that record was written, in milliseconds. It grows while nothing changes: a controller of Ottla writes nothing "
    "then, where Kafka's writes a record each 500 ms.",
)
LOAD_ERRORS = _metadata(
    "metadata-load-error-count",
    "Errors in loading the metadata log: 0, because a broker that cannot load it ends with a message.",
)
APPLY_ERRORS = _metadata(
    "metadata-apply-error-count",
    "Errors in applying loaded records: 0, because a broker that cannot apply them ends.",
)
IGNORED_VOTERS_OF_BROKER = _metadata(
    "ignored-static-voters",
    "1 where controller.quorum.voters is set and does not count, because the log has voters; else 0.",
)
METADATA_VERSION = gauge(
    "kafka_server_metadataloader_currentmetadataversion",
    "",
    "The finalized level of the feature metadata.version.",
    _LOADER + "CurrentMetadataVersion",
)
FINALIZED_LEVEL = gauge(
    "kafka_server_metadataloader_finalizedlevel",
    "featureName",
    "The finalized level of a feature, as metadataVersion, kraftVersion, transactionVersion.",
    _LOADER + "FinalizedLevel,featureName=*",
)
CURRENT_CONTROLLER = gauge(
    "kafka_server_metadataloader_currentcontrollerid",
    "",
    "The id of the active controller, as this node knows it; -1 while it is not known.",
    _LOADER + "CurrentControllerId",
)
SNAPSHOTS_LOADED = gauge(
    "kafka_server_metadataloader_handleloadsnapshotcount",
    "",
    "How often the node has loaded a snapshot of the metadata since its start.",
    _LOADER + "HandleLoadSnapshotCount",
)
SNAPSHOT_BYTES = gauge(
    "kafka_server_snapshotemitter_latestsnapshotgeneratedbytes",
    "",
    "The size of the newest snapshot of the metadata that this node has made itself, in bytes; 0 before the first one.",
    _EMITTER + "LatestSnapshotGeneratedBytes",
)
SNAPSHOT_AGE = gauge(
    "kafka_server_snapshotemitter_latestsnapshotgeneratedagems",
    "",
    "How long ago that was, in milliseconds; before the first one since the node's start.",
    _EMITTER + "LatestSnapshotGeneratedAgeMs",
)
LOWEST_LEVEL = gauge(
    "kafka_server_node_metrics_minimum_supported_level",
    "feature_name",
    "The lowest level of a feature that this node supports.",
    _NODE + "minimum-supported-level",
)
HIGHEST_LEVEL = gauge(
    "kafka_server_node_metrics_maximum_supported_level",
    "feature_name",
    "The highest level of a feature that this node supports.",
    _NODE + "maximum-supported-level",
)

FAMILIES: tuple[Family, ...] = families_of(globals())
