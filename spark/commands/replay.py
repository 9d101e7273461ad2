"""``ottla spark replay``."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated

import typer

from ...base.wording import plural
from ..bootstrap_servers import read_brokers
from ..kafka_admin import check_reachable
from ..query import JobError
from ..reader import check_offsets
from ..replay import Offsets, Replay, run
from ..session import check_setup
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
    SourceOption,
    names,
    one_line_errors,
    pairs,
    session,
    usage_errors,
)


def replay(
    to_topic: Annotated[str, typer.Option(metavar="NAME", help="The topic to write to.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    topics: Annotated[str | None, typer.Option(metavar="NAME[,…]", help="Topics to replay.")] = None,
    archive: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Replay an archive of 'ottla spark archive': all of it, or the topics."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Records from this time on: 2026-11-20T08:00:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Records before this time.")] = None,
    starting_offsets: Annotated[
        str | None, typer.Option(metavar="JSON", help='From these offsets on: {"orders": {"0": 100}}.')
    ] = None,
    ending_offsets: Annotated[
        str | None, typer.Option(metavar="JSON", help="Up to these offsets, which are not included.")
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Only records for which this is true; key and value are bytes.")
    ] = None,
    keep_partitions: Annotated[
        bool, typer.Option("--keep-partitions", help="Write each record to the partition it came from. [by its key]")
    ] = False,
    rate: Annotated[
        float | None, typer.Option(metavar="N", min=0.001, help="Most records per second. [no limit]")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of this replay; another name starts again. [made from the options]"),
    ] = None,
    option: SourceOption = None,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
    as_json: Annotated[bool, typer.Option("--json", help="Print the number of records as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Write records of topics or of an archive to a topic again, with their keys, headers and timestamps.

    If it was killed, and is run again with the same options, it continues: no record is written twice.

    \b
    Examples:
      ottla spark replay --topics orders --since 2026-11-20T08:00:00Z --until 2026-11-20T09:00:00Z --to-topic again
      ottla spark replay --archive archive --topics orders --to-topic orders-2 --keep-partitions --rate 5000
    """
    with usage_errors():
        job = Replay(
            bootstrap_servers=read_brokers(bootstrap_server, command_config),
            to_topic=to_topic,
            topics=names(topics),
            archive=archive,
            since=_time("--since", since),
            until=_time("--until", until),
            starting_offsets=_offsets(starting_offsets),
            ending_offsets=_offsets(ending_offsets),
            where=where,
            keep_partitions=keep_partitions,
            rate=rate,
            name=name,
            options=pairs("--option", option),
        )
        options = SessionOptions(master, jars, pairs("--setting", setting), log_level, debug)
    total = _run(job, options)
    said = f"replayed {total:,} {plural(total, 'record')} to {to_topic}"
    typer.echo(json.dumps({"records": total}) if as_json else said)


def _run(job: Replay, options: SessionOptions) -> int:
    """Run the job. Returns the number of records."""
    with one_line_errors(debug=options.debug):
        check_setup()
        check_reachable(job.bootstrap_servers)
        with session(f"replay to {job.to_topic}", options) as spark:
            return run(spark, job)


def _time(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise JobError(f"{option} takes a time like 2026-11-20T08:00:00Z, not {text!r}") from None
    if moment.tzinfo is None:
        raise JobError(f"{option} {text} has no time zone: write {text}Z for UTC")
    return moment


def _offsets(text: str | None) -> Offsets:
    if text is None:
        return {}
    check_offsets(text)
    found: Offsets = json.loads(text)
    if any(offset < 0 for partitions in found.values() for offset in partitions.values()):
        raise JobError("offsets of a replay are 0 or more: omit a partition for its beginning or its end")
    return found
