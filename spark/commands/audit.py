"""``ottla spark audit``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..audit import Audit, Compared, compare, ranges_text, records
from ..bootstrap_servers import read_brokers
from ..kafka_admin import check_reachable
from ..numbers import Numbers, ProducerNumbers, count_numbers
from ..query import JobError
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
from .tables import print_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMPARED = ("topic", "partition", "start", "end", "records", "archived", "lost", "doubled", "changed", "extra")
_PARTITIONS = ("topic", "partition", "records", "doubled", "reordered", "other")
_PRODUCERS = ("topic", "producer", "expected", "lost", "doubled")


def audit(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    topics: Annotated[str | None, typer.Option(metavar="NAME[,…]", help="Topics to audit.")] = None,
    archive: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Archive of 'ottla spark archive', instead of topics or to compare with them."
        ),
    ] = None,
    number: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="The number of a record, from its columns; key and value are text."),
    ] = None,
    producer: Annotated[
        str | None, typer.Option(metavar="SQL", help="The producer that numbered the record. [one for all]")
    ] = None,
    expected: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Each producer wrote 0 to N-1. [0 to its greatest number]")
    ] = None,
    option: SourceOption = None,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    debug: Debug = False,
) -> None:
    """Count lost, doubled and reordered records; exit status 1 if there are any.

    With topics and an archive: is each record of the topics in the archive, once and unchanged? With --number, for records
    that producers have numbered from 0: which numbers are missing, doubled, or in the wrong order within a partition?

    \b
    Examples:
      ottla spark audit --topics orders --archive archive
      ottla spark audit --topics load --number value --expected 200000
      ottla spark audit --archive archive --number "get_json_object(value, '$.n')" --producer key
    """
    with usage_errors():
        job = Audit(
            bootstrap_servers=read_brokers(bootstrap_server, command_config),
            topics=names(topics),
            archive=archive,
            number=number,
            producer=producer,
            expected=expected,
            options=pairs("--option", option),
        )
        options = SessionOptions(master, jars, pairs("--setting", setting), log_level, debug)
    with one_line_errors(debug=debug):
        check_setup()
        if job.topics:
            check_reachable(job.bootstrap_servers)
        with session("audit", options) as spark:
            compared, numbers = _results(spark, job)
    if as_json:
        _print_json(compared, numbers)
    else:
        _print(compared, numbers)
    is_clean = all(each.is_clean for each in compared or ()) and (numbers is None or numbers.is_clean)
    raise typer.Exit(0 if is_clean else 1)


def _results(spark: SparkSession, job: Audit) -> tuple[list[Compared] | None, Numbers | None]:
    compared = compare(spark, job) if job.topics and job.archive is not None else None
    if job.number is None:
        return compared, None
    numbers = count_numbers(records(spark, job), job)
    if not numbers.producers and not numbers.partitions:
        raise JobError("there are no records")
    return compared, numbers


def _print_json(compared: list[Compared] | None, numbers: Numbers | None) -> None:
    found: dict[str, Any] = {}
    if compared is not None:
        found["compared"] = [asdict(each) for each in compared]
    if numbers is not None:
        found["partitions"] = [asdict(each) for each in numbers.partitions]
        found["producers"] = [asdict(each) for each in numbers.producers]
    typer.echo(json.dumps(found, indent=2))


def _print(compared: list[Compared] | None, numbers: Numbers | None) -> None:
    if compared is not None:
        _table(_COMPARED, compared)
        for each in compared:
            if each.lost_offsets:
                typer.echo(f"{each.topic}-{each.partition}: lost {_ranges(each.lost_offsets, each.lost)}")
    if numbers is not None:
        _table(_PARTITIONS, numbers.partitions)
        _table(_PRODUCERS, numbers.producers)
        for producer in numbers.producers:
            for line in _findings(producer):
                typer.echo(line)


def _findings(producer: ProducerNumbers) -> Sequence[str]:
    who = f"{producer.topic}, {producer.producer}" if producer.producer else producer.topic
    lost, doubled = producer.lost_numbers, producer.doubled_numbers
    lines = [f"{who}: lost {_ranges(lost, producer.lost)}"] if lost else []
    return [*lines, f"{who}: doubled {ranges_text(doubled)}"] if doubled else lines


def _ranges(ranges: Sequence[tuple[int, int]], total: int) -> str:
    """All ranges, or the first ones."""
    shown = sum(last - first + 1 for first, last in ranges)
    return ranges_text(ranges) + (", …" if shown < total else "")


def _table(columns: Sequence[str], rows: Sequence[Any]) -> None:
    print_table(columns, [[getattr(row, column) for column in columns] for row in rows])
