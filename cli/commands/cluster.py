"""``ottla cluster …``: the subcommands and their options."""

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

app = group_app("cluster", "Describe the cluster, elect leaders, drain a broker.")


@app.command()
def describe(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe the cluster: its id, brokers and controller, and how its partitions are.

    Of each broker: how many partitions it leads, how many replicas it has, and how many of these are not in sync. One that is
    down and has replicas is listed, too, without an address.

    \b
    Examples:
      ottla cluster describe
      ottla cluster describe --json | jq .under_replicated_partitions
    """
    from ..tools import client, cluster

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    run(debug, cluster.describe, connection, as_json=as_json)


@app.command("elect-leaders")
def elect_leaders(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="NAME[:0,1,…]", help="A topic, or some partitions of it; may be repeated. [all]"
        ),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Every topic; with --unclean this has to be said.")
    ] = False,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="Where no replica in sync is left, have any other lead: records are lost that it lacks.",
        ),
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Have the preferred replicas lead again, or with --unclean ones that are not in sync.

    A row for each partition that needed it or was named: its leader before and now, and why not, where an election failed. Exit
    status: 0 none failed, 1 one did, 2 the options make no sense.

    \b
    Examples:
      ottla cluster elect-leaders
      ottla cluster elect-leaders --topic orders --topic payments:0,3
      ottla cluster elect-leaders --unclean --topic orders:2
    """
    from ..tools import client, elections

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    run(debug, elections.elect, connection, topic, all_topics=all_topics, unclean=unclean, as_json=as_json)


@app.command()
def wait(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    timeout_ms: Annotated[int, typer.Option(metavar="MS", min=0, help="How long to wait.")] = 60_000,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Wait until every partition has a leader, and all its replicas are in sync.

    Exit status: 0 it is so, 1 it was not in time.

    \b
    Examples:
      ottla cluster wait
      ottla cluster wait --timeout-ms 600000 && ottla cluster drain 2
    """
    from ..tools import client, cluster

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    run(debug, cluster.wait, connection, timeout_ms=timeout_ms)


@app.command()
def drain(
    broker: Annotated[int, typer.Argument(metavar="BROKER", help="The id of the broker.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also where fewer replicas in sync are left than min.insync.replicas."),
    ] = False,
    timeout_ms: Annotated[
        int,
        typer.Option(
            metavar="MS", min=0, help="How long to wait for replicas that get in sync, and for clients to be told."
        ),
    ] = 60_000,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Move what a broker leads to other replicas in sync, before it is stopped.

    The broker is then as one that is about to stop: where it follows it is not in sync any more, and it is not elected again
    before it is started anew. Nothing is moved if producers with acks=all would be refused by that. Works with Ottla, and with
    Kafka in ZooKeeper mode. Exit status: 0 it leads nothing that another replica could, 1 it does, or nothing was done.

    \b
    Examples:
      ottla cluster drain 2 && ssh host-2 systemctl restart ottla@2
      ottla cluster drain 2 --json | jq .left
    """
    from ..tools import client, drain

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    run(debug, drain.drain, connection, broker, force=force, timeout_ms=timeout_ms, as_json=as_json)
