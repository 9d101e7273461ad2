"""``ottla produce``: the options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from . import completion
from .options import (
    DEFAULT_SERVER,
    HELP,
    BootstrapServer,
    CommandConfig,
    CommandProperty,
    Debug,
    NamedTopic,
    no_topic,
    run,
)

app = typer.Typer(add_completion=False, context_settings=HELP, rich_markup_mode=None)

SomeTopic = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC", help="The topic; with --topic it is the first file.", autocompletion=completion.topics
    ),
]
Key = Annotated[str | None, typer.Option("--key", "-k", metavar="TEXT", help="The key of each record without one.")]
KeySeparator = Annotated[
    str | None,
    typer.Option("--key-separator", "-K", metavar="TEXT", help="Separator of key and value; \\t is a tab."),
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header of each record; may be repeated."),
]
Compression = Annotated[
    Literal["none", "gzip", "snappy", "lz4", "zstd"],
    typer.Option("--compression", "-z", metavar="none|gzip|snappy|lz4|zstd", help="Codec of the batches."),
]
TransactionalId = Annotated[
    str | None, typer.Option(metavar="NAME", help="Write all of it in one transaction, or none.")
]


@app.command()
def produce(
    topic: SomeTopic = None,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE…]", help="The files to read. [standard input]")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    named_topic: NamedTopic = None,
    key: Key = None,
    key_separator: KeySeparator = None,
    header: Headers = None,
    tombstone: Annotated[
        bool, typer.Option("--tombstone", "-Z", help="An empty value is null, which deletes a key in compaction.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Each line is an object: key, value, headers, partition, timestamp."),
    ] = False,
    partition: Annotated[
        int, typer.Option("--partition", "-p", metavar="N", min=-1, help="The partition; -1 chooses by key, else any.")
    ] = -1,
    rate: Annotated[
        float | None, typer.Option(metavar="N", min=0.001, help="At most this many records a second.")
    ] = None,
    acks: Annotated[
        Literal["0", "1", "all"], typer.Option(metavar="0|1|all", help="Replicas that must have a record.")
    ] = "all",
    compression: Compression = "none",
    transactional_id: TransactionalId = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Don't print the number of records to standard error.")
    ] = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Write a record for each line of standard input or of files, and print the number of records to standard error.

    With --json a line has the format of 'ottla consume --json': value and key are strings, null or other JSON, or bytes as
    value_base64 and key_base64. The headers are a list of {"key", "value"} or an object. The timestamp is in milliseconds.

    Brokers may create a topic that does not exist. A line then names an existing one that is nearly the same.

    \b
    Examples:
      echo hello | ottla produce greetings
      echo paid | ottla produce orders -k order-1 -H source=shop
      ottla produce users users.txt -K : -z zstd
      echo alice: | ottla produce users -K : --tombstone
      ottla consume a -e --json | ottla produce b --json
    """
    from ..tools import client
    from ..tools.records import produce

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    plan = produce.ProduceOptions(
        topic=named_topic or topic or no_topic("TOPIC"),
        files=tuple(files or ()) if named_topic is None or topic is None else (Path(topic), *(files or ())),
        key=key,
        key_separator=key_separator,
        headers=tuple(header or ()),
        tombstones=tombstone,
        as_json=as_json,
        partition=None if partition < 0 else partition,
        rate=rate,
        acks=acks,
        compression=compression,
        transactional_id=transactional_id,
        quiet=quiet,
    )
    run(debug, produce.produce, connection, plan)
