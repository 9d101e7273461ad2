"""The tables of the committed results in bench/results: ratios as figures, other tables as lines of cells.

Invariant: nothing here measures or calculates; every figure is one of a page.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).resolve().parent / "results"


class Figure(NamedTuple):
    """One line of a table: a figure on Ottla and on Apache Kafka, and the ratio of the two with its range."""

    page: str
    row: str
    unit: str
    ours: str
    theirs: str
    ratio: float
    lowest: float
    highest: float
    kafka: str


def figures(name: str) -> list[Figure]:
    """The lines of the tables of ratios in bench/results/``name``.md."""
    found: list[Figure] = []
    kafka = ""
    for cells in _lines(name):
        if cells[0] == "row" and len(cells) == 9:
            kafka = cells[3]
        elif kafka and len(cells) == 9 and not cells[0].startswith("---"):
            lowest, _, highest = cells[5].partition(" - ")
            row, unit, ours, theirs, ratio = cells[:5]
            found.append(Figure(name, row, unit, ours, theirs, float(ratio), float(lowest), float(highest), kafka))
    return found


def tables(name: str) -> list[list[list[str]]]:
    """The cells of each table in bench/results/``name``.md, header and alignment first."""
    found: list[list[list[str]]] = []
    is_inside = False
    for line in (RESULTS / f"{name}.md").read_text().splitlines():
        if line.startswith("|"):
            if not is_inside:
                found.append([])
            found[-1].append(_cells(line))
        is_inside = line.startswith("|")
    return found


def _lines(name: str) -> list[list[str]]:
    return [cells for table in tables(name) for cells in table]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
