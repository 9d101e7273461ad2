"""Medians, ratios and missed floors of a run: as a table on the terminal, and as a page of bench/results.

A ratio is calculated within one pair, in which the two brokers ran one after the other; the report has the median of the
pairs, and the lowest and highest. Absolute figures differ from machine to machine and are only for information.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from .rows import Figure, Floor

_NOISY = 0.1
_WIDTH = 170
_ABOVE_TABLE = """\
[Benchmarks](../../docs/bench.md) sums this table up. A *ratio* is Ottla's figure divided by Apache Kafka's, the median of the
pairs; *range* is its lowest and highest. A *floor* is the limit that Ottla has set itself for the ratio.
[How it was measured](#how-it-was-measured) explains *noise*."""


@dataclass
class Line:
    """One line of the table: one figure of one row, from every pair; broker name -> pair -> value."""

    row: str
    unit: str
    floor: Floor | None
    values: dict[str, dict[int, float]] = field(default_factory=dict)
    noise: float = 0.0

    def median(self, broker: str) -> float | None:
        return statistics.median(self.values[broker].values()) if self.values.get(broker) else None

    def ratios(self, ours: str, theirs: str) -> list[float]:
        mine, others = self.values.get(ours, {}), self.values.get(theirs, {})
        return [mine[pair] / others[pair] for pair in mine if others.get(pair)]


class Results:
    """Collects figures; ``ours`` and ``theirs`` are the names of the brokers whose ratios are calculated.

    ``beside`` is a third one, which has a column if it has figures, and no part in the ratios.
    """

    def __init__(self, ours: str, theirs: str | None, beside: str | None = None) -> None:
        self.ours, self.theirs, self.beside = ours, theirs, beside
        self._lines: dict[tuple[str, str], Line] = {}

    def add(self, broker: str, pair: int, figures: Iterable[Figure]) -> list[Figure]:
        kept = list(figures)
        for figure in kept:
            line = self._lines.setdefault((figure.row, figure.unit), Line(figure.row, figure.unit, figure.floor))
            line.values.setdefault(broker, {})[pair] = figure.value
            line.noise = max(line.noise, figure.noise)
        return kept

    def missed(self) -> list[str]:
        """Rows whose ratio is on the wrong side of its floor."""
        cells = [self._cells(line) for line in self._lines.values()]
        return [f"{row}: {unit}" for row, unit, *_, verdict, _ in cells if verdict == "missed"]

    def header(self) -> list[str]:
        if self.theirs is None:
            return ["row", "figure", *self._shown(), "noise"]
        return ["row", "figure", *self._shown(), "ratio", "range", "floor", "verdict", "noise"]

    def table(self) -> list[list[str]]:
        return [self._cells(line) for line in self._lines.values()]

    def _shown(self) -> list[str]:
        """The names of those that have a column."""
        compared = [self.ours] if self.theirs is None else [self.ours, self.theirs]
        has_third = any(self.beside in line.values for line in self._lines.values())
        return [*compared, self.beside] if self.beside is not None and has_third else compared

    def _cells(self, line: Line) -> list[str]:
        noise = f"{line.noise:.2f}{' !' if line.noise > _NOISY else ''}"
        values = [_number(line.median(name)) for name in self._shown()]
        if self.theirs is None:
            return [line.row, line.unit, *values, noise]
        ratios = line.ratios(self.ours, self.theirs)
        ratio = statistics.median(ratios) if ratios else None
        verdict = ""
        if line.floor is not None and ratio is not None:
            verdict = "ok" if line.floor.holds(ratio) else "missed"
        return [
            line.row,
            line.unit,
            *values,
            _number(ratio),
            f"{_number(min(ratios))} - {_number(max(ratios))}" if ratios else "",
            str(line.floor or ""),
            verdict,
            noise,
        ]

    def print(self) -> None:
        """Print the table, at its full width where the width of the output is not known."""
        table = Table(header_style="bold")
        for title in self.header():
            table.add_column(title, justify="left" if title in ("row", "figure", "verdict") else "right")
        for cells in self.table():
            style = "red" if "missed" in cells else None
            table.add_row(*cells, style=style)
        console = Console()
        (console if console.is_terminal else Console(width=_WIDTH)).print(table)

    def markdown(self, title: str, command: str, about: Sequence[str]) -> str:
        """The page: the table, then how it was measured."""
        table = markdown_table(self.header(), self.table())
        made = ["## How it was measured", "", "By", "", f"    {command}", "", *about]
        return "\n".join([f"# {title}", "", _ABOVE_TABLE, "", *table, "", *made]) + "\n"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    return [line(header), line(["---"] * len(header)), *(line(row) for row in rows)]


def profile_table(profiles: Mapping[str, Counter[str]]) -> list[str]:
    """The share of the broker's CPU time in each of its parts, by row, as a Markdown table."""
    parts = [part for part, _ in sum(profiles.values(), Counter[str]()).most_common()]
    rows = []
    for row, samples in profiles.items():
        total = sum(samples.values())
        rows.append([row, str(total), *(f"{100 * samples[part] / total:.0f} %" if total else "" for part in parts)])
    return markdown_table(["row", "samples", *parts], rows)


def _number(value: float | None) -> str:
    """With three significant digits; large numbers with all their digits."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
