"""``ottla produce``: the options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from .options import DEFAULT_SERVER, HELP, BootstrapServer, CommandConfig, CommandProperty, Debug, run

app = typer.Typer(add_completion=False, context_settings=HELP, rich_markup_mode=None)


@app.command()
def produce(
    topic: Annotated[str, typer.Option("--topic", metavar="NAME", help="The topic.")],
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE…", help="What to read. [standard input]")] = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What stands between key and value; \\t is a tab.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME=VALUE", help="A header of each record; may be repeated."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Each line is an object: key, value, headers, partition, timestamp."),
    ] = False,
    partition: Annotated[int | None, typer.Option(metavar="N", min=0, help="Where to. [by key, else any]")] = None,
    rate: Annotated[float | None, typer.Option(metavar="N", min=0.001, help="Records in a second, at most.")] = None,
    acks: Annotated[
        Literal["0", "1", "all"], typer.Option(metavar="0|1|all", help="Replicas that must have a record.")
    ] = "all",
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"],
        typer.Option(metavar="none|gzip|snappy|lz4|zstd", help="Codec of the batches."),
    ] = "none",
    transactional_id: Annotated[
        str | None, typer.Option(metavar="NAME", help="Write all of it in one transaction, or none.")
    ] = None,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Write a record for each line of standard input or of files.

    With --json a line is what 'ottla consume --json' prints: value (and key) are strings, null, any other JSON, or, as
    value_base64 and key_base64, bytes; headers are a list of {"key", "value"} or an object; timestamp is in milliseconds.

    \b
    Examples:
      echo hello | ottla produce --topic greetings
      ottla produce --topic users --key-separator : users.txt
      ottla produce --topic orders --header source=import --compression zstd --rate 1000 *.log
      ottla consume --topic a --from-beginning --until-end --json | ottla produce --topic b --json
    """
    from ..tools import client, produce

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    plan = produce.Plan(
        topic=topic,
        files=tuple(files or ()),
        key_separator=key_separator,
        headers=tuple(header or ()),
        as_json=as_json,
        partition=partition,
        rate=rate,
        acks=acks,
        compression=compression,
        transactional_id=transactional_id,
    )
    run(debug, produce.produce, connection, plan)
