"""``python -m bench.page`` writes the figures of docs/bench.md, from the results in bench/results.

The page has a block for each subject, between ``<!-- NAME: written by `make docs` -->`` and ``<!-- end of NAME -->``.
Text around the blocks is written by hand.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from .plot import loads
from .report import markdown_table
from .result_tables import Figure, figures, tables

PAGE = Path(__file__).resolve().parent.parent / "docs" / "bench.md"

_ONE_BROKER = (
    ("start to first Metadata answer", "s"),
    ("idle memory", "MiB"),
    ("produce, Java, 100 B, 12 partitions", "records/s"),
    ("consume, Java, 100 B, 12 partitions", "records/s"),
    ("produce, confluent-kafka, 1024 B, 12 partitions", "records/s"),
    ("consume, confluent-kafka, 1024 B, 12 partitions", "records/s"),
    ("produce over TLS, confluent-kafka, 1024 B, 12 partitions", "MB/s"),
    ("one-record requests, 1 in flight", "requests/s"),
    ("one-record requests, 5 in flight", "requests/s"),
    ("end-to-end latency, Java, one record at a time", "avg ms"),
)
_THREE_BROKERS = (
    ("produce, acks=all, 3 replicas, 100 B, 12 partitions", "records/s"),
    ("produce, acks=all, 3 replicas, 100 B, 12 partitions", "CPU s/GB"),
    ("one-record requests, acks=all, 3 replicas, 1 in flight", "requests/s"),
    ("one-record requests, acks=all, 3 replicas, 20 in flight", "requests/s"),
    ("one-record requests, acks=all, 3 replicas, 0 idle partitions", "requests/s"),
    ("one-record requests, acks=all, 3 replicas, 1,300 idle partitions", "requests/s"),
    ("1,000 partitions, 3 replicas, created", "s"),
    ("1,000 partitions, 3 replicas, failover of a broker", "s after the session"),
)
_CROWD = "3,000 partitions, 3 replicas, 500 connections to each broker"
_BEHIND = "2 GB behind, written to meanwhile"
_MANY = (
    ("5,000 partitions, created", "s"),
    ("5,000 partitions, memory", "MiB"),
    ("5,000 partitions, clean stop", "s"),
    ("5,000 partitions, start after kill -9", "s"),
    ("10.5 GiB, start after kill -9", "s"),
    (_CROWD, "MiB, all brokers"),
    (_CROWD, "one-record requests/s, acks=all"),
    ("1 GB with a slow follower", "MiB that a leader grows by at most"),
    (_BEHIND, "MB/s that it catches up by"),
)
_QUORUMS = (
    "start: first CreateTopics",
    "10,000 partitions: led",
    "memory with 10,000 partitions, the largest node",
    "combined, kill of a broker: next acknowledgement",
    "combined, kill of the active controller: next acknowledgement",
    "combined, kill of the active controller: first CreateTopics",
    "combined, freeze of the active controller: next acknowledgement",
    "combined, freeze of the active controller: first CreateTopics",
    "combined, cut of the active controller: first CreateTopics",
)
_GROUPS = (
    "1,000 members, 100 topics of 100: all join",
    "1,000 members, 100 topics of 100: one joins",
    "1,000 members, each reads 900 of 1,000 topics of 10: all join",
    "1,000 members, each reads 900 of 1,000 topics of 10: one leaves",
    "1,000 members, each reads 900 of 1,000 topics of 10: 100 join",
    "50 members, a heartbeat every 1 s: 5 restart, one after the other",
)
_MACHINE = ("produce, one record", "produce, 16 KiB")


def with_figures(page: str) -> str:
    """The page with the text between its marks made from the present results."""
    for name, block in _BLOCKS.items():
        begin, end = f"<!-- {name}: written by `make docs` -->\n", f"\n<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        page = before + begin + block() + end + rest.partition(end)[2]
    return page


def _summary() -> str:
    shown = loads()
    rates, costs = [load.rate.ratio for load in shown], [load.cost.ratio for load in shown]
    slower = sum(rate < 1 for rate in rates)
    return (
        f"**In the median of {len(shown)} loads Ottla moves {statistics.median(rates):.2f} times as many records per second"
        f" as Apache Kafka, for\n{statistics.median(costs):.2f} times the CPU time.** It moves fewer in {slower or 'none'}"
        f" of them: the lowest ratio is {min(rates):g}, the highest {max(rates):g}."
    )


def _ratios(name: str, chosen: Sequence[tuple[str, str]]) -> str:
    """The chosen lines of a table of ratios."""
    found = {(each.row, each.unit): each for each in figures(name)}
    shown = [found[key] for key in chosen]
    versions = {each.kafka for each in shown}
    kafka = versions.pop() if len(versions) == 1 else "Apache Kafka"
    rows = [[each.row, each.unit, each.ours, _theirs(each, kafka), f"{each.ratio:g}"] for each in shown]
    table = markdown_table(["load", "figure", "Ottla", kafka, "ratio"], rows)
    return "\n".join([table[0], "|---|---|--:|--:|--:|", *table[2:]])


def _theirs(figure: Figure, column: str) -> str:
    """With its version, if the column has several."""
    return figure.theirs if figure.kafka == column else f"{figure.theirs} ({re.sub(r'[^0-9.]', '', figure.kafka)})"


def _excerpt(name: str, rows: Sequence[str] = ()) -> str:
    """The lines of the first table that begin with one of ``rows``, or all."""
    head, alignment, *lines = tables(name)[0]
    kept = [cells for cells in lines if not rows or cells[0] in rows]
    assert {*rows} <= {cells[0] for cells in kept}, f"{name} lacks some of {rows}"
    return _table([head, alignment, *kept])


def _failover() -> str:
    """The lines of all producers together, without the column that says so."""
    head, alignment, *lines = tables("failover")[0]
    kept = [head, alignment, *(cells for cells in lines if cells[1] == "all")]
    return _table([[event, *rest] for event, _, *rest in kept])


def _table(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


_BLOCKS: dict[str, Callable[[], str]] = {
    "summary": _summary,
    "one broker": lambda: _ratios("broker", _ONE_BROKER),
    "three brokers": lambda: _ratios("cluster", _THREE_BROKERS),
    "quorums": lambda: _excerpt("quorums", _QUORUMS),
    "failover": _failover,
    "many partitions": lambda: _ratios("many", _MANY),
    "consumer groups": lambda: _excerpt("groups", _GROUPS),
    "share groups": lambda: _excerpt("share-groups"),
    "one machine": lambda: _excerpt("machine", _MACHINE),
    "an archive": lambda: _excerpt("archive"),
}


if __name__ == "__main__":
    PAGE.write_text(with_figures(PAGE.read_text()))
