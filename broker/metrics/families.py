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


def _histogram(name: str, labels: str, meaning: str, kafka: str) -> Family:
    return Family(name, Kind.HISTOGRAM, tuple(labels.split()), meaning, kafka)


def _times(name: str, meaning: str, kafka: str) -> Family:
    return _histogram(f"kafka_network_requestmetrics_{name}", "request", meaning, kafka)


_REQUEST = "kafka.network:type=RequestMetrics,name="
_REPLICAS = "kafka.server:type=ReplicaManager,name="
_TOPIC = "kafka.server:type=BrokerTopicMetrics,name="
_CONTROLLER = "kafka.controller:type=KafkaController,name="
_CONTROLLER_STATS = "kafka.controller:type=ControllerStats,name="
_EVENTS = "kafka.controller:type=ControllerEventManager,name="
_SENDERS = "kafka.controller:type=ControllerChannelManager,broker-id=*,name="
_FETCHERS = "kafka.server:type=ReplicaFetcherManager,clientId=Replica,name="
_SESSION = "kafka.server:type=SessionExpireListener,name="
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
    "Bytes of record batches in answers to consumers; those for followers are not in it.",
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
    "Connections that the broker ended or that broke: protocol (bytes that cannot be read), authentication (a "
    "client that is not who it says), refused_request (no answer is possible, as for a failed produce with acks=0), "
    "limit, idle, network, storage (the records of an answer were "
    "truncated, or could not be read, before they left), bug.",
)
SUCCESSFUL_AUTHENTICATIONS = _counter(
    "kafka_server_socket_server_metrics_successful_authentication_total",
    "listener",
    "Clients that have shown by SASL who they are.",
    _SOCKETS + ",listener=*, successful-authentication-total",
)
FAILED_AUTHENTICATIONS = _counter(
    "kafka_server_socket_server_metrics_failed_authentication_total",
    "listener",
    "Clients that have not, and were cut off.",
    _SOCKETS + ",listener=*, failed-authentication-total",
)
SUCCESSFUL_REAUTHENTICATIONS = _counter(
    "kafka_server_socket_server_metrics_successful_reauthentication_total",
    "listener",
    "Clients that have shown it again before their session ended (connections.max.reauth.ms, or a token's end).",
    _SOCKETS + ",listener=*, successful-reauthentication-total",
)
FAILED_REAUTHENTICATIONS = _counter(
    "kafka_server_socket_server_metrics_failed_reauthentication_total",
    "listener",
    "Clients that could not any more, and were cut off.",
    _SOCKETS + ",listener=*, failed-reauthentication-total",
)
EXPIRED_CONNECTIONS = _counter(
    "kafka_server_socket_server_metrics_expired_connections_killed_total",
    "listener",
    "Connections that were closed by a request that came when the session had ended.",
    _SOCKETS + ",listener=*, expired-connections-killed-count",
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
REASSIGNING = _gauge(
    "kafka_server_replicamanager_reassigningpartitions",
    "",
    "Partitions this broker leads whose replicas are being moved.",
    _REPLICAS + "ReassigningPartitions",
)
UNDER_MIN_ISR = _gauge(
    "kafka_server_replicamanager_underminisrpartitioncount",
    "",
    "Partitions this broker leads with fewer replicas in sync than min.insync.replicas.",
    _REPLICAS + "UnderMinIsrPartitionCount",
)
AT_MIN_ISR = _gauge(
    "kafka_server_replicamanager_atminisrpartitioncount",
    "",
    "Partitions this broker leads with just as many replicas in sync as min.insync.replicas; those with one replica, too.",
    _REPLICAS + "AtMinIsrPartitionCount",
)
OFFLINE_REPLICAS = _gauge(
    "kafka_server_replicamanager_offlinereplicacount",
    "",
    "Partitions of this broker in a data folder that has failed.",
    _REPLICAS + "OfflineReplicaCount",
)
ISR_SHRINKS = _counter(
    "kafka_server_replicamanager_isrshrinks_total",
    "",
    "How often this broker, as a leader, has had a replica taken out that fell behind; not those of brokers that failed.",
    _REPLICAS + "IsrShrinksPerSec",
)
ISR_EXPANDS = _counter(
    "kafka_server_replicamanager_isrexpands_total",
    "",
    "How often it has had a replica taken in that caught up.",
    _REPLICAS + "IsrExpandsPerSec",
)
FAILED_ISR_UPDATES = _counter(
    "kafka_server_replicamanager_failedisrupdates_total",
    "",
    "How often the controller has refused such a change, or another state had overtaken it.",
    _REPLICAS + "FailedIsrUpdatesPerSec",
)
REPLICATION_BYTES_IN = _counter(
    "kafka_server_brokertopicmetrics_replicationbytesin_total",
    "",
    "Bytes of record batches that were fetched from leaders and appended.",
    _TOPIC + "ReplicationBytesInPerSec",
)
REPLICATION_BYTES_OUT = _counter(
    "kafka_server_brokertopicmetrics_replicationbytesout_total",
    "",
    "Bytes of record batches in answers to followers.",
    _TOPIC + "ReplicationBytesOutPerSec",
)
REASSIGNMENT_BYTES_IN = _counter(
    "kafka_server_brokertopicmetrics_reassignmentbytesin_total",
    "",
    "Those of them that were appended to replicas that a reassignment adds.",
    _TOPIC + "ReassignmentBytesInPerSec",
)
REASSIGNMENT_BYTES_OUT = _counter(
    "kafka_server_brokertopicmetrics_reassignmentbytesout_total",
    "",
    "Those of them that went to replicas that a reassignment adds.",
    _TOPIC + "ReassignmentBytesOutPerSec",
)
FETCHER_LAG = _gauge(
    "kafka_server_fetcherlagmetrics_consumerlag",
    "clientId topic partition",
    "How many offsets a replica on this broker is behind its leader's high watermark; clientId ends with the leader's id.",
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=*,topic=*,partition=*",
)
MAX_LAG = _gauge("kafka_server_replicafetchermanager_maxlag", "clientId", "The largest of these.", _FETCHERS + "MaxLag")
MIN_FETCH_RATE = _gauge(
    "kafka_server_replicafetchermanager_minfetchrate",
    "clientId",
    "Fetches a second, averaged over about a minute, to the leader to which this broker makes the fewest; 0 without one.",
    _FETCHERS + "MinFetchRate",
)
FAILED_PARTITIONS = _gauge(
    "kafka_server_replicafetchermanager_failedpartitionscount",
    "clientId",
    "Replicas on this broker that are not fetched any more after an error, until the controller says something new of them.",
    _FETCHERS + "FailedPartitionsCount",
)
LEADER_QUOTA_RATE = _gauge(
    "kafka_server_leaderreplication_byte_rate",
    "",
    "Bytes a second, of late, that this broker as a leader has sent of replicas whose replication is throttled.",
    "kafka.server:type=LeaderReplication, byte-rate",
)
FOLLOWER_QUOTA_RATE = _gauge(
    "kafka_server_followerreplication_byte_rate",
    "",
    "Bytes a second, of late, that this broker has fetched for replicas whose replication is throttled.",
    "kafka.server:type=FollowerReplication, byte-rate",
)
LOG_DIRS_QUOTA_RATE = _gauge(
    "kafka_server_alterlogdirsreplication_byte_rate",
    "",
    "Bytes a second, of late, that this broker has moved between its data folders.",
    "kafka.server:type=AlterLogDirsReplication, byte-rate",
)
CLIENT_BYTE_RATE = _gauge(
    "kafka_server_quota_byte_rate",
    "resource user clientId",
    "Bytes a second, of late, that clients with a quota have written (Produce) and read (Fetch). A quota of a user is shared by "
    "all of its clients, and has no clientId; one of a client id no user.",
    "kafka.server:type={Produce,Fetch},user=*,client-id=*, byte-rate",
)
CLIENT_REQUEST_TIME = _gauge(
    "kafka_server_quota_request_time",
    "resource user clientId",
    "How much of the loop's time, of late, requests of clients with a request_percentage have taken, in percent.",
    "kafka.server:type=Request,user=*,client-id=*, request-time",
)
CLIENT_MUTATION_RATE = _gauge(
    "kafka_server_quota_mutation_rate",
    "resource user clientId",
    "Partitions a second, of late, that clients with a controller_mutation_rate have created and deleted.",
    "kafka.server:type=ControllerMutation,user=*,client-id=*, mutation-rate",
)
CLIENT_TOKENS = _gauge(
    "kafka_server_quota_tokens",
    "resource user clientId",
    "How many more they may create and delete at once; below 0 they are refused.",
    "kafka.server:type=ControllerMutation,user=*,client-id=*, tokens",
)
CLIENT_THROTTLE_TIME = _gauge(
    "kafka_server_quota_throttle_time",
    "resource user clientId",
    "For how many milliseconds clients were held up because of a quota, averaged over those times of the last minute; 0 when "
    "none was.",
    "kafka.server:type={Produce,Fetch,Request,ControllerMutation},user=*,client-id=*, throttle-time",
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
ACTIVE_BROKERS = _gauge(
    "kafka_controller_kafkacontroller_activebrokercount",
    "",
    "Brokers that are registered, on the controller; else 0.",
    _CONTROLLER + "ActiveBrokerCount",
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
PREFERRED_IMBALANCE = _gauge(
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "",
    "Partitions that are not led by the first of their replicas, on the controller; else 0.",
    _CONTROLLER + "PreferredReplicaImbalanceCount",
)
TOPICS_TO_DELETE = _gauge(
    "kafka_controller_kafkacontroller_topicstodeletecount",
    "",
    "Topics that are being deleted, on the controller; else 0.",
    _CONTROLLER + "TopicsToDeleteCount",
)
ELECTION_TIMES = _histogram(
    "kafka_controller_controllerstats_leaderelectionrateandtimems",
    "",
    "How long the controller took to elect and to have told after brokers came or went, in milliseconds.",
    _CONTROLLER_STATS + "LeaderElectionRateAndTimeMs",
)
UNCLEAN_ELECTIONS = _counter(
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "",
    "Leaders that were elected without having been in sync: records may be lost.",
    _CONTROLLER_STATS + "UncleanLeaderElectionsPerSec",
)
EVENT_QUEUE_SIZE = _gauge(
    "kafka_controller_controllereventmanager_eventqueuesize",
    "",
    "Events that wait for the controller.",
    _EVENTS + "EventQueueSize",
)
EVENT_QUEUE_TIMES = _histogram(
    "kafka_controller_controllereventmanager_eventqueuetimems",
    "",
    "How long events have waited for their turn, in milliseconds.",
    _EVENTS + "EventQueueTimeMs",
)
SENDER_QUEUE_SIZE = _gauge(
    "kafka_controller_controllerchannelmanager_queuesize",
    "broker_id",
    "Requests to a broker, itself among them, that it has not answered yet; on the controller.",
    _SENDERS + "QueueSize",
)
SENDER_QUEUE_TIMES = _histogram(
    "kafka_controller_controllerchannelmanager_requestrateandqueuetimems",
    "broker_id",
    "How long these have waited until they were sent, in milliseconds, since the broker registered.",
    _SENDERS + "RequestRateAndQueueTimeMs",
)
SESSION_STATE = _gauge(
    "kafka_server_sessionexpirelistener_sessionstate",
    "state",
    "1 for the state that the session at the cluster's store is in: CONNECTED, CONNECTING, CLOSED once it has expired; else 0.",
    _SESSION + "SessionState",
)
SESSION_CONNECTS = _counter(
    "kafka_server_sessionexpirelistener_zookeepersyncconnects_total",
    "",
    "How often there was a connection to the cluster's store.",
    _SESSION + "ZooKeeperSyncConnectsPerSec",
)
SESSION_DISCONNECTS = _counter(
    "kafka_server_sessionexpirelistener_zookeeperdisconnects_total",
    "",
    "How often it was lost, or given up because nothing came.",
    _SESSION + "ZooKeeperDisconnectsPerSec",
)
SESSION_EXPIRATIONS = _counter(
    "kafka_server_sessionexpirelistener_zookeeperexpires_total",
    "",
    "How many sessions have expired, each of which took the broker out of the cluster for a while.",
    _SESSION + "ZooKeeperExpiresPerSec",
)
STORE_TIMES = _histogram(
    "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
    "",
    "How long requests to the cluster's store took, in milliseconds; to that of a single broker, too, which is its own.",
    "kafka.server:type=ZooKeeperClientMetrics,name=ZooKeeperRequestLatencyMs",
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
