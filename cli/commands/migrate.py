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
        bool, typer.Option("--dry-run", help="Show what stays, changes and is left behind, and change nothing.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Go back, as long as no node has been started with its new file.")
    ] = False,
    leave_behind: Annotated[
        bool, typer.Option("--leave-behind", help="Even if something is lost by it, which --dry-run shows.")
    ] = False,
    release_version: FirstRelease = None,
) -> None:
    """Move a cluster out of its ZooKeeper into a KRaft quorum, node by node, while no broker runs.

    Brokers may have been Ottla's or Apache Kafka's of 3.x, and may be either afterwards. The first node is one with the role
    controller: the cluster's metadata go into its log directory, and brokers of ZooKeeper mode do not start any more. Each other
    node is done with the same command. Topics, records, offsets, settings, users and access rules stay what they are. A broker
    that keeps its metadata itself needs none of this: it is taken over at its first start.

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
