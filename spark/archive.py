"""The archive job: topics to Parquet files, partitioned by topic and day (and hour).

A row is a record as Spark's ``kafka`` source gives it: ``key`` and ``value`` (binary, null where the record has none),
``headers`` (array of key and value, null where there are none), ``topic``, ``partition``, ``offset``, ``timestamp``
(the record's, UTC). ``topic`` and ``date`` (of the timestamp, UTC) are folders: ``topic=orders/date=2026-11-20/``, and
``hour=7/`` when asked for.

Nothing is lost or doubled if the job is killed: before a micro-batch runs, its offsets are written to
the checkpoint, so it is repeated with the same records; after it ran, its files are listed in ``_spark_metadata`` in one
step (``sink_log``). Spark reads only listed files. Other readers see all files in the folders, among which a killed job may
have left files of a batch that was repeated later; ``sink_log.archive_files`` names those that count, and compaction
(``compaction``) deletes the others.

The batch numbers of checkpoint and ``_spark_metadata`` belong together: with a new checkpoint over an old archive, Spark
would consider every batch as already written and skip it. So that is refused.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from . import sink_log
from .compaction import Compacted, compact
from .files import Files
from .group_offsets import committing
from .query import JobControl, JobError, follow, spark_failures
from .reader import check_choice, check_offsets, check_pattern, every, reader_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


LOCK = "_archive.lock"
SCHEMA = (
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, "
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, date DATE"
)
_LIST_INTERVAL = "spark.sql.streaming.fileSink.log.compactInterval"


@dataclass(frozen=True)
class Archive:
    """What to archive, from where, to where. Paths are local or any URI that Spark can write to."""

    bootstrap_servers: str
    output: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    checkpoint: str | None = None
    starting_offsets: str = "earliest"
    max_offsets_per_trigger: int | None = None
    every_s: float | None = None
    """None for one run over the records in the topics now."""
    hourly: bool = False
    fail_on_data_loss: bool = True
    compact_bytes: int | None = None
    """At the end, small files are merged into files of about this size (see ``compaction``); None for no merging."""
    group: str = ""
    """How far it has read is committed to this group after each micro-batch; empty for none."""
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice(self.topics, self.pattern)
        check_pattern("the pattern", self.pattern)
        if self.compact_bytes is not None and self.every_s is not None:
            raise JobError("only a run that ends can compact: leave --every or --compact out")
        if self.starting_offsets not in ("earliest", "latest"):
            check_offsets(self.starting_offsets)

    @property
    def checkpoint_location(self) -> str:
        """The checkpoint; by default beside the data, in a folder that readers of Parquet ignore."""
        return self.checkpoint or f"{self.output.rstrip('/')}/_checkpoint"

    def reader_options(self) -> dict[str, str]:
        """The options of Spark's ``kafka`` source."""
        options = reader_options(
            self.bootstrap_servers,
            self.topics,
            self.pattern,
            fail_on_data_loss=self.fail_on_data_loss,
            max_offsets_per_trigger=self.max_offsets_per_trigger,
        )
        return {**options, "startingOffsets": self.starting_offsets, **self.options}


def run(
    spark: SparkSession,
    archive: Archive,
    watch: JobControl | None = None,
    report: Callable[[Compacted], None] = lambda compacted: None,
) -> int:
    """Archive the records in the topics now, or go on for ever if ``every_s`` is set. Returns the number of records written.

    An exception stops the query; the next run repeats its unfinished micro-batch. ``report`` is called for
    each folder that was compacted.

    :raises JobError: an unknown topic, lost data, a checkpoint that does not belong to the output, ...
    """
    files = Files(spark)
    with spark_failures(), _alone(files, archive.output):
        check_checkpoint(files, archive)
        query = start(spark, archive, is_new=not files.exists(f"{archive.output}/{sink_log.FOLDER}"))
        try:
            with committing(archive.bootstrap_servers, archive.group) as group:
                total = follow({"archive": query}, watch, group)["archive"]
        finally:
            query.stop()
        is_stopped = watch is not None and watch.stop.is_set()
        if archive.compact_bytes is not None and not is_stopped and files.exists(f"{archive.output}/{sink_log.FOLDER}"):
            compact(spark, archive.output, archive.compact_bytes, report)
        return total


@contextmanager
def _alone(files: Files, output: str) -> Iterator[None]:
    """Raise JobError if another archive job writes there; that is known only on a local file system."""
    local = files.local(output)
    if local is None:
        yield
        return
    Path(local).mkdir(parents=True, exist_ok=True)
    with (Path(local) / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobError(f"another archive job is writing to {output}") from None
        yield


def check_checkpoint(files: Files, archive: Archive) -> None:
    """Raise JobError if the output was written with another checkpoint."""
    if files.exists(f"{archive.output}/{sink_log.FOLDER}") and not files.exists(archive.checkpoint_location):
        raise JobError(
            f"{archive.output} holds an archive that was written with a checkpoint other than "
            f"{archive.checkpoint_location}: name that one, or another output"
        )


def start(spark: SparkSession, archive: Archive, *, is_new: bool) -> StreamingQuery:
    """Start the streaming query that writes the archive."""
    stream = spark.readStream.format("kafka").options(**archive.reader_options()).load()
    partitions = ["topic", "date", "hour"] if archive.hourly else ["topic", "date"]
    writer = (
        rows(stream, hourly=archive.hourly)
        .writeStream.queryName("archive")
        .format("parquet")
        .partitionBy(*partitions)
        .option("path", archive.output)
        .option("checkpointLocation", archive.checkpoint_location)
    )
    if archive.every_s is not None:
        return writer.trigger(processingTime=every(archive.every_s)).start()
    if not is_new:
        return writer.trigger(availableNow=True).start()
    # Only files in a compact list can be compacted. Spark keeps the interval that an archive was begun with.
    spark.conf.set(_LIST_INTERVAL, "1")
    try:
        return writer.trigger(availableNow=True).start()
    finally:
        spark.conf.unset(_LIST_INTERVAL)


def rows(stream: DataFrame, *, hourly: bool) -> DataFrame:
    """The archive's columns, from those of the ``kafka`` source."""
    columns = ["key", "value", "headers", "topic", "partition", "offset", "timestamp", "to_date(timestamp) AS date"]
    return stream.selectExpr(*columns, *(["hour(timestamp) AS hour"] if hourly else []))


def read_archive(spark: SparkSession, output: str) -> DataFrame:
    """The records of an archive. Raises JobError if there is none."""
    if not Files(spark).exists(f"{output}/{sink_log.FOLDER}"):
        raise JobError(f"{output} is not an archive: it has no {sink_log.FOLDER}")
    return spark.read.schema(SCHEMA).parquet(output)
