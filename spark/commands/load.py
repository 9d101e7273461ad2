"""``ottla spark load``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ...base.wording import plural
from ..bootstrap_servers import read_brokers
from ..kafka_admin import check_reachable
from ..load import Load, run
from ..session import check_setup
from .following import Json, Metrics, Output
from .session import (
    DEFAULT_SERVER,
    BootstrapServer,
    CommandConfig,
    Debug,
    Jars,
    LogLevel,
    Master,
    SessionOptions,
    Setting,
    names,
    one_line_errors,
    pairs,
    usage_errors,
)


def load(
    source: Annotated[str, typer.Argument(metavar="FILES", help="A file, a directory or a pattern; a path or a URI.")],
    topic: Annotated[str, typer.Option(metavar="NAME", help="The topic to write to.")],
    file_format: Annotated[
        Literal["csv", "json", "parquet"],
        typer.Option("--format", metavar="csv|json|parquet", help="JSON: one object in each line."),
    ],
    checkpoint: Annotated[str, typer.Option(metavar="DIR", help="Directory with the job's progress.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    key: Annotated[
        str | None, typer.Option(metavar="COLUMN[,…]", help="The key: a column, or several as JSON. [none]")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The value. [all columns not used otherwise, as JSON]")
    ] = None,
    headers: Annotated[str | None, typer.Option(metavar="COLUMN[,…]", help="Headers, named as the columns.")] = None,
    timestamp: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Timestamps, or milliseconds. [the time of writing]")
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(metavar="DDL", help="Columns and types: 'id STRING, total DOUBLE'. Without it, CSV is text."),
    ] = None,
    max_bytes_per_trigger: Annotated[
        int, typer.Option(metavar="BYTES", min=1, help="Size of a micro-batch, which a crash may write twice.")
    ] = 256 * 1024 * 1024,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="For Spark's reader: delimiter=;, header=false.")
    ] = None,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
    as_json: Json = False,
    metrics: Metrics = None,
    debug: Debug = False,
) -> None:
    """Write the rows of files to a topic; a second run loads only new files.

    \b
    Examples:
      ottla spark load orders.csv --format csv --topic orders --key id --checkpoint state/orders
      ottla spark load 'in/*.json' --format json --topic events --key user --timestamp at --checkpoint state/events
    """
    with usage_errors():
        job = Load(
            bootstrap_servers=read_brokers(bootstrap_server, command_config),
            source=source,
            topic=topic,
            checkpoint=checkpoint,
            file_format=file_format,
            key=names(key),
            value=value,
            headers=names(headers),
            timestamp=timestamp,
            schema=schema,
            max_bytes_per_trigger=max_bytes_per_trigger,
            options=pairs("--option", option),
        )
        options = SessionOptions(master, jars, pairs("--setting", setting), log_level, debug)
    title = f"load {source} into {topic}"
    shown = Output(title, as_json, metrics, is_one_query=True)
    with one_line_errors(debug=debug):
        check_setup()
        check_reachable(job.bootstrap_servers)
        with shown.running(title, options) as (spark, watch):
            total = run(spark, job, watch)
    shown.end(watch, {"load": total}, f"loaded {total:,} {plural(total, 'record')} into {topic}")
