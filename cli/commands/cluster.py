"""``ottla cluster …``: the subcommands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import quorum
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

app = group_app("cluster", "Describe the cluster, elect leaders, move replicas, drain a broker, change the quorum.")

Throttle = Annotated[
    int | None,
    typer.Option(metavar="BYTES", min=1, help="Most bytes per second that a broker sends and fetches for the moves."),
]
MoveTimeout = Annotated[
    int | None, typer.Option(metavar="MS", min=0, help="How long to wait for the moves. [as long as they take]")
]


@app.command()
def describe(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe the cluster: its id, brokers and controller, and the state of its partitions.

    For each broker it prints the number of partitions it leads, of its replicas, and of those not in sync. A broker that is
    down and has replicas is listed without an address.

    \b
    Examples:
      ottla cluster describe
      ottla cluster describe --json | jq .under_replicated_partitions
    """
    from ..tools import client, cluster

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, cluster.describe, connection, as_json=as_json)


@app.command()
def health(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Report whether the cluster is healthy, and its problems.

    A healthy cluster has a controller, all its brokers respond, and every partition has a leader and all replicas in sync. Exit
    status: 0 it is healthy, 1 it is not, no broker responds, or this user lacks rights: Describe on the cluster, Describe and
    DescribeConfigs on every topic. 'ottla cluster wait' waits for health.

    \b
    Examples:
      ottla cluster health || mail -s 'Kafka' admin@example.org
      ottla cluster health --json | jq .offline_partitions
    """
    from ..tools import client
    from ..tools import health as tool

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, tool.health, connection, as_json=as_json)


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
        bool, typer.Option("--all-topics", help="Every topic; --unclean needs this, or --topic.")
    ] = False,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="If no replica in sync is left, elect another one. The records that it lacks are lost.",
        ),
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Elect the preferred replicas, or with --unclean replicas that are not in sync.

    It prints a row for each partition that needed an election or was named: the previous leader, the new one, or the error.
    Exit status: 0 none failed, 1 one did, 2 the options make no sense.

    \b
    Examples:
      ottla cluster elect-leaders
      ottla cluster elect-leaders --topic orders --topic payments:0,3
      ottla cluster elect-leaders --unclean --topic orders:2
    """
    from ..tools import client
    from ..tools.replicas import elections

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, elections.elect, connection, topic, all_topics=all_topics, unclean=unclean, as_json=as_json)


@app.command()
def wait(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    timeout_ms: Annotated[int, typer.Option(metavar="MS", min=0, help="How long to wait.")] = 60_000,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Wait until a broker responds, every partition has a leader, and all replicas are in sync.

    It may start before the brokers. Exit status: 0 healthy in time, 1 not in time, or this client is refused.

    \b
    Examples:
      ottla cluster wait
      ottla serve & ottla cluster wait && ottla topics create orders
      ottla cluster wait --timeout-ms 600000 && ottla cluster drain 2
    """
    from ..tools import client, cluster

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, cluster.wait, connection, timeout_ms=timeout_ms)


@app.command()
def reassign(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The wanted replicas. [the moves under way]")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    throttle: Throttle = None,
    timeout_ms: MoveTimeout = None,
    generate: Annotated[
        bool, typer.Option("--generate", help="Move nothing, and print a file that spreads topics evenly over brokers.")
    ] = False,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="NAME[:0,1,…]", help="With --generate: a topic, or partitions; may be repeated."
        ),
    ] = None,
    brokers: Annotated[
        str | None, typer.Option(metavar="1,2,…", help="With --generate: the brokers to use. [all]")
    ] = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel the moves under way of the file; without a file, all of them.")
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Move replicas between brokers, by a file as for kafka-reassign-partitions, and wait until they have arrived.

    Progress is printed to standard error. The cluster continues after Ctrl-C, and the same command waits again. Without a
    file it waits for all moves under way. A throttle is removed when the moves end. Exit status: 0 all replicas are in place,
    1 they are not, 2 the options make no sense.

    \b
    Examples:
      ottla cluster reassign --generate --topic orders --brokers 1,2,3,4 > orders.json
      ottla cluster reassign orders.json --throttle 50000000
      ottla cluster reassign --cancel
    """
    from ..tools import client
    from ..tools.replicas import carry_out, reassign

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    if generate:
        run(debug, reassign.generate, connection, topic, brokers)
    if cancel:
        run(debug, reassign.cancel, connection, file, as_json=as_json)
    run(debug, reassign.reassign, connection, file, carry_out.Limits(throttle, timeout_ms), as_json=as_json)


@app.command("add-replicas")
def add_replicas(
    topic: Annotated[
        list[str],
        typer.Option("--topic", metavar="NAME[:0,1,…]", help="A topic, or some partitions of it; may be repeated."),
    ],
    replication_factor: Annotated[int, typer.Option(metavar="N", min=1, help="The number of replicas.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    throttle: Throttle = None,
    timeout_ms: MoveTimeout = None,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Add replicas to partitions, in other racks if possible, and wait until they are in sync.

    Partitions that have enough replicas stay unchanged. Progress, interruptions and the throttle are as with 'ottla cluster
    reassign'.

    \b
    Examples:
      ottla cluster add-replicas --topic orders --replication-factor 3
      ottla cluster add-replicas --topic orders:0,1 --replication-factor 3 --throttle 50000000
    """
    from ..tools import client
    from ..tools.replicas import carry_out, reassign

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    limits = carry_out.Limits(throttle, timeout_ms)
    run(debug, reassign.add_replicas, connection, topic, limits, replication_factor=replication_factor, as_json=as_json)


@app.command()
def drain(
    broker: Annotated[int, typer.Argument(metavar="BROKER", help="The id of the broker.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    force: Annotated[
        bool,
        typer.Option("--force", help="Even if fewer in-sync replicas than min.insync.replicas remain."),
    ] = False,
    replicas: Annotated[
        bool, typer.Option("--replicas", help="Move every replica to other brokers, to remove this one.")
    ] = False,
    throttle: Throttle = None,
    timeout_ms: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            min=0,
            help="Time to wait for replicas to get in sync, and for clients to learn it. [60000; with --replicas "
            "unlimited]",
        ),
    ] = None,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Move a broker's leaderships to other in-sync replicas before it stops; with --replicas, all replicas before it is removed.

    The broker then is in controlled shutdown: its followers leave the ISR, and it is not elected until it restarts. Nothing
    is moved if producers with acks=all would be refused. Works with Ottla, and with Kafka in ZooKeeper mode. Exit status: 0
    it leads no partition that another replica can lead, 1 it does, or nothing was done.

    With --replicas the broker may even be down. Its replicas move to racks without another replica of the partition, if
    possible. Progress, interruptions and the throttle are as with 'ottla cluster reassign'; any Kafka since 2.4 has it. Exit
    status: 0 no replica is left on it, 1 some are.

    \b
    Examples:
      ottla cluster drain 2 && ssh host-2 systemctl restart ottla@2
      ottla cluster drain 2 --json | jq .left
      ottla cluster drain 2 --replicas --throttle 50000000
    """
    from ..tools import client
    from ..tools.replicas import carry_out, drain, replica_drain

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    if replicas:
        limits = carry_out.Limits(throttle, timeout_ms)
        run(debug, replica_drain.drain_replicas, connection, broker, limits, force=force, as_json=as_json)
    run(debug, drain.drain, connection, broker, force=force, throttle=throttle, timeout_ms=timeout_ms, as_json=as_json)


@app.command()
def balance(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.")] = False,
    goals: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL,…",
            help="Goals, the most important first. [racks,capacity,replicas,bytes,leaders,network-in,network-out]",
        ),
    ] = None,
    drain: Annotated[
        list[int] | None, typer.Option("--drain", metavar="BROKER", help="Empty this broker; may be repeated.")
    ] = None,
    throttle: Throttle = None,
    at_once: Annotated[
        int, typer.Option(metavar="N", min=1, help="Most partitions that a broker sends or receives in a step.")
    ] = 5,
    tolerance: Annotated[
        int, typer.Option(metavar="PERCENT", min=1, max=100, help="Allowed deviation of a broker from the mean.")
    ] = 10,
    disk_limit: Annotated[int, typer.Option(metavar="PERCENT", min=1, max=100, help="Limit of a disk's use.")] = 80,
    window: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Time to measure rates; 0: no network goals."),
    ] = 5,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            metavar="HOST:PORT",
            help="Prometheus metrics of a broker, for rates; may be repeated, to name all. [offsets]",
        ),
    ] = None,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Move replicas and leaders so that brokers have about the same load, with as few bytes to copy as possible; any Kafka since
    2.4.

    It shows the brokers' load before and after, and each move with its reason, and carries the plan out in throttled steps.
    No move removes a replica from a rack that its partition needs, or fills a disk above its limit. Earlier goals take
    precedence. Into a pipe it prints a line for each move, and its findings to standard error.

    Ctrl-C ends it after the present step; a second Ctrl-C cancels the step. The same command continues, even after a kill,
    and removes a leftover throttle. Exit status: 0 all is done, 1 something was left out.

    \b
    Examples:
      ottla cluster balance --dry-run
      ottla cluster balance --throttle 50000000
      ottla cluster balance --drain 3 --throttle 50000000
      ottla cluster balance --goals racks,capacity,leaders --json
    """
    from ..balance import command, rates
    from ..tools import client

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    options = command.BalanceOptions(
        goals,
        drain or (),
        tolerance / 100,
        disk_limit / 100,
        throttle,
        at_once,
        rates.MeasurementWindow(window, tuple(metrics or ())),
    )
    run(debug, command.balance, connection, options, is_dry=dry_run, as_json=as_json)


app.command()(quorum.quorum)
app.command("add-voter")(quorum.add_voter)
app.command("remove-voter")(quorum.remove_voter)
app.command()(quorum.unregister)
app.command()(quorum.upgrade)
app.command("recover-quorum")(quorum.recover_quorum)
