"""Options that several subcommands have, and ``run``, which ends a subcommand with the right exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

HELP = {"help_option_names": ["-h", "--help"]}

BootstrapServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT[,…]",
        envvar="OTTLA_BOOTSTRAP_SERVER",
        help="Brokers to ask first; port 9092 if none is given.",
    ),
]
DEFAULT_SERVER = "127.0.0.1:9092"
CommandConfig = Annotated[
    Path | None,
    typer.Option("--command-config", metavar="FILE", help="Client settings, a properties file with Kafka's names."),
]
CommandProperty = Annotated[
    list[str] | None,
    typer.Option("--command-property", metavar="NAME=VALUE", help="One client setting; stronger than the file's."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the client's log, and the traceback of a failure.")]


def group_app(name: str, text: str) -> typer.Typer:
    """A subcommand that has subcommands."""
    return typer.Typer(
        name=name,
        help=text,
        no_args_is_help=True,
        add_completion=False,
        context_settings=HELP,
        rich_markup_mode=None,
        callback=lambda: None,
    )


def run(debug: bool, tool: Callable[..., int | None], *arguments: object, **named: object) -> NoReturn:
    """Run a tool and end the process: 0 done, 1 failed, 2 asked for wrongly; a failure is one line on stderr."""
    from ..tools.running import run_tool

    sys.exit(run_tool(debug, tool, *arguments, **named))
