"""``ottla spark archive``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...base.wording import counted, plural
from ..archive import Archive, run
from ..bootstrap_servers import read_brokers
from ..compaction import Compacted
from ..kafka_admin import check_reachable
from ..session import check_setup
from .following import Json, Metrics, Output
from .session import (
    DEFAULT_SERVER,
    BootstrapServer,
    CommandConfig,
    Debug,
    Every,
    Group,
    Jars,
    LogLevel,
    Master,
    MaxOffsetsPerTrigger,
    Pattern,
    SessionOptions,
    Setting,
    SourceOption,
    names,
    one_line_errors,
    pairs,
    usage_errors,
)


def archive(
    output: Annotated[str, typer.Option(metavar="DIR", help="Directory (or URI) of the Parquet files.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    topics: Annotated[str | None, typer.Option(metavar="NAME[,…]", help="Topics to archive.")] = None,
    pattern: Pattern = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where the job keeps its progress. [OUTPUT/_checkpoint]")
    ] = None,
    starting_offsets: Annotated[
        str, typer.Option(metavar="earliest|latest|JSON", help="Where the first run begins; later ones continue.")
    ] = "earliest",
    max_offsets_per_trigger: MaxOffsetsPerTrigger = None,
    every: Every = None,
    hourly: Annotated[bool, typer.Option("--hourly", help="Directories by topic, date and hour.")] = False,
    fail_on_data_loss: Annotated[
        bool, typer.Option(help="Stop if records were deleted before they were archived.")
    ] = True,
    compact: Annotated[
        bool, typer.Option("--compact", help="At the end, merge the small files of days that are over into large ones.")
    ] = False,
    target_file_size: Annotated[
        int, typer.Option(metavar="MB", min=1, help="Approximate size of the large files.")
    ] = 128,
    group: Group = None,
    option: SourceOption = None,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
    as_json: Json = False,
    metrics: Metrics = None,
    debug: Debug = False,
) -> None:
    """Write topics to Parquet files, partitioned by topic and date; a second run continues where the first ended.

    \b
    Examples:
      ottla spark archive --topics orders --output archive
      ottla spark archive --pattern 'orders-.*' --output s3a://bucket/archive --hourly --every 60
      ottla spark archive --pattern 'orders-.*' --output archive --compact
    """
    with usage_errors():
        source_options = pairs("--option", option)
        job = Archive(
            bootstrap_servers=read_brokers(bootstrap_server, command_config),
            output=output,
            topics=names(topics),
            pattern=pattern,
            checkpoint=checkpoint,
            starting_offsets=starting_offsets,
            max_offsets_per_trigger=max_offsets_per_trigger,
            every_s=every,
            hourly=hourly,
            fail_on_data_loss=fail_on_data_loss,
            compact_bytes=target_file_size * 1_000_000 if compact else None,
            group=default_group(output, source_options) if group is None else group,
            options=source_options,
        )
        options = SessionOptions(master, jars, pairs("--setting", setting), log_level, debug)
    title = f"archive to {output}"
    shown = Output(title, as_json, metrics, is_one_query=True)
    with one_line_errors(debug=debug):
        check_setup()
        check_reachable(job.bootstrap_servers)
        with shown.running(title, options) as (spark, watch):
            total = run(spark, job, watch, lambda compacted: _print_compacted(compacted, as_json))
    shown.end(watch, {"archive": total}, f"archived {total:,} {plural(total, 'record')} to {job.output}")


def default_group(output: str, options: Mapping[str, str]) -> str:
    """The default group, named after the last directory; none if options for connecting are given to Spark only."""
    if any(name.startswith(("kafka.security.", "kafka.sasl.", "kafka.ssl.")) for name in options):
        return ""
    return f"ottla-archive-{Path(output.rpartition('://')[2]).resolve().name}"


def _print_compacted(compacted: Compacted, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"compacted": asdict(compacted)}))
    else:
        typer.echo(f"compacted {compacted.folder}: {counted(compacted.before, 'file')} into {compacted.after}")
