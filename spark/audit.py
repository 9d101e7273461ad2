"""The audit job: finds records that are lost, duplicated or changed in a topic or in its archive.

There are two audits. ``compare``: is every record of a topic in its archive once, with the same key, value, headers and
timestamp? Offsets that the topic does not have (markers of transactions, compaction) are not losses, nor are records of the
archive that the topic has deleted since. ``count_numbers``: producers have numbered their records 0, 1, 2, …; which numbers are
missing, which occur twice, and which come after a greater one of the same producer in their partition?

Both work on aggregates, so memory is bounded: offsets are compared in blocks by the number of records and the exclusive or of
their hashes, and only blocks that differ are compared record by record; the numbers of a block are a bitmap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .archive import read_archive
from .query import JobError, Partition
from .topic_offsets import ISOLATION, OffsetRange, TopicOffsets, read_spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BLOCK = 65536
SHOWN_RANGES = 20
_POSITION = ["topic", "partition", "offset"]
_BLOCK_OF = ["topic", "partition", "block"]
# Null columns do not change a hash, so whether they are null is hashed, too.
_HASH = "xxhash64(offset, key IS NULL, key, value IS NULL, value, headers, timestamp)"

Ranges = tuple[tuple[int, int], ...]
"""First and last of each range, at most ``SHOWN_RANGES`` of them."""


@dataclass(frozen=True)
class Audit:
    """What to audit: topics, an archive, or topics against their archive."""

    bootstrap_servers: str
    topics: tuple[str, ...] = ()
    archive: str | None = None
    number: str | None = None
    producer: str | None = None
    expected: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.topics and self.archive is None:
            raise JobError("say what to audit: topics, an archive, or topics and their archive")
        if self.number is None and (self.producer is not None or self.expected is not None):
            raise JobError(
                "a producer and an expected number of records need the numbers: name the expression for them"
            )
        if self.number is None and (self.archive is None or not self.topics):
            raise JobError("name the expression for the records' numbers, or both topics and an archive to compare")


@dataclass(frozen=True)
class Compared:
    """A partition of a topic compared with its archive."""

    topic: str
    partition: int
    start: int
    end: int
    records: int
    archived: int
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    extra: int = 0
    """The number of records of the archive that the topic does not have."""
    lost_offsets: Ranges = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not (self.lost or self.doubled or self.changed or self.extra)


def records(spark: SparkSession, audit: Audit) -> DataFrame:
    """The records whose numbers are audited: those of the archive if there is one, otherwise those of the topics."""
    if audit.archive is not None:
        rows = read_archive(spark, audit.archive)
        return rows.where(rows.topic.isin(list(audit.topics))) if audit.topics else rows
    return read_spans(spark, audit.bootstrap_servers, spans(audit), audit.options)


def spans(audit: Audit) -> dict[Partition, OffsetRange]:
    """The offsets that the topics have now."""
    with TopicOffsets.ask(audit.bootstrap_servers, audit.options.get(ISOLATION, "read_uncommitted")) as offsets:
        return offsets.spans(audit.topics)


def compare(spark: SparkSession, audit: Audit) -> list[Compared]:
    """Compare each partition of the topics with the archive. Raises JobError, and errors of Spark."""
    from pyspark.sql import functions as f

    assert audit.archive is not None
    held = spans(audit)
    limits = spark.createDataFrame(
        [(*where, span.start, span.end) for where, span in held.items()],
        "topic STRING, partition INT, start BIGINT, end BIGINT",
    )
    there = _hashed(read_spans(spark, audit.bootstrap_servers, held, audit.options))
    archived = _hashed(read_archive(spark, audit.archive)).join(f.broadcast(limits), ["topic", "partition"])
    archived = archived.where("offset >= start AND offset < end").drop("start", "end")
    blocks = _blocks(there, "records").join(_blocks(archived, "archived"), _BLOCK_OF, "full").persist()
    try:
        totals = {
            (row["topic"], row["partition"]): (row["records"] or 0, row["archived"] or 0)
            for row in blocks.groupBy("topic", "partition")
            .agg(f.sum("records"), f.sum("archived"))
            .toDF("topic", "partition", "records", "archived")
            .collect()
        }
        differing = blocks.where("NOT (records <=> archived AND records_hash <=> archived_hash)").select(*_BLOCK_OF)
        found = _differences(there, archived, differing) if differing.head(1) else {}
    finally:
        blocks.unpersist()
    return [
        Compared(*where, *span, *totals.get(where, (0, 0)), **found.get(where, {}))
        for where, span in sorted(held.items())
    ]


def _hashed(rows: DataFrame) -> DataFrame:
    return rows.selectExpr(*_POSITION, f"{_HASH} AS hash", f"offset DIV {BLOCK} AS block")


def _blocks(rows: DataFrame, name: str) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.groupBy(*_BLOCK_OF).agg(f.count("*").alias(name), f.bit_xor("hash").alias(f"{name}_hash"))


def _differences(there: DataFrame, archived: DataFrame, blocks: DataFrame) -> dict[Partition, dict[str, Any]]:
    """The differences in these blocks, record by record."""
    from pyspark.sql import functions as f

    sides = [
        rows.join(f.broadcast(blocks), _BLOCK_OF, "left_semi").withColumn("in_topic", f.lit(in_topic))
        for rows, in_topic in ((there, 1), (archived, 0))
    ]
    offsets = (
        sides[0]
        .unionByName(sides[1])
        .groupBy(*_POSITION)
        .agg(
            f.max("in_topic").alias("there"),
            f.sum(1 - f.col("in_topic")).alias("copies"),
            f.expr("min(hash) != max(hash)").alias("differ"),
        )
        .where("there = 0 OR copies != 1 OR differ")
        .persist()
    )
    try:
        sums = (
            offsets.groupBy("topic", "partition")
            .agg(
                f.expr("count_if(copies = 0) AS lost"),
                f.expr("sum(greatest(copies - 1, 0)) AS doubled"),
                f.expr("count_if(there = 1 AND copies > 0 AND differ) AS changed"),
                f.expr("count_if(there = 0) AS extra"),
            )
            .collect()
        )
        found = {(row["topic"], row["partition"]): row.asDict() for row in sums}
        lost = _ranges(offsets.where("copies = 0"), ["topic", "partition"], "offset")
    finally:
        offsets.unpersist()
    for where, row in found.items():
        del row["topic"], row["partition"]
        row["lost_offsets"] = lost.get(where, ())
    return found


def _ranges(rows: DataFrame, keys: list[str], column: str) -> dict[tuple[str, int], Ranges]:
    """The first ranges of numbers without a gap, for each value of the keys."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = Window.partitionBy(*keys).orderBy(column)
    stretches = rows.withColumn("stretch", f.col(column) - f.row_number().over(order)).groupBy(*keys, "stretch")
    bounds = stretches.agg(f.min(column).alias("first"), f.max(column).alias("last"))
    numbered = bounds.withColumn("place", f.row_number().over(Window.partitionBy(*keys).orderBy("first")))
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for row in numbered.where(f.col("place") <= SHOWN_RANGES).orderBy("place").collect():
        found.setdefault((row[keys[0]], row[keys[1]]), []).append((row["first"], row["last"]))
    return {where: tuple(each) for where, each in found.items()}


def ranges_text(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges as text: 3, 7-9."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
