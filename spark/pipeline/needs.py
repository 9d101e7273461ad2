"""Requirements of a pipeline beyond Spark's Kafka connector: jars, by their coordinates, and session settings.

The jars are found, or fetched, in the same way as the connector's (see ``ottla.spark.session``). Those of Spark itself have no
version here: theirs is pyspark's.
"""

from __future__ import annotations

from .declaration import Pipeline

AVRO = "org.apache.spark:spark-avro_2.13"
PROTOBUF = "org.apache.spark:spark-protobuf_2.13"
DELTA = "io.delta:delta-spark_2.13:4.0.0"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"

_DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_ICEBERG_SETTINGS = {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"}


def packages(pipeline: Pipeline) -> tuple[str, ...]:
    """The coordinates of the jars."""
    formats = {source.format for source in pipeline.sources.values()}
    needed = {
        AVRO: "avro" in formats,
        PROTOBUF: "protobuf" in formats,
        DELTA: any(sink.delta for sink in pipeline.sinks.values()),
        ICEBERG: any(sink.iceberg for sink in pipeline.sinks.values()),
    }
    return tuple(coordinates for coordinates, is_needed in needed.items() if is_needed)


def settings(pipeline: Pipeline) -> dict[str, str]:
    """The settings of the session, which those of the file override."""
    needed = packages(pipeline)
    chosen = [_DELTA_SETTINGS] * (DELTA in needed) + [_ICEBERG_SETTINGS] * (ICEBERG in needed)
    together: dict[str, str] = {}
    for each in chosen:
        for key, value in each.items():
            together[key] = f"{together[key]},{value}" if key in together else value
    return together | pipeline.settings
