"""Sources and steps as temporary views of a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..query import READER_DEFAULTS, spark_failures
from .declaration import REJECTED, Pipeline, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_METADATA = ("key", "topic", "partition", "offset", "timestamp", "headers")
_NEWEST_OF_EACH_KEY = """
SELECT * EXCEPT (_rank) FROM (
    SELECT *, row_number() OVER (PARTITION BY key ORDER BY partition, offset DESC) AS _rank FROM {records}
) WHERE _rank = 1 AND value IS NOT NULL
"""


def make_views(spark: SparkSession, pipeline: Pipeline, *, is_stream: bool = True) -> None:
    """Register every source and step; without ``is_stream``, of what the topics hold now. Raises JobError, naming the place."""
    for name, source in pipeline.sources.items():
        with spark_failures(f"sources.{name}"):
            _make_source(spark, pipeline, name, source, is_stream and not source.table)
    for number, step in enumerate(pipeline.steps):
        with spark_failures(f"steps.{number} (view {step.view})"):
            spark.sql(step.sql).createOrReplaceTempView(step.view)


def _make_source(spark: SparkSession, pipeline: Pipeline, name: str, source: Source, is_stream: bool) -> None:
    reader = (spark.readStream if is_stream else spark.read).format("kafka")
    records = reader.options(**_options(pipeline, source)).load()
    if source.table:
        records = spark.sql(_NEWEST_OF_EACH_KEY, records=records)
    if source.schema_ is not None:
        records = _decoded(records, name, source.schema_)
    if source.event_time is not None:
        assert source.watermark is not None
        records = records.withWatermark(source.event_time, source.watermark)
    if source.unique:
        # A batch has no watermark to go by.
        drop = records.dropDuplicatesWithinWatermark if is_stream else records.dropDuplicates
        records = drop(source.unique)
    records.createOrReplaceTempView(name)


def _decoded(records: DataFrame, name: str, schema: str) -> DataFrame:
    """The fields of JSON values; what is none goes to a view of its own."""
    from pyspark.sql import functions as f

    corrupt = "_corrupt_record"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": corrupt}
    parsed = f.from_json(f.col("value").cast("string"), f"{schema}, {corrupt} STRING", options)
    with_fields = records.withColumn("_parsed", parsed)
    is_good = f"_parsed IS NOT NULL AND _parsed.{corrupt} IS NULL"
    with_fields.where(f"NOT ({is_good})").drop("_parsed").createOrReplaceTempView(f"{name}{REJECTED}")
    metadata = [f"{column} AS _{column}" for column in _METADATA]
    return with_fields.where(is_good).selectExpr("_parsed.*", *metadata).drop(corrupt)


def _options(pipeline: Pipeline, source: Source) -> dict[str, str]:
    """The options of Spark's ``kafka`` source."""
    options = {
        **READER_DEFAULTS,
        "kafka.bootstrap.servers": source.bootstrap_servers or pipeline.bootstrap_servers,
        "startingOffsets": source.starting_offsets,
        "failOnDataLoss": str(source.fail_on_data_loss).lower(),
        "includeHeaders": "true",
    }
    if source.pattern is not None:
        options["subscribePattern"] = source.pattern
    else:
        options["subscribe"] = ",".join(source.topics)
    if source.max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(source.max_offsets_per_trigger)
    return options | source.options
