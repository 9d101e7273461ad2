"""The subcommands of ``ottla`` and their options; the implementations are imported when they run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import plain_serve
from .lazy import LazyGroup

app = typer.Typer(
    name="ottla",
    help="A Kafka wire-compatible broker: every Kafka client works against it unchanged.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    cls=LazyGroup,
    # Plain help: rich's takes a third of a second to import, and eats what stands in brackets.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


Override = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A property, which takes precedence over the file. May be repeated."),
]
Brokers = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="Number of brokers on this machine, each a process; auto: one for each processor."
    ),
]
ZooKeeper = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT[,…][/PATH]", help="Join the cluster whose state is in this ZooKeeper."),
]
NodeNumber = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="This node's number: its position in --cluster, or the next free one.", min=1),
]
ClusterNodes = Annotated[
    str | None,
    typer.Option(
        metavar="HOST[:PORT],…",
        help="Form a cluster of these nodes, or join it; the same list on each. Controllers are at PORT + 1.",
    ),
]
ClusterSecretFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File with the cluster's secret, the same on each node."),
]
LogLevel = Annotated[
    str,
    typer.Option(metavar="LEVELS", help="debug, info, warning or error; AREA=LEVEL after a comma sets one area."),
]
LogFormat = Annotated[str, typer.Option(metavar="FORMAT", help="text, or json: one object in a line for each event.")]
Trace = Annotated[
    str | None,
    typer.Option(metavar="API,…", help="Log a line for each request of these APIs: produce,fetch or all."),
]


def _show_version(value: bool) -> None:
    if value:
        from .. import __version__

        typer.echo(f"ottla {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


@app.command()
def serve(
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address to listen on: port 9092 if none is given, a free one if it is 0. [127.0.0.1:9092]",
        ),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Address that clients connect to, if it differs."),
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Log directory. [./data]")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A server.properties with Kafka's property names.")
    ] = None,
    override: Override = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve /metrics for Prometheus, /healthz and /readyz there."),
    ] = None,
    console: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve the web console there."),
    ] = None,
    console_allow_writes: Annotated[
        bool,
        typer.Option("--console-allow-writes", help="Let the console change topics, offsets, records and more."),
    ] = False,
    brokers: Brokers = None,
    zookeeper: ZooKeeper = None,
    node: NodeNumber = None,
    cluster: ClusterNodes = None,
    cluster_secret_file: ClusterSecretFile = None,
    log_level: LogLevel = "info",
    log_format: LogFormat = "text",
    trace: Trace = None,
) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    \b
    Examples:
      ottla serve
      ottla serve --listen 0.0.0.0:9092 --advertise kafka.example.org:9092 --data-dir /var/lib/ottla
      ottla serve --config server.properties --override num.partitions=3
      ottla serve --zookeeper 127.0.0.1:2181 --listen 127.0.0.1:9093 --data-dir data-2
      ottla serve --node 1 --cluster kafka-1,kafka-2,kafka-3 --cluster-secret-file /etc/ottla/secret
      ottla serve --console 127.0.0.1:8080
      ottla serve --metrics 127.0.0.1:9464 --log-format json --log-level info,log=debug --trace produce
    """
    plain_serve.run(
        listen=listen,
        advertise=advertise,
        data_dir=data_dir,
        config=config,
        override=override or (),
        metrics=metrics,
        console=console,
        console_allow_writes=console_allow_writes,
        brokers=brokers,
        zookeeper=zookeeper,
        node=node,
        cluster=cluster,
        cluster_secret_file=cluster_secret_file,
        log_level=log_level,
        log_format=log_format,
        trace=trace,
    )


@app.command("dump-log")
def dump_log(
    files: Annotated[
        str, typer.Option(metavar="FILE[,…]", help="Files of partitions' directories, separated by commas.")
    ],
    print_data_log: Annotated[
        bool, typer.Option("--print-data-log", help="Print keys and values. A decoder implies it.")
    ] = False,
    deep_iteration: Annotated[bool, typer.Option("--deep-iteration", help="Print records as well as batches.")] = False,
    offsets_decoder: Annotated[
        bool, typer.Option("--offsets-decoder", help="Read the records as those of __consumer_offsets.")
    ] = False,
    transaction_log_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="Read the records as those of __transaction_state.")
    ] = False,
    share_group_state_decoder: Annotated[
        bool, typer.Option("--share-group-state-decoder", help="Read the records as those of __share_group_state.")
    ] = False,
    cluster_metadata_decoder: Annotated[
        bool,
        typer.Option("--cluster-metadata-decoder", help="Read the records as those of __cluster_metadata (KRaft)."),
    ] = False,
    key_decoder_class: Annotated[
        str | None, typer.Option(metavar="NAME", help="StringDecoder, LongDecoder or IntegerDecoder. [StringDecoder]")
    ] = None,
    value_decoder_class: Annotated[str | None, typer.Option(metavar="NAME", help="The same for values.")] = None,
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="Print keys and values only.")
    ] = False,
    verify_index_only: Annotated[
        bool, typer.Option("--verify-index-only", help="Check the entries of indexes against the log, but print none.")
    ] = False,
    index_sanity_check: Annotated[
        bool, typer.Option("--index-sanity-check", help="Check indexes only as Apache Kafka does when it starts.")
    ] = False,
    max_message_size: Annotated[
        int, typer.Option(metavar="BYTES", min=1, help="Bytes to read in search of the batch of an index entry.")
    ] = 5 << 20,
    max_bytes: Annotated[
        int | None, typer.Option(metavar="BYTES", min=0, help="Read .log files only up to this many bytes.")
    ] = None,
) -> None:
    """Print the contents of .log, .checkpoint, .index, .timeindex, .txnindex and .snapshot files, as kafka-dump-log does.

    \b
    Examples:
      ottla dump-log --files data/orders-0/00000000000000000000.log --print-data-log
      ottla dump-log --files data/__consumer_offsets-7/00000000000000000000.log --offsets-decoder
    """
    from .dump_log import run

    sys.exit(
        run(
            files.split(","),
            print_data_log=print_data_log,
            deep_iteration=deep_iteration,
            offsets_decoder=offsets_decoder,
            transaction_log_decoder=transaction_log_decoder,
            share_group_state_decoder=share_group_state_decoder,
            cluster_metadata_decoder=cluster_metadata_decoder,
            key_decoder=key_decoder_class,
            value_decoder=value_decoder_class,
            skip_record_metadata=skip_record_metadata,
            verify_index_only=verify_index_only,
            index_sanity_check=index_sanity_check,
            max_message_size=max_message_size,
            max_bytes=max_bytes,
        )
    )


@app.command()
def verify(
    data_dir: Annotated[Path, typer.Argument(metavar="DATA_DIR", help="The log directory of a stopped broker.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON array.")] = False,
) -> None:
    """Check the log directory of a stopped broker: print each problem, and the effect of a start on it.

    Nothing is written. Exit status: 0 no problems, 1 problems, 2 the directory cannot be checked.

    \b
    Examples:
      ottla verify data
      ottla verify data --json | jq length
    """
    from .verify import run

    sys.exit(run(data_dir, as_json))


@app.command("set-aside")
def set_aside(
    data_dir: Annotated[Path, typer.Argument(metavar="DATA_DIR", help="The log directory of a stopped broker.")],
    partition: Annotated[
        str, typer.Argument(metavar="PARTITION", help="The partition's directory in it: TOPIC-NUMBER.")
    ],
    offset: Annotated[int, typer.Argument(metavar="OFFSET", min=0, help="An offset of the damaged batch.")],
    undo: Annotated[bool, typer.Option("--undo", help="Put the batch back that begins at OFFSET.")] = False,
) -> None:
    """Remove a damaged batch from the log of a stopped broker, so that the records after it are served.

    The batch is copied to a file next to the segment, and replaced by an empty one. 'ottla verify' names damaged batches. If
    another replica has the batch, remove the partition's directory instead: the broker fetches it again.

    Exit status: 0 done, 1 there is no damaged batch, 2 the directory cannot be used.

    \b
    Examples:
      ottla set-aside data __consumer_offsets-3 1200
      ottla set-aside data __consumer_offsets-3 1200 --undo
    """
    from .set_aside import run

    sys.exit(run(data_dir, partition, offset, undo))


@app.command("version")
def print_version() -> None:
    """Print the version, as --version does.

    \b
    Example:
      ottla version
    """
    _show_version(True)
