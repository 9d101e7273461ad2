"""The metadata log of a KRaft quorum, as a broker follows it; without samples where there is no quorum."""

from __future__ import annotations

from .family import Family, families_of, gauge

_RAFT = "kafka.server:type=raft-metrics,"
_METADATA = "kafka.server:type=broker-metadata-metrics,"

QUORUM_LEADER = gauge(
    "kafka_server_raft_metrics_current_leader",
    "",
    "The id of the controller that leads the quorum; -1 while it is not known.",
    _RAFT + "current-leader",
)
QUORUM_EPOCH = gauge(
    "kafka_server_raft_metrics_current_epoch", "", "The quorum's leader epoch.", _RAFT + "current-epoch"
)
QUORUM_HIGH_WATERMARK = gauge(
    "kafka_server_raft_metrics_high_watermark",
    "",
    "The end of what is committed in the metadata log, as the leader has told it; -1 while it is not known.",
    _RAFT + "high-watermark",
)
METADATA_LOG_END = gauge(
    "kafka_server_raft_metrics_log_end_offset",
    "",
    "The end of the metadata log on this broker.",
    _RAFT + "log-end-offset",
)
METADATA_LOG_EPOCH = gauge(
    "kafka_server_raft_metrics_log_end_epoch",
    "",
    "The leader epoch of the last record in the metadata log on this broker.",
    _RAFT + "log-end-epoch",
)
APPLIED_OFFSET = gauge(
    "kafka_server_broker_metadata_metrics_last_applied_record_offset",
    "",
    "The offset of the last record of the metadata log that the broker has applied.",
    _METADATA + "last-applied-record-offset",
)
APPLIED_TIMESTAMP = gauge(
    "kafka_server_broker_metadata_metrics_last_applied_record_timestamp",
    "",
    "When that record was written, in milliseconds since 1970.",
    _METADATA + "last-applied-record-timestamp",
)
APPLIED_LAG = gauge(
    "kafka_server_broker_metadata_metrics_last_applied_record_lag_ms",
    "",
    "How long ago that record was written, in milliseconds.",
    _METADATA + "last-applied-record-lag-ms",
)
METADATA_VERSION = gauge(
    "kafka_server_metadataloader_currentmetadataversion",
    "",
    "The finalized level of the feature metadata.version.",
    "kafka.server:type=MetadataLoader,name=CurrentMetadataVersion",
)

FAMILIES: tuple[Family, ...] = families_of(globals())
