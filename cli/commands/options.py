"""Options shared by several subcommands, and ``run``, which ends a subcommand with the right exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ..lazy import SuggestingGroup
from . import completion

HELP = {"help_option_names": ["-h", "--help"]}

BootstrapServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT[,…]",
        envvar="OTTLA_BOOTSTRAP_SERVERS",
        help="Brokers to ask first; port 9092 if none is given.",
    ),
]
DEFAULT_SERVER = "127.0.0.1:9092"
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        envvar="OTTLA_COMMAND_CONFIG",
        help="Client settings, a properties file with Kafka's names.",
    ),
]
CommandProperty = Annotated[
    list[str] | None,
    typer.Option(
        "--command-property", "-X", metavar="NAME=VALUE", help="One client setting; stronger than the file's."
    ),
]
FirstRelease = Annotated[
    str | None,
    typer.Option(
        "--release-version", "-r", metavar="VERSION", help="The release whose features the cluster begins with."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC…", help="The topics.", autocompletion=completion.topics)]
SomeTopics = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TOPIC…]", help="The topics. [all]", autocompletion=completion.topics),
]
SomePartitions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TOPIC[:0,1,…]…]", help="Topics, or some partitions of them. [all]", autocompletion=completion.topics
    ),
]
NamedTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="NAME",
        help="A topic, as with kcat; may be repeated.",
        autocompletion=completion.topics,
    ),
]
NamedTopic = Annotated[
    str | None,
    typer.Option("--topic", "-t", metavar="NAME", help="The topic, as with kcat.", autocompletion=completion.topics),
]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=completion.topics)]
Partitions = Annotated[
    str | None, typer.Option("--partitions", "-p", metavar="0,2,…", help="Only these partitions of each topic. [all]")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the client's log, and the traceback of a failure.")]


def group_app(name: str, text: str) -> typer.Typer:
    """A subcommand that has subcommands."""
    return typer.Typer(
        name=name,
        help=text,
        cls=SuggestingGroup,
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


def no_topic(metavar: str) -> NoReturn:
    """Raises typer.BadParameter: a topic is named neither as an argument nor by --topic."""
    raise typer.BadParameter("name a topic, there or with --topic", param_hint=f"'{metavar}'")


def numbers(option: str, text: str | None) -> tuple[int, ...]:
    """``0,2`` as numbers; none for None. Raises typer.BadParameter."""
    words = [] if text is None else text.split(",")
    if not all(word.strip().isdigit() for word in words):
        raise typer.BadParameter(f"it takes 0,2,…, not {text!r}", param_hint=option)
    return tuple(int(word) for word in words)
