"""Every metric: its name, kind, labels, meaning, and which of Kafka's it stands for. The table in docs/operations.md is this.

Where Kafka has the same thing, the name is the one that the usual configuration of Prometheus' JMX exporter makes of
Kafka's bean (``kafka-2_0_0.yml`` of prometheus/jmx_exporter, lower case), so that dashboards and alerts need no change.
Rates are left to Prometheus: what is a meter in Kafka (``…PerSec``) is a counter here. The lag of groups, which Kafka's
brokers don't export, has the names of kafka_exporter. What only Ottla has begins with ``ottla_``.
"""

from __future__ import annotations

import dataclasses
import enum


class Kind(enum.Enum):
    """The value is Prometheus' name."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclasses.dataclass(frozen=True)
class Family:
    """One metric. ``kafka`` is the bean, or whose name it is; empty for what only Ottla has."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str
    kafka: str = ""


def _counter(name: str, labels: str, meaning: str, kafka: str = "") -> Family:
    return Family(name, Kind.COUNTER, tuple(labels.split()), meaning, kafka)


def _gauge(name: str, labels: str, meaning: str, kafka: str = "") -> Family:
    return Family(name, Kind.GAUGE, tuple(labels.split()), meaning, kafka)


def _times(name: str, meaning: str, kafka: str) -> Family:
    return Family(f"kafka_network_requestmetrics_{name}", Kind.HISTOGRAM, ("request",), meaning, kafka)


_REQUEST = "kafka.network:type=RequestMetrics,name="
_REPLICAS = "kafka.server:type=ReplicaManager,name="
_TOPIC = "kafka.server:type=BrokerTopicMetrics,name="
_CONTROLLER = "kafka.controller:type=KafkaController,name="
_LOG = "kafka.log:type=Log,name="
_GROUPS = "kafka.coordinator.group:type=GroupMetadataManager,name="
_SOCKETS = "kafka.server:type=socket-server-metrics"
_EXPORTER = "kafka_exporter"

REQUESTS = _counter(
    "kafka_network_requestmetrics_requests_total",
    "request version",
    "Requests that were answered, by API and version.",
    _REQUEST + "RequestsPerSec",
)
REQUEST_ERRORS = _counter(
    "kafka_network_requestmetrics_errors_total",
    "request error",
    "Errors in answers, each partition's counted; Kafka counts NONE as well.",
    _REQUEST + "ErrorsPerSec",
)
TOTAL_TIME = _times(
    "totaltimems",
    "From taking a request up to having its answer ready, in milliseconds; queueing and sending are not in it.",
    _REQUEST + "TotalTimeMs",
)
LOCAL_TIME = _times(
    "localtimems", "The part of it until the handler first waits, in milliseconds.", _REQUEST + "LocalTimeMs"
)
REMOTE_TIME = _times(
    "remotetimems",
    "The part of it from the first wait on, in milliseconds: for records, replicas, members of a group, the disk.",
    _REQUEST + "RemoteTimeMs",
)
BYTES_IN = _counter(
    "kafka_server_brokertopicmetrics_bytesin_total",
    "topic",
    "Bytes of record batches that were appended.",
    _TOPIC + "BytesInPerSec",
)
MESSAGES_IN = _counter(
    "kafka_server_brokertopicmetrics_messagesin_total",
    "topic",
    "Records that were appended.",
    _TOPIC + "MessagesInPerSec",
)
BYTES_OUT = _counter(
    "kafka_server_brokertopicmetrics_bytesout_total",
    "topic",
    "Bytes of record batches in answers to consumers.",
    _TOPIC + "BytesOutPerSec",
)
CONNECTIONS = _gauge(
    "kafka_server_socket_server_metrics_connection_count",
    "listener",
    "Open connections.",
    _SOCKETS + ",listener=*, connection-count",
)
CONNECTIONS_OPENED = _counter(
    "kafka_server_socket_server_metrics_connection_creation_total",
    "listener",
    "Connections that were accepted.",
    _SOCKETS + ",listener=*, connection-creation-total",
)
CONNECTIONS_CLOSED = _counter(
    "kafka_server_socket_server_metrics_connection_close_total",
    "listener",
    "Connections that have ended.",
    _SOCKETS + ",listener=*, connection-close-total",
)
CONNECTION_ERRORS = _counter(
    "ottla_connection_errors_total",
    "reason",
    "Connections that the broker ended or that broke: protocol (bytes nobody can read), refused_request (no answer is "
    "possible, as for a failed produce with acks=0), limit, idle, network, bug.",
)
PARTITIONS = _gauge(
    "kafka_server_replicamanager_partitioncount", "", "Partitions on this broker.", _REPLICAS + "PartitionCount"
)
LEADERS = _gauge(
    "kafka_server_replicamanager_leadercount", "", "Partitions this broker leads.", _REPLICAS + "LeaderCount"
)
UNDER_REPLICATED = _gauge(
    "kafka_server_replicamanager_underreplicatedpartitions",
    "",
    "Partitions this broker leads with fewer replicas in sync than there are.",
    _REPLICAS + "UnderReplicatedPartitions",
)
UNDER_MIN_ISR = _gauge(
    "kafka_server_replicamanager_underminisrpartitioncount",
    "",
    "Partitions this broker leads with fewer replicas in sync than min.insync.replicas.",
    _REPLICAS + "UnderMinIsrPartitionCount",
)
OFFLINE_REPLICAS = _gauge(
    "kafka_server_replicamanager_offlinereplicacount",
    "",
    "Partitions of this broker in a data folder that has failed.",
    _REPLICAS + "OfflineReplicaCount",
)
PURGATORY = _gauge(
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    "delayedOperation",
    "Requests that wait: Fetch for records, Produce for the high watermark.",
    "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize",
)
ACTIVE_CONTROLLER = _gauge(
    "kafka_controller_kafkacontroller_activecontrollercount",
    "",
    "1 on the broker that is the controller, else 0.",
    _CONTROLLER + "ActiveControllerCount",
)
OFFLINE_PARTITIONS = _gauge(
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "",
    "Partitions without a leader, on the controller; else 0.",
    _CONTROLLER + "OfflinePartitionsCount",
)
TOPICS = _gauge(
    "kafka_controller_kafkacontroller_globaltopiccount",
    "",
    "Topics of the cluster, on the controller; else 0.",
    _CONTROLLER + "GlobalTopicCount",
)
ALL_PARTITIONS = _gauge(
    "kafka_controller_kafkacontroller_globalpartitioncount",
    "",
    "Partitions of the cluster, on the controller; else 0.",
    _CONTROLLER + "GlobalPartitionCount",
)
LOG_SIZE = _gauge("kafka_log_log_size", "topic partition", "Bytes of the log's segments.", _LOG + "Size")
LOG_START = _gauge(
    "kafka_log_log_logstartoffset", "topic partition", "Offset of the first record.", _LOG + "LogStartOffset"
)
LOG_END = _gauge(
    "kafka_log_log_logendoffset", "topic partition", "Offset after the last record.", _LOG + "LogEndOffset"
)
LOG_SEGMENTS = _gauge("kafka_log_log_numlogsegments", "topic partition", "Segments.", _LOG + "NumLogSegments")
OFFLINE_FOLDERS = _gauge(
    "kafka_log_logmanager_offlinelogdirectorycount",
    "",
    "Data folders that have failed.",
    "kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
)
UNCLEANABLE = _gauge(
    "kafka_log_logcleanermanager_uncleanable_partitions_count",
    "",
    "Compacted logs that are left alone because of a damaged record; Kafka counts them by folder.",
    "kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count",
)
CLEANER_RUNS = _counter("ottla_log_cleaner_runs_total", "", "Logs that were compacted.")
CLEANER_READ = _counter(
    "ottla_log_cleaner_read_bytes_total", "", "Bytes that compaction has read to be kept or dropped."
)
CLEANER_WRITTEN = _counter("ottla_log_cleaner_written_bytes_total", "", "Bytes that compaction has kept.")
CLEANER_IN_PROGRESS = _gauge("ottla_log_cleaner_in_progress", "", "Logs that are being compacted.")
GROUPS = _gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    "",
    "Groups this broker coordinates.",
    _GROUPS + "NumGroups",
)
GROUPS_BY_STATE = _gauge(
    "ottla_groups",
    "state",
    "The same by state, as DescribeGroups names it (Kafka: NumGroupsStable, NumGroupsEmpty, …).",
)
GROUP_OFFSET = _gauge(
    "kafka_consumergroup_current_offset",
    "consumergroup topic partition",
    "What a group of this broker has committed.",
    _EXPORTER,
)
GROUP_LAG = _gauge(
    "kafka_consumergroup_lag",
    "consumergroup topic partition",
    "How many offsets that is behind the high watermark, where this broker leads the partition.",
    _EXPORTER,
)
LOOP_LAG = Family(
    "ottla_loop_lag_seconds",
    Kind.HISTOGRAM,
    (),
    "How late a timer fires that is set four times a second: everything a client asks waits as long.",
)
LOOP_TASKS = _gauge("ottla_loop_tasks", "", "Tasks of the event loop.")

FAMILIES: tuple[Family, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Family))
"""All of them, in the order of this file."""
