"""The load job: Parquet, CSV or JSON lines to a topic.

A row becomes a record: the key is a column, or several as JSON; the value is a column, or all other columns as JSON. A record
goes to the partition where the Java client would send it: by murmur2 of the key, or to any partition without a key.

The files are read as a stream, so a run continues where the last one ended and reads new files only. Nothing is lost if the job
is killed; the records of the interrupted micro-batch are written again then, because Spark's Kafka sink has no
transactions. Records with given timestamps are written by ``producing``, with the same guarantees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .bootstrap_servers import spark_options
from .failures import explain_task
from .files import Files
from .producing import PLAIN_COLUMNS, RESULT, TopicDestination, write
from .query import JobControl, JobError, follow, spark_failures
from .topic_offsets import TopicOffsets

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

# A malformed line ends the job: Spark would read it as nulls.
_READER_DEFAULTS = {"csv": {"header": "true", "mode": "FAILFAST"}, "json": {"mode": "FAILFAST"}, "parquet": {}}
_JSON = {"ignoreNullFields": "false"}
_WRITER_DEFAULTS = {"kafka.linger.ms": "20", "kafka.batch.size": "131072"}


@dataclass(frozen=True)
class Load:
    """What to load, and where to."""

    bootstrap_servers: str
    source: str
    """A file, a folder or a pattern, local or any URI that Spark can read."""
    topic: str
    checkpoint: str
    file_format: str
    key: tuple[str, ...] = ()
    value: str | None = None
    headers: tuple[str, ...] = ()
    timestamp: str | None = None
    """A column of timestamps or of milliseconds."""
    schema: str | None = None
    """In Spark's DDL. Without it, JSON and Parquet have their own types, and columns of CSV are text."""
    max_bytes_per_trigger: int = 256 * 1024 * 1024
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file_format not in _READER_DEFAULTS:
            raise JobError(f"files are csv, json or parquet, not {self.file_format}")


def run(spark: SparkSession, load: Load, watch: JobControl | None = None) -> int:
    """Load the files that have not been loaded yet. Returns the number of records. Raises JobError."""
    with TopicOffsets.ask(load.bootstrap_servers) as offsets:
        offsets.partitions([load.topic])
    failures: list[JobError] = []
    try:
        with spark_failures(load.source):
            query = _start(spark, load, failures)
            try:
                return follow({"load": query}, watch)["load"]
            finally:
                query.stop()
    except JobError as error:
        raise failures[0] if failures else error from None


def _start(spark: SparkSession, load: Load, failures: list[JobError]) -> StreamingQuery:
    options = {**_READER_DEFAULTS[load.file_format], **load.options}
    files = spark.read.format(load.file_format).options(**options)
    schema = files.schema(load.schema).load(load.source).schema if load.schema else files.load(load.source).schema
    check_columns(load, schema)
    stream = spark.readStream.format(load.file_format).schema(schema).options(**options)
    stream = stream.option("maxBytesPerTrigger", str(load.max_bytes_per_trigger))
    # A stream treats a path as a folder, unless it is a pattern.
    source = f"{load.source[:-1]}[{load.source[-1]}]" if Files(spark).is_file(load.source) else load.source
    rows = records(stream.load(source), load)
    writer = rows.writeStream.queryName("load").option("checkpointLocation", load.checkpoint).trigger(availableNow=True)
    if load.timestamp is not None:
        destination = TopicDestination(load.bootstrap_servers, load.topic)
        return writer.foreachBatch(lambda batch, number: _write(batch, destination, failures)).start()
    sink = {**spark_options(load.bootstrap_servers), "topic": load.topic, **_WRITER_DEFAULTS}
    return writer.format("kafka").options(**sink).start()


def _write(rows: DataFrame, destination: TopicDestination, failures: list[JobError]) -> None:
    """Write one micro-batch. Errors go to ``failures``, because Spark would wrap them in its own."""
    from pyspark.errors import PythonException

    try:
        rows.select(*PLAIN_COLUMNS).mapInArrow(lambda batches: write(batches, destination), RESULT).collect()
    except PythonException as error:
        failures.append(JobError(explain_task(str(error))))
        raise


def check_columns(load: Load, schema: StructType) -> None:
    """Raise JobError for a column that the files do not have."""
    named = [*load.key, *load.headers, *(column for column in (load.value, load.timestamp) if column is not None)]
    missing = [column for column in named if column not in schema.fieldNames()]
    if missing:
        raise JobError(f"{load.source} has no column {', '.join(missing)}: it has {', '.join(schema.fieldNames())}")


def records(rows: DataFrame, load: Load) -> DataFrame:
    """Rows as records: key, value and headers, and timestamp and partition where they are written by ``producing``."""
    from pyspark.sql import functions as f

    used = {*load.key, *load.headers, load.timestamp}
    rest = [column for column in rows.columns if column not in used]
    key = _binary(rows, load.key) if load.key else f.lit(None).cast("binary")
    value = _binary(rows, (load.value,)) if load.value else _json(rest)
    columns = [key.alias("key"), value.alias("value")]
    pairs = [f.struct(f.lit(name).alias("key"), _binary(rows, (name,)).alias("value")) for name in load.headers]
    if pairs:
        columns.append(f.filter(f.array(*pairs), lambda pair: pair["value"].isNotNull()).alias("headers"))
    if load.timestamp is not None:
        if not pairs:
            columns.append(f.lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"))
        time = f.col(_quoted(load.timestamp))
        is_number = rows.schema[load.timestamp].dataType.typeName() in ("integer", "long")
        columns.append(
            (time.cast("long") if is_number else f.unix_millis(time.cast("timestamp"))).alias("timestamp_ms")
        )
        columns.append(f.lit(None).cast("int").alias("target_partition"))
    return rows.select(*columns)


def _binary(rows: DataFrame, names: tuple[str, ...]) -> Column:
    """One column as bytes (text as UTF-8, nested values as JSON); several columns as JSON."""
    from pyspark.sql import functions as f

    if len(names) > 1:
        return _json(names)
    kind = rows.schema[names[0]].dataType.typeName()
    column = f.col(_quoted(names[0]))
    if kind in ("struct", "array", "map"):
        return f.to_json(column, _JSON).cast("binary")
    return column if kind == "binary" else column.cast("string").cast("binary")


def _json(names: Iterable[str]) -> Column:
    from pyspark.sql import functions as f

    return f.to_json(f.struct(*map(_quoted, names)), _JSON).cast("binary")


def _quoted(name: str) -> str:
    """The name of a column, quoted because it may contain dots."""
    return f"`{name}`"
