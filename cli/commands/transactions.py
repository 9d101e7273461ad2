"""``ottla transactions …``: the subcommands and their options."""

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
    SomePartitions,
    Topic,
    group_app,
    run,
)

Broker = Annotated[
    int | None,
    typer.Option("--broker", metavar="ID", help="The replicas on this broker. [the leaders of the partitions]"),
]

app = group_app("transactions", "List and describe transactions, find those that hang, and abort them.")


@app.command("list")
def list_transactions(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    state: Annotated[
        list[str] | None, typer.Option("--state", metavar="NAME", help="Only those in it: Ongoing …; may be repeated.")
    ] = None,
    producer_id: Annotated[
        list[int] | None, typer.Option("--producer-id", metavar="ID", help="Only of this one; may be repeated.")
    ] = None,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """List transactional ids: their coordinator, producer and state.

    \b
    Examples:
      ottla transactions list
      ottla transactions list --state Ongoing --json
    """
    from ..tools import client, transactions

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, transactions.list_transactions, connection, states=state, producer_ids=producer_id, as_json=as_json)


@app.command()
def describe(
    transactional_ids: Annotated[list[str], typer.Argument(metavar="TRANSACTIONAL_ID…", help="Which ones.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe transactional ids: state, and the start and partitions of an open transaction.

    \b
    Example:
      ottla transactions describe loader --json | jq '.[0].partitions'
    """
    from ..tools import client, transactions

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, transactions.describe, connection, transactional_ids, as_json=as_json)


@app.command()
def producers(
    topics: SomePartitions = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    broker: Broker = None,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """List the producers of partitions, and the start offsets of their open transactions.

    \b
    Example:
      ottla transactions producers orders:0
    """
    from ..tools import client, transactions

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, transactions.list_producers, connection, topics or (), broker=broker, as_json=as_json)


@app.command("find-hanging")
def find_hanging(
    topics: SomePartitions = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    broker: Broker = None,
    max_transaction_timeout: Annotated[
        int,
        typer.Option(
            metavar="MINUTES", min=0, help="The highest timeout of any producer: younger transactions cannot hang."
        ),
    ] = 15,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Find hanging transactions: open for long, and unknown to their coordinator.

    They block consumers that read committed records. 'ottla transactions abort' ends one.

    \b
    Examples:
      ottla transactions find-hanging
      ottla transactions find-hanging orders --max-transaction-timeout 60
    """
    from ..tools import client, transactions

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(
        debug,
        transactions.find_hanging,
        connection,
        topics or (),
        broker=broker,
        max_timeout_min=max_transaction_timeout,
        as_json=as_json,
    )


@app.command()
def abort(
    topic: Topic,
    partition: Annotated[int, typer.Option("--partition", "-p", metavar="N", min=0, help="The partition.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    start_offset: Annotated[
        int | None, typer.Option(metavar="OFFSET", min=0, help="The offset at which the transaction begins.")
    ] = None,
    producer_id: Annotated[int | None, typer.Option(metavar="ID", help="Or: the transaction's producer.")] = None,
    producer_epoch: Annotated[int | None, typer.Option(metavar="N", help="The producer's epoch.")] = None,
    coordinator_epoch: Annotated[int | None, typer.Option(metavar="N", help="The coordinator's epoch.")] = None,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Abort a transaction in a partition by writing an abort marker, if its coordinator does not.

    The transaction's other partitions are not changed.

    \b
    Examples:
      ottla transactions abort orders -p 0 --start-offset 47
      ottla transactions abort orders -p 0 --producer-id 4000 --producer-epoch 3 --coordinator-epoch 0
    """
    from ..tools import client, transactions

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    producer = transactions.Producer(start_offset, producer_id, producer_epoch, coordinator_epoch)
    run(debug, transactions.abort, connection, topic, partition, producer)
