"""``ottla configs …``: the subcommands and their options."""

from __future__ import annotations

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

app = group_app("configs", "Describe, set and unset the settings of topics, groups and brokers.")

Topic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="A topic's settings.")]
Group = Annotated[str | None, typer.Option("--group", metavar="ID", help="A group's settings (KIP-848).")]
Broker = Annotated[int | None, typer.Option("--broker", metavar="ID", help="One broker's settings.")]
Defaults = Annotated[
    bool, typer.Option("--broker-defaults", help="The settings of all brokers that were set at run time.")
]


@app.command()
def describe(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    topic: Topic = None,
    group: Group = None,
    broker: Broker = None,
    broker_defaults: Defaults = False,
    show_all: Annotated[bool, typer.Option("--all", help="Include settings at their default.")] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe the settings of a topic, a group or a broker: values and their sources.

    \b
    Examples:
      ottla configs describe --topic orders
      ottla configs describe --broker 1 --all
      ottla configs describe --group billing
      ottla configs describe --topic orders --all --json | jq '.[] | select(.name == "retention.ms")'
    """
    from ..tools import client, configs

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    entity = configs.ConfigEntityOptions(topic, broker, broker_defaults, group)
    run(debug, configs.describe, connection, entity, show_all=show_all, as_json=as_json)


@app.command("set")
def set_configs(
    settings: Annotated[list[str], typer.Argument(metavar="NAME=VALUE…", help="The settings.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    topic: Topic = None,
    group: Group = None,
    broker: Broker = None,
    broker_defaults: Defaults = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Set settings of a topic, a group, a broker, or all brokers; the others stay as they are.

    \b
    Examples:
      ottla configs set --topic orders retention.ms=3600000 cleanup.policy=compact,delete
      ottla configs set --broker-defaults log.retention.ms=86400000
      ottla configs set --group billing consumer.session.timeout.ms=60000
    """
    from ..tools import client, configs

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(
        debug,
        configs.set_configs,
        connection,
        configs.ConfigEntityOptions(topic, broker, broker_defaults, group),
        settings,
    )


@app.command("unset")
def unset_configs(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="The settings.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    topic: Topic = None,
    group: Group = None,
    broker: Broker = None,
    broker_defaults: Defaults = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Remove settings of a topic, a group, a broker, or all brokers, so that their defaults apply.

    \b
    Example:
      ottla configs unset --topic orders retention.ms
    """
    from ..tools import client, configs

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(
        debug,
        configs.unset_configs,
        connection,
        configs.ConfigEntityOptions(topic, broker, broker_defaults, group),
        names,
    )
