"""The sinks of a pipeline: the rows for each, and the streaming query that writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..bootstrap_servers import spark_options
from ..files import Files
from ..query import JobError
from ..sink_log import FOLDER
from .declaration import Pipeline, PipelineSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def rows(spark: SparkSession, sink: PipelineSink) -> DataFrame:
    """The rows that the sink writes."""
    view = spark.table(sink.view)
    if sink.topic is None:
        return view
    value = sink.value or "to_json(struct(*))"
    columns = [f"CAST({value} AS BINARY) AS value"]
    if sink.key is not None:
        columns.append(f"CAST({sink.key} AS BINARY) AS key")
    if sink.headers:
        pairs = ", ".join(
            f"named_struct('key', '{header}', 'value', CAST({expression} AS BINARY))"
            for header, expression in sink.headers.items()
        )
        columns.append(f"array({pairs}) AS headers")
    return view.selectExpr(*columns)


def start(spark: SparkSession, pipeline: Pipeline, name: str, sink: PipelineSink) -> StreamingQuery:
    """Start the query of a sink. Raises JobError."""
    checkpoint = f"{_location(pipeline.checkpoint)}/{name}"
    if sink.parquet is not None:
        _check_checkpoint(spark, f"sinks.{name}", _location(sink.parquet), checkpoint)
    writer = rows(spark, sink).writeStream.queryName(f"{pipeline.name}.{name}").outputMode(sink.output_mode)
    writer = writer.option("checkpointLocation", checkpoint)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if pipeline.trigger == "once":
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=pipeline.trigger)
    writer = _into(writer, pipeline, sink).options(**sink.options)
    return writer.toTable(sink.iceberg) if sink.iceberg is not None else writer.start()


def _into(writer: DataStreamWriter, pipeline: Pipeline, sink: PipelineSink) -> DataStreamWriter:
    if sink.topic is not None:
        return writer.format("kafka").options(**spark_options(pipeline.brokers(sink))).option("topic", sink.topic)
    if sink.parquet is not None:
        return writer.format("parquet").option("path", _location(sink.parquet))
    if sink.delta is not None:
        return writer.format("delta").option("path", _location(sink.delta))
    if sink.iceberg is not None:
        return writer.format("iceberg").option("fanout-enabled", "true")
    return writer.format("console").option("truncate", "false")


def _check_checkpoint(spark: SparkSession, place: str, output: str, checkpoint: str) -> None:
    """Refuse a new checkpoint for existing files: Spark would take each batch for one that it has written, and write nothing."""
    files = Files(spark)
    if files.exists(f"{output}/{FOLDER}") and not files.exists(checkpoint):
        raise JobError(
            f"{place}: {output} was written with a checkpoint other than {checkpoint}: name that checkpoint, or "
            "another directory"
        )


def _location(path: str) -> str:
    """An absolute path or URI: Spark resolves relative paths in the folder in which its JVM was started."""
    return path.rstrip("/") if urlsplit(path).scheme else str(Path(path).absolute())
