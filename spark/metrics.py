"""Prometheus metrics of a job's queries: sizes and times of micro-batches, and the offsets read.

``ottla_spark_…``, each with the label ``query``; offsets with ``topic`` and ``partition`` too. They change when a
micro-batch has finished. prometheus-client (in the extra ``spark``) is imported when metrics are used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from ..base.wording import how_to_install
from .failures import JobError

if TYPE_CHECKING:
    from .query import QueryProgress

_QUERY = ("query",)
_PARTITION = ("query", "topic", "partition")


class QueryMetrics:
    """The metrics of one job, in a registry of their own."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge

        self.registry = CollectorRegistry()

        def gauge(name: str, help_text: str, labels: tuple[str, ...] = _QUERY) -> Gauge:
            return Gauge(f"ottla_spark_{name}", help_text, labels, registry=self.registry)

        def counter(name: str, help_text: str) -> Counter:
            return Counter(f"ottla_spark_{name}", help_text, _QUERY, registry=self.registry)

        self._records = counter("records", "Records read.")
        self._batches = counter("batches", "Finished micro-batches that read something.")
        self._batch_seconds = counter("batch_seconds", "Time that the finished micro-batches took.")
        self._batch = gauge("last_batch", "Number of the newest micro-batch.")
        self._batch_duration = gauge("last_batch_duration_seconds", "How long the newest micro-batch took.")
        self._batch_records = gauge("last_batch_records", "Records that the newest micro-batch read.")
        self._batch_time = gauge("last_batch_timestamp_seconds", "When the newest micro-batch finished.")
        self._watermark = gauge("watermark_timestamp_seconds", "The watermark: events older than this are late.")
        self._state_rows = gauge("state_rows", "Rows in the query's state.")
        self._state_bytes = gauge("state_memory_bytes", "Memory of the query's state.")
        self._read = gauge("read_offset", "Offset up to which the partition was read.", _PARTITION)
        self._end = gauge("end_offset", "End of the partition when the newest micro-batch was planned.", _PARTITION)
        self._lag = gauge(
            "lag_records", "Records of the partition that the newest micro-batch left unread.", _PARTITION
        )

    def note(self, name: str, progress: QueryProgress) -> None:
        """Note a finished micro-batch of the query ``name``."""
        self._records.labels(name).inc(progress.records)
        self._batches.labels(name).inc()
        self._batch_seconds.labels(name).inc(progress.seconds)
        self._batch.labels(name).set(progress.batch)
        self._batch_duration.labels(name).set(progress.seconds)
        self._batch_records.labels(name).set(progress.records)
        self._batch_time.labels(name).set(time.time())
        if progress.watermark is not None:
            self._watermark.labels(name).set(datetime.fromisoformat(progress.watermark).timestamp())
        self._state_rows.labels(name).set(progress.state_rows)
        self._state_bytes.labels(name).set(progress.state_bytes)
        for (topic, partition), offset in progress.read.items():
            self._read.labels(name, topic, partition).set(offset)
            end = progress.ends.get((topic, partition), offset)
            self._end.labels(name, topic, partition).set(end)
            self._lag.labels(name, topic, partition).set(max(end - offset, 0))


@contextmanager
def served(address: str) -> Iterator[QueryMetrics]:
    """Metrics, served over HTTP at HOST:PORT within the context. Raises JobError."""
    try:
        from prometheus_client import start_http_server
    except ImportError:
        raise JobError(f"prometheus-client is missing: {how_to_install('spark')}") from None
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise JobError(f"metrics are served at HOST:PORT, not {address!r}")
    metrics = QueryMetrics()
    try:
        server, thread = start_http_server(int(port), host.strip("[]") or "127.0.0.1", metrics.registry)
    except (OSError, OverflowError) as error:
        raise JobError(f"no metrics can be served at {address}: {error}") from None
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
