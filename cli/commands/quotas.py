"""``ottla quotas …``: the subcommands and their options."""

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

app = group_app("quotas", "Describe, set and unset the quotas of users, client ids and addresses.")

User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="A user's.")]
UserDefault = Annotated[bool, typer.Option("--user-default", help="The default of every user.")]
ClientId = Annotated[str | None, typer.Option("--client-id", metavar="NAME", help="A client id's.")]
ClientIdDefault = Annotated[bool, typer.Option("--client-id-default", help="The default of every client id.")]
Ip = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="An IP address's.")]
IpDefault = Annotated[bool, typer.Option("--ip-default", help="The default of every address.")]


@app.command()
def describe(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientIdDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe the quotas that are set: all, or those of a user, a client id or an address.

    \b
    Examples:
      ottla quotas describe
      ottla quotas describe --user alice
      ottla quotas describe --user-default --json
    """
    from ..tools import client
    from ..tools.access import quotas

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    entity = quotas.QuotaEntityOptions(user, user_default, client_id, client_id_default, ip, ip_default)
    run(debug, quotas.describe, connection, entity, as_json=as_json)


@app.command("set")
def set_quotas(
    settings: Annotated[list[str], typer.Argument(metavar="NAME=VALUE…", help="The quotas.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientIdDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Set quotas of a user, a client id, a user by a client id, or an address; the others stay as they are.

    \b
    producer_byte_rate, consumer_byte_rate: bytes a second, on each broker
    request_percentage: how much of one thread's time, in percent, on each broker
    controller_mutation_rate: partitions a second that are created or deleted
    connection_creation_rate: connections a second, of an address, on each broker

    \b
    Examples:
      ottla quotas set --user alice producer_byte_rate=1048576 consumer_byte_rate=2097152
      ottla quotas set --user alice --client-id batch request_percentage=20
      ottla quotas set --ip-default connection_creation_rate=50
    """
    from ..tools import client
    from ..tools.access import quotas

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    entity = quotas.QuotaEntityOptions(user, user_default, client_id, client_id_default, ip, ip_default)
    run(debug, quotas.set_quotas, connection, entity, settings)


@app.command("unset")
def unset_quotas(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="The quotas.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientIdDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Remove quotas of a user, a client id, a user by a client id, or an address.

    \b
    Example:
      ottla quotas unset --user alice producer_byte_rate
    """
    from ..tools import client
    from ..tools.access import quotas

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    entity = quotas.QuotaEntityOptions(user, user_default, client_id, client_id_default, ip, ip_default)
    run(debug, quotas.unset_quotas, connection, entity, names)
