"""``ottla top``: the options."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import DEFAULT_SERVER, HELP, AsJson, CommandConfig, CommandProperty, Debug, run

app = typer.Typer(add_completion=False, context_settings=HELP, rich_markup_mode=None)


@app.command()
def top(
    console: Annotated[
        str,
        typer.Option("--console", metavar="HOST:PORT", envvar="OTTLA_CONSOLE", help="Where the broker's console is."),
    ] = "127.0.0.1:8080",
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.5, max=3600, help="Interval of the display.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print once and end, the default into a pipe.")] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Show the activity of a broker until q or Ctrl-C: traffic, the busiest topics, groups by lag, errors of clients.

    It reads the broker's console ('ottla serve --console 127.0.0.1:8080'). If the console requires a log-in, the client
    settings have the password, for PLAIN or SCRAM.

    \b
    Examples:
      ottla top
      ottla top --console 127.0.0.1:8081 --interval 5
      ottla top --command-config admin.properties
      ottla top --json | jq -r '.groups[] | [.group_id, .lag] | @tsv'
    """
    from ..tools.client import ClusterConnection
    from ..tools.top import show

    connection = ClusterConnection.of(DEFAULT_SERVER, command_config, command_property)
    run(debug, show, connection, console, interval, once=once, as_json=as_json)
