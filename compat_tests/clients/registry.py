"""The clients that run the whole matrix, and what each of them does not offer.

``lacks`` names capabilities (see ``capabilities``) that the client's public API has no way to ask for: such a test is not
collected for it, and the table says why.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.compat_tests import toolchains
from ottla.compat_tests.clients import go_client, java_client, model, remote

EMPTY_IS_NOT_NULL = "empty keys, values and headers are not null"


@dataclass(frozen=True)
class Entry:
    """A client under the name that ``--client`` takes; ``connect`` gives its driver for a bootstrap address."""

    name: str
    connect: Callable[[str], model.Client]
    lacks: Mapping[str, str] = field(default_factory=dict)

    def sees(self, value: bytes | None) -> bytes | None:
        """What comes of a record's value when the client reads it."""
        return None if value == b"" and EMPTY_IS_NOT_NULL in self.lacks else value


def local(module: str) -> Callable[[str], model.Client]:
    """A driver of this interpreter; a client that is not installed is a missing toolchain."""

    def connect(bootstrap: str) -> model.Client:
        try:
            driver = importlib.import_module(f"ottla.compat_tests.clients.{module}")
        except ImportError as error:
            toolchains.missing(f"{error} (pip install 'ottla[compat]')")
        client: model.Client = driver.Client(bootstrap)
        return client

    return connect


def kafka_python_2(bootstrap: str) -> model.Client:
    """The driver of kafka-python 2.x, in its own virtualenv."""
    return remote.Client(toolchains.kafka_python_2(), "ottla.compat_tests.clients.kafka_python_2", bootstrap)


def java(version: str) -> Callable[[str], model.Client]:
    """The driver of kafka-clients of one version."""
    return functools.partial(java_client.Client, version)


def go(library: str) -> Callable[[str], model.Client]:
    """The driver of one of Go's libraries."""
    return functools.partial(go_client.Client, library)


NOT_TRANSACTIONAL = "its Writer is neither idempotent nor transactional"
KAFKA_GO_LACKS = {
    "AlterConfigs: what was read can be written": "it writes an empty value as null",
    "consume after DeleteRecords": "it cannot delete them",
    "delete records": "no such call",
    "describe configs: synonyms": "it forgets on the way to the broker that they were asked for",
    EMPTY_IS_NOT_NULL: "a Reader makes null of what is empty",
    "group: pattern subscription": "topics by name only",
    "idempotent producer": NOT_TRANSACTIONAL,
    "kill -9 of a client: its successor aborts what was open": NOT_TRANSACTIONAL,
    "kill -9: acknowledged records, once and in order": NOT_TRANSACTIONAL,
    "kill -9: transactions are all or nothing": NOT_TRANSACTIONAL,
    "list offsets (admin): of the greatest timestamp": "its ListOffsets ends at version 5, before KIP-734",
    "log dirs": "no such call",
    "offset out of range: reset policy": "a Reader waits for the offset or reports it, it does not go elsewhere",
    "static membership": "members have no instance id",
    "static membership: fencing": "members have no instance id",
    "timestamps: LogAppendTime": "a Reader gives the producer's time",
    "timestamps: their type": "a message has the time only",
    "topics that do not exist": "asked for by deleting records, which it cannot",
    "transactions: a fenced zombie": NOT_TRANSACTIONAL,
    "transactions: an open transaction is not read": NOT_TRANSACTIONAL,
    "transactions: commit, abort": NOT_TRANSACTIONAL,
    "transactions: consume, transform, produce": NOT_TRANSACTIONAL,
    "transactions: many, over several partitions": NOT_TRANSACTIONAL,
}
CLIENTS = {
    entry.name: entry
    for entry in (
        Entry("kafka-python", local("kafka_python")),
        Entry(
            "kafka-python-2",
            kafka_python_2,
            {
                "IncrementalAlterConfigs": "no such call",
                "alter group offsets": "no such call",
                "kill -9: transactions are all or nothing": "2.3.3's commit_transaction waits for ever for a lost answer",
                "list offsets (admin)": "no such call",
                "list offsets (admin): of the greatest timestamp": "no such call",
                "log dirs": "its DescribeLogDirs is version 0 only, which Kafka 4 has removed",
                "produce with acks=0": "2.3.3 leaves such a request in its buffer until another one needs the connection",
            },
        ),
        Entry("confluent-kafka", local("confluent"), {"log dirs": "no such call"}),
        Entry(
            "aiokafka",
            local("aio"),
            {
                "IncrementalAlterConfigs": "no such call",
                "alter group offsets": "no such call",
                "commit metadata": "its committed() gives the offset only",
                "delete groups": "no such call",
                "list offsets (admin)": "no such call",
                "list offsets (admin): of the greatest timestamp": "no such call",
                "log dirs": "no such call",
                "static membership: fencing": "a member that was replaced joins again and replaces its successor",
            },
        ),
        Entry(
            "java",
            java("4.4.0"),
            {
                "AlterConfigs": "4.0 has removed that call",
                "AlterConfigs: what was read can be written": "4.0 has removed that call",
            },
        ),
        Entry("java-3.9", java("3.9.2")),
        Entry("franz-go", go("franz-go")),
        Entry(
            "sarama",
            go("sarama"),
            {
                "group: pattern subscription": "topics by name only",
                "list offsets (admin): of the greatest timestamp": "its ListOffsets ends at version 6, before KIP-734",
                "offset out of range: reset policy": "only a group has one",
                "timestamps: their type": "a message has the time only",
            },
        ),
        Entry("kafka-go", go("kafka-go"), KAFKA_GO_LACKS),
    )
}
