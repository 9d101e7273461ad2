"""Runs a pipeline: a streaming query for each sink, each with a checkpoint of its own below the pipeline's.

Killed at any moment and run again, a pipeline goes on from its checkpoints: Parquet files have each row once; to a topic,
Spark writes the records of the micro-batch that was under way once more.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..group_offsets import GroupOffsets
from ..query import JobError, Progress, explain, follow
from .declaration import Pipeline, Sink
from .views import make_views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def run(
    spark: SparkSession, pipeline: Pipeline, report: Callable[[str, Progress], None] = lambda sink, progress: None
) -> dict[str, int]:
    """Run it to its end, or for ever if it has a trigger; the records read for each sink.

    ``report`` is called once for each micro-batch, with the sink's name. An exception, such as KeyboardInterrupt, stops
    every query in good order before it leaves. Raises JobError.
    """
    from pyspark.errors import PySparkException

    make_views(spark, pipeline)
    queries: dict[str, StreamingQuery] = {}
    place = ""
    try:
        for place, sink in pipeline.sinks.items():
            queries[place] = _start(spark, pipeline, place, sink)
        group = GroupOffsets(pipeline.bootstrap_servers, pipeline.group) if pipeline.group else None
        return follow(queries, report, group)
    except PySparkException as error:
        raise JobError(f"sinks.{_failed(queries) or place}: {explain(str(error))}") from None
    finally:
        for query in queries.values():
            query.stop()


def plans(spark: SparkSession, pipeline: Pipeline) -> dict[str, str]:
    """The plan of each sink's query, as Spark explains it for what the topics hold now. Raises JobError."""
    make_views(spark, pipeline, is_stream=False)
    return {
        name: str(spark.sql("EXPLAIN FORMATTED SELECT * FROM {rows}", rows=_rows(spark, name, sink)).collect()[0][0])
        for name, sink in pipeline.sinks.items()
    }


def first_rows(spark: SparkSession, pipeline: Pipeline, count: int) -> dict[str, list[Row]]:
    """What each sink would be given first, of what the topics hold now; nothing is written. Raises JobError."""
    from pyspark.errors import PySparkException

    make_views(spark, pipeline, is_stream=False)
    found = {}
    for name, sink in pipeline.sinks.items():
        try:
            found[name] = _rows(spark, name, sink).limit(count).collect()
        except PySparkException as error:
            raise JobError(f"sinks.{name}: {explain(str(error))}") from None
    return found


def _rows(spark: SparkSession, name: str, sink: Sink) -> DataFrame:
    """What the sink writes. Raises JobError."""
    from pyspark.errors import PySparkException

    rows = spark.table(sink.view)
    if sink.topic is None:
        return rows
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
    try:
        return rows.selectExpr(*columns)
    except PySparkException as error:
        raise JobError(f"sinks.{name}: {explain(str(error))}") from None


def _start(spark: SparkSession, pipeline: Pipeline, name: str, sink: Sink) -> StreamingQuery:
    writer = _rows(spark, name, sink).writeStream.queryName(f"{pipeline.name}.{name}").outputMode(sink.output_mode)
    writer = writer.option("checkpointLocation", f"{_location(pipeline.checkpoint)}/{name}")
    if sink.topic is not None:
        servers = sink.bootstrap_servers or pipeline.bootstrap_servers
        writer = writer.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", sink.topic)
    elif sink.parquet is not None:
        writer = writer.format("parquet").option("path", _location(sink.parquet)).partitionBy(*sink.partition_by)
    else:
        writer = writer.format("console").option("truncate", "false")
    writer = writer.options(**sink.options)
    if pipeline.trigger == "once":
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=pipeline.trigger).start()


def _location(path: str) -> str:
    """A path as Spark takes it: it would look for a relative one where its JVM was started."""
    return path.rstrip("/") if urlsplit(path).scheme else str(Path(path).absolute())


def _failed(queries: dict[str, StreamingQuery]) -> str | None:
    return next((name for name, query in queries.items() if query.exception() is not None), None)
