"""Replicas on this broker, their in-sync sets, the fetchers of followers, and throttled replication."""

from __future__ import annotations

from .family import Family, counter, families_of, gauge

_PARTITION = "kafka.cluster:type=Partition,topic=*,partition=*,name="
_REPLICAS = "kafka.server:type=ReplicaManager,name="
_TOPIC = "kafka.server:type=BrokerTopicMetrics,name="
_FETCHERS = "kafka.server:type=ReplicaFetcherManager,clientId=Replica,name="

PARTITIONS = gauge(
    "kafka_server_replicamanager_partitioncount", "", "Partitions on this broker.", _REPLICAS + "PartitionCount"
)
LEADERS = gauge(
    "kafka_server_replicamanager_leadercount", "", "Partitions this broker leads.", _REPLICAS + "LeaderCount"
)
UNDER_REPLICATED = gauge(
    "kafka_server_replicamanager_underreplicatedpartitions",
    "",
    "Partitions this broker leads with fewer replicas in sync than there are.",
    _REPLICAS + "UnderReplicatedPartitions",
)
REASSIGNING = gauge(
    "kafka_server_replicamanager_reassigningpartitions",
    "",
    "Partitions this broker leads whose replicas are being moved.",
    _REPLICAS + "ReassigningPartitions",
)
UNDER_MIN_ISR = gauge(
    "kafka_server_replicamanager_underminisrpartitioncount",
    "",
    "Partitions this broker leads with fewer replicas in sync than min.insync.replicas.",
    _REPLICAS + "UnderMinIsrPartitionCount",
)
AT_MIN_ISR = gauge(
    "kafka_server_replicamanager_atminisrpartitioncount",
    "",
    "Partitions this broker leads with just as many replicas in sync as min.insync.replicas; those with one replica, too.",
    _REPLICAS + "AtMinIsrPartitionCount",
)
OFFLINE_REPLICAS = gauge(
    "kafka_server_replicamanager_offlinereplicacount",
    "",
    "Partitions of this broker in a data folder that has failed.",
    _REPLICAS + "OfflineReplicaCount",
)
REPLICAS = gauge(
    "kafka_cluster_partition_replicascount",
    "topic partition",
    "Replicas of a partition this broker leads. Here and below Kafka has followers as well, with 0.",
    _PARTITION + "ReplicasCount",
)
IN_SYNC_REPLICAS = gauge(
    "kafka_cluster_partition_insyncreplicascount",
    "topic partition",
    "Those of them that are in sync.",
    _PARTITION + "InSyncReplicasCount",
)
PARTITION_UNDER_REPLICATED = gauge(
    "kafka_cluster_partition_underreplicated",
    "topic partition",
    "1 where fewer replicas are in sync than there are, else 0.",
    _PARTITION + "UnderReplicated",
)
PARTITION_UNDER_MIN_ISR = gauge(
    "kafka_cluster_partition_underminisr",
    "topic partition",
    "1 where fewer are in sync than min.insync.replicas, else 0.",
    _PARTITION + "UnderMinIsr",
)
PARTITION_AT_MIN_ISR = gauge(
    "kafka_cluster_partition_atminisr",
    "topic partition",
    "1 where just as many are, else 0.",
    _PARTITION + "AtMinIsr",
)
LAST_STABLE_OFFSET_LAG = gauge(
    "kafka_cluster_partition_laststableoffsetlag",
    "topic partition",
    "How many offsets transactions that have not ended keep from read_committed consumers.",
    _PARTITION + "LastStableOffsetLag",
)
HIGH_WATERMARK = gauge(
    "kafka_topic_partition_current_offset",
    "topic partition",
    "The high watermark of a partition this broker leads.",
    "kafka_exporter",
)
ISR_SHRINKS = counter(
    "kafka_server_replicamanager_isrshrinks_total",
    "",
    "How often this broker, as a leader, has had a replica taken out that fell behind; not those of brokers that failed.",
    _REPLICAS + "IsrShrinksPerSec",
)
ISR_EXPANDS = counter(
    "kafka_server_replicamanager_isrexpands_total",
    "",
    "How often it has had a replica taken in that caught up.",
    _REPLICAS + "IsrExpandsPerSec",
)
FAILED_ISR_UPDATES = counter(
    "kafka_server_replicamanager_failedisrupdates_total",
    "",
    "How often the controller has refused such a change, or another state had overtaken it.",
    _REPLICAS + "FailedIsrUpdatesPerSec",
)
REPLICATION_BYTES_IN = counter(
    "kafka_server_brokertopicmetrics_replicationbytesin_total",
    "",
    "Bytes of record batches that were fetched from leaders and appended.",
    _TOPIC + "ReplicationBytesInPerSec",
)
REPLICATION_BYTES_OUT = counter(
    "kafka_server_brokertopicmetrics_replicationbytesout_total",
    "",
    "Bytes of record batches in answers to followers.",
    _TOPIC + "ReplicationBytesOutPerSec",
)
REASSIGNMENT_BYTES_IN = counter(
    "kafka_server_brokertopicmetrics_reassignmentbytesin_total",
    "",
    "Those of them that were appended to replicas that a reassignment adds.",
    _TOPIC + "ReassignmentBytesInPerSec",
)
REASSIGNMENT_BYTES_OUT = counter(
    "kafka_server_brokertopicmetrics_reassignmentbytesout_total",
    "",
    "Those of them that went to replicas that a reassignment adds.",
    _TOPIC + "ReassignmentBytesOutPerSec",
)
FETCHER_LAG = gauge(
    "kafka_server_fetcherlagmetrics_consumerlag",
    "clientId topic partition",
    "How many offsets a replica on this broker is behind its leader's high watermark; clientId ends with the leader's id.",
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=*,topic=*,partition=*",
)
MAX_LAG = gauge("kafka_server_replicafetchermanager_maxlag", "clientId", "The largest of these.", _FETCHERS + "MaxLag")
MIN_FETCH_RATE = gauge(
    "kafka_server_replicafetchermanager_minfetchrate",
    "clientId",
    "Fetches a second, averaged over about a minute, to the leader to which this broker makes the fewest; 0 without one.",
    _FETCHERS + "MinFetchRate",
)
FAILED_PARTITIONS = gauge(
    "kafka_server_replicafetchermanager_failedpartitionscount",
    "clientId",
    "Replicas on this broker that are not fetched any more after an error, until the controller says something new of them.",
    _FETCHERS + "FailedPartitionsCount",
)
LEADER_QUOTA_RATE = gauge(
    "kafka_server_leaderreplication_byte_rate",
    "",
    "Bytes a second, of late, that this broker as a leader has sent of replicas whose replication is throttled.",
    "kafka.server:type=LeaderReplication, byte-rate",
)
FOLLOWER_QUOTA_RATE = gauge(
    "kafka_server_followerreplication_byte_rate",
    "",
    "Bytes a second, of late, that this broker has fetched for replicas whose replication is throttled.",
    "kafka.server:type=FollowerReplication, byte-rate",
)
LOG_DIRS_QUOTA_RATE = gauge(
    "kafka_server_alterlogdirsreplication_byte_rate",
    "",
    "Bytes a second, of late, that this broker has moved between its data folders.",
    "kafka.server:type=AlterLogDirsReplication, byte-rate",
)

FAMILIES: tuple[Family, ...] = families_of(globals())
