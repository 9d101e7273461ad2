"""Shell commands that show a page's content in a terminal, quoted whatever a topic or group is called."""

from __future__ import annotations

import shlex
from typing import NamedTuple


class Command(NamedTuple):
    """A command line for what a page shows or does."""

    ottla: str
    """Ottla's command."""
    kafka: str = ""
    """That of Apache Kafka's tools; empty if there is none."""


def line(*words: str) -> str:
    """A line for a shell."""
    return " ".join(map(shlex.quote, words))


def named(name: str) -> tuple[str, ...]:
    """The last words of one of Ottla's: a name, which is no option even where it looks like one."""
    return ("--", name) if name.startswith("-") else (name,)


def topics(server: str) -> Command:
    return Command(
        line("ottla", "topics", "list", "-b", server), line("kafka-topics.sh", "--bootstrap-server", server, "--list")
    )


def topic(server: str, name: str) -> Command:
    return Command(
        line("ottla", "topics", "describe", "-b", server, *named(name)),
        line("kafka-topics.sh", "--bootstrap-server", server, "--describe", "--topic", name),
    )


def groups(server: str) -> Command:
    return Command(
        line("ottla", "groups", "list", "-b", server),
        line("kafka-consumer-groups.sh", "--bootstrap-server", server, "--list"),
    )


def group(server: str, group_id: str) -> Command:
    return Command(
        line("ottla", "groups", "describe", "-b", server, *named(group_id)),
        line("kafka-consumer-groups.sh", "--bootstrap-server", server, "--describe", "--group", group_id),
    )


def cluster(server: str) -> Command:
    return Command(
        line("ottla", "cluster", "describe", "-b", server),
        line("kafka-broker-api-versions.sh", "--bootstrap-server", server),
    )


def records(server: str, name: str, partition: int | None, offset: int | None, count: int) -> Command:
    """Those from an offset on, or as many of the newest ones."""
    ottla = ["ottla", "consume", "-b", server]
    if partition is not None:
        ottla += ["-p", str(partition)]
    ottla += ["-o", str(-count if offset is None else offset), "-e"]
    if offset is not None:
        ottla += ["-n", str(count)]
    ottla += named(name)
    if partition is None or offset is None:  # which Kafka's tool cannot
        return Command(line(*ottla))
    kafka = ["kafka-console-consumer.sh", "--bootstrap-server", server, "--topic", name]
    kafka += ["--partition", str(partition), "--offset", str(offset), "--max-messages", str(count)]
    return Command(line(*ottla), line(*kafka))
