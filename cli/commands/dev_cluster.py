"""``ottla dev-cluster``: the options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import HELP

app = typer.Typer(add_completion=False, context_settings=HELP, rich_markup_mode=None)


@app.command()
def dev_cluster(
    brokers: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="How many.")] = 3,
    port: Annotated[
        int,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="The port of broker 1; the others follow. 0 takes free ones."
        ),
    ] = 9092,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the data there, for the next start. [a temporary directory]"),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A property of all brokers, with Kafka's name. May be repeated."),
    ] = None,
    log_level: Annotated[
        str, typer.Option(metavar="LEVELS", help="How much the brokers log, as 'ottla serve' takes it.")
    ] = "warning",
) -> None:
    """Run a cluster of brokers in this process until SIGTERM or Ctrl-C, to develop against.

    They replicate and fail over like brokers in separate processes, with three replicas of each topic, on 127.0.0.1, without
    ZooKeeper. Lines on standard input are commands, to see how clients react: 'kill N', 'stop N' and 'start N' for broker N.
    A session ends a second after a kill.

    \b
    Examples:
      ottla dev-cluster
      ottla dev-cluster --brokers 5 --port 19092 --data-dir cluster
      ottla dev-cluster --override min.insync.replicas=2 --override num.partitions=6
    """
    from .. import dev_cluster as command

    sys.exit(command.run(brokers, port, data_dir, override or (), log_level))
