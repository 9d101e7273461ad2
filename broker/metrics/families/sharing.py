"""Metrics of share partitions (KIP-932) that this broker leads, of sessions of their members, and of the share coordinator."""

from __future__ import annotations

from .family import Family, counter, families_of, gauge

_SESSIONS = "kafka.server:type=ShareSessionCache,name="
_PARTITIONS = "kafka.server:type=SharePartitionMetrics,name="

SHARE_SESSIONS = gauge(
    "kafka_server_sharesessioncache_sharesessionscount",
    "",
    "Share sessions of members of share groups.",
    _SESSIONS + "ShareSessionsCount",
)
SHARE_SESSION_PARTITIONS = gauge(
    "kafka_server_sharesessioncache_sharepartitionscount",
    "",
    "Partitions in all share sessions.",
    _SESSIONS + "SharePartitionsCount",
)
SHARE_SESSION_EVICTIONS = counter(
    "kafka_server_sharesessioncache_sharesessionevictions_total",
    "",
    "Share sessions that ended with their connection.",
    _SESSIONS + "ShareSessionEvictionsPerSec",
)
IN_FLIGHT_MESSAGES = gauge(
    "kafka_server_sharepartitionmetrics_inflightmessagecount",
    "group topic partition",
    "Offsets from the start offset of a share partition up to the last delivered record.",
    _PARTITIONS + "InFlightMessageCount",
)
IN_FLIGHT_BATCHES = gauge(
    "kafka_server_sharepartitionmetrics_inflightbatchcount",
    "group topic partition",
    "Batches of these.",
    _PARTITIONS + "InFlightBatchCount",
)
LOCK_TIMEOUTS = counter(
    "kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total",
    "group topic partition",
    "Records of a share partition whose lock ended before their member said anything.",
    _PARTITIONS + "AcquisitionLockTimeoutPerSec",
)
REDELIVERED = counter(
    "ottla_share_partition_redelivered_records_total",
    "group topic partition",
    "Records that members of a share group got which had been delivered before, since this broker has had the share partition.",
)
ARCHIVED = counter(
    "ottla_share_partition_archived_records_total",
    "group topic partition",
    "Records that a share group has given up: rejected, or delivered as often as they may be without success.",
)
RECORD_ACKNOWLEDGEMENTS = counter(
    "kafka_server_sharegroupmetrics_recordacknowledgements_total",
    "ackType",
    "Records of which members of share groups said this.",
    "kafka.server:type=ShareGroupMetrics,name=RecordAcknowledgementsPerSec",
)
STATE_WRITES = counter(
    "kafka_server_share_coordinator_metrics_write_total",
    "",
    "How often this broker, as the share coordinator, was to write the state of a share partition.",
    "kafka.server:type=share-coordinator-metrics,write-total",
)
LAST_PRUNED_OFFSET = gauge(
    "kafka_server_share_coordinator_metrics_last_pruned_offset",
    "topic partition",
    "Up to where records that no share partition needs were deleted from a partition of __share_group_state.",
    "kafka.server:type=share-coordinator-metrics,topic=*,partition=*,last-pruned-offset",
)

FAMILIES: tuple[Family, ...] = families_of(globals())
