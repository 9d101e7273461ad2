"""``python -m bench.plot`` draws docs/bench.svg from the results in bench/results.

It measures nothing and has no figures of its own.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .result_tables import Figure, figures

PLOT = Path(__file__).resolve().parent.parent / "docs" / "bench.svg"

_RATES = ("records/s", "requests/s", "MB/s")
_COSTS = ("CPU s/GB", "CPU µs/request")


class Load(NamedTuple):
    """One line of the plot: the ratios of the rate and of the CPU time under one load."""

    label: str
    rate: Figure
    cost: Figure


def loads() -> list[Load]:
    """What is plotted, from top to bottom."""
    every = [*figures("broker"), *figures("cluster")]
    costs = {(figure.page, figure.row): figure for figure in every if figure.unit in _COSTS}
    return [
        Load(_label(figure), figure, costs[figure.page, figure.row])
        for figure in every
        if figure.unit in _RATES and (figure.page, figure.row) in costs and not figure.row.startswith("catch-up")
    ]


def _label(figure: Figure) -> str:
    row = figure.row.replace(", acks=all, 3 replicas", ", 3 brokers, acks=all")
    row = row.replace("one-record requests, 3 brokers", "one record, 3 brokers")
    return row.replace("partitions", "part.").replace("partition", "part.").replace("confluent-kafka", "confluent")


_WIDTH, _LABELS, _LINE, _TOP = 560, 268, 17, 62
_MOST = 2.5
_RATE_COLOUR, _COST_COLOUR = "#0072b2", "#d55e00"  # colour-blind readers can distinguish them


def svg() -> str:
    """The plot as SVG: a dot for the rate and a square for the CPU time of each load, with their ranges."""
    shown = loads()
    bottom = _TOP + _LINE * len(shown)
    return "\n".join([*_frame(bottom), *_legend(), *_lines(shown), "</svg>", ""])


def _x(ratio: float) -> float:
    return round(_LABELS + min(ratio, _MOST) / _MOST * (_WIDTH - _LABELS - 14), 1)


def _frame(bottom: int) -> Iterator[str]:
    height = bottom + 24
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11">'
    yield "<title>Ottla divided by Apache Kafka: records per second, and CPU time per byte, by load</title>"
    yield f'<rect width="{_WIDTH}" height="{height}" rx="4" fill="#ffffff"/>'
    for tenths in range(0, int(_MOST * 10) + 1, 5):
        ratio, is_one = tenths / 10, tenths == 10
        colour = "#444444" if is_one else "#dddddd"
        yield f'<path d="M{_x(ratio)} {_TOP - 6}V{bottom}" stroke="{colour}"/>'
        label = "1 = Kafka" if is_one else f"{ratio:g}"
        yield f'<text x="{_x(ratio)}" y="{bottom + 15}" text-anchor="middle" fill="#444444">{label}</text>'


def _legend() -> Iterator[str]:
    title = "Ottla ÷ Apache Kafka, same load, same machine"
    yield f'<text x="12" y="20" font-size="13" font-weight="bold" fill="#222222">{title}</text>'
    yield f'<circle cx="18" cy="38" r="4" fill="{_RATE_COLOUR}"/>'
    yield '<text x="28" y="42" fill="#222222">records per second (right of 1: Ottla moves more)</text>'
    yield f'<rect x="{_LABELS + 54}" y="34" width="8" height="8" fill="{_COST_COLOUR}"/>'
    yield f'<text x="{_LABELS + 68}" y="42" fill="#222222">CPU time (left of 1: Ottla takes less)</text>'


def _lines(shown: list[Load]) -> Iterator[str]:
    for number, load in enumerate(shown):
        y = _TOP + _LINE * number + 6
        label = html.escape(load.label)
        yield f'<text x="{_LABELS - 8}" y="{y + 4}" text-anchor="end" fill="#222222">{label}</text>'
        yield _range(load.rate, y - 3, _RATE_COLOUR)
        yield f'<circle cx="{_x(load.rate.ratio)}" cy="{y - 3}" r="3.5" fill="{_RATE_COLOUR}"/>'
        yield _range(load.cost, y + 3, _COST_COLOUR)
        yield f'<rect x="{_x(load.cost.ratio) - 3:.1f}" y="{y}" width="6" height="6" fill="{_COST_COLOUR}"/>'


def _range(figure: Figure, y: int, colour: str) -> str:
    return f'<path d="M{_x(figure.lowest)} {y}H{_x(figure.highest)}" stroke="{colour}" stroke-opacity="0.5"/>'


if __name__ == "__main__":
    PLOT.write_text(svg())
