"""The jobs' streaming queries: their progress until they end, and one-line reasons of failures.

Queries are identified by the names that the job gave them. Micro-batches are known by Spark's progress events, which it keeps
for the last hundred triggers; ``follow`` reads them every second and reports each once.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .failures import JobError, explain
from .stopping import finish_batch

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["JobControl", "JobError", "Partition", "QueryProgress", "explain", "follow", "spark_failures"]

POLL_S = 1.0

Partition = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True)
class QueryProgress:
    """A finished micro-batch."""

    batch: int
    records: int
    seconds: float = 0.0
    watermark: str | None = None
    """Spark's text of it (UTC); None until there is one."""
    state_rows: int = 0
    """Of all state stores together, as ``state_bytes``."""
    state_bytes: int = 0
    read: Mapping[Partition, int] = field(default_factory=dict)
    """The offset at which the batch ended, by partition."""
    ends: Mapping[Partition, int] = field(default_factory=dict)
    """The end of each partition when the batch was planned."""

    @property
    def records_per_s(self) -> float:
        """Zero for a batch that took less than a millisecond."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def lag(self) -> int:
        """Records in the topics that are not read yet."""
        return sum(max(end - self.read[where], 0) for where, end in self.ends.items() if where in self.read)

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> QueryProgress:
        """From Spark's progress event, parsed from JSON."""
        states = event.get("stateOperators", [])
        watermark = event.get("eventTime", {}).get("watermark", "")
        return cls(
            batch=event["batchId"],
            records=event["numInputRows"],
            seconds=event["durationMs"].get("triggerExecution", 0) / 1000,
            watermark=None if watermark.startswith("1970-01-01T00:00:00") else watermark or None,
            state_rows=sum(state["numRowsTotal"] for state in states),
            state_bytes=sum(state["memoryUsedBytes"] for state in states),
            read=_offsets(event, "endOffset"),
            ends=_offsets(event, "latestOffset"),
        )


@dataclass(frozen=True)
class JobControl:
    """How a job is followed and stopped."""

    report: Callable[[str, QueryProgress], None] = lambda name, progress: None
    """Called with the query's name for each finished micro-batch that read something."""
    stop: threading.Event = field(default_factory=threading.Event)
    """After this is set, each query ends with its current micro-batch."""


class ReadOffsets(Protocol):
    """The place where positions of queries are stored (``GroupOffsets``)."""

    def note(self, name: str, read: Mapping[Partition, int]) -> None:
        """Note how far the query ``name`` has read."""
        ...


def follow(
    queries: Mapping[str, StreamingQuery], watch: JobControl | None = None, group: ReadOffsets | None = None
) -> dict[str, int]:
    """Wait until all queries have ended or one has failed. Returns how many records each has read.

    Their positions are committed to ``group``. Raises the error of the query that failed.
    """
    watch = watch or JobControl()
    last = dict.fromkeys(queries, ("", -1))
    totals = dict.fromkeys(queries, 0)

    def take_progress(name: str) -> None:
        for event in _events_after(queries[name], last[name]):
            last[name] = _position(event)
            progress = QueryProgress.of(event)
            if group is not None:
                group.note(name, progress.read)
            if progress.records > 0:
                totals[name] += progress.records
                watch.report(name, progress)

    running = dict(queries)
    is_stopping = False
    while running:
        for name, query in list(running.items()):
            try:
                # Waiting in steps lets Python's signal handlers run, and the other queries report.
                ended = query.awaitTermination(POLL_S / len(running))
            finally:
                take_progress(name)
            if ended:
                del running[name]
        if watch.stop.is_set() and not is_stopping:
            is_stopping = True
            for query in running.values():
                threading.Thread(target=finish_batch, args=(query,), daemon=True).start()
    return totals


@contextmanager
def spark_failures(place: str = "") -> Iterator[None]:
    """Raise errors of Spark and its JVM as a JobError of one line, after ``place``; its notes have Java's stack trace."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    def failed(text: str, note: str = "") -> JobError:
        error = JobError(f"{place}: {explain(text)}" if place else explain(text))
        # Added now, because later the JVM that has it may be gone.
        error.add_note(note)
        return error

    try:
        yield
    except PySparkException as error:
        raise failed(str(error), str(error)) from error
    except Py4JJavaError as error:
        raise failed(error.java_exception.toString(), str(error)) from error
    except (Py4JError, ConnectionError) as error:
        raise failed("Spark's JVM has ended unexpectedly") from error


def _events_after(query: StreamingQuery, last: tuple[str, int]) -> list[dict[str, Any]]:
    """Spark's progress events after ``last``, oldest first. Each costs a call to the JVM, so no more are read than needed."""
    found: list[dict[str, Any]] = []
    for progress in reversed(query._jsq.recentProgress()):
        event = json.loads(progress.json())
        if _position(event) <= last:
            break
        found.append(event)
    return found[::-1]


def _position(event: Mapping[str, Any]) -> tuple[str, int]:
    """Grows from event to event. A trigger without new records has the number of the next batch, so the time comes first."""
    return event["timestamp"], event["batchId"]


def _offsets(event: Mapping[str, Any], key: str) -> dict[Partition, int]:
    """The offsets in all topics that the query reads; the lower one if it reads a partition twice."""
    found: dict[Partition, int] = {}
    for source in event["sources"]:
        if not source["description"].startswith("KafkaV2"):
            continue
        for topic, partitions in (source.get(key) or {}).items():
            for partition, offset in partitions.items():
                where = topic, int(partition)
                found[where] = min(offset, found.get(where, offset))
    return found
