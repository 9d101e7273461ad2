"""``ottla cluster quorum | add-voter | remove-voter | unregister | upgrade | recover-quorum``: subcommands and options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import DEFAULT_SERVER, AsJson, BootstrapServer, CommandConfig, CommandProperty, Debug, run

Controller = Annotated[
    str | None,
    typer.Option("--controller", metavar="HOST:PORT[,…]", help="Controllers to connect to, instead of brokers."),
]
Node = Annotated[int, typer.Argument(metavar="NODE", min=0, help="The id of the controller.")]
ChangeTimeout = Annotated[int, typer.Option(metavar="MS", min=0, help="Time to try.")]


def quorum(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    controller: Controller = None,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe the quorum of controllers: leader, voters, observers, and their progress.

    For each voter and observer it prints its directory id, its address, the end of its metadata log and its lag in records.
    Two more columns are the ms since its last fetch and since it was caught up. It works with any KRaft cluster that has a
    majority of its voters. Otherwise see 'ottla cluster recover-quorum'.

    \b
    Examples:
      ottla cluster quorum
      ottla cluster quorum --controller ottla-1:9093 --json | jq .leader
    """
    from ..tools import client
    from ..tools.quorum import quorum as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, tool.quorum, connection, controller, as_json=as_json)


def add_voter(
    node: Node,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    controller: Controller = None,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="LISTENER://HOST:PORT", help="Its address, if no voter can report it."),
    ] = None,
    timeout_ms: ChangeTimeout = 60_000,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Make a controller a voter that already follows the quorum.

    It must run with process.roles controller or broker,controller, on directories formatted with --no-initial-controllers.
    The command waits until it has the metadata log and the others have agreed. A voter reports its address. Exit status: 0 it
    votes, 1 it does not.

    \b
    Examples:
      ottla cluster add-voter 4
      ottla cluster add-voter 4 --endpoint CONTROLLER://ottla-4:9093
    """
    from ..tools import client
    from ..tools.quorum import voters

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, voters.add_voter, connection, controller, node, endpoint=endpoint, timeout_ms=timeout_ms)


def remove_voter(
    node: Node,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    controller: Controller = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even if the remaining live voters are not a majority.")
    ] = False,
    timeout_ms: ChangeTimeout = 60_000,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Remove a controller from the voters; it may be down.

    It is refused if the quorum would stop: the remaining voters that have fetched in the last seconds must be a majority.
    Exit status: 0 it does not vote any more, 1 it does.

    \b
    Example:
      ottla cluster remove-voter 3
    """
    from ..tools import client
    from ..tools.quorum import voters

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, voters.remove_voter, connection, controller, node, force=force, timeout_ms=timeout_ms)


def unregister(
    broker: Annotated[int, typer.Argument(metavar="BROKER", min=0, help="The id of the broker.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Unregister a broker that is permanently stopped and has no replicas.

    Use it for a broker whose id is not used again. If it starts again, it registers as a new one. Exit status: 0 it is
    unregistered, 1 it runs, has replicas, or is unknown.

    \b
    Example:
      ottla cluster unregister 4
    """
    from ..tools import client
    from ..tools.quorum import unregister as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, tool.unregister, connection, broker)


def upgrade(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    controller: Controller = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check it, and change nothing.")] = False,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            "--feature",
            "-f",
            metavar="NAME=LEVEL",
            help="Only this one, to this level; may be repeated. [all, highest]",
        ),
    ] = None,
    release_version: Annotated[
        str | None,
        typer.Option("--release-version", "-r", metavar="VERSION", help="The levels of this release of Kafka."),
    ] = None,
    downgrade: Annotated[
        bool, typer.Option("--downgrade", help="Levels may be lower than the finalized ones.")
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Raise metadata.version and the other features to the highest levels that every node supports.

    Use it after an upgrade of all nodes. For each feature it prints the finalized level, the levels that the reachable nodes
    support, the wanted level, and the result. It changes all features or none, and the controller refuses levels that a node
    lacks. With kraft.version 1 voters can change, and it cannot be undone. The metadata.version can only be lowered to a
    level with the same records. Exit status: 0 done, or there was nothing to do, 1 refused, 2 the options make no sense.

    \b
    Examples:
      ottla cluster upgrade --dry-run
      ottla cluster upgrade
      ottla cluster upgrade --feature eligible.leader.replicas.version=0 --downgrade
      ottla cluster upgrade --release-version 4.2
    """
    from ..tools import client
    from ..tools.quorum import upgrade as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    wish = tool.UpgradeOptions(tuple(feature or ()), release_version, downgrade)
    run(debug, tool.upgrade, connection, controller, wish, is_dry=dry_run, as_json=as_json)


def recover_quorum(
    data_dir: Annotated[
        Path,
        typer.Argument(metavar="DATA_DIR", help="The stopped node's log directory with the metadata log."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the end of its log, and change nothing.")] = False,
    accept_data_loss: Annotated[
        bool, typer.Option("--accept-data-loss", help="Do it: metadata that only the lost nodes had are lost.")
    ] = False,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="LISTENER://HOST:PORT", help="Its address as a controller, if it was not a voter."),
    ] = None,
) -> None:
    """DANGEROUS: make a stopped node the only voter, if a majority of the voters is permanently lost.

    Topics, configs and leaders then are those of its log. Committed metadata that it has not fetched are lost, and so may be
    records acknowledged afterwards. If lost nodes start again with their old directories, they form a second quorum of the
    same cluster. If a majority can be started, start it instead.

    Run it with --dry-run on every remaining node, and choose the node with the highest end of its log: the highest epoch,
    then the highest offset. The metadata log is kept in a tar file. Exit status: 0 done, or shown, 1 it cannot be done, 2 the
    directory cannot be used, or --accept-data-loss is missing.

    \b
    Examples:
      ottla cluster recover-quorum data-1 --dry-run
      ottla cluster recover-quorum data-1 --accept-data-loss
    """
    from ..recover_quorum import run as recover

    sys.exit(recover(data_dir, endpoint=endpoint, is_dry=dry_run, accepts_data_loss=accept_data_loss))
