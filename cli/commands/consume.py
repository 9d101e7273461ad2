"""``ottla consume``: the options."""

from __future__ import annotations

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
    NamedTopics,
    Partitions,
    no_topic,
    numbers,
    run,
)

app = typer.Typer(add_completion=False, context_settings=HELP, rich_markup_mode=None)

TopicsOrPatterns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC…", help="The topics; '^orders.*' is a pattern for names.", autocompletion=completion.topics
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        "-G",
        metavar="NAME",
        help="Read as a member of this group, which commits the printed records.",
        autocompletion=completion.groups,
    ),
]
Share = Annotated[
    str | None,
    typer.Option(
        "--share",
        metavar="NAME",
        help="Read as a member of this share group, which acknowledges the printed records.",
        autocompletion=completion.groups,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--offset",
        "-o",
        metavar="WHERE",
        help="Where to start and stop reading (see below). With a group: used when it has no committed offset. [start]",
    ),
]
Template = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="TEXT", help="The format of a record (see below)."),
]
KeySeparator = Annotated[
    str | None,
    typer.Option("--key-separator", "-K", metavar="TEXT", help="Print the key, this text and the value."),
]
ShowNull = Annotated[
    bool, typer.Option("--null", "-Z", help="Print NULL for a key or value that is null, not nothing.")
]
Num = Annotated[
    int | None, typer.Option("--num", "-n", "-c", metavar="N", min=1, help="End after this number of records.")
]
UntilEnd = Annotated[bool, typer.Option("--until-end", "-e", help="End at the topics' ends at the time of the start.")]
Timeout = Annotated[int | None, typer.Option(metavar="MS", min=1, help="End when no record comes for this long.")]
IsolationLevel = Annotated[
    Literal["read_uncommitted", "read_committed"],
    typer.Option(metavar="read_uncommitted|read_committed", help="Whether open and aborted transactions are read."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Don't print to a terminal that a partition's end is reached.")
]


@app.command()
def consume(
    topics: TopicsOrPatterns = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    topic: NamedTopics = None,
    partitions: Partitions = None,
    group: Group = None,
    share: Share = None,
    offset: Where = None,
    template: Template = None,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="A JSON object in a line for each record.")] = False,
    key_separator: KeySeparator = None,
    show_null: ShowNull = False,
    num: Num = None,
    until_end: UntilEnd = False,
    timeout_ms: Timeout = None,
    isolation_level: IsolationLevel = "read_uncommitted",
    quiet: Quiet = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Print the values of topics' records, a line each, from the oldest and as they arrive, until Ctrl-C.

    Where (--offset): start, end, 47, -10 (the last ten), +10 (ten after the start), 10:20 (20 excluded), :end (up to the
    present end). With @TIME and @TIME:TIME reading begins at the first record of that time or later. A time is 2026-01-31,
    2026-01-31T12:00:00Z, milliseconds since 1970, or -1h for an hour ago. In kcat's form, s@MS and e@MS are one --offset each.

    Format: kcat's letters are %t topic, %p partition, %o offset, %k key, %s value, %T timestamp in milliseconds, %h headers,
    %K and %S the sizes of key and value. Letters of rpk are %v value, %d timestamp, %H number of headers, with {hex} or {base64}
    behind a letter. Write \\n for a line's end and \\t for a tab. No line's end is added. With --share %c is the delivery count.

    \b
    Examples:
      ottla consume orders
      ottla consume orders -n 5 -o end -f '%k %s\\n'
      ottla consume orders -o -10 -e -f '%p %o %k: %s\\n'
      ottla consume '^orders.*' -o @-1h:end --json | jq .value
      ottla consume orders payments --group billing -n 100
      ottla consume jobs --share workers -f '%c %o %s\\n'
    """
    from ..tools import client
    from ..tools.records import consume, share_consume

    connection = client.ClusterConnection.of(bootstrap_server, command_config, command_property)
    plan = consume.ConsumeOptions(
        topics=(*(topics or ()), *(topic or ())) or no_topic("TOPIC…"),
        partitions=numbers("--partitions", partitions),
        group=group,
        share=share,
        offsets=tuple(offset or ()),
        template=template,
        key_separator=key_separator,
        show_null=show_null,
        as_json=as_json,
        max_records=num,
        timeout_ms=timeout_ms,
        until_end=until_end,
        isolation_level=isolation_level,
        quiet=quiet,
    )
    run(debug, consume.consume if share is None else share_consume.consume, connection, plan)
