"""``ottla groups …``: the subcommands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import completion
from .options import (
    DEFAULT_SERVER,
    AsJson,
    BootstrapServer,
    CommandConfig,
    CommandProperty,
    Debug,
    group_app,
    run,
)

app = group_app("groups", "List and describe consumer groups, move their offsets, delete them.")

SomeGroups = Annotated[
    list[str] | None,
    typer.Argument(metavar="[GROUP…]", help="The groups; they must have no members.", autocompletion=completion.groups),
]
OfTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="NAME[:0,1,…]",
        help="A topic, or some partitions of it; may be repeated.",
        autocompletion=completion.topics,
    ),
]
ToDatetime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="To the first record of this time or later: 2026-01-31T12:00:00 (UTC), or with a zone."
    ),
]
ByDuration = Annotated[
    str | None, typer.Option(metavar="DURATION", help="To the first record of the last PT1H30M, or 1h30m.")
]
FromFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="To the offsets in a CSV file: group,topic,partition,offset, or without the group."
    ),
]
Execute = Annotated[bool, typer.Option("--execute", help="Do it. Without this, only show the effect.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the effect, as without --execute.")]
Export = Annotated[bool, typer.Option("--export", help="Print CSV for --from-file; alone: of the committed offsets.")]

Groups = Annotated[list[str], typer.Argument(metavar="GROUP…", help="The groups.", autocompletion=completion.groups)]


@app.command("list")
def list_groups(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """List groups: protocol, state and type.

    \b
    Examples:
      ottla groups list
      ottla groups list --json
    """
    from ..tools import client
    from ..tools import groups as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, tool.list_groups, connection, as_json=as_json)


@app.command()
def describe(
    groups: Groups,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    members: Annotated[
        bool, typer.Option("--members", help="A row for each member instead of each partition.")
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe groups: committed offset, lag and owner of each partition; with --members the progress of each member.

    \b
    Examples:
      ottla groups describe billing
      ottla groups describe billing --members
      ottla groups describe billing --json | jq '.[0].total_lag'
    """
    from ..tools import client
    from ..tools import groups as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, tool.describe, connection, groups, members=members, as_json=as_json)


@app.command("reset-offsets")
def reset_offsets(
    groups: SomeGroups = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="All groups.")] = False,
    topic: OfTopics = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Every topic that the group has offsets for.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the oldest record.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="After the newest record.")] = False,
    to_current: Annotated[bool, typer.Option("--to-current", help="To the committed offset, else to the end.")] = False,
    to_datetime: ToDatetime = None,
    by_duration: ByDuration = None,
    shift_by: Annotated[int | None, typer.Option(metavar="N", help="By this number; negative: backwards.")] = None,
    to_offset: Annotated[int | None, typer.Option(metavar="OFFSET", min=0, help="To this offset.")] = None,
    from_file: FromFile = None,
    execute: Execute = False,
    dry_run: DryRun = False,
    export: Export = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Reset groups' committed offsets, and the start offsets of share groups, as kafka-consumer-groups does.

    Without --execute it only shows the new offsets. An offset outside the log becomes the nearest one inside. Groups with
    members are refused.

    \b
    Examples:
      ottla groups reset-offsets billing --topic orders --to-earliest
      ottla groups reset-offsets billing --topic orders:0,2 --shift-by -10 --execute
      ottla groups reset-offsets --all-groups --all-topics --by-duration PT1H --execute
      ottla groups reset-offsets billing --all-topics --export > billing.csv
      ottla groups reset-offsets billing --from-file billing.csv --execute
    """
    from ..tools import client, group_reset

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    target = group_reset.Target(
        to_earliest=to_earliest,
        to_latest=to_latest,
        to_current=to_current,
        to_datetime=to_datetime,
        by_duration=by_duration,
        shift_by=shift_by,
        to_offset=to_offset,
        from_file=from_file,
    )
    scope = group_reset.Scope(
        groups=tuple(groups or ()),
        all_groups=all_groups,
        topics=tuple(topic or ()),
        all_topics=all_topics,
        execute=execute,
        dry_run=dry_run,
        export=export,
    )
    run(debug, group_reset.reset_offsets, connection, scope, target, as_json=as_json)


@app.command()
def delete(
    groups: Groups,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Delete groups, with the offsets they have committed. They must have no members.

    \b
    Example:
      ottla groups delete billing
    """
    from ..tools import client
    from ..tools import groups as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, tool.delete, connection, groups)
