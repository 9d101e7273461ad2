"""The page of benchmarks says what the tables hold, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.bench import plot

_DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_committed_plot_and_figures_are_those_of_the_tables() -> None:
    assert (_DOCS / "bench.svg").read_text() == plot.svg(), "run `make docs`"
    page = (_DOCS / "bench.md").read_text()
    assert page == plot.with_figures(page), "run `make docs`"


def test_every_load_with_a_rate_and_a_cost_is_plotted() -> None:
    tables = "".join((_DOCS / f"{name}.md").read_text() for name in ("bench-broker", "bench-cluster"))
    measured = re.findall(
        r"^\| ((?:produce|consume|one-record).*?) \| (?:records|requests|MB)/s \|", tables, re.MULTILINE
    )
    assert len(plot.loads()) == len(measured)
    assert plot.svg().count("<circle") == len(measured) + 1  # one is in the legend


def test_the_figures_in_why_are_those_of_the_page() -> None:
    rows = re.findall(
        r"^\| .* \|$", (_DOCS / "why.md").read_text().partition("<!-- figures of the benchmarks -->")[2], re.MULTILINE
    )
    figures = [row for row in rows if re.search(r"\(4\.3\.1\)", row)]
    assert len(figures) == 11
    page = (_DOCS / "bench.md").read_text()
    assert [row for row in figures if row.removesuffix(" |") not in page] == []
