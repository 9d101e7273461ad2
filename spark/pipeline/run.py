"""Runs a pipeline: a streaming query for each sink, each with a checkpoint of its own below the pipeline's.

A pipeline that was killed continues from its checkpoints when it is run again: Parquet files have each row once; to a topic,
Spark writes the records of the interrupted micro-batch again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..group_offsets import GroupOffsets, committing
from ..query import JobControl, JobError, follow, spark_failures
from .declaration import Pipeline
from .sinks import rows, start
from .views import make_views

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def run(spark: SparkSession, pipeline: Pipeline, watch: JobControl | None = None) -> dict[str, int]:
    """Run it to its end, or for ever if it has a trigger. Returns the number of records read for each sink.

    The queries have the names of the sinks. An exception stops all of them. Raises JobError.
    """
    make_views(spark, pipeline)
    queries: dict[str, StreamingQuery] = {}
    try:
        for name, sink in pipeline.sinks.items():
            with spark_failures(f"sinks.{name}"):
                queries[name] = start(spark, pipeline, name, sink)
        with committing(pipeline.brokers(), pipeline.group_id) as group:
            return _follow(queries, watch, group)
    finally:
        for query in queries.values():
            query.stop()


def plans(spark: SparkSession, pipeline: Pipeline) -> dict[str, str]:
    """The plan of each sink's query, as Spark explains it for the records in the topics now. Raises JobError."""
    make_views(spark, pipeline, is_stream=False)
    found = {}
    for name, sink in pipeline.sinks.items():
        with spark_failures(f"sinks.{name}"):
            plan = spark.sql("EXPLAIN FORMATTED SELECT * FROM {rows}", rows=rows(spark, sink))
            found[name] = str(plan.collect()[0][0])
    return found


def first_rows(spark: SparkSession, pipeline: Pipeline, count: int) -> dict[str, list[Row]]:
    """The first rows for each sink, from the records in the topics now; nothing is written. Raises JobError."""
    make_views(spark, pipeline, is_stream=False)
    found = {}
    for name, sink in pipeline.sinks.items():
        with spark_failures(f"sinks.{name}"):
            found[name] = rows(spark, sink).limit(count).collect()
    return found


def _follow(queries: dict[str, StreamingQuery], watch: JobControl | None, group: GroupOffsets | None) -> dict[str, int]:
    """How many records the queries read; a JobError names the sink of the query that failed."""
    from pyspark.errors import PySparkException

    try:
        with spark_failures():
            return follow(queries, watch, group)
    except JobError as error:
        if isinstance(error.__cause__, PySparkException):
            failed = next((name for name, query in queries.items() if query.exception() is not None), None)
            error.args = (f"sinks.{failed}: {error}" if failed else str(error),)
        raise
