"""Groups of subcommands: they tell what was meant, and import one when it is named, so that ``ottla --help`` stays quick.

``LAZY`` says for each name the module that declares it, as an ``app``, and its line in the help. What such a module
imports at its head is typer and nothing of clients or brokers; its functions import what does the work.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup


class Lazy(NamedTuple):
    """Where a subcommand is declared, and what the list of subcommands says of it."""

    module: str
    summary: str


LAZY = {
    "dev-cluster": Lazy(".commands.dev_cluster", "Run a cluster of brokers in this process, to develop against."),
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
    "acls": Lazy(".commands.acls", "Add, list and remove access rules: who may do what."),
    "top": Lazy(".commands.top", "Show what a broker is doing: traffic, busiest topics, lag, errors."),
    "console": Lazy(".commands.console", "Serve the console for any Kafka: pages of topics, records and groups."),
    "cluster": Lazy(".commands.cluster", "Describe the cluster, elect leaders, drain a broker."),
    "log-dirs": Lazy(".commands.log_dirs", "Show the data folders of brokers, and what is in them."),
    "certs": Lazy(".commands.certs", "Make certificates for development: an authority, brokers, clients."),
    "perf": Lazy(".commands.perf", "Measure throughput and latency of producing and consuming."),
    "compat": Lazy(
        ".commands.compat", "Run stock clients against any broker (needs the extra compat): who can do what."
    ),
    "spark": Lazy("..spark.cli", "Spark jobs on topics (needs the extra spark, and Java 17)."),
}


MEANT = {
    "add-partitions": "alter",
    "alter-config": "alter",
    "consumer-groups": "groups",
    "delete-records": "trim",
    "offset-delete": "delete",
    "seek": "reset-offsets",
    "trim-prefix": "trim",
    "txn": "transactions",
}
"""What other tools, Kafka's and rpk, call it, where that is not similar to its name here."""


class SuggestingGroup(TyperGroup):
    """A group that says what was meant when a subcommand is not there."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-") and not ctx.resilient_parsing:
            meant = MEANT.get(name)
            close = [meant] if meant in names else difflib.get_close_matches(name, names, n=1)
            if close:
                ctx.fail(f"No such command {name!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """The declared subcommands and, after them, the lazy ones."""

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
