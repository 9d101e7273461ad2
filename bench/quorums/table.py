"""The results of a run: figures by row and system, what was lost or failed, and a table in Markdown."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from .clusters import DEFAULT, NAMES
from .rows import Figure

BEGIN, END = "<!-- table: written by bench.quorums -->", "<!-- end of table -->"
_SHOWN = 20
"""Of the lost records of a cluster."""


class Table:
    """``wrong`` are acknowledged records that are gone, and rows that came to no end."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._kinds = kinds
        self._found: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._audits: list[str] = []
        self.wrong: list[str] = []

    def add(self, kind: str, times: str, figure: Figure) -> None:
        """Add and print a figure."""
        self._found[times, figure.what, figure.unit][kind].append(figure.value)
        self.say(f"{kind}, {times}: {figure.what}: {figure.value:.3f} {figure.unit}")

    def audited(self, cluster: str, count: int, lost: Sequence[str]) -> None:
        """A cluster has been read to its end."""
        self._audits.append(f"{cluster}: {count} acknowledged, {len(lost)} lost")
        self.say(self._audits[-1])
        self.wrong += lost[:_SHOWN]

    def failed(self, why: str) -> None:
        """A row came to no end."""
        self.say(f"FAILED: {why}")
        self.wrong.append(why)

    def say(self, line: str) -> None:
        """Print at once, beside the table."""
        print(line, file=sys.stderr, flush=True)

    def write(self, page: Path) -> None:
        """Put the report between the marks of a page; a file without them, or none, becomes the report."""
        before, mark, rest = page.read_text().partition(BEGIN) if page.exists() else ("", "", "")
        _, end, after = rest.partition(END)
        if mark and end:
            page.write_text(f"{before}{BEGIN}\n{self.text()}\n{END}{after}")
        else:
            page.write_text(self.text() + "\n")

    def text(self) -> str:
        """The report."""
        names = [NAMES[kind] for kind in self._kinds]
        lines = [
            "| row | " + " | ".join(f"{name}: median | worst" for name in names) + " |",
            "|---|" + "---:|---:|" * len(names),
        ]
        for (times, what, unit), by_kind in self._found.items():
            row = what if times == DEFAULT else f"{what}, {times} times"
            cells = [_cells(by_kind.get(kind, []), unit) for kind in self._kinds]
            lines.append(f"| {row} | " + " | ".join(cells) + " |")
        lines += ["", *(f"- {each}" for each in self._audits)]
        lines += [f"- WRONG: {each}" for each in self.wrong] or ["- nothing was lost"]
        return "\n".join(lines)


def _cells(values: Sequence[float], unit: str) -> str:
    if not values:
        return " | "
    digits = 0 if unit == "MiB" else 2
    return f"{statistics.median(values):,.{digits}f} {unit} | {max(values):,.{digits}f} {unit}"
