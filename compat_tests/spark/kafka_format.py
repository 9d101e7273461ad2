"""Spark's ``kafka`` format bound to one broker, and rows as plain Python values.

Records are written and checked by another client than the one under test: a stock kafka-python. pyspark is imported only
when it is used, so that the tests can be collected, and skipped with a reason, where it is not installed.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ottla.compat_tests.clients import model
from ottla.compat_tests.session import ClientSession, consume, eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

# A query that is stuck should fail its test long before Kafka's own two minutes. Behind each poll Spark asks for both ends of
# the partition, and the answers wait for that of the fetch that its client has sent ahead: at the end of a partition, each
# task takes as long as a fetch may wait for data, which is half a second unless it is said.
CLIENT_OPTIONS = {
    "kafka.fetch.max.wait.ms": "20",
    "kafka.default.api.timeout.ms": "60000",
    "kafka.request.timeout.ms": "30000",
    "kafkaConsumer.pollTimeoutMs": "60000",
}


# Beside much else, on two cores, the JVM's first micro-batches take a minute.
PATIENCE_S = 150.0
"""What anything of Spark's may take before it counts as stuck."""


class KafkaFormat:
    """Reads and writes DataFrames; options are Spark's, with ``kafka.`` before those of its client."""

    def __init__(
        self, spark: SparkSession, bootstrap: str, folder: Path, client_properties: Mapping[str, str] | None = None
    ) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self._way_in = {f"kafka.{name}": value for name, value in (client_properties or {}).items()}
        self._folder = folder
        self._checkpoints = 0

    def _options(self, options: dict[str, str]) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap, **self._way_in, **CLIENT_OPTIONS, **options}

    def read(self, **options: str) -> DataFrame:
        """A batch."""
        return self.spark.read.format("kafka").options(**self._options(options)).load()

    def read_stream(self, **options: str) -> DataFrame:
        """A stream, from the beginning unless told otherwise."""
        chosen = {"startingOffsets": "earliest", **options}
        return self.spark.readStream.format("kafka").options(**self._options(chosen)).load()

    def write(self, rows: DataFrame, **options: str) -> None:
        """A batch."""
        producer = {"kafka.delivery.timeout.ms": "60000", "kafka.linger.ms": "5"}
        rows.write.format("kafka").options(**self._options({**producer, **options})).save()

    def write_stream(self, rows: DataFrame, **options: str) -> DataStreamWriter:
        """A streaming writer to Kafka; the caller gives checkpoint and trigger."""
        return rows.writeStream.format("kafka").options(**self._options(options))

    def new_checkpoint(self) -> str:
        """A folder for a query that was never run."""
        self._checkpoints += 1
        return str(self._folder / f"checkpoint-{self._checkpoints}")


class Rows:
    """Collects what a stream gives, batch by batch; each batch remembers the last attempt at it, as exactly-once sinks do."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[str, int, int]]] = {}
        self.fail_in: int | None = None

    def take(self, batch: DataFrame, number: int) -> None:
        """For ``foreachBatch``."""
        self.batches[number] = positions(batch)
        if number == self.fail_in:
            raise RuntimeError("the sink fails, as told")

    def all(self) -> list[tuple[str, int, int]]:
        """Every position, sorted; one that came twice is there twice."""
        # In one step, because ``take`` adds batches in another thread meanwhile.
        batches = list(self.batches.values())
        return sorted(position for batch in batches for position in batch)

    def run(self, stream: DataFrame, checkpoint: str) -> StreamingQuery:
        """Read all there is now, and wait for the end; an error of the query is raised."""
        query = self.writer(stream, checkpoint).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(PATIENCE_S), f"the query does not end: {query.status}"
        finally:
            query.stop()
        return query

    def start(self, stream: DataFrame, checkpoint: str) -> StreamingQuery:
        """Read for ever, without a pause between batches."""
        return self.writer(stream, checkpoint).trigger(processingTime="0 seconds").start()

    def writer(self, stream: DataFrame, checkpoint: str) -> DataStreamWriter:
        """The stream into this collection."""
        return stream.writeStream.option("checkpointLocation", checkpoint).foreachBatch(self.take)

    def wait_for(self, query: StreamingQuery, wanted: Iterable[tuple[str, int, int]]) -> None:
        """Until exactly these positions have come, each once; an error of the query is raised."""
        expected = sorted(wanted)

        def arrived() -> bool:
            failure = query.exception()
            if failure is not None:
                raise failure
            return len(self.all()) >= len(expected)

        eventually(arrived, PATIENCE_S)
        assert self.all() == expected


def positions(rows: DataFrame) -> list[tuple[str, int, int]]:
    """(topic, partition, offset) of each row, sorted."""
    return sorted(
        (row["topic"], row["partition"], row["offset"]) for row in rows.select("topic", "partition", "offset").collect()
    )


@contextlib.contextmanager
def spark_fails(match: str) -> Iterator[None]:
    """Expect Spark to refuse, with this regular expression somewhere in what it says."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    with pytest.raises((PySparkException, Py4JJavaError), match=match):
        yield


def span(topic: str, *ends: int, start: int = 0) -> list[tuple[str, int, int]]:
    """Positions from ``start`` to before ``ends[p]`` of each partition p, sorted."""
    return [(topic, partition, offset) for partition, end in enumerate(ends) for offset in range(start, end)]


def offsets(by_topic: dict[str, dict[int, int]]) -> str:
    """Spark's JSON of offsets or timestamps."""
    return json.dumps(by_topic)


def records(stock: ClientSession, topic: str, *counts: int) -> list[model.Message]:
    """All records of a topic as kafka-python reads them: ``counts`` for each partition, and not one more."""
    consumer = stock.consumer()
    consumer.assign({(topic, partition): "beginning" for partition in range(len(counts))})
    messages = consume(consumer, sum(counts))
    by_partition = Counter(message.partition for message in messages)
    assert [by_partition[partition] for partition in range(len(counts))] == list(counts)
    assert [consumer.watermarks(topic, partition) for partition in range(len(counts))] == [(0, n) for n in counts]
    return messages


def value_of(partition: int, number: int) -> bytes:
    """The value of a record that ``fill`` writes."""
    return f"{partition}:{number}".encode()


def fill(stock: ClientSession, topic: str, *counts: int, first: int = 0, **settings: Any) -> None:
    """Write ``counts[p]`` numbered records to each partition p."""
    with stock.brief_producer(linger_ms=5, **settings) as producer:
        for partition, count in enumerate(counts):
            for number in range(first, first + count):
                producer.send(topic, value_of(partition, number), key=str(number).encode(), partition=partition)
        producer.flush()
