"""``ottla migrate``: the subcommand and its options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import HELP, FirstRelease

app = typer.Typer(name="migrate", add_completion=False, rich_markup_mode=None)


@app.command(context_settings=HELP)
def migrate(
    before: Annotated[
        Path, typer.Option("--from", metavar="FILE", help="The node's server.properties with zookeeper.connect.")
    ],
    after: Annotated[Path, typer.Option("--to", metavar="FILE", help="Its server.properties with process.roles.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the settings that stay, change and are dropped, and change nothing.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Go back, as long as no node has been started with its new file.")
    ] = False,
    leave_behind: Annotated[
        bool, typer.Option("--leave-behind", help="Even if something is lost, which --dry-run shows.")
    ] = False,
    release_version: FirstRelease = None,
) -> None:
    """Move a cluster out of its ZooKeeper into a KRaft quorum, node by node, while no broker runs.

    Brokers may be Ottla's or Apache Kafka's (3.x), before and afterwards. Begin with a node that has the role controller: the
    cluster's metadata go into its log directory, and brokers in ZooKeeper mode do not start any more. Run the same command
    for each other node. Topics, records, offsets, settings, users and access rules are kept. A broker without ZooKeeper does
    not need this: its metadata are converted at its first start.

    \b
    Examples:
      ottla migrate --from server.properties --to kraft.properties --dry-run
      ottla migrate --from server.properties --to kraft.properties
      ottla migrate --from server.properties --to kraft.properties --undo
    """
    from ..migrate import MigrateOptions, run

    if dry_run and undo:
        raise typer.BadParameter("--undo cannot be given with --dry-run")
    sys.exit(run(MigrateOptions(before, after, release_version, dry_run, undo, leave_behind)))
