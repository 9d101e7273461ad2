"""Sources and steps as temporary views of a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..query import spark_failures
from ..reader import reader_options
from .declaration import REJECTED, Pipeline, PipelineSource

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_METADATA = ("key", "topic", "partition", "offset", "timestamp", "headers")
_CORRUPT = "_corrupt_record"
_NEWEST_OF_EACH_KEY = """
SELECT * EXCEPT (_rank) FROM (
    SELECT *, row_number() OVER (PARTITION BY key ORDER BY partition, offset DESC) AS _rank FROM {records}
) WHERE _rank = 1 AND value IS NOT NULL
"""


def make_views(spark: SparkSession, pipeline: Pipeline, *, is_stream: bool = True) -> None:
    """Register every source and step; without ``is_stream``, for the records in the topics now. Raises JobError."""
    for name, source in pipeline.sources.items():
        with spark_failures(f"sources.{name}"):
            _make_source(spark, pipeline, name, source, is_stream and not source.table)
    for number, step in enumerate(pipeline.steps):
        with spark_failures(f"steps.{number} (view {step.view})"):
            spark.sql(step.sql).createOrReplaceTempView(step.view)


def _make_source(spark: SparkSession, pipeline: Pipeline, name: str, source: PipelineSource, is_stream: bool) -> None:
    reader = (spark.readStream if is_stream else spark.read).format("kafka")
    records = reader.options(**_options(pipeline, source, is_stream)).load()
    if source.table:
        records = spark.sql(_NEWEST_OF_EACH_KEY, records=records)
    if source.format != "raw":
        records = _decoded(records, name, source)
    if source.event_time is not None:
        assert source.watermark is not None
        records = records.withWatermark(source.event_time, source.watermark)
    if source.unique:
        # A batch has no watermark.
        drop = records.dropDuplicatesWithinWatermark if is_stream else records.dropDuplicates
        records = drop(source.unique)
    records.createOrReplaceTempView(name)


def _decoded(records: DataFrame, name: str, source: PipelineSource) -> DataFrame:
    """The fields of the values; records that cannot be decoded go to a view of their own."""
    with_fields = records.withColumn("_parsed", _parsed(source))
    fields = [field for field in with_fields.schema["_parsed"].dataType.fieldNames() if field != _CORRUPT]
    if source.format == "json":
        is_good = f"_parsed IS NOT NULL AND _parsed.{_CORRUPT} IS NULL"
    else:
        # Avro's and protobuf's decoders give a row of nulls for what they cannot read.
        is_good = " OR ".join(f"_parsed.`{field}` IS NOT NULL" for field in fields)
    is_good = f"coalesce({is_good}, false)"
    with_fields.where(f"NOT {is_good}").drop("_parsed").createOrReplaceTempView(f"{name}{REJECTED}")
    columns = [f"_parsed.`{field}` AS `{field}`" for field in fields]
    return with_fields.where(is_good).selectExpr(*columns, *(f"{column} AS _{column}" for column in _METADATA))


def _parsed(source: PipelineSource) -> Column:
    """The value as a struct."""
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.protobuf.functions import from_protobuf

    value = f.expr(f"substring(value, {source.skip_bytes + 1})") if source.skip_bytes else f.col("value")
    if source.format == "json":
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        return f.from_json(value.cast("string"), f"{source.schema_text}, {_CORRUPT} STRING", options)
    if source.format == "avro":
        return from_avro(value, source.schema_text, {"mode": "PERMISSIVE"})
    return from_protobuf(value, source.message, source.schema_file, {"mode": "PERMISSIVE"})


def _options(pipeline: Pipeline, source: PipelineSource, is_stream: bool) -> dict[str, str]:
    """The options of Spark's ``kafka`` source. A batch cannot start at the end; it starts at the beginning instead."""
    options = reader_options(
        pipeline.brokers(source),
        source.topics,
        source.pattern,
        fail_on_data_loss=source.fail_on_data_loss,
        max_offsets_per_trigger=source.max_offsets_per_trigger,
    )
    if source.starting_timestamp_ms is not None:
        # Where all records of a partition are older: at its end.
        options["startingTimestamp"] = str(source.starting_timestamp_ms)
        options["startingOffsetsByTimestampStrategy"] = "latest"
    else:
        from_end = source.starting_offsets == "latest" and not is_stream
        options["startingOffsets"] = "earliest" if from_end else source.starting_offsets
    return options | source.options
