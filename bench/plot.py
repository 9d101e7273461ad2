"""``python -m bench.plot`` draws docs/bench.svg and writes the figures of docs/bench.md, from the tables of the pages.

It measures nothing and has no figures of its own: everything is from the tables.
"""

from __future__ import annotations

import html
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_DOCS = Path(__file__).resolve().parent.parent / "docs"
PLOT = _DOCS / "bench.svg"
PAGE = _DOCS / "bench.md"

BEGIN = "<!-- figures: written by `make docs` -->"
END = "<!-- end of figures -->"

_RATES = ("records/s", "requests/s", "MB/s")
_COSTS = ("CPU s/GB", "CPU µs/request")


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


class Load(NamedTuple):
    """One line of the plot: the ratios of the rate and of the CPU time under one load."""

    label: str
    rate: Figure
    cost: Figure


def figures(name: str) -> list[Figure]:
    """The lines of the table of ratios in docs/``name``.md."""
    found: list[Figure] = []
    kafka = ""
    for line in (_DOCS / f"{name}.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells[0] == "row" and len(cells) == 9:
            kafka = cells[3]
        elif kafka and len(cells) == 9 and not cells[0].startswith("---"):
            lowest, _, highest = cells[5].partition(" - ")
            row, unit, ours, theirs, ratio = cells[:5]
            found.append(Figure(name, row, unit, ours, theirs, float(ratio), float(lowest), float(highest), kafka))
    return found


def loads() -> list[Load]:
    """What is plotted, from top to bottom."""
    every = [*figures("bench-broker"), *figures("bench-cluster")]
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


# The plot

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


# The table

_CHOSEN = (
    ("bench-broker", "start to first Metadata answer", "s"),
    ("bench-broker", "idle memory", "MiB"),
    ("bench-broker", "produce, Java, 100 B, 12 partitions", "records/s"),
    ("bench-broker", "consume, Java, 100 B, 12 partitions", "records/s"),
    ("bench-broker", "consume, Java, 100 B, 12 partitions", "records/s after the join"),
    ("bench-broker", "produce, confluent-kafka, 1024 B, 12 partitions", "records/s"),
    ("bench-broker", "consume, confluent-kafka, 1024 B, 12 partitions", "records/s"),
    ("bench-broker", "produce over TLS, confluent-kafka, 1024 B, 12 partitions", "MB/s"),
    ("bench-broker", "consume over TLS, confluent-kafka, 1024 B, 12 partitions", "MB/s"),
    ("bench-broker", "one-record requests, 1 in flight", "requests/s"),
    ("bench-broker", "end-to-end latency, Java, one record at a time", "avg ms"),
    ("bench-cluster", "produce, acks=all, 3 replicas, 100 B, 12 partitions", "records/s"),
    ("bench-cluster", "produce, acks=all, 3 replicas, 100 B, 12 partitions", "CPU s/GB"),
    ("bench-cluster", "catch-up after a restart", "MB/s"),
    (
        "bench-many",
        "3,000 partitions, 3 replicas, 500 connections to each broker",
        "one-record requests/s, acks=all",
    ),
    ("bench-many", "2 GB behind, written to meanwhile", "MB/s that it catches up by"),
    ("bench-many", "5,000 partitions, memory", "MiB"),
    ("bench-many", "5,000 partitions, start after kill -9", "s"),
    ("bench-many", "10.5 GiB, start after kill -9", "s"),
)


_PAGES = {"bench-broker": "one broker", "bench-cluster": "three brokers", "bench-many": "many partitions"}


def block() -> str:
    """The text between the marks of docs/bench.md."""
    found = {(each.page, each.row, each.unit): each for page in _PAGES for each in figures(page)}
    lines = [
        _summary(loads()),
        "",
        "| load | figure | Ottla | Apache Kafka | ratio | table |",
        "|---|---|--:|--:|--:|---|",
    ]
    for key in _CHOSEN:
        each = found[key]
        kafka = re.sub(r"\D+", "", each.kafka, count=1)
        link = f"[{_PAGES[each.page]}]({each.page}.md)"
        lines.append(f"| {each.row} | {each.unit} | {each.ours} | {each.theirs} ({kafka}) | {each.ratio:g} | {link} |")
    return "\n".join([BEGIN, *lines, "", *_others(), END])


def _others() -> Iterator[str]:
    """The figures of the pages whose tables have another form."""
    killed = _line("bench-failover", "kill of a leader", "all")
    ours, theirs = killed[2].partition(" (")[0], killed[4].partition(" (")[0]
    yield "When one of three brokers is killed, producers wait for the end of its session at ZooKeeper, and then"
    yield f"[{ours} s](bench-failover.md) for their next acknowledgement (median; Apache Kafka {theirs} s). A Spark job archives"
    rates = [_line("bench-archive", name)[1] for name in ("Ottla", "Apache Kafka 4.3.1")]
    yield f"[{rates[0]} records/s](bench-archive.md) from Ottla, {rates[1]} from Apache Kafka."


def _line(page: str, *first: str) -> list[str]:
    """The cells of the first line in the tables of docs/``page``.md that begins with these."""
    for line in (_DOCS / f"{page}.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells[: len(first)] == list(first):
            return cells
    raise LookupError(f"{page} has no line {first}")


def _summary(shown: list[Load]) -> str:
    rate = statistics.median(load.rate.ratio for load in shown)
    cost = statistics.median(load.cost.ratio for load in shown)
    slower = sum(load.rate.ratio < 1 for load in shown)
    return (
        f"**In the median of {len(shown)} loads Ottla moves {rate:.2f} times as many records per second as Apache Kafka, for\n"
        f"{cost:.2f} times the CPU time.** It moves fewer in {slower or 'none'} of them: the lowest ratio is"
        f" {min(load.rate.ratio for load in shown):g}, the highest {max(load.rate.ratio for load in shown):g}."
    )


def with_figures(page: str) -> str:
    """The page with the text between its marks made from the present tables."""
    before, _, rest = page.partition(BEGIN)
    return before + block() + rest.partition(END)[2]


if __name__ == "__main__":
    PLOT.write_text(svg())
    PAGE.write_text(with_figures(PAGE.read_text()))
