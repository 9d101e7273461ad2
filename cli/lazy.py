"""Groups of subcommands that are imported when they are named, with suggestions for misspelt names.

They take the tools' common options before a subcommand. Importing late keeps ``ottla --help`` quick.

``LAZY`` says for each name the module that declares it, as an ``app``, and its line in the help. What such a module
imports at its head is typer and nothing of clients or brokers; its functions import what does the work.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup


class Lazy(NamedTuple):
    """Where a subcommand is declared, and what the list of subcommands says of it."""

    module: str
    summary: str


LAZY = {
    "dev-cluster": Lazy(".commands.dev_cluster", "Run a cluster of brokers in this process, to develop against."),
    "doctor": Lazy(".commands.doctor", "Check a broker or a cluster, and print how to fix each problem."),
    "topics": Lazy(".commands.topics", "Create, list, describe, alter, trim and delete topics."),
    "produce": Lazy(".commands.produce", "Write lines, or JSON lines, of standard input or files to a topic."),
    "consume": Lazy(".commands.consume", "Print the records of topics."),
    "groups": Lazy(".commands.groups", "List and describe consumer groups, move their offsets, delete them."),
    "transactions": Lazy(
        ".commands.transactions", "List and describe transactions, find those that hang, and abort them."
    ),
    "configs": Lazy(".commands.configs", "Describe, set and unset the settings of topics and brokers."),
    "users": Lazy(".commands.users", "Add, list and remove users with SCRAM passwords."),
    "quotas": Lazy(".commands.quotas", "Describe, set and unset the quotas of users, client ids and addresses."),
    "acls": Lazy(".commands.acls", "Add, list and remove access rules."),
    "top": Lazy(".commands.top", "Show the activity of a broker: traffic, busiest topics, lag, errors."),
    "console": Lazy(".commands.console", "Serve the console for any Kafka: pages of topics, records and groups."),
    "cluster": Lazy(".commands.cluster", "Describe the cluster, elect leaders, drain a broker."),
    "log-dirs": Lazy(".commands.log_dirs", "Show the log directories of brokers and their contents."),
    "format": Lazy(
        ".commands.format", "Format the log directories of a node of a KRaft cluster, as kafka-storage does."
    ),
    "migrate": Lazy(".commands.migrate", "Move a cluster out of its ZooKeeper into a KRaft quorum."),
    "certs": Lazy(".commands.certs", "Make certificates for development: an authority, brokers, clients."),
    "perf": Lazy(".commands.perf", "Measure throughput and latency of producing and consuming."),
    "compat": Lazy(".commands.compat", "Run the tests of stock clients against any broker (needs the extra compat)."),
    "spark": Lazy("..spark.cli", "Spark jobs on topics (needs the extra spark, and Java 17)."),
}


MEANT = {
    "add-partitions": "alter",
    "alter-config": "alter",
    "consumer-groups": "groups",
    "delete-records": "trim",
    "info": "describe",
    "lag": "describe",
    "metadata": "describe",
    "offset-delete": "delete",
    "seek": "reset-offsets",
    "trim-prefix": "trim",
    "txn": "transactions",
}
"""What other tools, Kafka's and rpk, call it, where that is not similar to its name here."""


KCATS_MODES = {
    "-C": "consume",
    "-G": "consume -G",
    "-L": "topics list",
    "-P": "produce",
    "-Q": "consume -o @MS",
    "-t": "consume -t",
}
"""What kcat's options in place of a command are here."""

_FLAGS = {"--debug"}
_WITH_VALUE = {"--bootstrap-server", "--command-config", "--command-property", "-b", "-X"}
"""Options that all tools have."""


class SuggestingGroup(TyperGroup):
    """A group that says what was meant when a subcommand is not there.

    What all tools take may stand before the subcommand, as with kcat and rpk. Those that take it not refuse it.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        common, rest = _split(args)
        is_named = rest and not rest[0].startswith("-")
        return super().parse_args(ctx, [rest[0], *common, *rest[1:]] if is_named else rest)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-") and not ctx.resilient_parsing:
            meant, root = MEANT.get(name), ctx.find_root()
            if meant in names:
                close = [meant]
            elif name in root.command.list_commands(root):
                close = [f"{root.command_path} {name}"]
            else:
                close = difflib.get_close_matches(name, names, n=1)
            if close:
                ctx.fail(f"No such command {name!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)


def _split(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of all tools at the beginning, each with its value, and the rest."""
    end = 0
    while end < len(args):
        word = args[end]
        if word in _WITH_VALUE:
            end += 2
        elif word in _FLAGS or word.partition("=")[0] in _WITH_VALUE or word[:2] in _WITH_VALUE:
            end += 1
        else:
            break
    return list(args[:end]), list(args[end:])


class LazyGroup(SuggestingGroup):
    """The declared subcommands and, after them, the lazy ones. Options of kcat and Kafka's tools are told what they are here."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        with _told_what_was_meant():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with _told_what_was_meant():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *LAZY]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in LAZY:
            return super().get_command(ctx, cmd_name)
        module = LAZY[cmd_name].module
        declared = importlib.import_module(module, __package__)
        command = typer.main.get_command(declared.app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = []
        for name in self.list_commands(ctx):
            if name in LAZY:
                rows.append((name, LAZY[name].summary))
            else:
                command = super().get_command(ctx, name)
                assert command is not None
                rows.append((name, command.get_short_help_str(limit=200)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@contextmanager
def _told_what_was_meant() -> Iterator[None]:
    """Say more where an option is not there. Its error is click's own, or of the click that comes with typer."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ == "NoSuchOption":
            _add_what_was_meant(error)
        raise


def _add_what_was_meant(error: Any) -> None:
    option, context = error.option_name, error.ctx
    if context is None:
        return
    of_topics = [
        each
        for each in context.command.params
        if each.param_type_name == "argument" and "TOPIC" in (each.metavar or "")
    ]
    if context.parent is None and option in KCATS_MODES:
        error.message += f". Did you mean '{context.command_path} {KCATS_MODES[option]}'?"
    elif option in ("-t", "--topic") and of_topics:
        error.message += f". Topics stand without it: '{context.command_path} {of_topics[0].metavar}'."
