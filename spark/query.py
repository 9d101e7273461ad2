"""What every job does with its streaming queries: follow them to their end, and say in one line why one failed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from .group_offsets import GroupOffsets

POLL_S = 1.0
# Spark's reader asks for both ends of the partition after each poll, so a poll should bring many records.
READER_DEFAULTS = {"kafka.max.poll.records": "20000"}


class JobError(RuntimeError):
    """A job cannot start or go on. ``str()`` is one line."""


@dataclass(frozen=True)
class Progress:
    """One micro-batch that is done."""

    batch: int
    records: int


def follow(
    queries: Mapping[str, StreamingQuery],
    report: Callable[[str, Progress], None],
    group: GroupOffsets | None = None,
) -> dict[str, int]:
    """Wait for the end of all queries, or of the first that fails, reporting each batch once; the records each read.

    How far they have read is committed to ``group``.
    """
    last = dict.fromkeys(queries, -1)
    totals = dict.fromkeys(queries, 0)
    running = dict(queries)
    while running:
        for name, query in list(running.items()):
            # Waiting in steps lets Python's signal handlers run, and the other queries report.
            ended = query.awaitTermination(POLL_S / len(running))
            for progress in query.recentProgress:
                if progress["batchId"] > last[name] and progress["numInputRows"] > 0:
                    last[name] = progress["batchId"]
                    totals[name] += progress["numInputRows"]
                    if group is not None:
                        group.note(name, progress)
                    report(name, Progress(progress["batchId"], progress["numInputRows"]))
            if ended:
                del running[name]
    return totals


def explain(text: str) -> str:
    """One line for people out of Spark's many."""
    if "UnknownTopicOrPartitionException" in text:
        return "unknown topic: one of the topics to read does not exist on this broker"
    if "Some data may have been lost" in text:
        reason = re.search(r"Reason: (.*)", text)
        why = reason[1].removesuffix(".") if reason else "records that were not read yet are gone"
        return f"data may have been lost: {why} (--no-fail-on-data-loss goes on with what there is)"
    first = next((line.strip() for line in text.splitlines() if line.strip()), "the query failed")
    first = re.sub(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ", "", first)
    return re.sub(r" SQLSTATE: \w+$", "", first)
