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
        help="As a member of this group, which commits what was printed.",
        autocompletion=completion.groups,
    ),
]
Share = Annotated[
    str | None,
    typer.Option(
        "--share",
        metavar="NAME",
        help="As a member of this share group, which acknowledges what was printed.",
        autocompletion=completion.groups,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--offset",
        "-o",
        metavar="WHERE",
        help="From where, and to where: see below. Of a group: if it has committed nothing. [start]",
    ),
]
Template = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="TEXT", help="How to print a record: see below."),
]
KeySeparator = Annotated[
    str | None,
    typer.Option("--key-separator", "-K", metavar="TEXT", help="Print the key, this text and the value."),
]
ShowNull = Annotated[
    bool, typer.Option("--null", "-Z", help="Print NULL for a key or value that is null, not nothing.")
]
Num = Annotated[int | None, typer.Option("--num", "-n", "-c", metavar="N", min=1, help="End after so many records.")]
UntilEnd = Annotated[bool, typer.Option("--until-end", "-e", help="End where the topics end at the start of the run.")]
Timeout = Annotated[int | None, typer.Option(metavar="MS", min=1, help="End when no record comes for this long.")]
IsolationLevel = Annotated[
    Literal["read_uncommitted", "read_committed"],
    typer.Option(metavar="read_uncommitted|read_committed", help="Whether open and aborted transactions are read."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Don't tell on a terminal when a partition's end is reached.")
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
    """Print the records of topics, from the oldest on and as they come, until Ctrl-C: the value and a line's end.

    Where (--offset): start, end, 47; -10 the last ten; +10 ten after the start; 10:20 from and up to, but not with; :end up to
    the present end; @TIME and @TIME:TIME from the first record as new as that, where a time is 2026-01-31, 2026-01-31T12:00:00Z,
    milliseconds since 1970, or -1h for an hour ago. s@MS and e@MS, one --offset each, are kcat's.

    Format: kcat's letters: %t topic, %p partition, %o offset, %k key, %s value, %T timestamp in milliseconds, %h headers, %K and
    %S the sizes of key and value; and rpk's %v value, %d timestamp, %H number of headers, with {hex} or {base64} behind a letter.
    \\n and \\t are a line's end and a tab; none is added. With --share %c is how often the record was delivered.

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
