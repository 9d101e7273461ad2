"""``ottla spark mirror``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...base.wording import plural
from ..bootstrap_servers import read_brokers
from ..kafka_admin import check_reachable
from ..mirror.job import Mirror, Mirrored, run
from ..session import check_setup
from .following import Json, Metrics, Output
from .session import (
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
    names,
    one_line_errors,
    pairs,
    usage_errors,
)


def mirror(
    source: Annotated[str, typer.Option("--from", metavar="HOST:PORT[,…]", help="Brokers of the source cluster.")],
    target: Annotated[str, typer.Option("--to", metavar="HOST:PORT[,…]", help="Brokers of the target cluster.")],
    checkpoint: Annotated[str, typer.Option(metavar="DIR", help="Where the job keeps its progress.")],
    from_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kafka's client properties for the source.")
    ] = None,
    to_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kafka's client properties for the target.")
    ] = None,
    topics: Annotated[str | None, typer.Option(metavar="NAME[,…]", help="Topics to mirror.")] = None,
    pattern: Pattern = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Prefix of the topics' names at the target.")] = "",
    groups: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Carry over the offsets of groups whose whole name matches.")
    ] = None,
    starting_offsets: Annotated[
        str, typer.Option(metavar="earliest|latest", help="Where the first run begins; later ones continue.")
    ] = "earliest",
    max_offsets_per_trigger: MaxOffsetsPerTrigger = None,
    every: Every = None,
    fail_on_data_loss: Annotated[
        bool, typer.Option(help="Stop if records were deleted before they were mirrored.")
    ] = True,
    group: Group = None,
    sync_configs: Annotated[
        bool,
        typer.Option(
            help="Keep the configs of the target's topics like the source's; otherwise only when they are created."
        ),
    ] = True,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
    as_json: Json = False,
    metrics: Metrics = None,
    debug: Debug = False,
) -> None:
    """Copy topics to another cluster, each record once; consumer groups can be moved there.

    \b
    Examples:
      ottla spark mirror --from east:9092 --to west:9092 --topics orders --checkpoint state
      ottla spark mirror --from east:9092 --to west:9092 --pattern '.*' --prefix east. --groups '.*' --every 10 --checkpoint state
    """
    with usage_errors():
        job = Mirror(
            source=read_brokers(source, from_config),
            target=read_brokers(target, to_config),
            checkpoint=checkpoint,
            topics=names(topics),
            pattern=pattern,
            prefix=prefix,
            groups=groups,
            starting_offsets=starting_offsets,
            max_offsets_per_trigger=max_offsets_per_trigger,
            every_s=every,
            fail_on_data_loss=fail_on_data_loss,
            group=group,
            sync_configs=sync_configs,
        )
        options = SessionOptions(master, jars, pairs("--setting", setting), log_level, debug)
    shown = Output(f"mirror to {target}", as_json, metrics, is_one_query=True)
    _run(job, options, shown, target)


def _run(job: Mirror, options: SessionOptions, shown: Output, target: str) -> None:
    """Run the job; ``target`` is shown as it was given."""
    done = Mirrored()
    with one_line_errors(debug=options.debug):
        check_setup()
        check_reachable(job.source)
        check_reachable(job.target)
        with shown.running(shown.title, options) as (spark, watch):
            run(spark, job, done, watch)
    shown.end(
        watch,
        {"mirror": done.records},
        f"mirrored {done.records:,} {plural(done.records, 'record')} to {target}",
        *(f"group {group}: offsets are at the target" for group in done.carried.groups),
        *(f"group {group}: in use at the target, left alone" for group in done.carried.in_use),
    )
