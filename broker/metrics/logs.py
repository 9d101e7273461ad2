"""The metrics of logs: of a broker's partitions, and of the metadata log of a node of a quorum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from prometheus_client.core import Metric

from .families import storage
from .samples import Labels, simple


class LogFigures(NamedTuple):
    """``labels`` are topic and partition, ``size`` is in bytes."""

    labels: Labels
    size: int
    start_offset: int
    end_offset: int
    segments: int


def log_metrics(logs: Sequence[LogFigures]) -> Iterator[Metric]:
    yield simple(storage.LOG_SIZE, [(log.labels, log.size) for log in logs])
    yield simple(storage.LOG_START, [(log.labels, log.start_offset) for log in logs])
    yield simple(storage.LOG_END, [(log.labels, log.end_offset) for log in logs])
    yield simple(storage.LOG_SEGMENTS, [(log.labels, log.segments) for log in logs])
