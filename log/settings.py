"""Settings of the log: those that a topic may override (``LogSettings``), and broker-wide ones.

Names, types, defaults and ranges are Apache Kafka 4.3's, except for ``segment.bytes``, which may be as small as in Kafka
3.9 (KIP-1030 raised the limit to 1 MiB). A topic-level setting without a broker property is a throttle or belongs to
tiered storage, as in Kafka. Times are milliseconds, sizes bytes; -1 is "no limit" for retention.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container
from functools import cached_property

from ..base.settings import ConfigValueType, Fallback, Settings, setting

LONG_MAX = (1 << 63) - 1
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_THROTTLED = re.compile(r"\d+:\d+(,\d+:\d+)*")


def _check_gzip_level(level: int) -> str | None:
    return None if level == -1 or 1 <= level <= 9 else "must be -1 or from 1 to 9"


def _check_throttled(replicas: tuple[str, ...]) -> str | None:
    text = ",".join(replicas)
    if text in ("", "*") or _THROTTLED.fullmatch(text):
        return None
    return (
        "must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


class _EveryReplica:
    """What ``*`` stands for."""

    def __contains__(self, replica: object) -> bool:
        return True


ReplicaList = Container[tuple[int, int]]
"""Partition number and broker id of each."""


def _replica_list(listed: tuple[str, ...]) -> ReplicaList:
    if listed == ("*",):
        return _EveryReplica()
    return {(int(number), int(broker_id)) for number, _, broker_id in (each.partition(":") for each in listed)}


class LogSettings(Settings):
    """The log of a partition. Topics can override these defaults."""

    cleanup_policy: tuple[str, ...] = setting(
        "log.cleanup.policy",
        topic="cleanup.policy",
        default=("delete",),
        choices=("compact", "delete"),
        doc="Removal of old records: delete removes segments by age and size, compact keeps the last record of "
        "each key.",
    )
    compression_type: str = setting(
        "compression.type",
        topic="compression.type",
        default="producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        doc="Codec of the batches in the log; producer keeps the producer's codec.",
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level",
        topic="compression.gzip.level",
        default=-1,
        check=_check_gzip_level,
        doc="Level used when compression.type is gzip; -1 is the codec's default.",
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level",
        topic="compression.lz4.level",
        default=9,
        at_least=1,
        at_most=17,
        doc="Level used when compression.type is lz4.",
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level",
        topic="compression.zstd.level",
        default=3,
        at_least=-131072,
        at_most=22,
        doc="Level used when compression.type is zstd.",
    )
    delete_retention_ms: int = setting(
        "log.cleaner.delete.retention.ms",
        topic="delete.retention.ms",
        default=_DAY_MS,
        at_least=0,
        kind=ConfigValueType.LONG,
        doc="How long a compacted log keeps tombstones.",
    )
    file_delete_delay_ms: int = setting(
        "log.segment.delete.delay.ms",
        topic="file.delete.delay.ms",
        default=60_000,
        at_least=0,
        kind=ConfigValueType.LONG,
        doc="Time between the renaming of a deleted file and its removal.",
    )
    flush_messages: int = setting(
        "log.flush.interval.messages",
        topic="flush.messages",
        default=LONG_MAX,
        at_least=1,
        kind=ConfigValueType.LONG,
        doc="Records after which the log is forced to disk.",
    )
    flush_ms: int = setting(
        "log.flush.interval.ms",
        topic="flush.ms",
        default=LONG_MAX,
        at_least=0,
        kind=ConfigValueType.LONG,
        fallbacks=(Fallback("log.flush.scheduler.interval.ms", 1, LONG_MAX),),
        doc="Time after which the log is forced to disk.",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        None,
        topic="follower.replication.throttled.replicas",
        default=(),
        check=_check_throttled,
        doc="Replicas whose replication is throttled on the follower's side.",
    )
    index_interval_bytes: int = setting(
        "log.index.interval.bytes",
        topic="index.interval.bytes",
        default=4096,
        at_least=0,
        doc="Bytes of log between two entries of its indexes.",
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        None,
        topic="leader.replication.throttled.replicas",
        default=(),
        check=_check_throttled,
        doc="Replicas whose replication is throttled on the leader's side.",
    )
    local_retention_bytes: int = setting(
        "log.local.retention.bytes",
        topic="local.retention.bytes",
        default=-2,
        at_least=-2,
        kind=ConfigValueType.LONG,
        doc="With tiered storage: size of the local part of the log; -2 is retention.bytes.",
    )
    local_retention_ms: int = setting(
        "log.local.retention.ms",
        topic="local.retention.ms",
        default=-2,
        at_least=-2,
        kind=ConfigValueType.LONG,
        doc="With tiered storage: age of the local part of the log; -2 is retention.ms.",
    )
    max_compaction_lag_ms: int = setting(
        "log.cleaner.max.compaction.lag.ms",
        topic="max.compaction.lag.ms",
        default=LONG_MAX,
        at_least=1,
        kind=ConfigValueType.LONG,
        doc="Longest time a record stays out of compaction.",
    )
    max_message_bytes: int = setting(
        "message.max.bytes",
        topic="max.message.bytes",
        default=1_048_588,
        at_least=0,
        doc="Largest record batch, after compression.",
    )
    record_validation: str = setting(
        "ottla.record.validation",
        default="lengths",
        choices=("header", "lengths", "fields"),
        dynamic=True,
        doc="Check of produced batches: their headers, the lengths of records, or all fields of records.",
    )
    message_timestamp_after_max_ms: int = setting(
        "log.message.timestamp.after.max.ms",
        topic="message.timestamp.after.max.ms",
        default=_HOUR_MS,
        at_least=0,
        kind=ConfigValueType.LONG,
        doc="Most by which a record's time may be ahead of the broker's clock.",
    )
    message_timestamp_before_max_ms: int = setting(
        "log.message.timestamp.before.max.ms",
        topic="message.timestamp.before.max.ms",
        default=LONG_MAX,
        at_least=0,
        kind=ConfigValueType.LONG,
        doc="Most by which a record's time may be behind the broker's clock.",
    )
    message_timestamp_type: str = setting(
        "log.message.timestamp.type",
        topic="message.timestamp.type",
        default="CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        doc="Time of a record: the producer's (CreateTime), or the broker's at the append (LogAppendTime).",
    )
    min_cleanable_dirty_ratio: float = setting(
        "log.cleaner.min.cleanable.ratio",
        topic="min.cleanable.dirty.ratio",
        default=0.5,
        at_least=0,
        at_most=1,
        doc="Share of not yet compacted bytes from which a log is compacted.",
    )
    min_compaction_lag_ms: int = setting(
        "log.cleaner.min.compaction.lag.ms",
        topic="min.compaction.lag.ms",
        default=0,
        at_least=0,
        kind=ConfigValueType.LONG,
        doc="Shortest time a record stays out of compaction.",
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas",
        topic="min.insync.replicas",
        default=1,
        at_least=1,
        doc="Replicas that must have a record before a producer with acks=all gets its acknowledgement.",
    )
    preallocate: bool = setting(
        "log.preallocate",
        topic="preallocate",
        default=False,
        doc="Accepted without effect: a segment's file grows as it is written.",
    )
    remote_log_copy_disable: bool = setting(
        None,
        topic="remote.log.copy.disable",
        default=False,
        doc="With tiered storage: upload nothing more.",
    )
    remote_log_delete_on_disable: bool = setting(
        None,
        topic="remote.log.delete.on.disable",
        default=False,
        doc="With tiered storage: delete the remote part when it is disabled.",
    )
    remote_storage_enable: bool = setting(
        None,
        topic="remote.storage.enable",
        default=False,
        doc="Whether the topic uses tiered storage.",
    )
    retention_bytes: int = setting(
        "log.retention.bytes",
        topic="retention.bytes",
        default=-1,
        kind=ConfigValueType.LONG,
        doc="Size of a partition above which its oldest segments are deleted.",
    )
    retention_ms: int = setting(
        "log.retention.ms",
        topic="retention.ms",
        default=7 * _DAY_MS,
        at_least=-1,
        kind=ConfigValueType.LONG,
        fallbacks=(Fallback("log.retention.minutes", 60_000), Fallback("log.retention.hours", _HOUR_MS, 168)),
        doc="Age at which a segment is deleted.",
    )
    segment_bytes: int = setting(
        "log.segment.bytes",
        topic="segment.bytes",
        default=1 << 30,
        at_least=14,
        doc="Size at which a segment rolls.",
    )
    segment_index_bytes: int = setting(
        "log.index.size.max.bytes",
        topic="segment.index.bytes",
        default=10 << 20,
        at_least=4,
        doc="Largest size of a segment's index; a full index rolls the segment.",
    )
    segment_jitter_ms: int = setting(
        "log.roll.jitter.ms",
        topic="segment.jitter.ms",
        default=0,
        at_least=0,
        kind=ConfigValueType.LONG,
        fallbacks=(Fallback("log.roll.jitter.hours", _HOUR_MS, 0),),
        doc="Largest random time by which a segment rolls early.",
    )
    segment_ms: int = setting(
        "log.roll.ms",
        topic="segment.ms",
        default=7 * _DAY_MS,
        at_least=1,
        kind=ConfigValueType.LONG,
        fallbacks=(Fallback("log.roll.hours", _HOUR_MS, 168),),
        doc="Age at which a segment rolls.",
    )
    unclean_leader_election_enable: bool = setting(
        "unclean.leader.election.enable",
        topic="unclean.leader.election.enable",
        default=False,
        doc="Whether a replica that is not in sync may become leader, at the price of lost records.",
    )

    @cached_property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @cached_property
    def max_segment_ms(self) -> int:
        """Age at which a segment rolls; compaction, which leaves the active one alone, may not wait any longer."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    @cached_property
    def throttled_on_leader(self) -> ReplicaList:
        """The replicas of ``leader.replication.throttled.replicas``."""
        return _replica_list(self.leader_replication_throttled_replicas)

    @cached_property
    def throttled_on_follower(self) -> ReplicaList:
        """The replicas of ``follower.replication.throttled.replicas``."""
        return _replica_list(self.follower_replication_throttled_replicas)

    @property
    def deletes_old_segments(self) -> bool:
        return "delete" in self.cleanup_policy


class LogManagerSettings(Settings):
    """All logs of the broker."""

    retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms",
        default=300_000,
        at_least=1,
        kind=ConfigValueType.LONG,
        doc="Interval of the search for segments to delete.",
    )
    flush_offset_checkpoint_interval_ms: int = setting(
        "log.flush.offset.checkpoint.interval.ms",
        default=60_000,
        at_least=0,
        doc="Interval at which recovery points are written.",
    )
    flush_start_offset_checkpoint_interval_ms: int = setting(
        "log.flush.start.offset.checkpoint.interval.ms",
        default=60_000,
        at_least=0,
        doc="Interval at which log start offsets are written.",
    )
    high_watermark_checkpoint_interval_ms: int = setting(
        "replica.high.watermark.checkpoint.interval.ms",
        default=5_000,
        at_least=1,
        kind=ConfigValueType.LONG,
        doc="Interval at which high watermarks are written.",
    )
    recovery_threads_per_data_dir: int = setting(
        "num.recovery.threads.per.data.dir",
        default=2,
        at_least=1,
        dynamic=True,
        doc="Threads that load logs at startup and flush them at shutdown.",
    )
    producer_id_expiration_ms: int = setting(
        "producer.id.expiration.ms",
        default=_DAY_MS,
        at_least=1,
        dynamic=True,
        doc="Time after which an idle producer's sequence numbers are forgotten.",
    )
    producer_id_expiration_check_interval_ms: int = setting(
        "producer.id.expiration.check.interval.ms",
        default=600_000,
        at_least=1,
        doc="Interval of the search for idle producers.",
    )


class LogCleanerSettings(Settings):
    """Compaction on the whole broker."""

    log_cleaner_enable: bool = setting(
        "log.cleaner.enable",
        default=True,
        doc="Whether logs with cleanup.policy=compact are compacted, group offsets included.",
    )
    log_cleaner_threads: int = setting(
        "log.cleaner.threads",
        default=1,
        at_least=0,
        dynamic=True,
        doc="Logs that are compacted at the same time.",
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        "log.cleaner.io.max.bytes.per.second",
        default=sys.float_info.max,
        dynamic=True,
        doc="Most bytes per second that compaction reads and writes, over all logs.",
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        "log.cleaner.dedupe.buffer.size",
        default=128 << 20,
        at_least=1 << 20,
        kind=ConfigValueType.LONG,
        dynamic=True,
        doc="Memory for the keys of the logs being compacted, shared by the threads; 24 bytes a key.",
    )
    log_cleaner_io_buffer_size: int = setting(
        "log.cleaner.io.buffer.size",
        default=512 << 10,
        at_least=0,
        dynamic=True,
        doc="Bytes that compaction reads at once, shared by the threads.",
    )
    log_cleaner_dedupe_buffer_load_factor: float = setting(
        "log.cleaner.io.buffer.load.factor",
        default=0.9,
        at_least=0,
        at_most=1,
        dynamic=True,
        doc="Share of the memory for keys that is used. More compacts more of the log at a time, and takes longer.",
    )
    log_cleaner_backoff_ms: int = setting(
        "log.cleaner.backoff.ms",
        default=15_000,
        at_least=0,
        kind=ConfigValueType.LONG,
        dynamic=True,
        doc="Interval of the search for logs to compact.",
    )
