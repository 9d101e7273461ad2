"""``ottla consume``: the options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from .options import DEFAULT_SERVER, HELP, AsJson, BootstrapServer, CommandConfig, CommandProperty, Debug, run

_LETTERS = "How to print a record: %t %p %o %k %s %T %h, %K %S sizes, %% \\n \\t \\x00."
Template = Annotated[str | None, typer.Option("--format", metavar="TEXT", help=_LETTERS)]

app = typer.Typer(add_completion=False, context_settings=HELP, rich_markup_mode=None)


@app.command()
def consume(
    topic: Annotated[str, typer.Option("--topic", metavar="NAME", help="The topic.")],
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", metavar="N", min=0, help="Only this one; may be repeated.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="NAME", help="As a member of this group, which commits what was printed."),
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="From the oldest record; of a group: if it has committed nothing.")
    ] = False,
    offset: Annotated[
        str | None,
        typer.Option(metavar="OFFSET", help="From this offset of each partition; -10 is the last ten. [end]"),
    ] = None,
    from_timestamp: Annotated[
        str | None, typer.Option(metavar="TIME", help="From the first record as new as this: ISO 8601 or milliseconds.")
    ] = None,
    template: Template = None,
    as_json: AsJson = False,
    max_messages: Annotated[int | None, typer.Option(metavar="N", min=1, help="End after so many.")] = None,
    timeout_ms: Annotated[
        int | None, typer.Option(metavar="MS", min=1, help="End when nothing comes for so long.")
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="End where the topic ends at the start of the run.")
    ] = False,
    isolation_level: Annotated[
        Literal["read_uncommitted", "read_committed"],
        typer.Option(metavar="read_uncommitted|read_committed", help="Whether open and aborted transactions are read."),
    ] = "read_uncommitted",
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Print the records of a topic as they come, until Ctrl-C: the value and a line's end, unless told otherwise.

    --format takes kcat's letters: %t topic, %p partition, %o offset, %k key, %s value, %T timestamp (milliseconds),
    %h headers, %K and %S the sizes of key and value. It adds no line's end of its own.

    \b
    Examples:
      ottla consume --topic orders --from-beginning
      ottla consume --topic orders --offset -10 --until-end --format '%p %o %k: %s\\n'
      ottla consume --topic orders --from-timestamp 2026-01-31T12:00:00 --json | jq .value
      ottla consume --topic orders --group billing --from-beginning --max-messages 100
    """
    from ..tools import client, consume

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    plan = consume.Plan(
        topic=topic,
        partitions=tuple(partition or ()),
        group=group,
        from_beginning=from_beginning,
        offset=offset,
        from_timestamp=from_timestamp,
        template=template,
        as_json=as_json,
        max_messages=max_messages,
        timeout_ms=timeout_ms,
        until_end=until_end,
        isolation_level=isolation_level,
    )
    run(debug, consume.consume, connection, plan)
