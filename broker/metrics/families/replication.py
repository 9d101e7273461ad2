"""Metrics of the replicas on this broker, their ISRs, the fetchers of followers, and throttled replication."""

from __future__ import annotations

from .family import Family, counter, families_of, gauge

_PARTITION = "kafka.cluster:type=Partition,topic=*,partition=*,name="
_REPLICAS = "kafka.server:type=ReplicaManager,name="
_TOPIC = "kafka.server:type=BrokerTopicMetrics,name="
_FETCHERS = "kafka.server:type=ReplicaFetcherManager,clientId=Replica,name="

PARTITIONS = gauge(
    "kafka_server_replicamanager_partitioncount",
    "",
    "Replicas on this broker, as leader or follower.",
    _REPLICAS + "PartitionCount",
)
LEADERS = gauge(
    "kafka_server_replicamanager_leadercount", "", "Partitions that this broker leads.", _REPLICAS + "LeaderCount"
)
UNDER_REPLICATED = gauge(
    "kafka_server_replicamanager_underreplicatedpartitions",
    "",
    "Partitions that this broker leads with fewer replicas in sync than there are replicas.",
    _REPLICAS + "UnderReplicatedPartitions",
)
REASSIGNING = gauge(
    "kafka_server_replicamanager_reassigningpartitions",
    "",
    "Partitions that this broker leads and that are being reassigned.",
    _REPLICAS + "ReassigningPartitions",
)
UNDER_MIN_ISR = gauge(
    "kafka_server_replicamanager_underminisrpartitioncount",
    "",
    "Partitions that this broker leads with fewer replicas in sync than min.insync.replicas.",
    _REPLICAS + "UnderMinIsrPartitionCount",
)
AT_MIN_ISR = gauge(
    "kafka_server_replicamanager_atminisrpartitioncount",
    "",
    "Partitions that this broker leads with as many replicas in sync as min.insync.replicas; also those with one replica.",
    _REPLICAS + "AtMinIsrPartitionCount",
)
OFFLINE_REPLICAS = gauge(
    "kafka_server_replicamanager_offlinereplicacount",
    "",
    "Replicas on this broker in log directories that have failed.",
    _REPLICAS + "OfflineReplicaCount",
)
REPLICAS = gauge(
    "kafka_cluster_partition_replicascount",
    "topic partition",
    "Replicas of a partition that this broker leads. Kafka also has this and the next four metrics for followers, with 0.",
    _PARTITION + "ReplicasCount",
)
IN_SYNC_REPLICAS = gauge(
    "kafka_cluster_partition_insyncreplicascount",
    "topic partition",
    "In-sync replicas of a partition that this broker leads.",
    _PARTITION + "InSyncReplicasCount",
)
PARTITION_UNDER_REPLICATED = gauge(
    "kafka_cluster_partition_underreplicated",
    "topic partition",
    "1 for a partition with fewer replicas in sync than there are replicas, else 0.",
    _PARTITION + "UnderReplicated",
)
PARTITION_UNDER_MIN_ISR = gauge(
    "kafka_cluster_partition_underminisr",
    "topic partition",
    "1 for a partition with fewer replicas in sync than min.insync.replicas, else 0.",
    _PARTITION + "UnderMinIsr",
)
PARTITION_AT_MIN_ISR = gauge(
    "kafka_cluster_partition_atminisr",
    "topic partition",
    "1 for a partition with exactly as many replicas in sync as min.insync.replicas, else 0.",
    _PARTITION + "AtMinIsr",
)
LAST_STABLE_OFFSET_LAG = gauge(
    "kafka_cluster_partition_laststableoffsetlag",
    "topic partition",
    "The high watermark minus the last stable offset: offsets that read_committed consumers cannot read yet, because of open "
    "transactions.",
    _PARTITION + "LastStableOffsetLag",
)
HIGH_WATERMARK = gauge(
    "kafka_topic_partition_current_offset",
    "topic partition",
    "The high watermark of a partition that this broker leads.",
    "kafka_exporter",
)
ISR_SHRINKS = counter(
    "kafka_server_replicamanager_isrshrinks_total",
    "",
    "How often this broker, as leader, has removed in-sync replicas that fell behind; brokers that failed are not counted.",
    _REPLICAS + "IsrShrinksPerSec",
)
ISR_EXPANDS = counter(
    "kafka_server_replicamanager_isrexpands_total",
    "",
    "How often this broker, as leader, has added an in-sync replica that caught up.",
    _REPLICAS + "IsrExpandsPerSec",
)
FAILED_ISR_UPDATES = counter(
    "kafka_server_replicamanager_failedisrupdates_total",
    "",
    "Changes of in-sync replicas that the controller refused, or that a newer state of the partition made obsolete.",
    _REPLICAS + "FailedIsrUpdatesPerSec",
)
REPLICATION_BYTES_IN = counter(
    "kafka_server_brokertopicmetrics_replicationbytesin_total",
    "",
    "Bytes of record batches that were fetched from leaders and appended to replicas.",
    _TOPIC + "ReplicationBytesInPerSec",
)
REPLICATION_BYTES_OUT = counter(
    "kafka_server_brokertopicmetrics_replicationbytesout_total",
    "",
    "Bytes of record batches in responses to followers.",
    _TOPIC + "ReplicationBytesOutPerSec",
)
REASSIGNMENT_BYTES_IN = counter(
    "kafka_server_brokertopicmetrics_reassignmentbytesin_total",
    "",
    "Bytes of record batches that were fetched from leaders and appended to replicas that a reassignment adds.",
    _TOPIC + "ReassignmentBytesInPerSec",
)
REASSIGNMENT_BYTES_OUT = counter(
    "kafka_server_brokertopicmetrics_reassignmentbytesout_total",
    "",
    "Bytes of record batches in responses to followers whose replicas a reassignment adds.",
    _TOPIC + "ReassignmentBytesOutPerSec",
)
FETCHER_LAG = gauge(
    "kafka_server_fetcherlagmetrics_consumerlag",
    "clientId topic partition",
    "How many offsets a replica on this broker is behind the high watermark of its leader; clientId ends with the leader's id.",
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=*,topic=*,partition=*",
)
MAX_LAG = gauge(
    "kafka_server_replicafetchermanager_maxlag",
    "clientId",
    "The largest lag of any replica on this broker.",
    _FETCHERS + "MaxLag",
)
MIN_FETCH_RATE = gauge(
    "kafka_server_replicafetchermanager_minfetchrate",
    "clientId",
    "Fetches per second, averaged over about a minute, from the leader that this broker fetches from least often; 0 without one.",
    _FETCHERS + "MinFetchRate",
)
FAILED_PARTITIONS = gauge(
    "kafka_server_replicafetchermanager_failedpartitionscount",
    "clientId",
    "Replicas on this broker that are not fetched after an error, until the controller sends a new state of their partition.",
    _FETCHERS + "FailedPartitionsCount",
)
LEADER_QUOTA_RATE = gauge(
    "kafka_server_leaderreplication_byte_rate",
    "",
    "Recent bytes per second that this broker, as leader, has sent to followers whose replication is throttled.",
    "kafka.server:type=LeaderReplication, byte-rate",
)
FOLLOWER_QUOTA_RATE = gauge(
    "kafka_server_followerreplication_byte_rate",
    "",
    "Recent bytes per second that this broker has fetched for replicas whose replication is throttled.",
    "kafka.server:type=FollowerReplication, byte-rate",
)
LOG_DIRS_QUOTA_RATE = gauge(
    "kafka_server_alterlogdirsreplication_byte_rate",
    "",
    "Recent bytes per second that this broker has copied between its log directories.",
    "kafka.server:type=AlterLogDirsReplication, byte-rate",
)

FAMILIES: tuple[Family, ...] = families_of(globals())
