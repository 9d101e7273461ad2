"""``ottla groups …``: the subcommands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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

Groups = Annotated[list[str], typer.Option("--group", metavar="NAME", help="The group; may be repeated.")]


@app.command("list")
def list_groups(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """List groups: protocol and state.

    \b
    Examples:
      ottla groups list
      ottla groups list --json
    """
    from ..tools import client, groups

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    run(debug, groups.list_groups, connection, as_json=as_json)


@app.command()
def describe(
    group: Groups,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    members: Annotated[
        bool, typer.Option("--members", help="A row for each member in place of each partition.")
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe groups: committed offset and lag of each partition, and who has it.

    \b
    Examples:
      ottla groups describe --group billing
      ottla groups describe --group billing --members
      ottla groups describe --group billing --json | jq '.[0].total_lag'
    """
    from ..tools import client, groups

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    run(debug, groups.describe, connection, group, members=members, as_json=as_json)


@app.command("reset-offsets")
def reset_offsets(
    group: Annotated[str, typer.Option("--group", metavar="NAME", help="The group; it must have no members.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME[:0,1,…]", help="A topic, or some partitions of it; may be repeated."),
    ] = None,
    all_topics: Annotated[bool, typer.Option("--all-topics", help="Every topic the group has offsets of.")] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the oldest record.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Behind the newest record.")] = False,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="To the first record as new as this: 2026-01-31T12:00:00 (UTC), or with a zone."
        ),
    ] = None,
    shift_by: Annotated[int | None, typer.Option(metavar="N", help="By so many; back if below 0.")] = None,
    to_offset: Annotated[int | None, typer.Option(metavar="OFFSET", help="To this offset.")] = None,
    from_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="To what a CSV file says: topic,partition,offset in each line.")
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it. Without this, only show what would be done.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done, as without --execute.")
    ] = False,
    export: Annotated[bool, typer.Option("--export", help="Print CSV that --from-file takes.")] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Move a group's committed offsets. It only shows where to, until --execute is given.

    An offset outside of the log becomes the nearest one inside.

    \b
    Examples:
      ottla groups reset-offsets --group billing --topic orders --to-earliest
      ottla groups reset-offsets --group billing --topic orders:0,2 --shift-by -10 --execute
      ottla groups reset-offsets --group billing --all-topics --to-datetime 2026-01-31T12:00:00 --execute
    """
    from ..tools import client, group_reset

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    target = group_reset.Target(
        to_earliest=to_earliest,
        to_latest=to_latest,
        to_datetime=to_datetime,
        shift_by=shift_by,
        to_offset=to_offset,
        from_file=from_file,
    )
    run(
        debug,
        group_reset.reset_offsets,
        connection,
        group,
        target,
        topics=topic,
        all_topics=all_topics,
        execute=execute,
        dry_run=dry_run,
        export=export,
        as_json=as_json,
    )


@app.command()
def delete(
    group: Groups,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Delete groups, with the offsets they have committed. They must have no members.

    \b
    Example:
      ottla groups delete --group billing
    """
    from ..tools import client, groups

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    run(debug, groups.delete, connection, group)
