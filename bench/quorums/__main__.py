"""``python -m bench.quorums``: failovers, elections, starts and many partitions, on Ottla and Apache Kafka in turn; a table.

Clusters of three nodes on the same cores, each node on a host of its own: a network namespace, which needs Linux and root.
Without them all is on 127.0.0.1, and nothing is cut off. The clusters of one shape and one set of times run side by side, and one
of them is under load at a time. Only figures of the same run can be compared. It ends with status 1 where an acknowledged record
was lost.
"""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ottla.compat_tests import isolation
from ottla.compat_tests.cut_network import LoopbackNetwork, NamespaceNetwork

from .clusters import DEFAULT, NAMES, SHAPES, SHORT, MeasuredQuorum
from .rows import CUT, FAILOVERS, FailoverTopic, Figure, election, many, most, start
from .table import Table

app = typer.Typer(pretty_exceptions_enable=False)

_ON_RUNNING = {"election": election, "1,000 partitions": many, "10,000 partitions": most}
_MODULE = "bench.quorums"


class Bench:
    """The clusters of one run, on hosts that are made once."""

    def __init__(self, kinds: Sequence[str], folder: Path, table: Table) -> None:
        self._kinds, self._folder, self._table = kinds, folder, table
        most_nodes = max(len(roles) for roles in SHAPES.values())
        self._hosts = {kind: [f"{kind}-{number}" for number in range(1, most_nodes + 1)] for kind in kinds}
        all_of_them = [host for hosts in self._hosts.values() for host in hosts]
        self._network = NamespaceNetwork(all_of_them) if isolation.is_inside() else LoopbackNetwork()
        self._count = 0

    @contextlib.contextmanager
    def _quorum(self, kind: str, shape: str, times: str, *, is_started: bool = True) -> Iterator[MeasuredQuorum]:
        self._count += 1
        folder = self._folder / f"{self._count}-{kind}-{shape}-{times}"
        folder.mkdir(parents=True)
        quorum = MeasuredQuorum(kind, shape, times, folder, self._network, self._hosts[kind])
        try:
            if is_started:
                quorum.cluster.start()
            yield quorum
        finally:
            quorum.close()

    def failovers(self, rows: re.Pattern[str], turns: int) -> None:
        """Every row of failovers that is asked for, and the audits."""
        for shape in SHAPES:
            for times in (DEFAULT, SHORT):
                chosen = [row for row in FAILOVERS if row.shape == shape and rows.search(f"{row.name}, {times}")]
                if not self._network.can_cut:
                    chosen = [row for row in chosen if row.fault != CUT]
                if not chosen:
                    continue
                with contextlib.ExitStack() as stack:
                    quorums = [stack.enter_context(self._quorum(kind, shape, times)) for kind in self._kinds]
                    topics = {quorum.kind: FailoverTopic(quorum) for quorum in quorums}
                    for row in chosen:
                        for _ in range(turns):
                            for quorum in quorums:
                                self._take(quorum, times, row.measure(quorum, topics[quorum.kind]))
                    for quorum in quorums:
                        topic = topics[quorum.kind]
                        self._table.audited(str(quorum), topic.acknowledged, topic.lost())

    def elections(self, rows: re.Pattern[str], turns: int) -> None:
        """Kills of the active controller."""
        for times in (DEFAULT, SHORT):
            if rows.search(f"election, {times}"):
                with contextlib.ExitStack() as stack:
                    quorums = [stack.enter_context(self._quorum(kind, "combined", times)) for kind in self._kinds]
                    for _ in range(turns):
                        for quorum in quorums:
                            self._take(quorum, times, election(quorum))

    def own_clusters(self, rows: re.Pattern[str], turns: int) -> None:
        """Rows that need a cluster without anything in it."""
        for name in ("start", "1,000 partitions", "10,000 partitions"):
            if rows.search(name):
                for _ in range(1 if name.startswith("10,000") else turns):
                    for kind in self._kinds:
                        with self._quorum(kind, "combined", DEFAULT, is_started=name != "start") as quorum:
                            work = start if name == "start" else _ON_RUNNING[name]
                            self._take(quorum, DEFAULT, work(quorum))

    def _take(self, quorum: MeasuredQuorum, times: str, measured: Iterator[Figure]) -> None:
        try:
            for figure in measured:
                self._table.add(quorum.kind, times, figure)
        except (TimeoutError, AssertionError, RuntimeError) as error:
            self._table.failed(f"{quorum}: {error}")


@app.command()
def main(
    turns: Annotated[int, typer.Option(help="Faults of each kind on each system, and starts.")] = 5,
    elections: Annotated[int, typer.Option(help="Kills of the active controller for the row of elections.")] = 10,
    rows: Annotated[str, typer.Option(help="A regular expression for the rows' names.")] = "",
    systems: Annotated[str, typer.Option(help=",".join(NAMES))] = ",".join(NAMES),
    folder: Annotated[Path | None, typer.Option(help="Folder for the data of the nodes; it is kept.")] = None,
    output: Annotated[Path | None, typer.Option(help="File for the table: bench/results/quorums.md.")] = None,
) -> None:
    """Measure, and end with status 1 where something was lost or failed."""
    if not isolation.is_inside() and isolation.is_possible():
        sys.exit(isolation.enter(_MODULE, sys.argv[1:]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    wanted = re.compile(rows)
    kinds = systems.split(",")
    table = Table(kinds)
    with tempfile.TemporaryDirectory(prefix="quorums-", ignore_cleanup_errors=True) as temporary:
        bench = Bench(kinds, folder or Path(temporary), table)
        bench.own_clusters(wanted, turns)
        bench.elections(wanted, elections)
        bench.failovers(wanted, turns)
    print(table.text())
    if output is not None:
        table.write(output)
    sys.exit(1 if table.wrong else 0)


if __name__ == "__main__":
    app()
