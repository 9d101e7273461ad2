"""Shell commands for the pages of clients, transactions, ACLs and the cluster; see ``commands``."""

from __future__ import annotations

from .commands import Command, line, named


def producers(server: str, topic: str) -> Command:
    """Producers as partitions remember them; who they are of only the console shows."""
    kafka = ("kafka-transactions.sh", "--bootstrap-server", server, "describe-producers")
    return Command(
        line("ottla", "transactions", "producers", "-b", server, *named(topic)),
        line(*kafka, "--topic", topic, "--partition", "0"),
    )


def transactions(server: str) -> Command:
    return Command(
        line("ottla", "transactions", "list", "-b", server),
        line("kafka-transactions.sh", "--bootstrap-server", server, "list"),
    )


def transaction(server: str, transactional_id: str) -> Command:
    kafka = ("kafka-transactions.sh", "--bootstrap-server", server, "describe")
    return Command(
        line("ottla", "transactions", "describe", "-b", server, *named(transactional_id)),
        line(*kafka, "--transactional-id", transactional_id),
    )


def cluster(server: str) -> Command:
    return Command(
        line("ottla", "cluster", "health", "-b", server),
        line("kafka-topics.sh", "--bootstrap-server", server, "--describe", "--under-replicated-partitions"),
    )


def quorum(server: str) -> Command:
    return Command(
        line("ottla", "cluster", "quorum", "-b", server),
        line("kafka-metadata-quorum.sh", "--bootstrap-server", server, "describe", "--replication"),
    )


def balance(server: str) -> Command:
    return Command(line("ottla", "cluster", "balance", "-b", server, "--window", "0", "--dry-run"))


def acls(server: str) -> Command:
    return Command(
        line("ottla", "acls", "list", "-b", server), line("kafka-acls.sh", "--bootstrap-server", server, "--list")
    )


def acls_of_topic(server: str, topic: str) -> Command:
    kafka = ("kafka-acls.sh", "--bootstrap-server", server, "--list", "--topic", topic)
    return Command(
        line("ottla", "acls", "list", "-b", server, f"--topic={topic}", "--affecting"),
        line(*kafka, "--resource-pattern-type", "match"),
    )


def users(server: str) -> Command:
    kafka = ("kafka-configs.sh", "--bootstrap-server", server, "--describe", "--entity-type", "users")
    return Command(line("ottla", "users", "list", "-b", server), line(*kafka))


def quotas(server: str) -> Command:
    kafka = ("kafka-configs.sh", "--bootstrap-server", server, "--describe")
    return Command(
        line("ottla", "quotas", "describe", "-b", server),
        line(*kafka, "--entity-type", "clients", "--entity-type", "users"),
    )
