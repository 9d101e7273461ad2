"""``ottla cluster quorum | add-voter | remove-voter | unregister | upgrade | recover-quorum``: subcommands and options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import DEFAULT_SERVER, AsJson, BootstrapServer, CommandConfig, CommandProperty, Debug, run

Controller = Annotated[
    str | None,
    typer.Option("--controller", metavar="HOST:PORT[,…]", help="Controllers to ask, in place of brokers."),
]
Node = Annotated[int, typer.Argument(metavar="NODE", min=0, help="The id of the controller.")]
ChangeTimeout = Annotated[int, typer.Option(metavar="MS", min=0, help="How long to try.")]


def quorum(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    controller: Controller = None,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe the quorum of controllers: who leads it, who votes, who follows, and how far each has come.

    A row for each voter and each observer: the id of its directory, its address, the end of its metadata log, how many records it
    is behind, and how many ms ago the leader has heard of it, and it had everything. Any cluster of KRaft can be asked. Where no
    majority of the voters is left, there is nobody to tell; 'ottla cluster recover-quorum' is for that.

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
        typer.Option(metavar="LISTENER://HOST:PORT", help="Where it is, if no voter can be asked for that."),
    ] = None,
    timeout_ms: ChangeTimeout = 60_000,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Have a controller vote that follows the quorum already.

    It has to run, with process.roles controller or broker,controller, on folders formatted with --no-initial-controllers. The
    command waits until it has the metadata log and the others have agreed. Its address is asked of a voter, at the controllers'
    listener. Exit status: 0 it votes, 1 it does not.

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
        bool, typer.Option("--force", help="Even if the voters that are left and alive are no majority.")
    ] = False,
    timeout_ms: ChangeTimeout = 60_000,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Have a controller vote no more; it may be down.

    It is refused where the quorum would come to a halt by it: the voters that are left and have fetched in the last seconds must
    be a majority. Exit status: 0 it does not vote any more, 1 it does.

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
    """Forget a broker that has been stopped for good and has no replicas any more.

    It is for a broker whose id nobody takes over. Should it start again, it registers as a new one. Exit status: 0 it is
    forgotten, 1 it runs, has replicas, or is not known.

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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Have it checked, and change nothing.")] = False,
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
        bool, typer.Option("--downgrade", help="The levels named may be lower than those that are finalized.")
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Raise metadata.version and the other features to what every node supports, after the last node was replaced by a newer one.

    A row for each feature: the level that is finalized, what the nodes support that could be asked, the level that is wanted, and
    whether it was set. All are changed, or none; the controller refuses what a node lacks. kraft.version 1 lets voters
    change, and has no way back; metadata.version has one only to a level with the same records. Exit status: 0 done, or there
    was nothing to do, 1 refused, 2 the options make no sense.

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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show how far its log goes, and change nothing.")] = False,
    accept_data_loss: Annotated[
        bool, typer.Option("--accept-data-loss", help="Do it: what only the lost nodes had is lost.")
    ] = False,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="LISTENER://HOST:PORT", help="Where it is as a controller, if it was no voter."),
    ] = None,
) -> None:
    """DANGEROUS: make a stopped node the only voter, where a majority of the voters is lost for good.

    Topics, configs and leaders are those of its log from then on. What the quorum had committed that it has not fetched is lost,
    and so may be records that were acknowledged afterwards. If lost nodes come back with their old directories, they are a second
    quorum of the same cluster. While a majority can be started, start it instead.

    Look at every node that is left with --dry-run, and take the one whose log has the highest end: the highest epoch, and of
    these the highest offset. The metadata log is kept in a tar file. Exit status: 0 done, or shown, 1 it cannot be done, 2
    the directory cannot be used, or --accept-data-loss is missing.

    \b
    Examples:
      ottla cluster recover-quorum data-1 --dry-run
      ottla cluster recover-quorum data-1 --accept-data-loss
    """
    from ..recover_quorum import run as recover

    sys.exit(recover(data_dir, endpoint=endpoint, is_dry=dry_run, accepts_data_loss=accept_data_loss))
