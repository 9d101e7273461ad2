"""``ottla spark lag``."""

from __future__ import annotations

import datetime
import json
import threading
from typing import Annotated

import typer

from ..bootstrap_servers import read_brokers
from ..kafka_admin import check_reachable
from ..lag.job import GroupLag, Lag, run
from ..lag.rules import LagStatus
from ..session import check_setup
from .following import first_signal_sets
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
    one_line_errors,
    pairs,
    session,
    usage_errors,
)


def lag(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    groups: Annotated[str, typer.Option(metavar="REGEX", help="Groups whose whole name matches.")] = ".*",
    window: Annotated[
        int, typer.Option(metavar="N", min=2, help="Number of commits of a partition that decide its status.")
    ] = 10,
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0.1, help="Repeat until stopped, at this interval.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Append each result to Parquet files in this directory (or URI)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each group.")] = False,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
    debug: Debug = False,
) -> None:
    """Show how far consumer groups are behind, and their status by Burrow's rules.

    \b
    Examples:
      ottla spark lag
      ottla spark lag --groups 'billing.*' --every 60 --json
    """
    with usage_errors():
        job = Lag(read_brokers(bootstrap_server, command_config), groups, window, every, output)
        options = SessionOptions(master, jars, pairs("--setting", setting), log_level, debug)
    stop = threading.Event()
    with one_line_errors(debug=debug), first_signal_sets(stop):
        check_setup()
        check_reachable(job.bootstrap_servers)
        with session("lag", options) as spark:
            run(spark, job, _show_json if as_json else _show_table, stop)
    if stop.is_set():
        typer.echo("stopped", err=True)


def _show_json(now_ms: int, groups: list[GroupLag]) -> None:
    at = datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC).isoformat(timespec="milliseconds")
    for group in groups:
        partitions = [
            {
                "topic": each.place.topic,
                "partition": each.place.partition,
                "status": each.status.name,
                "offset": each.offset,
                "end": each.end,
                "lag": each.lag,
                "commits": [commit._asdict() for commit in each.commits],
            }
            for each in group.partitions
        ]
        typer.echo(
            json.dumps(
                {"time": at, "group": group.group, "status": group.status.name, "lag": group.lag}
                | {"partitions": partitions}
            )
        )


def _show_table(_: int, groups: list[GroupLag]) -> None:
    """A line for each group, and below it one for each of its partitions that is not OK."""
    lines = [("GROUP", "STATUS", "OFFSET", "END", "LAG")]
    for group in groups:
        lines.append((group.group, group.status.name, "", "", f"{group.lag}"))
        lines += [
            (
                f"  {each.place.topic}-{each.place.partition}",
                each.status.name,
                f"{each.offset}",
                f"{each.end}",
                f"{each.lag}",
            )
            for each in group.partitions
            if each.status is not LagStatus.OK
        ]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    for line in lines:
        name, status, *numbers = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        right = [text.strip().rjust(width) for text, width in zip(numbers, widths[2:], strict=True)]
        typer.echo("  ".join([name, status, *right]))
