"""Start and end offsets of topics, and batch reads in Spark of exactly the records between."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from .bootstrap_servers import kafka_python, spark_options
from .query import JobError, Partition
from .reader import READER_DEFAULTS

if TYPE_CHECKING:
    from kafka import KafkaConsumer
    from pyspark.sql import DataFrame, SparkSession

ISOLATION = "kafka.isolation.level"


class OffsetRange(NamedTuple):
    """The offsets from ``start`` to before ``end``."""

    start: int
    end: int


class TopicOffsets:
    """The offsets of one cluster; ``isolation_level`` decides what the end of a partition is. All methods raise JobError."""

    def __init__(self, consumer: KafkaConsumer, bootstrap_servers: str) -> None:
        self._consumer = consumer
        self._servers = bootstrap_servers

    @classmethod
    @contextmanager
    def ask(cls, bootstrap_servers: str, isolation_level: str = "read_uncommitted") -> Iterator[TopicOffsets]:
        """A context with a connection to the cluster."""
        from kafka import KafkaConsumer
        from kafka.errors import KafkaError

        try:
            consumer = KafkaConsumer(
                **kafka_python(bootstrap_servers),
                group_id=None,
                enable_auto_commit=False,
                allow_auto_create_topics=False,
                isolation_level=isolation_level,
            )
            try:
                yield cls(consumer, bootstrap_servers)
            finally:
                consumer.close(autocommit=False)
        except KafkaError as error:
            raise JobError(f"no broker answers at {bootstrap_servers} ({type(error).__name__})") from None

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """Every partition of the topics."""
        found: list[Partition] = []
        for topic in topics:
            numbers = self._consumer.partitions_for_topic(topic)
            if not numbers:
                raise JobError(f"{self._servers} has no topic {topic}")
            found += [(topic, number) for number in sorted(numbers)]
        return found

    def spans(self, topics: Iterable[str]) -> dict[Partition, OffsetRange]:
        """The offsets that each partition has now."""
        from kafka import TopicPartition

        places = [TopicPartition(*partition) for partition in self.partitions(topics)]
        starts, ends = self._consumer.beginning_offsets(places), self._consumer.end_offsets(places)
        return {(place.topic, place.partition): OffsetRange(starts[place], ends[place]) for place in places}

    def since(self, spans: Mapping[Partition, OffsetRange], timestamp_ms: int) -> dict[Partition, OffsetRange]:
        """The spans, each from the first record with this timestamp or a later one."""
        from kafka import TopicPartition

        found = self._consumer.offsets_for_times({TopicPartition(*where): timestamp_ms for where in spans})
        later = {(place.topic, place.partition): at.offset for place, at in found.items() if at is not None}
        return {
            where: OffsetRange(min(max(span.start, later.get(where, span.end)), span.end), span.end)
            for where, span in spans.items()
        }


def read_spans(
    spark: SparkSession, bootstrap_servers: str, spans: Mapping[Partition, OffsetRange], options: Mapping[str, str]
) -> DataFrame:
    """The records at these offsets, as Spark's ``kafka`` source gives them, headers included."""
    chosen = {
        **READER_DEFAULTS,
        **spark_options(bootstrap_servers),
        "assign": _by_topic({where: where[1] for where in spans}, is_list=True),
        "startingOffsets": _by_topic({where: span.start for where, span in spans.items()}),
        "endingOffsets": _by_topic({where: span.end for where, span in spans.items()}),
        "includeHeaders": "true",
        **options,
    }
    return spark.read.format("kafka").options(**chosen).load()


def _by_topic(numbers: Mapping[Partition, int], *, is_list: bool = False) -> str:
    """Spark's JSON: topic to partition to number, or topic to a list of partitions."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for (topic, partition), number in numbers.items():
        found[topic][str(partition)] = number
    return json.dumps({topic: list(each.values()) if is_list else each for topic, each in found.items()})
