"""What is taken from Spark's progress events, and how it is shown and served."""

from __future__ import annotations

import json
import threading

import pytest
from rich.console import Console

from ottla.spark.commands.following import Output
from ottla.spark.commands.live_table import LiveTable
from ottla.spark.metrics import served
from ottla.spark.query import JobControl, JobError, QueryProgress


def source(topic: str, read: dict[str, int], ends: dict[str, int] | None) -> dict[str, object]:
    return {
        "description": f"KafkaV2[Subscribe[{topic}]]",
        "endOffset": {topic: read},
        "latestOffset": ends and {topic: ends},
    }


EVENT = {
    "batchId": 4,
    "timestamp": "2026-03-01T10:00:00.000Z",
    "numInputRows": 300,
    "durationMs": {"addBatch": 1000, "triggerExecution": 1500},
    "eventTime": {"avg": "2026-03-01T09:00:00.000Z", "watermark": "2026-03-01T08:50:00.000Z"},
    "stateOperators": [
        {"numRowsTotal": 7, "memoryUsedBytes": 1000},
        {"numRowsTotal": 3, "memoryUsedBytes": 24},
    ],
    "sources": [
        source("orders", {"0": 100, "1": 50}, {"0": 120, "1": 50}),
        source("orders", {"0": 90, "1": 60}, {"0": 120, "1": 60}),
        {"description": "FileStreamSource[/lake]", "endOffset": {"logOffset": 3}, "latestOffset": None},
    ],
}


def test_progress() -> None:
    progress = QueryProgress.of(EVENT)
    assert (progress.batch, progress.records, progress.seconds, progress.records_per_s) == (4, 300, 1.5, 200.0)
    assert (progress.watermark, progress.state_rows, progress.state_bytes) == ("2026-03-01T08:50:00.000Z", 10, 1024)
    assert progress.read == {("orders", 0): 90, ("orders", 1): 50}
    assert progress.lag == 30


def test_progress_of_a_query_without_state_or_topic() -> None:
    progress = QueryProgress.of(
        {
            "batchId": 0,
            "numInputRows": 0,
            "durationMs": {},
            "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"},
            "sources": [source("t", {}, None)],
        }
    )
    assert progress == QueryProgress(0, 0)
    assert (progress.lag, progress.records_per_s) == (0, 0.0)


def test_metrics() -> None:
    with served("127.0.0.1:0") as metrics:
        pass
    metrics.note("copy", QueryProgress.of(EVENT))
    metrics.note("copy", QueryProgress(5, 10, 0.5, read={("orders", 1): 60}, ends={("orders", 1): 61}))
    get = metrics.registry.get_sample_value
    copy = {"query": "copy"}
    assert get("ottla_spark_records_total", copy) == 310
    assert get("ottla_spark_batches_total", copy) == 2
    assert get("ottla_spark_batch_seconds_total", copy) == 2.0
    assert get("ottla_spark_last_batch", copy) == 5
    assert get("ottla_spark_watermark_timestamp_seconds", copy) == 1772355000
    assert get("ottla_spark_state_rows", copy) == 0
    assert get("ottla_spark_lag_records", {**copy, "topic": "orders", "partition": "0"}) == 30
    assert get("ottla_spark_lag_records", {**copy, "topic": "orders", "partition": "1"}) == 1


@pytest.mark.parametrize(
    ("address", "line"),
    [("here", "metrics are served at HOST:PORT, not 'here'"), ("127.0.0.1:99999", "no metrics can be served at")],
)
def test_metrics_that_cannot_be_served(address: str, line: str) -> None:
    with pytest.raises(JobError, match=line), served(address):
        pass


def test_the_end_in_json_and_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    watch = JobControl()
    Output("copy", as_json=True).end(watch, {"copy": 3}, "copy: 3 records read")
    assert json.loads(capsys.readouterr().out) == {"totals": {"copy": 3}, "stopped": False}
    watch.stop.set()
    Output("copy").end(watch, {"copy": 3}, "copy: 3 records read")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("copy: 3 records read\n", "stopped; the next run continues from here\n")


def test_the_table_on_a_terminal() -> None:
    console = Console(width=120, record=True, force_terminal=True)
    stop = threading.Event()
    table = LiveTable("copy of orders", stop, console)
    with table:
        table.batch("copy", QueryProgress.of(EVENT))
        table.batch("copy", QueryProgress(5, 1000, 0.5, state_rows=10, state_bytes=1 << 20))
        stop.set()
    shown = console.export_text()
    assert "copy of orders: finishing the micro-batch" in shown
    row = shown[shown.rindex("copy  ") :].split()
    assert row == ["copy", "5", "1,300", "2,000", "0", "10", "1.0", "0.5"]
