"""``python -m bench``: the same load on Ottla and on Apache Kafka, alternating, and a table of the ratios.

Both brokers run at once on this machine and one of them is under load at a time, in pairs: A B, A B, A B. So other
processes influence both alike, and only ratios of the same run are meaningful. The first load of each is a warm-up that isn't
counted, because the JVM has not compiled its code yet.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ottla.tools.suite import speed

from .brokers import ApacheKafka, Kind, Ottla, ProfiledOttla, RunningBroker
from .cluster import EVERY_LOAD as CLUSTER_LOADS
from .cluster import measure_clusters
from .cluster_kinds import MeasuredOttlaNode
from .fetch_sessions import SESSIONS
from .many_and_large import MANY_AND_LARGE
from .metrics_cost import main as measure_metrics
from .raw_rows import RAW
from .report import profile_table
from .result_tables import RESULTS
from .rows import LIFECYCLES, LOADS, WARM_UP, Load
from .run import Run
from .sink import RunningSink, Sink
from .tls import OVER_TLS

OWN_BROKERS = (*LIFECYCLES, *MANY_AND_LARGE, *OVER_TLS)
EVERY_LOAD = (*LOADS, *SESSIONS, *RAW)
_PAIRS = 3
_PYTHON = Path(sys.executable)
_PAGE = RESULTS / "broker.md"
_ABOUT_SINK = f"The {Sink.name} reads the same requests, drops them and answers: its costs are the kernel's part."
_CLUSTER_PAGE = RESULTS / "cluster.md"


def chosen_loads(rows: re.Pattern[str]) -> list[Load]:
    """Those that match; an empty pattern names none of those that run on demand."""
    return [load for load in EVERY_LOAD if rows.search(load.name) and (rows.pattern or not load.on_demand)]


class Bench(Run):
    """Measurements of single brokers of several kinds."""

    def __init__(self, kinds: list[Kind], pairs: int, scale: float, folder: Path) -> None:
        super().__init__([kind.name for kind in kinds], Sink.name)
        self._kinds, self._pairs, self._scale, self._folder = kinds, pairs, scale, folder

    def lifecycles(self, rows: re.Pattern[str]) -> None:
        """Rows that start brokers of their own; nothing else runs meanwhile."""
        for lifecycle in OWN_BROKERS:
            if not rows.search(lifecycle.name) or (lifecycle.on_demand and not rows.pattern):
                continue
            for pair, kind in itertools.product(range(self._pairs), self._kinds):
                self._measure(lifecycle.name, kind.name, pair, lifecycle.run(kind, self._folder / "own"))

    def loads(self, rows: re.Pattern[str]) -> None:
        """Rows on brokers that stay up for all of them."""
        chosen = chosen_loads(rows)
        if not chosen:
            return
        with contextlib.ExitStack() as stack:
            brokers = [
                stack.enter_context(RunningBroker(kind, self._folder / str(number)))
                for number, kind in enumerate(self._kinds)
            ]
            is_on_sink = any(load.on_sink for load in chosen)
            sinks = [stack.enter_context(RunningSink(self._folder / "sink"))] if is_on_sink else []
            if len(brokers) > 1 or not all(load.warms_up for load in chosen):
                for broker in brokers:
                    self._warm_up(broker.name, WARM_UP.run(broker, self._scale / 2))
            for load in chosen:
                under_load = [*brokers, *sinks] if load.on_sink else brokers
                for pair, broker in itertools.product(range(self._pairs), under_load):
                    self._measure(load.name, broker.name, pair, load.run(broker, self._scale))
            self.profiles = brokers[0].profiles


def _about(kinds: list[Kind], pairs: int, scale: float, has_sink: bool, python: Path) -> list[str]:
    compared = " / ".join(kind.name for kind in kinds)
    return [
        f"on {os.cpu_count()} cores, {platform.system()}; Ottla's Python is {speed.described(str(python))}.",
        f"Clients and brokers share the cores. Median of {pairs} alternating pairs, scale {scale:g}. CPU is the",
        "broker's, per 10^9 bytes of record values. Noise is the highest share of all cores that neither broker nor",
        f"client took in any run of the row; above 0.1 it is marked. Ratios are {compared}; only they travel",
        "between machines.",
        *([_ABOUT_SINK] if has_sink else []),
    ]


def _command(rows: str, pairs: int, scale: float, only_ottla: bool, python: Path) -> str:
    """The command that makes this table."""
    options = ["--rows", rows] if rows else []
    options += ["--pairs", str(pairs)] if pairs != _PAIRS else []
    options += ["--scale", f"{scale:g}"] if scale != 1 else []
    options += ["--only-ottla"] if only_ottla else []
    options += ["--python", str(python)] if python != _PYTHON else []
    return f"make bench ARGS={shlex.quote(shlex.join(options))}" if options else "make bench"


def _names(cluster: bool) -> list[str]:
    """Those of all loads, of one broker or of three."""
    if cluster:
        return list(CLUSTER_LOADS)
    return [row.name for row in OWN_BROKERS] + [row.name for row in EVERY_LOAD]


def main(
    rows: Annotated[
        str, typer.Option(help="Regular expression: only loads whose names match; some loads run only so.")
    ] = "",
    pairs: Annotated[int, typer.Option(min=1, help="How often each load is run on each broker.")] = _PAIRS,
    scale: Annotated[float, typer.Option(min=0.001, help="Multiplies the number of records.")] = 1.0,
    only_ottla: Annotated[
        bool, typer.Option("--only-ottla", help="Without Apache Kafka, and so without ratios.")
    ] = False,
    metrics_cost: Annotated[
        bool, typer.Option("--metrics-cost", help="Only what --metrics costs a request; --scale multiplies its pairs.")
    ] = False,
    cluster: Annotated[
        bool,
        typer.Option("--cluster", help="Three nodes of each, brokers and controllers; bench/results/cluster.md."),
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="Page to write; by default bench/results/broker.md, if nothing is omitted.")
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Only Ottla, and which parts use its CPU time, by row.")
    ] = False,
    folder: Annotated[Path | None, typer.Option(help="Folder for the data; a temporary one by default.")] = None,
    python: Annotated[
        Path, typer.Option(help="What Ottla's brokers run on: the Python of a virtualenv with Ottla.")
    ] = _PYTHON,
    list_rows: Annotated[bool, typer.Option("--list", help="Print the names of the loads.")] = False,
) -> None:
    """Measure Ottla against Apache Kafka 4.3.1."""
    if list_rows:
        print(*_names(cluster), sep="\n")
        return
    if cluster:
        MeasuredOttlaNode.python = str(python.absolute())
        if output is None and not (rows or only_ottla or profile):
            output = _CLUSTER_PAGE
        wrong = measure_clusters(rows, pairs, scale, only_ottla, profile, output, folder)
        print(f"Ottla's Python is {speed.described(str(python))}")
        for line in wrong:
            print(line)
        raise typer.Exit(int(any(line.startswith("failed") for line in wrong)))
    if metrics_cost:
        measure_metrics(scale)
        return
    kinds: list[Kind] = [ProfiledOttla(python) if profile else Ottla(python)]
    if not (only_ottla or profile):
        kinds.append(ApacheKafka())
    wanted = re.compile(rows)
    with tempfile.TemporaryDirectory(prefix="ottla-bench-", dir=folder) as temporary:
        bench = Bench(kinds, pairs, scale, Path(temporary))
        bench.lifecycles(wanted)
        bench.loads(wanted)
    bench.results.print()
    print(f"Ottla's Python is {speed.described(str(python))}")
    if profile:
        print(*profile_table(bench.profiles), sep="\n")
    if output is None and not rows and len(kinds) > 1:
        output = _PAGE
    if output is not None:
        command = _command(rows, pairs, scale, only_ottla, python)
        about = _about(kinds, pairs, scale, Sink.name in bench.results.header(), python)
        output.write_text(bench.results.markdown("One broker of each", command, about))
    for missed in bench.results.missed():
        print(f"missed: {missed}")
    if bench.failures:
        print("failed: " + "; ".join(bench.failures))
        raise typer.Exit(1)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    app()
