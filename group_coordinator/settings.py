"""Settings of the group coordinator: ``group.*``, ``offsets.*`` and ``offset.metadata.max.bytes``, under Kafka's names.

Two defaults are not Kafka's. ``group.initial.rebalance.delay.ms`` is 0, so that a lone consumer gets its partitions at
once. A broker with its own store, which has no other brokers, reads ``offsets.topic.replication.factor`` as 1.
"""

from __future__ import annotations

from ..base.settings import ConfigValueType, Settings, setting

TOPIC = "__consumer_offsets"


class GroupSettings(Settings):
    """Groups and committed offsets."""

    group_min_session_timeout_ms: int = setting(
        "group.min.session.timeout.ms", default=6000, doc="Shortest session timeout of a member."
    )
    group_max_session_timeout_ms: int = setting(
        "group.max.session.timeout.ms", default=1_800_000, doc="Longest session timeout of a member."
    )
    group_initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms",
        default=0,
        doc="Time that the first rebalance of an empty group waits for more members. Each new member extends it.",
    )
    group_max_size: int = setting("group.max.size", default=(1 << 31) - 1, at_least=1, doc="Most members of a group.")
    offset_metadata_max_bytes: int = setting(
        "offset.metadata.max.bytes", default=4096, doc="Longest metadata string of a committed offset."
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes",
        default=7 * 24 * 60,
        at_least=1,
        doc="Time that committed offsets stay after the last member has left, or after the commit if the group "
        "has no members.",
    )
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms",
        default=600_000,
        kind=ConfigValueType.LONG,
        at_least=1,
        doc="Interval of the search for expired offsets and groups without offsets.",
    )
    offsets_topic_num_partitions: int = setting(
        "offsets.topic.num.partitions",
        default=50,
        at_least=1,
        doc="Partitions of __consumer_offsets when it is created; never change it afterwards.",
    )
    offsets_topic_segment_bytes: int = setting(
        "offsets.topic.segment.bytes", default=100 << 20, at_least=1, doc="segment.bytes of __consumer_offsets."
    )
    offsets_topic_replication_factor: int = setting(
        "offsets.topic.replication.factor",
        default=3,
        kind=ConfigValueType.SHORT,
        at_least=1,
        doc="Replicas of __consumer_offsets, which is created once there are as many brokers; 1 on a single broker.",
    )
    offsets_topic_compression_codec: int = setting(
        "offsets.topic.compression.codec",
        default=0,
        at_least=0,
        at_most=4,
        doc="Compression of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    offsets_commit_timeout_ms: int = setting(
        "offsets.commit.timeout.ms",
        default=5000,
        at_least=1,
        doc="Longest wait for replication before a response is sent.",
    )
