"""``ottla topics …``: the subcommands and their options."""

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
    Partitions,
    SomePartitions,
    SomeTopics,
    Topics,
    group_app,
    numbers,
    run,
)

app = group_app("topics", "Create, list, describe, alter, trim and delete topics.")

NewTopics = Annotated[list[str], typer.Argument(metavar="TOPIC…", help="The topics.")]
Configs = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="NAME=VALUE", help="A setting of the topics; may be repeated."),
]


@app.command("list")
def list_topics(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Leave out the brokers' internal topics.")
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """List topics: partitions, replicas, under-replicated partitions, offsets, size on the leaders' disks.

    Into a pipe a line is tab-separated, the name first, without a head.

    \b
    Examples:
      ottla topics list
      ottla topics list --exclude-internal | cut -f1
      ottla topics list --json | jq '.[] | select(.under_replicated > 0)'
    """
    from ..tools import client
    from ..tools import topics as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, tool.list_topics, connection, exclude_internal=exclude_internal, as_json=as_json)


@app.command()
def create(
    topics: NewTopics,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", metavar="N", min=1, help="Partitions. [the broker's num.partitions]"),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", metavar="N", min=1, help="Replicas. [the broker's default]"),
    ] = None,
    config: Configs = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="An existing topic is not an error.")] = False,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", "-d", help="Only check whether it would succeed.")
    ] = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Create topics.

    \b
    Examples:
      ottla topics create orders
      ottla topics create orders payments -p 6 -r 3 -c retention.ms=3600000
      ottla topics create prices -c cleanup.policy=compact --if-not-exists
    """
    from ..tools import client
    from ..tools import topics as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(
        debug,
        tool.create,
        connection,
        topics,
        partitions=partitions,
        replication_factor=replication_factor,
        configs=config,
        if_not_exists=if_not_exists,
        validate_only=validate_only,
    )


@app.command()
def describe(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    topics: SomeTopics = None,
    under_replicated: Annotated[
        bool,
        typer.Option(
            "--under-replicated",
            "--under-replicated-partitions",
            help="Only partitions with a replica that is not in sync.",
        ),
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", "--unavailable-partitions", help="Only partitions without a leader.")
    ] = False,
    under_min_isr: Annotated[
        bool,
        typer.Option(
            "--under-min-isr",
            "--under-min-isr-partitions",
            help="Only partitions with fewer replicas in sync than min.insync.replicas: acks=all is refused there.",
        ),
    ] = False,
    at_min_isr: Annotated[
        bool,
        typer.Option(
            "--at-min-isr",
            "--at-min-isr-partitions",
            help="Only partitions with exactly min.insync.replicas in sync: acks=all is refused if one more is lost.",
        ),
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe topics: settings, and each partition's leader, replicas, offsets, size and health.

    Health is the worst of: offline (no leader), under-min-isr (fewer replicas in sync than min.insync.replicas, so that
    acks=all is refused), under-replicated (not all replicas in sync). Of several filters one has to match. A dash is a value
    of a broker that does not respond.

    \b
    Examples:
      ottla topics describe orders
      ottla topics describe --under-replicated
      ottla topics describe --offline --under-min-isr --json | jq 'length'
      ottla topics describe orders --json | jq '.[0].configs'
    """
    from ..tools import client, topic_description

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    filters = topic_description.Filters(under_replicated, offline, under_min_isr, at_min_isr)
    run(debug, topic_description.describe, connection, topics, filters, as_json=as_json)


@app.command()
def alter(
    topics: Topics,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", metavar="N", min=1, help="New number of partitions, which can only grow."),
    ] = None,
    config: Configs = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", metavar="NAME", help="A setting to set back to its default."),
    ] = None,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Add partitions to topics, or change their settings.

    \b
    Examples:
      ottla topics alter orders -p 12
      ottla topics alter orders -c retention.ms=60000 --delete-config segment.bytes
    """
    from ..tools import client
    from ..tools import topics as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(
        debug,
        tool.alter,
        connection,
        topics,
        partitions=partitions,
        configs=config,
        delete_configs=delete_config,
    )


@app.command()
def trim(
    topics: SomePartitions = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    offset: Annotated[
        str | None,
        typer.Option(
            "--offset", "-o", metavar="WHERE", help="The first record that stays: 47, end, -10, @2026-01-31, @-24h."
        ),
    ] = None,
    partitions: Partitions = None,
    from_file: Annotated[
        Path | None, typer.Option("--from-file", "-f", metavar="FILE", help="JSON, as for kafka-delete-records.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it. Without this, only show the effect.")] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Delete the oldest records of topics, up to an offset or a time. Without --execute it only shows them.

    end deletes all records; -10 keeps the last ten.

    \b
    Examples:
      ottla topics trim orders -o @-24h
      ottla topics trim orders:0,2 -o 1000 --execute
      ottla topics trim orders payments -o end --execute
    """
    from ..tools import client
    from ..tools.records import trim as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    cut = tool.TrimOptions(tuple(topics or ()), numbers("--partitions", partitions), offset, from_file)
    run(debug, tool.trim, connection, cut, execute=execute, as_json=as_json)


@app.command()
def delete(
    topics: Topics,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A missing topic is not an error.")] = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Delete topics with their records.

    \b
    Examples:
      ottla topics delete orders
      ottla topics delete a b --if-exists
    """
    from ..tools import client
    from ..tools import topics as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, tool.delete, connection, topics, if_exists=if_exists)
