"""``ottla log-dirs``: the options."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import (
    DEFAULT_SERVER,
    HELP,
    AsJson,
    BootstrapServer,
    CommandConfig,
    CommandProperty,
    Debug,
    SomePartitions,
    numbers,
    run,
)

app = typer.Typer(add_completion=False, context_settings=HELP, rich_markup_mode=None)


@app.command()
def log_dirs(
    topics: SomePartitions = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    brokers: Annotated[str | None, typer.Option(metavar="1,2,…", help="Only these brokers. [all]")] = None,
    partitions: Annotated[
        bool,
        typer.Option("--partitions", help="A row for each replica instead of each directory, the default with topics."),
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Show the log directories of brokers: partitions, bytes, free space, and errors.

    For a replica it prints its directory, size in bytes, lag in records, and whether it is moving to this directory (future).

    \b
    Examples:
      ottla log-dirs
      ottla log-dirs orders payments:0
      ottla log-dirs --brokers 2 --json | jq '.[] | select(.error)'
    """
    from ..tools import client
    from ..tools.replicas import log_dirs

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(
        debug,
        log_dirs.show,
        connection,
        topics or (),
        brokers=numbers("--brokers", brokers),
        partitions=partitions,
        as_json=as_json,
    )
