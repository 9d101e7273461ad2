"""Metrics of logs, log directories and compaction."""

from __future__ import annotations

from .family import Family, counter, families_of, gauge, histogram

_LOG = "kafka.log:type=Log,name="

LOG_SIZE = gauge("kafka_log_log_size", "topic partition", "Size of the log's segments, in bytes.", _LOG + "Size")
LOG_START = gauge(
    "kafka_log_log_logstartoffset", "topic partition", "Offset of the first record.", _LOG + "LogStartOffset"
)
LOG_END = gauge("kafka_log_log_logendoffset", "topic partition", "Offset after the last record.", _LOG + "LogEndOffset")
LOG_SEGMENTS = gauge("kafka_log_log_numlogsegments", "topic partition", "Segments of the log.", _LOG + "NumLogSegments")
OFFLINE_LOG_DIRS = gauge(
    "kafka_log_logmanager_offlinelogdirectorycount",
    "",
    "Log directories that have failed.",
    "kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
)
OFFLINE_LOG_DIR = gauge(
    "kafka_log_logmanager_logdirectoryoffline",
    "logDirectory",
    "1 for a log directory that has failed, else 0.",
    "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=*",
)
LOG_DIR_SIZE = gauge("ottla_log_folder_size_bytes", "logDirectory", "Size of all logs in a log directory, in bytes.")
FLUSH_TIMES = histogram(
    "kafka_log_logflushstats_logflushrateandtimems",
    "",
    "How long flushes of logs took, in milliseconds.",
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
)
UNCLEANABLE = gauge(
    "kafka_log_logcleanermanager_uncleanable_partitions_count",
    "",
    "Logs that are no longer compacted because of a damaged record; Kafka counts them for each log directory.",
    "kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count",
)
CLEANER_RUNS = counter("ottla_log_cleaner_runs_total", "", "Completed compactions of logs.")
CLEANER_READ = counter(
    "ottla_log_cleaner_read_bytes_total", "", "Bytes of record batches that compaction has read and kept or removed."
)
CLEANER_WRITTEN = counter(
    "ottla_log_cleaner_written_bytes_total", "", "Bytes of record batches that compaction has written."
)
CLEANER_IN_PROGRESS = gauge("ottla_log_cleaner_in_progress", "", "Logs that are being compacted.")

FAMILIES: tuple[Family, ...] = families_of(globals())
