"""``ottla users …``: the subcommands and their options."""

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

app = group_app(
    "users", "Add, list and remove users with SCRAM passwords, at brokers or in a stopped broker's log directory."
)

Mechanisms = Annotated[
    list[str] | None,
    typer.Option("--mechanism", metavar="NAME", help="SCRAM-SHA-256 or SCRAM-SHA-512; may be repeated. [both]"),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", metavar="DIR", help="The log directory of a stopped broker, instead of a running broker."
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The server.properties of a broker: use its log directory or ZooKeeper, instead of a running broker.",
    ),
]


@app.command()
def add(
    user: Annotated[str, typer.Argument(metavar="NAME", help="The user.")],
    password_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its first line is the password. [standard input, or asked for]")
    ] = None,
    mechanism: Mechanisms = None,
    iterations: Annotated[int, typer.Option(metavar="N", min=4096, max=16384, help="Of the hash.")] = 4096,
    data_dir: DataDir = None,
    config: Config = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Add a user, or change a password: the first line of standard input, or typed at a terminal.

    If every listener requires a password, add the first user while the brokers are stopped, with --data-dir or --config.

    \b
    Examples:
      ottla users add alice --data-dir data
      ottla users add alice --config server.properties --password-file alice.password
      ottla users add bob --mechanism SCRAM-SHA-512 --command-config admin.properties
    """
    from ..tools import client
    from ..tools.access import users

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    place = users.UserStoreOptions(connection, data_dir, config)
    run(debug, users.add, place, user, mechanism, password_file=password_file, iterations=iterations)


@app.command("list")
def list_users(
    data_dir: DataDir = None,
    config: Config = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """List the users that have SCRAM passwords: mechanism and iterations.

    \b
    Examples:
      ottla users list
      ottla users list --data-dir data --json
    """
    from ..tools import client
    from ..tools.access import users

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, users.list_users, users.UserStoreOptions(connection, data_dir, config), as_json=as_json)


@app.command()
def remove(
    user: Annotated[str, typer.Argument(metavar="NAME", help="The user.")],
    mechanism: Mechanisms = None,
    data_dir: DataDir = None,
    config: Config = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Remove a user's SCRAM passwords. Open connections and quotas stay.

    \b
    Examples:
      ottla users remove alice
      ottla users remove bob --mechanism SCRAM-SHA-256
    """
    from ..tools import client
    from ..tools.access import users

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, users.remove, users.UserStoreOptions(connection, data_dir, config), user, mechanism)
