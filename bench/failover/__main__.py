"""``python -m bench.failover``: kills and clean stops under load, on Ottla and on Apache Kafka 3.9 in turn, and a table.

Both clusters, of three brokers and one ZooKeeper each, run for the whole time (session time-out 6 s, tickTime 500), and one of
them is under load at a time. A turn has all loads at once on one cluster, a kill of each kind, and a restart of each broker by
SIGTERM; then everything that was written is checked. Only figures of the same run can be compared.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from .report import Report
from .turn import KILLS, LOADS, SYSTEMS, Turn

app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def main(
    turns: Annotated[int, typer.Option(help="Turns of each system, and so the number of kills of each kind.")] = 5,
    systems: Annotated[str, typer.Option(help="ottla,kafka")] = "ottla,kafka",
    kills: Annotated[str, typer.Option(help="Kinds of kills, with commas; may be empty.")] = ",".join(KILLS),
    loads: Annotated[str, typer.Option(help="Which clients.")] = ",".join(LOADS),
    restarts: Annotated[bool, typer.Option(help="Restart each broker by SIGTERM.")] = True,
    folder: Annotated[Path | None, typer.Option(help="Folder for the data of the brokers; it is kept.")] = None,
) -> None:
    """Measure, and end with status 1 where something was lost, doubled or reordered."""
    report = Report()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the brokers are stopped, too
    with tempfile.TemporaryDirectory(prefix="failover-", ignore_cleanup_errors=True) as temporary:
        root = folder or Path(temporary)
        clusters = {}
        try:
            for name in systems.split(","):
                clusters[name] = SYSTEMS[name](root / name)
                clusters[name].start()
            for number in range(turns):
                for name, cluster in clusters.items():
                    turn = Turn(name, cluster, root / f"{name}-turn-{number}", loads.split(","), report)
                    try:
                        turn.run([kind for kind in kills.split(",") if kind], restarts=restarts)
                    except TimeoutError as error:
                        report.wrong.append(str(error))
        finally:
            for cluster in clusters.values():
                cluster.close()
    print(report.text())
    sys.exit(1 if report.wrong else 0)


if __name__ == "__main__":
    app()
