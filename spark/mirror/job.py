"""Runs the mirror: a streaming query that writes its micro-batches in transactions, and the translation of groups' offsets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..failures import explain_task
from ..group_offsets import committing
from ..kafka_admin import admin_client
from ..producing import RESULT
from ..query import JobControl, JobError, follow, spark_failures
from ..reader import check_choice, check_pattern, every, reader_options
from .groups import Carried, carry_over, read_maps
from .topics import GROUP_PREFIX, LAG_PREFIX, SourceTopic, find_topics, make_alike, sync_configs
from .writer import COLUMNS, MirrorDestination, write

if TYPE_CHECKING:
    from kafka import KafkaAdminClient
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Mirror:
    """What to mirror, from which cluster to which."""

    source: str
    target: str
    checkpoint: str
    """Local or any URI that Spark can write to."""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    prefix: str = ""
    groups: str | None = None
    """A pattern for the groups to carry over; None for no groups."""
    starting_offsets: str = "earliest"
    max_offsets_per_trigger: int | None = None
    every_s: float | None = None
    """None for one run over the records in the topics now."""
    fail_on_data_loss: bool = True
    group: str | None = None
    """How far it has read is committed to this group at the source. None for one named after the target's cluster, empty for
    none.
    """
    sync_configs: bool = True
    """Whether configs are copied repeatedly, not only when a topic is created."""

    def __post_init__(self) -> None:
        check_choice(self.topics, self.pattern)
        check_pattern("the pattern of topics", self.pattern)
        check_pattern("the pattern of groups", self.groups)

    def reader_options(self) -> dict[str, str]:
        """The options of Spark's ``kafka`` source."""
        options = reader_options(
            self.source,
            self.topics,
            self.pattern,
            fail_on_data_loss=self.fail_on_data_loss,
            max_offsets_per_trigger=self.max_offsets_per_trigger,
        )
        return options | {"kafka.isolation.level": "read_committed", "startingOffsets": self.starting_offsets}


@dataclass
class Mirrored:
    """What a run has done so far: records written, and the groups as they were carried over last."""

    records: int = 0
    carried: Carried = field(default_factory=Carried)


def run(spark: SparkSession, mirror: Mirror, mirrored: Mirrored, watch: JobControl | None = None) -> None:
    """Mirror the records in the topics now, or go on for ever if ``every_s`` is set; ``mirrored`` is kept up to date.

    The next run continues where this one ended, even if it failed. Raises JobError.
    """
    group_id, lag_group = prepare(mirror)
    sink = _Sink(mirror, group_id, mirrored)
    try:
        with spark_failures():
            query = _start(spark, mirror, sink)
            try:
                with _repeatedly(mirror, group_id, mirrored), committing(mirror.source, lag_group) as group:
                    follow({"mirror": query}, watch, group)
            finally:
                query.stop()
    except JobError as error:
        raise sink.failure or error from error
    # Offsets of groups can be translated only up to what is mirrored: this is the first time that all of it is.
    _carry_over(mirror, group_id, mirrored)


def prepare(mirror: Mirror) -> tuple[str, str]:
    """Create the target's topics. Returns the mirror's group there and the group at the source that shows its lag.

    Raises JobError if the clusters or topics cannot be mirrored.
    """
    with admin_client(mirror.source) as source, admin_client(mirror.target) as target:
        source_id, target_id = (admin.describe_cluster()["cluster_id"] for admin in (source, target))
        if source_id == target_id and not mirror.prefix:
            raise JobError("source and target are the same cluster, so a prefix is needed")
        group_id = f"{GROUP_PREFIX}{source_id}"
        topics = find_topics(source, mirror.topics, mirror.pattern)
        make_alike(source, target, topics, group_id, mirror.prefix)
        if mirror.sync_configs:
            sync_configs(source, target, topics, mirror.prefix)
    return group_id, f"{LAG_PREFIX}{target_id}" if mirror.group is None else mirror.group


def _start(spark: SparkSession, mirror: Mirror, sink: _Sink) -> StreamingQuery:
    stream = spark.readStream.format("kafka").options(**mirror.reader_options()).load()
    writer = stream.writeStream.queryName("mirror").option("checkpointLocation", mirror.checkpoint)
    writer = writer.foreachBatch(sink.take)
    if mirror.every_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=every(mirror.every_s)).start()


class _Sink:
    """The writer of micro-batches."""

    def __init__(self, mirror: Mirror, group_id: str, mirrored: Mirrored) -> None:
        self._mirror = mirror
        self._group_id = group_id
        self._mirrored = mirrored
        self.failure: JobError | None = None
        """The first error, which Spark would wrap in its own."""

    def take(self, rows: DataFrame, number: int) -> None:
        """For ``foreachBatch``."""
        try:
            self._mirrored.records += self._write(rows)
        except JobError as error:
            self.failure = error
            raise
        except Exception as error:
            self.failure = JobError(explain_task(str(error)))
            raise

    def _write(self, rows: DataFrame) -> int:
        mirror = self._mirror
        with admin_client(mirror.source) as source, admin_client(mirror.target) as target:
            topics = find_topics(source, mirror.topics, mirror.pattern)
            make_alike(source, target, topics, self._group_id, mirror.prefix)
            self._check_same(target, topics)
        ids = {name: topic.topic_id for name, topic in topics.items()}
        destination = MirrorDestination(mirror.target, self._group_id, mirror.prefix, ids)
        chosen = rows.where(rows.topic.isin(list(ids))).selectExpr(*COLUMNS)
        written = chosen.mapInArrow(lambda batches: write(batches, destination), RESULT).collect()
        return sum(row.written for row in written)

    def _check_same(self, target: KafkaAdminClient, topics: dict[str, SourceTopic]) -> None:
        """Raise JobError for a topic that was deleted and created again: its new records would be treated as mirrored."""
        for where, known in read_maps(target, self._group_id).items():
            name = where.topic.removeprefix(self._mirror.prefix)
            if self._mirror.prefix + name == where.topic and name in topics and known.topic_id != topics[name].topic_id:
                raise JobError(
                    f"{name} was deleted and created again at the source: delete {where.topic} at the target "
                    f"(or the offsets of {self._group_id} for it), and start with another checkpoint"
                )


def _sync_configs(mirror: Mirror) -> None:
    """Raises JobError."""
    if mirror.sync_configs:
        with admin_client(mirror.source) as source, admin_client(mirror.target) as target:
            topics = find_topics(source, mirror.topics, mirror.pattern)
            sync_configs(source, target, topics, mirror.prefix)


def _carry_over(mirror: Mirror, group_id: str, mirrored: Mirrored) -> None:
    """Raises JobError."""
    if mirror.groups is not None:
        with admin_client(mirror.source) as source, admin_client(mirror.target) as target:
            mirrored.carried = carry_over(source, target, mirror.groups, group_id, mirror.prefix)


@contextmanager
def _repeatedly(mirror: Mirror, group_id: str, mirrored: Mirrored) -> Iterator[None]:
    """Keep configs and groups up to date meanwhile, as often as the query begins a micro-batch, also without new records."""
    end = threading.Event()

    def work() -> None:
        while not end.wait(mirror.every_s):
            try:
                _sync_configs(mirror)
                _carry_over(mirror, group_id, mirrored)
            except JobError as error:
                logger.warning("configs and groups are not carried over now: %s", error)

    thread = threading.Thread(target=work, name="carry-over", daemon=True)
    if mirror.every_s is not None and (mirror.groups is not None or mirror.sync_configs):
        thread.start()
    try:
        yield
    finally:
        end.set()
        if thread.ident is not None:
            thread.join()
