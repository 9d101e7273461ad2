"""``ottla perf …``: the subcommands and their options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from .options import (
    DEFAULT_SERVER,
    AsJson,
    BootstrapServer,
    CommandConfig,
    CommandProperty,
    Debug,
    Topic,
    group_app,
    run,
)

app = group_app("perf", "Measure throughput and latency of producing and consuming.")


@app.command()
def produce(
    topic: Topic,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    num_records: Annotated[
        int, typer.Option("--num-records", "-n", metavar="N", min=1, help="Records to send.")
    ] = 100_000,
    record_size: Annotated[int, typer.Option(metavar="BYTES", min=0, help="Size of each value.")] = 100,
    numbered: Annotated[
        bool, typer.Option("--numbered", help="Values are the numbers from 0, padded with blanks.")
    ] = False,
    throughput: Annotated[
        float | None, typer.Option(metavar="N", min=0.001, help="Records a second. [as fast as possible]")
    ] = None,
    acks: Annotated[
        Literal["0", "1", "all"], typer.Option(metavar="0|1|all", help="Replicas that must have a record.")
    ] = "all",
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"],
        typer.Option(metavar="none|gzip|snappy|lz4|zstd", help="Codec of the batches."),
    ] = "none",
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Send records of one size, and print the rate and the latency of acknowledgements.

    The client is kafka-python, in one process, and often slower than the broker. Latency includes the wait in the client,
    which is short with --throughput.

    \b
    Examples:
      ottla perf produce load -n 200000 --record-size 1000
      ottla perf produce load --throughput 5000 --command-property linger.ms=5
      ottla perf produce load -n 200000 --numbered
    """
    from ..tools import client
    from ..tools.records import perf

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(
        debug,
        perf.produce,
        connection,
        topic,
        num_records=num_records,
        record_size=record_size,
        is_numbered=numbered,
        throughput=throughput,
        acks=acks,
        compression=compression,
        as_json=as_json,
    )


@app.command()
def consume(
    topic: Topic,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    num_records: Annotated[
        int | None,
        typer.Option("--num-records", "-n", metavar="N", min=1, help="Records to read. [all]"),
    ] = None,
    timeout_ms: Annotated[
        int, typer.Option(metavar="MS", min=1, help="End when no record comes for this long.")
    ] = 10_000,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Read a topic from its beginning, and print the rate and the latency of polls.

    \b
    Examples:
      ottla perf consume load
      ottla perf consume load -n 100000 --json
    """
    from ..tools import client
    from ..tools.records import perf

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(debug, perf.consume, connection, topic, num_records=num_records, timeout_ms=timeout_ms, as_json=as_json)
