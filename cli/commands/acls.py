"""``ottla acls …``: the subcommands and their options."""

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

app = group_app("acls", "Add, list and remove access rules.")

Names = list[str] | None
Topics = Annotated[Names, typer.Option("--topic", metavar="NAME", help="A topic, or '*' for all; may be repeated.")]
Groups = Annotated[Names, typer.Option("--group", metavar="NAME", help="A consumer group; likewise.")]
TransactionalIds = Annotated[Names, typer.Option("--transactional-id", metavar="ID", help="Likewise.")]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
Tokens = Annotated[Names, typer.Option("--delegation-token", metavar="ID", help="A token; likewise.")]
Users = Annotated[
    Names, typer.Option("--user-principal", metavar="User:NAME", help="A user whose tokens are meant; likewise.")
]
Prefixed = Annotated[bool, typer.Option("--prefixed", help="Names are prefixes of resource names.")]
Principals = Annotated[
    Names, typer.Option("--principal", metavar="User:NAME", help="The principal, 'User:*' for all; may be repeated.")
]
Hosts = Annotated[Names, typer.Option("--host", metavar="IP", help="The client's host; may be repeated.")]
Operations = Annotated[
    Names, typer.Option("--operation", metavar="NAME[,…]", help="read, write, create, describe, …, all.")
]


@app.command()
def add(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    cluster: Cluster = False,
    delegation_token: Tokens = None,
    user_principal: Users = None,
    prefixed: Prefixed = False,
    principal: Principals = None,
    host: Hosts = None,
    operation: Operations = None,
    producer: Annotated[
        bool, typer.Option("--producer", help="The operations of a producer on the topics and transactional ids.")
    ] = False,
    consumer: Annotated[
        bool, typer.Option("--consumer", help="The operations of a consumer on the topics and groups.")
    ] = False,
    deny: Annotated[
        bool, typer.Option("--deny", help="Deny instead of allow. It takes precedence over rules that allow.")
    ] = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Add rules: each principal may do each operation to each resource.

    \b
    Examples:
      ottla acls add --principal User:alice --producer --topic orders
      ottla acls add --principal User:bob --consumer --topic team-b. --group team-b. --prefixed
      ottla acls add --principal User:ops --operation describe,alter --cluster
      ottla acls add --principal 'User:*' --operation all --topic secrets --deny
    """
    from ..tools import client
    from ..tools.access import acls

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    resources = acls.Resources(
        topic or (),
        group or (),
        transactional_id or (),
        cluster,
        delegation_token or (),
        user_principal or (),
        prefixed,
    )
    run(
        debug,
        acls.add,
        connection,
        resources,
        acls.AclEntryOptions(
            principal or (), host or (), operation or (), deny=deny, producer=producer, consumer=consumer
        ),
    )


@app.command("list")
def list_acls(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    cluster: Cluster = False,
    delegation_token: Tokens = None,
    user_principal: Users = None,
    prefixed: Prefixed = False,
    principal: Principals = None,
    host: Hosts = None,
    operation: Operations = None,
    affecting: Annotated[
        bool,
        typer.Option(
            "--affecting", help="Every rule that applies to resources of these names, prefixes and '*' included."
        ),
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """List rules: all, or those of the resources, principals and operations that are named.

    \b
    Examples:
      ottla acls list
      ottla acls list --topic orders --affecting
      ottla acls list --principal User:alice --json
    """
    from ..tools import client
    from ..tools.access import acls

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    resources = acls.Resources(
        topic or (),
        group or (),
        transactional_id or (),
        cluster,
        delegation_token or (),
        user_principal or (),
        prefixed,
    )
    who = acls.AclEntryOptions(principal or (), host or (), operation or ())
    run(debug, acls.list_acls, connection, resources, who, affecting=affecting, as_json=as_json)


@app.command()
def remove(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    cluster: Cluster = False,
    delegation_token: Tokens = None,
    user_principal: Users = None,
    prefixed: Prefixed = False,
    principal: Principals = None,
    host: Hosts = None,
    operation: Operations = None,
    deny: Annotated[bool, typer.Option("--deny", help="Only rules that deny.")] = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Remove the rules that a list with the same options shows.

    \b
    Examples:
      ottla acls remove --principal User:alice --topic orders
      ottla acls remove --principal User:bob
    """
    from ..tools import client
    from ..tools.access import acls

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    resources = acls.Resources(
        topic or (),
        group or (),
        transactional_id or (),
        cluster,
        delegation_token or (),
        user_principal or (),
        prefixed,
    )
    run(
        debug,
        acls.remove,
        connection,
        resources,
        acls.AclEntryOptions(principal or (), host or (), operation or (), deny=deny),
    )
