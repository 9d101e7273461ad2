"""The page of benchmarks and its plot hold the figures of the results, and no others."""

from __future__ import annotations

import re

from ottla.bench import page, plot
from ottla.bench.result_tables import RESULTS


def test_the_committed_plot_and_figures_are_those_of_the_tables() -> None:
    assert plot.PLOT.read_text() == plot.svg(), "run `make docs`"
    committed = page.PAGE.read_text()
    assert committed == page.with_figures(committed), "run `make docs`"


def test_every_load_with_a_rate_and_a_cost_is_plotted() -> None:
    tables = "".join((RESULTS / f"{name}.md").read_text() for name in ("broker", "cluster"))
    measured = re.findall(
        r"^\| ((?:produce|consume|one-record).*?) \| (?:records|requests|MB)/s \|", tables, re.MULTILINE
    )
    assert len(plot.loads()) == len(measured)
    assert plot.svg().count("<circle") == len(measured) + 1  # one is in the legend


def test_the_figures_in_why_are_those_of_the_results() -> None:
    shown = page.PAGE.with_name("why.md").read_text().partition("<!-- figures of the benchmarks -->")[2]
    rows = [row.replace(" (4.3.1)", "") for row in re.findall(r"^\| .*\(4\.3\.1\).* \|$", shown, re.MULTILINE)]
    assert len(rows) == 11
    found = page.PAGE.read_text() + "".join(file.read_text() for file in RESULTS.glob("*.md"))
    assert [row for row in rows if row.removesuffix(" |") not in found] == []
