"""What every job does with its streaming queries: follow them to their end, and say in one line why one failed.

A query is told from others by the name its job gave it. All that is known of a micro-batch comes from Spark's own progress
events, which it keeps for the last hundred triggers; ``follow`` looks at them each second and takes each once.
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

__all__ = ["JobError", "Partition", "Progress", "Watch", "explain", "follow", "spark_failures"]

POLL_S = 1.0

Partition = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True)
class Progress:
    """One micro-batch that is done. Bytes are of the driver's and executors' state stores together.

    ``watermark`` is Spark's text of it (UTC), None as long as there is none. ``read`` is where the batch ended in each
    partition of the topics read, ``ends`` where those ended when it was planned.
    """

    batch: int
    records: int
    seconds: float = 0.0
    watermark: str | None = None
    state_rows: int = 0
    state_bytes: int = 0
    read: Mapping[Partition, int] = field(default_factory=dict)
    ends: Mapping[Partition, int] = field(default_factory=dict)

    @property
    def records_per_s(self) -> float:
        """Zero for a batch that took no time to speak of."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def lag(self) -> int:
        """Records that were there and are not read yet."""
        return sum(max(end - self.read[where], 0) for where, end in self.ends.items() if where in self.read)

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Progress:
        """What Spark's progress event says, as JSON."""
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
class Watch:
    """Who follows a job: ``report`` is called once for each finished micro-batch that read something, with the query's name.

    Once ``stop`` is set, each query ends after the micro-batch that is under way.
    """

    report: Callable[[str, Progress], None] = lambda name, progress: None
    stop: threading.Event = field(default_factory=threading.Event)


class ReadOffsets(Protocol):
    """Where is kept how far queries have read (``GroupOffsets``)."""

    def note(self, name: str, read: Mapping[Partition, int]) -> None:
        """The query of this name has read so far."""
        ...


def follow(
    queries: Mapping[str, StreamingQuery], watch: Watch | None = None, group: ReadOffsets | None = None
) -> dict[str, int]:
    """Wait for the end of all queries, or of the first that fails; the records each read.

    How far they have read is committed to ``group``. Raises what the query failed with.
    """
    watch = watch or Watch()
    last = dict.fromkeys(queries, ("", -1))
    totals = dict.fromkeys(queries, 0)

    def take_progress(name: str) -> None:
        for event in _events_after(queries[name], last[name]):
            last[name] = _position(event)
            progress = Progress.of(event)
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
    """Whatever Spark or its JVM fails with is a JobError of one line, after the place; its notes hold Java's stack trace."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    def failed(text: str, note: str = "") -> JobError:
        error = JobError(f"{place}: {explain(text)}" if place else explain(text))
        # Later the JVM has gone that would be asked for it.
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
    """Spark's progress events that are newer, oldest first. Each costs a call into the JVM, so no more are taken than needed."""
    found: list[dict[str, Any]] = []
    for progress in reversed(query._jsq.recentProgress()):
        event = json.loads(progress.json())
        if _position(event) <= last:
            break
        found.append(event)
    return found[::-1]


def _position(event: Mapping[str, Any]) -> tuple[str, int]:
    """Grows from event to event: a trigger that finds nothing has the number of the batch to come, so time comes first."""
    return event["timestamp"], event["batchId"]


def _offsets(event: Mapping[str, Any], key: str) -> dict[Partition, int]:
    """Offsets of all sources of the query that are topics; of a partition that is read twice, the lower."""
    found: dict[Partition, int] = {}
    for source in event["sources"]:
        if not source["description"].startswith("KafkaV2"):
            continue
        for topic, partitions in (source.get(key) or {}).items():
            for partition, offset in partitions.items():
                where = topic, int(partition)
                found[where] = min(offset, found.get(where, offset))
    return found
