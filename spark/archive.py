"""The archive job: topics to Parquet files, partitioned by topic and day (and hour).

A row is a record as Spark's ``kafka`` source gives it: ``key`` and ``value`` (binary, null where the record has none),
``headers`` (array of key and value, null where there are none), ``topic``, ``partition``, ``offset``, ``timestamp``
(the record's, UTC). ``topic`` and ``date`` (of the timestamp, UTC) are folders: ``topic=orders/date=2026-11-20/``, and
``hour=7/`` when asked for.

Nothing is lost and nothing doubled, whenever the job is killed: before a micro-batch runs, its offsets are written to
the checkpoint, so it is repeated with the same records; after it ran, its files are listed in ``_spark_metadata`` in one
step. Spark reads only listed files. Another reader sees the folders as they are, where a killed job may have left files
of a batch that was repeated later; ``spark.read.parquet(output).inputFiles()`` names the true ones.

The batch numbers of checkpoint and ``_spark_metadata`` belong together: with a new checkpoint over an old archive, Spark
would take every batch for one already written and skip it. So that is refused.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .query import READER_DEFAULTS, JobError, Watch, follow, spark_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


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
    hourly: bool = False
    fail_on_data_loss: bool = True
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.topics) == (self.pattern is not None):
            raise JobError("say which topics: either by name or by pattern")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise JobError(f"the pattern {self.pattern!r} is not a regular expression: {error}") from None
        if self.starting_offsets not in ("earliest", "latest"):
            check_offsets(self.starting_offsets)

    @property
    def checkpoint_location(self) -> str:
        """Beside the data, in a folder that readers of Parquet pass over, unless another one was named."""
        return self.checkpoint or f"{self.output.rstrip('/')}/_checkpoint"

    def reader_options(self) -> dict[str, str]:
        """The options of Spark's ``kafka`` source."""
        options = {
            **READER_DEFAULTS,
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "startingOffsets": self.starting_offsets,
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            "includeHeaders": "true",
        }
        if self.pattern is not None:
            options["subscribePattern"] = self.pattern
        else:
            options["subscribe"] = ",".join(self.topics)
        if self.max_offsets_per_trigger is not None:
            options["maxOffsetsPerTrigger"] = str(self.max_offsets_per_trigger)
        return {**options, **self.options}


def check_offsets(text: str) -> None:
    """JobError unless ``text`` is Spark's JSON: topic to partition to offset (-2 earliest, -1 latest)."""
    try:
        by_topic = json.loads(text)
        good = all(isinstance(offset, int) for partitions in by_topic.values() for offset in partitions.values())
    except (ValueError, AttributeError):
        good = False
    if not good:
        raise JobError(
            f'starting offsets are earliest, latest or JSON like {{"orders": {{"0": 100, "1": -2}}}}, not {text!r}'
        )


def run(spark: SparkSession, archive: Archive, watch: Watch | None = None) -> int:
    """Archive what the topics hold now, or go on for ever if ``every_s`` says so; the number of records written.

    An exception stops the query in good order before it leaves; the next run goes on from there.

    :raises JobError: an unknown topic, lost data, a checkpoint that does not belong to the output, ...
    """
    with spark_failures():
        check_checkpoint(spark, archive)
        query = start(spark, archive)
        try:
            return follow({"archive": query}, watch)["archive"]
        finally:
            query.stop()


def check_checkpoint(spark: SparkSession, archive: Archive) -> None:
    """JobError if the output was written with another checkpoint."""
    if exists(spark, f"{archive.output}/_spark_metadata") and not exists(spark, archive.checkpoint_location):
        raise JobError(
            f"{archive.output} holds an archive that was written with another checkpoint than "
            f"{archive.checkpoint_location}: name that one, or another output"
        )


def start(spark: SparkSession, archive: Archive) -> StreamingQuery:
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
    if archive.every_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{int(archive.every_s * 1000)} milliseconds").start()


def rows(stream: DataFrame, *, hourly: bool) -> DataFrame:
    """The archive's columns of what the ``kafka`` source gives."""
    columns = ["key", "value", "headers", "topic", "partition", "offset", "timestamp", "to_date(timestamp) AS date"]
    return stream.selectExpr(*columns, *(["hour(timestamp) AS hour"] if hourly else []))


def exists(spark: SparkSession, path: str) -> bool:
    """Is there such a file or folder on whatever file system the path names?"""
    jvm = spark._jvm
    assert jvm is not None, "not a session with a JVM of its own"
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    return bool(hadoop_path.getFileSystem(configuration).exists(hadoop_path))


def check_reachable(bootstrap_servers: str, timeout_s: float = 3.0) -> None:
    """JobError unless one of the servers takes a connection; Spark itself would try for three minutes."""
    failures = []
    for server in bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
            return
        except (OSError, ValueError) as error:
            failures.append(f"{server.strip()}: {error}")
    raise JobError(f"no broker answers at {'; '.join(failures)}")
