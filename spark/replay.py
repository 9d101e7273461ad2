"""The replay job: records of topics or of an archive of them, chosen by offset, time or an expression, written to a topic.

A copy has the record's key, value, headers and timestamp, and its partition if asked for. Records of one source partition
keep their order; across partitions there is none.

Each record is written exactly once, even if the job is killed, and however often it is run: a replay has a name, and its
position in each source partition is committed on the target to the consumer group ``ottla-replay-`` with name, topic and
partition, in the transaction that writes the records (``producing``). The name is derived from the options that choose the
records, so the same command continues where it ended; another name is another replay.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from ..base.wording import counted
from .archive import read_archive
from .failures import explain_task
from .producing import COLUMNS, RESULT, TopicDestination, write_once
from .query import JobError, Partition, spark_failures
from .topic_offsets import ISOLATION, OffsetRange, TopicOffsets, read_spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Offsets = Mapping[str, Mapping[str, int]]
"""Topic to partition, as text, to offset, as in Spark's JSON. Partitions that are not in it are not limited."""


@dataclass(frozen=True)
class Replay:
    """What to replay, and where to."""

    bootstrap_servers: str
    to_topic: str
    topics: tuple[str, ...] = ()
    archive: str | None = None
    since: datetime | None = None
    """A time with a zone, as ``until``."""
    until: datetime | None = None
    """Exclusive."""
    starting_offsets: Offsets = field(default_factory=dict)
    ending_offsets: Offsets = field(default_factory=dict)
    where: str | None = None
    keep_partitions: bool = False
    rate: float | None = None
    """The most records per second, of all source partitions together; None for no limit."""
    name: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.topics and self.archive is None:
            raise JobError("say what to replay: topics, an archive, or some of the topics in an archive")

    @property
    def group_id(self) -> str:
        """The first part of the names of its groups."""
        chosen = {
            name: value for name, value in asdict(self).items() if name not in ("bootstrap_servers", "rate", "name")
        }
        digest = hashlib.sha256(json.dumps(chosen, default=str, sort_keys=True).encode()).hexdigest()
        return f"ottla-replay-{self.name or digest[:12]}"


def run(spark: SparkSession, replay: Replay) -> int:
    """Replay the records that were not replayed yet. Returns the number of records written. Raises JobError."""
    from pyspark.errors import PythonException

    with TopicOffsets.ask(replay.bootstrap_servers) as offsets:
        targets = len(offsets.partitions([replay.to_topic]))
    with spark_failures():
        rows, sources = _from_archive(spark, replay) if replay.archive is not None else _from_topics(spark, replay)
        if not sources:
            return 0
        if replay.keep_partitions and max(partition for _, partition in sources) >= targets:
            raise JobError(
                f"{replay.to_topic} has {counted(targets, 'partition')}, which is too few to keep the partitions of the records"
            )
        share = None if replay.rate is None else replay.rate / len(sources)
        destination = TopicDestination(replay.bootstrap_servers, replay.to_topic, replay.group_id, share)
        chosen = _chosen(rows, replay)
        try:
            written = chosen.mapInArrow(lambda batches: write_once(batches, destination), RESULT).collect()
        except PythonException as error:
            raise JobError(explain_task(str(error))) from error
    return sum(row.written for row in written)


def _from_topics(spark: SparkSession, replay: Replay) -> tuple[DataFrame, list[Partition]]:
    """Spark makes a task for each partition, which reads the records in the order of their offsets."""
    isolation_level = replay.options.get(ISOLATION, "read_uncommitted")
    with TopicOffsets.ask(replay.bootstrap_servers, isolation_level) as offsets:
        spans = offsets.spans(replay.topics)
        if replay.since is not None:
            spans = offsets.since(spans, int(replay.since.timestamp() * 1000))
    spans = {where: _limited(span, where, replay) for where, span in spans.items()}
    spans = {where: span for where, span in spans.items() if span.start < span.end}
    if not spans:
        return spark.createDataFrame([], "topic STRING"), []
    return read_spans(spark, replay.bootstrap_servers, spans, replay.options), list(spans)


def _limited(span: OffsetRange, where: Partition, replay: Replay) -> OffsetRange:
    topic, partition = where[0], str(where[1])
    start = replay.starting_offsets.get(topic, {}).get(partition, span.start)
    end = replay.ending_offsets.get(topic, {}).get(partition, span.end)
    return OffsetRange(max(start, span.start), min(end, span.end))


def _from_archive(spark: SparkSession, replay: Replay) -> tuple[DataFrame, list[Partition]]:
    assert replay.archive is not None
    rows = read_archive(spark, replay.archive)
    if replay.topics:
        rows = rows.where(rows.topic.isin(list(replay.topics)))
    for limits, sign in ((replay.starting_offsets, ">="), (replay.ending_offsets, "<")):
        for topic, partitions in limits.items():
            for partition, offset in partitions.items():
                rows = rows.where(f"topic != '{topic}' OR partition != {partition} OR offset {sign} {offset}")
    found = [(row["topic"], row["partition"]) for row in rows.select("topic", "partition").distinct().collect()]
    order = ["topic", "partition", "offset"]
    return rows.repartition("topic", "partition").sortWithinPartitions(*order), found


def _chosen(rows: DataFrame, replay: Replay) -> DataFrame:
    """The rows within the times for which the expression is true, with the columns that the tasks need."""
    for moment, sign in ((replay.since, ">="), (replay.until, "<")):
        if moment is not None:
            rows = rows.where(f"timestamp {sign} TIMESTAMP '{moment.isoformat()}'")
    if replay.where is not None:
        rows = rows.where(replay.where)
    partition = "partition" if replay.keep_partitions else "CAST(NULL AS INT)"
    made = {
        "timestamp_ms": "unix_millis(timestamp) AS timestamp_ms",
        "target_partition": f"{partition} AS target_partition",
    }
    return rows.selectExpr(*(made.get(column, column) for column in COLUMNS))
