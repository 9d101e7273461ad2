"""Settings of the share coordinator: ``share.coordinator.*``, under Kafka's names.

As with ``__consumer_offsets``, a broker that is alone reads the replication factor and ``min.isr`` as 1.
"""

from __future__ import annotations

from ..base.settings import ConfigValueType, Settings, setting

TOPIC = "__share_group_state"


class ShareCoordinatorSettings(Settings):
    """The states of share partitions."""

    share_coordinator_state_topic_num_partitions: int = setting(
        "share.coordinator.state.topic.num.partitions",
        default=50,
        at_least=1,
        doc="Partitions of __share_group_state when it is created; never change it afterwards.",
    )
    share_coordinator_state_topic_replication_factor: int = setting(
        "share.coordinator.state.topic.replication.factor",
        default=3,
        kind=ConfigValueType.SHORT,
        at_least=1,
        doc="Replicas of __share_group_state, which is created once there are as many brokers; 1 on a single broker.",
    )
    share_coordinator_state_topic_min_isr: int = setting(
        "share.coordinator.state.topic.min.isr",
        default=2,
        kind=ConfigValueType.SHORT,
        at_least=1,
        doc="min.insync.replicas of __share_group_state, at most its replication factor.",
    )
    share_coordinator_state_topic_segment_bytes: int = setting(
        "share.coordinator.state.topic.segment.bytes",
        default=100 << 20,
        at_least=1,
        doc="segment.bytes of __share_group_state.",
    )
    share_coordinator_state_topic_compression_codec: int = setting(
        "share.coordinator.state.topic.compression.codec",
        default=0,
        at_least=0,
        at_most=4,
        doc="Compression of __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = setting(
        "share.coordinator.snapshot.update.records.per.snapshot",
        default=500,
        at_least=0,
        at_most=500,
        doc="Updates of a share partition between two snapshots.",
    )
    share_coordinator_write_timeout_ms: int = setting(
        "share.coordinator.write.timeout.ms",
        default=5000,
        at_least=1,
        doc="Longest wait for replication before a response is sent.",
    )
    share_coordinator_state_topic_prune_interval_ms: int = setting(
        "share.coordinator.state.topic.prune.interval.ms",
        default=300_000,
        at_least=1,
        doc="Interval at which records that no share partition needs are deleted from __share_group_state.",
    )
    share_coordinator_cold_partition_snapshot_interval_ms: int = setting(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        default=300_000,
        at_least=1,
        doc="Time without a snapshot after which a share partition gets one, so that earlier records can be deleted.",
    )
