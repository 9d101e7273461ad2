"""Rows of the benchmark on one broker of Ottla, as small as they can be: each runs, and has the figures that it is for."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ottla.bench.__main__ import Bench, chosen_loads
from ottla.bench.brokers import Ottla
from ottla.bench.report import Results
from ottla.bench.rows import Figure

_SCALE = 0.001


def _figures(rows: str, folder: Path) -> tuple[list[str], dict[tuple[str, str], list[str]]]:
    """Of a small run on Ottla alone: the names of the columns, and the cells of each figure between its name and the noise."""
    bench = Bench([Ottla()], 1, _SCALE, folder)
    bench.loads(re.compile(rows))
    assert bench.failures == []
    return bench.results.header(), {(row, unit): cells for row, unit, *cells, _ in bench.results.table()}


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("gcc") or shutil.which("cc")), reason="no C compiler")
def test_raw_requests_have_figures_of_the_sink_beside_the_broker(tmp_path: Path) -> None:
    header, figures = _figures("raw, (1 KiB|one record, 100 conn|10 part)", tmp_path)
    assert header == ["row", "figure", "Ottla", "C sink", "noise"]
    latencies = {"p50 µs", "p99 µs"}
    by_row = {row: {unit for other, unit in figures if other == row} for row, _ in figures}
    assert by_row == {
        "raw, 1 KiB a request": {"MB/s", "CPU s/GB"} | latencies,
        "raw, one record, 100 connections": {"requests/s", "CPU µs/request"} | latencies,
        "raw, 10 partitions a request": {"requests/s", "CPU µs/request"} | latencies,
    }
    assert all(len(cells) == 2 and all(cells) for cells in figures.values())


@pytest.mark.slow
def test_a_session_finds_the_one_partition_that_has_changed(tmp_path: Path) -> None:
    """Each round of the row fails where anything else than the new record comes."""
    header, figures = _figures("fetch session, (1|10) partition", tmp_path)
    assert header == ["row", "figure", "Ottla", "noise"]
    units = {"CPU µs/fetch and its produce", "CPU µs/produce alone", "p50 µs", "p99 µs"}
    rows = ("fetch session, 1 partition", "fetch session, 10 partitions")
    assert figures.keys() == {(row, unit) for row in rows for unit in units}


def test_rows_on_demand_run_when_they_are_named() -> None:
    assert not any(load.on_demand for load in chosen_loads(re.compile("")))
    raw = chosen_loads(re.compile("^raw, "))
    assert raw and all(load.on_demand and load.on_sink for load in raw)


def test_a_third_column_is_there_for_those_who_have_figures_and_has_no_part_in_ratios() -> None:
    results = Results("Ottla", "Kafka", "C sink")
    results.add("Ottla", 0, [Figure("row", "MB/s", 50)])
    results.add("Kafka", 0, [Figure("row", "MB/s", 25)])
    assert "C sink" not in results.header()
    results.add("C sink", 0, [Figure("row", "MB/s", 150)])
    (cells,) = results.table()
    assert dict(zip(results.header(), cells, strict=True)) == {
        "row": "row",
        "figure": "MB/s",
        "Ottla": "50",
        "Kafka": "25",
        "C sink": "150",
        "ratio": "2",
        "range": "2 - 2",
        "floor": "",
        "verdict": "",
        "noise": "0.00",
    }
