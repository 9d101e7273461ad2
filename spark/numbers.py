"""The audit of numbered records: each producer of a topic has numbered its records 0, 1, 2, …

A *block* is 32768 numbers, the size of Spark's bitmaps: so lost and doubled numbers are counted exactly, in any number of
records, in one pass with a few kilobytes for each block. Order needs another pass, which sorts each partition on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .audit import SHOWN_RANGES, Audit, Ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

BLOCK = 32768
_POSITION = ["topic", "partition", "offset"]
_OWNER = ["topic", "producer"]


@dataclass(frozen=True)
class PartitionNumbers:
    """The numbers found in one partition."""

    topic: str
    partition: int
    records: int
    doubled: int
    """Records whose number was there before."""
    reordered: int
    """Records with a number below an earlier one, without the doubled ones."""
    other: int
    """Records without a number, or with one that no producer has written."""


@dataclass(frozen=True)
class ProducerNumbers:
    """A producer: how many numbers it wrote, how many are lost, and how many records are doubled, over all partitions."""

    topic: str
    producer: str
    expected: int
    lost: int
    doubled: int
    lost_numbers: Ranges = ()
    doubled_numbers: Ranges = ()


class Numbers(NamedTuple):
    """The result of an audit of numbers."""

    partitions: list[PartitionNumbers]
    producers: list[ProducerNumbers]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not any(each.doubled or each.reordered or each.other for each in self.partitions) and not any(
            each.lost or each.doubled for each in self.producers
        )


def count_numbers(rows: DataFrame, audit: Audit) -> Numbers:
    """Audit records, which have at least the columns topic, partition, offset, key and value.

    Raises errors of Spark.
    """
    numbered = _numbered(rows, audit)
    blocks = _blocks(numbered).persist()
    try:
        producers = list(_producers(numbered, blocks, audit.expected))
        partitions = _partitions(numbered, blocks)
    finally:
        blocks.unpersist()
    if audit.expected is not None and audit.producer is None:
        seen = {each.topic for each in producers}
        nothing = ((0, audit.expected - 1),)
        producers += [
            ProducerNumbers(topic, "", audit.expected, audit.expected, 0, nothing)
            for topic in audit.topics
            if topic not in seen
        ]
    return Numbers(partitions, producers)


def _numbered(rows: DataFrame, audit: Audit) -> DataFrame:
    """Position, producer and number of each record; the number is null if it is invalid, or was not written."""
    text = rows.withColumn("key", rows["key"].cast("string")).withColumn("value", rows["value"].cast("string"))
    found = text.selectExpr(
        "topic",
        "partition",
        "offset",
        f"coalesce(CAST({audit.producer or 'NULL'} AS STRING), '') AS producer",
        f"try_cast({audit.number} AS BIGINT) AS found",
    )
    is_one = "found >= 0" if audit.expected is None else f"found >= 0 AND found < {audit.expected}"
    return found.selectExpr(*_POSITION, "producer", f"CASE WHEN {is_one} THEN found END AS number")


def _blocks(numbered: DataFrame) -> DataFrame:
    """For each block of numbers and each partition: how many records, and which numbers, as a bitmap.

    Records without a number are in the block null.
    """
    from pyspark.sql import functions as f

    with_block = numbered.withColumn("block", f.expr(f"number DIV {BLOCK}"))
    return with_block.groupBy(*_OWNER, "partition", "block").agg(
        f.count("*").alias("records"),
        f.max("number").alias("greatest"),
        f.expr(f"bitmap_construct_agg(number % {BLOCK})").alias("bits"),
    )


def _partitions(numbered: DataFrame, blocks: DataFrame) -> list[PartitionNumbers]:
    from pyspark.sql import functions as f

    sums = blocks.groupBy("topic", "partition").agg(
        f.sum("records").alias("records"),
        f.expr("sum(records - bitmap_count(bits)) FILTER (WHERE block IS NOT NULL)").alias("doubled"),
        f.expr("sum(records) FILTER (WHERE block IS NULL)").alias("other"),
    )
    reordered = _reordered(numbered, blocks)
    return [
        PartitionNumbers(
            row["topic"],
            row["partition"],
            row["records"],
            row["doubled"] or 0,
            reordered.get((row["topic"], row["partition"]), 0),
            row["other"] or 0,
        )
        for row in sums.orderBy("topic", "partition").collect()
    ]


def _reordered(numbered: DataFrame, blocks: DataFrame) -> dict[tuple[str, int], int]:
    """How many records of a partition have a number below an earlier one of their producer, without those that are doubled."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    place = Window.partitionBy(*_OWNER, "partition").orderBy("offset")
    before = f.max("number").over(place.rowsBetween(Window.unboundedPreceding, -1))
    late = numbered.where("number IS NOT NULL").withColumn("before", before).where("number < before")
    owner = [*_OWNER, "partition"]
    same = " AND ".join(f"late.{name} = doubled.{name}" for name in (*owner, "number"))
    again = f.expr(f"{same} AND late.offset > doubled.first")
    firsts = late.alias("late").join(_doubled(numbered, blocks, owner).alias("doubled"), again, "left_anti")
    counts = firsts.groupBy("topic", "partition").count().collect()
    return {(row["topic"], row["partition"]): row["count"] for row in counts}


def _doubled(numbered: DataFrame, blocks: DataFrame, owner: list[str]) -> DataFrame:
    """The numbers that an owner has more than once, with the first offset of each; only blocks with such numbers are read."""
    from pyspark.sql import functions as f

    merged = blocks.where("block IS NOT NULL").groupBy(*owner, "block")
    full = merged.agg(f.sum("records").alias("records"), f.expr("bitmap_count(bitmap_or_agg(bits))").alias("distinct"))
    suspects = full.where("records > distinct").select(*owner, "block")
    in_them = numbered.withColumn("block", f.expr(f"number DIV {BLOCK}"))
    in_them = in_them.join(f.broadcast(suspects), [*owner, "block"], "left_semi")
    counted = in_them.groupBy(*owner, "number").agg(f.count("*").alias("copies"), f.min("offset").alias("first"))
    return counted.where("copies > 1").drop("copies")


def _producers(numbered: DataFrame, blocks: DataFrame, expected: int | None) -> Iterator[ProducerNumbers]:
    from pyspark.sql import functions as f

    whole = blocks.where("block IS NOT NULL").groupBy(*_OWNER, "block")
    whole_blocks = whole.agg(
        f.sum("records").alias("records"),
        f.max("greatest").alias("greatest"),
        f.expr("bitmap_or_agg(bits)").alias("bits"),
    ).persist()
    try:
        sums = whole_blocks.groupBy(*_OWNER).agg(
            f.sum("records").alias("records"),
            f.max("greatest").alias("greatest"),
            f.expr("sum(bitmap_count(bits))").alias("present"),
        )
        for row in sums.orderBy(*_OWNER).collect():
            total = row["greatest"] + 1 if expected is None else expected
            lost, doubled = total - row["present"], row["records"] - row["present"]
            yield ProducerNumbers(
                row["topic"],
                row["producer"],
                total,
                lost,
                doubled,
                first_ranges(_missing(_of(whole_blocks, row), total)) if lost else (),
                first_ranges(_twice(_of(_doubled(numbered, blocks, _OWNER), row))) if doubled else (),
            )
    finally:
        whole_blocks.unpersist()


def _of(rows: DataFrame, owner: Row) -> DataFrame:
    return rows.where((rows.topic == owner["topic"]) & (rows.producer == owner["producer"]))


def _twice(doubled: DataFrame) -> Iterator[tuple[int, int]]:
    for row in doubled.orderBy("number").limit(SHOWN_RANGES).collect():
        yield row["number"], row["number"]


def _missing(blocks: DataFrame, total: int) -> Iterator[tuple[int, int]]:
    """The ranges of numbers below ``total`` that are missing, ascending; a range ends with its block."""
    incomplete = f"IF(bitmap_count(bits) = {BLOCK}, NULL, bits) AS bits"
    beyond = 0
    for row in blocks.selectExpr("block", incomplete).orderBy("block").toLocalIterator():
        first = row["block"] * BLOCK
        if beyond < first:
            yield beyond, first - 1
        beyond = min(first + BLOCK, total)
        if row["bits"] is not None:
            for start, end in unset_bits(row["bits"], beyond - first):
                yield first + start, first + end
    if beyond < total:
        yield beyond, total - 1


def unset_bits(bits: bytes, size: int) -> Iterator[tuple[int, int]]:
    """First and last of each range of bits that are not set, among the first ``size``; the lowest bit comes first."""
    unset = ~int.from_bytes(bits, "little") & ((1 << size) - 1)
    while unset:
        start = (unset & -unset).bit_length() - 1
        beyond = (unset >> start) + 1
        end = start + (beyond & -beyond).bit_length() - 2
        yield start, end
        unset &= -1 << (end + 1)


def first_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The first ranges, with adjacent ones joined."""
    found: list[tuple[int, int]] = []
    for first, last in ranges:
        if found and found[-1][1] == first - 1:
            found[-1] = (found[-1][0], last)
        elif len(found) == SHOWN_RANGES:
            break
        else:
            found.append((first, last))
    return tuple(found)
