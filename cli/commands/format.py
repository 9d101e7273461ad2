"""``ottla format``: the subcommand and its options, those of ``kafka-storage format``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from .options import HELP, FirstRelease

app = typer.Typer(name="format", add_completion=False, rich_markup_mode=None)


InitialControllers = Annotated[
    str | None,
    typer.Option(
        "--initial-controllers",
        "-I",
        metavar="ID@HOST:PORT:DIRECTORY,…",
        help="The first voters, the same on every node.",
    ),
]


@app.command(context_settings=HELP)
def format_(
    config: Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="The node's server.properties.")],
    cluster_id: Annotated[
        str | None,
        typer.Option("--cluster-id", "-t", metavar="ID", help="The cluster's id; a new one if not given."),
    ] = None,
    standalone: Annotated[
        bool, typer.Option("--standalone", "-s", help="This controller is the first voter, alone.")
    ] = False,
    initial_controllers: InitialControllers = None,
    no_initial_controllers: Annotated[
        bool, typer.Option("--no-initial-controllers", "-N", help="The node joins a quorum whose voters are elsewhere.")
    ] = False,
    release_version: FirstRelease = None,
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="The level of a feature; may be repeated."),
    ] = None,
    add_scram: Annotated[
        list[str] | None,
        typer.Option("--add-scram", "-S", metavar="CREDENTIAL", help="A SCRAM credential; may be repeated."),
    ] = None,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", "-g", help="Skip directories that are formatted already.")
    ] = False,
) -> None:
    """Format the log directories of a node of a KRaft cluster before its first start, as kafka-storage format does.

    Every directory in the file's log.dirs and metadata.log.dir gets the node's id, the cluster's id, an id for itself, and
    the first levels of features. On a controller these must be levels that Ottla supports. Apache Kafka starts on directories
    that are formatted here.

    \b
    Examples:
      ottla format --config server.properties --cluster-id 3Db5QLSqSZieL3rJBUUegA --no-initial-controllers
      ottla format -c server.properties -t 3Db5QLSqSZieL3rJBUUegA -N -f eligible.leader.replicas.version=0
      ottla format -c server.properties --standalone -S 'SCRAM-SHA-256=[name=alice,password=secret]'
    """
    from ..format_directories import FormatOptions, run

    _check_one(
        {
            "--standalone": standalone,
            "--initial-controllers": initial_controllers is not None,
            "--no-initial-controllers": no_initial_controllers,
        }
    )
    options = FormatOptions(
        cluster_id=cluster_id,
        is_standalone=standalone,
        initial_controllers=initial_controllers,
        has_no_initial_controllers=no_initial_controllers,
        release=release_version,
        features=feature or [],
        credentials=add_scram or [],
        ignores_formatted=ignore_formatted,
    )
    sys.exit(run(config, options))


def _check_one(flags: Mapping[str, bool]) -> None:
    """Raises BadParameter where two of the flags are given."""
    given = [name for name, is_given in flags.items() if is_given]
    if len(given) > 1:
        raise typer.BadParameter(f"{given[1]} cannot be given with {given[0]}")
