"""The clients that run the whole matrix, and the capabilities that each of them lacks.

``lacks`` names capabilities (see ``capabilities``) that the client's public API has no way to ask for: such a test is not run
for it, and the table says why.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.base.wording import how_to_install
from ottla.compat_tests import toolchains
from ottla.compat_tests.clients import go_client, java_client, js_client, model, remote, rust_client

EMPTY_IS_NOT_NULL = "empty keys, values and headers are not null"
BESIDE_KIP_848 = "KIP-848: classic members join members of the consumer protocol"
JAVA_SNAPPY = "snappy in the frames of Java's library"


@dataclass(frozen=True)
class Entry:
    """A client under the name that ``--client`` takes; ``connect`` gives its driver for a bootstrap address.

    ``fails_on_clusters``: what it has, but not with several brokers, Apache Kafka's neither. ``group_protocols``: how its
    consumers can be members of a group (``group.protocol``).
    """

    name: str
    connect: Callable[[str], model.Client]
    lacks: Mapping[str, str] = field(default_factory=dict)
    fails_on_clusters: Mapping[str, str] = field(default_factory=dict)
    group_protocols: Sequence[str] = ("classic",)

    def sees(self, value: bytes | None) -> bytes | None:
        """What comes of a record's value when the client reads it."""
        return None if value == b"" and EMPTY_IS_NOT_NULL in self.lacks else value


def local(module: str) -> Callable[[str], model.Client]:
    """A driver of this interpreter; a client that is not installed is a missing toolchain."""

    def connect(bootstrap: str) -> model.Client:
        try:
            driver = importlib.import_module(f"ottla.compat_tests.clients.{module}")
        except ImportError as error:
            toolchains.missing(f"{error} ({how_to_install('compat')})")
        client: model.Client = driver.Client(bootstrap)
        return client

    return connect


def kafka_python_2(bootstrap: str) -> model.Client:
    """The driver of kafka-python 2.x, in its own virtualenv."""
    return remote.Client(toolchains.kafka_python_2(), "ottla.compat_tests.clients.kafka_python_2", bootstrap)


def java(version: str) -> Callable[[str], model.Client]:
    """The driver of kafka-clients of one version."""
    return functools.partial(java_client.Client, version)


def javascript(package: str, program: str) -> Callable[[str], model.Client]:
    """The driver of a library of npm."""
    return functools.partial(js_client.Client, package, program)


def rust(crate: str) -> Callable[[str], model.Client]:
    """The driver of a crate."""
    return functools.partial(rust_client.Client, crate)


def lacking(reasons: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What a client lacks, from the capabilities that go with each reason."""
    return {capability: reason for reason, capabilities in reasons.items() for capability in capabilities}


ALTER_CONFIGS = ("AlterConfigs", "AlterConfigs: refused values", "AlterConfigs: values that were read can be written")
BOTH_PROTOCOLS = ("classic", "consumer")
JAVA_LACKS = lacking({"4.0 has removed that call": ALTER_CONFIGS})

KAFKAJS_LACKS = {
    "IncrementalAlterConfigs": "no such call",
    "alter group offsets": "its setOffsets takes no metadata",
    "commit without membership": "every consumer is a member of a group",
    "list offsets (admin)": "it gives the end where there is nothing",
    "list offsets (admin): of the greatest timestamp": "no such call",
    "log dirs": "no such call",
    "offset out of range: reported without a policy": "it always goes to the beginning or the end",
    "repeated headers, in order": "headers are an object whose values may be lists",
    "static membership": "no group.instance.id",
    "static membership: fencing": "no group.instance.id",
}

KAFKAJS_FAILS_ON_CLUSTERS = {
    "restart: running clients continue": "it commits where it joined, and looks for no other coordinator when told to; a "
    "member that joins again before it has committed a record is given that record twice",
    "transactions: many, over several partitions": "of a send to several leaders it sends again what is under way to one, "
    "under new sequence numbers, when another one has to be asked again",
}
PLATFORMATIC_FAILS_ON_CLUSTERS = {
    "kill -9: acknowledged records, once and in order": "for a send it looks for a new leader once: where the answer still names "
    "the old one, it asks that until its retries are used up"
}
NOT_CONVERTED = (
    "its subscription is of version 1 and ends before that version's field: the broker does not convert its group"
)
PLATFORMATIC_LACKS = {
    BESIDE_KIP_848: NOT_CONVERTED,
    "alter group offsets": "its call takes no metadata",
    "commit metadata": "its commit takes no metadata",
    "commit without membership": "every consumer is a member of a group",
    "compaction": "it can't read the snappy in these topics, see below",
    "create topics: only validate": "createTopics has no such option",
    "group: pattern subscription": "topics by their names only",
    "kill -9: transactions are all or nothing": "1.35.0 hides only the last of a producer's aborted ones in a fetch",
    "offset out of range: reset policy": "the stream ends with that error",
    JAVA_SNAPPY: "it takes them for snappy itself",
    "static membership": "a static member that closes leaves the group",
    "static membership: fencing": "a member that was replaced joins again and replaces its successor",
    "timestamps: CreateTime": "1.35.0 garbles times in one batch that are more than 24 days apart",
    "timestamps: LogAppendTime": "it ignores the type of a batch's timestamps",
    "timestamps: their type": "it ignores the type of a batch's timestamps",
    "topics that do not exist": "records of a partition that isn't there: it throws where it cannot be caught",
    "transactions: many, over several partitions": "1.35.0 hides only the last of a producer's aborted ones in a fetch",
    **lacking(
        {
            "every consumer is a member of a group": ("KIP-848: commit without membership",),
            "its commit takes no metadata": ("KIP-848: commit metadata",),
            "its call takes no metadata": ("KIP-848: alter group offsets",),
            "topics by their names only": (
                "KIP-848: pattern subscription",
                "KIP-848: patterns that the broker resolves",
            ),
            "a static member that closes leaves the group": ("KIP-848: static membership",),
            "its admin client describes classic groups only": (
                "KIP-848: list and describe groups",
                "KIP-848: delete groups",
            ),
            "it does not report that partitions came or went": (
                "KIP-848: members keep partitions that do not move",
                "KIP-848: a removed member joins again",
                "KIP-848: kill -9: members keep their partitions",
            ),
            "its stream ends where a topic was deleted": ("KIP-848: topics come and go",),
            "it is a member without polls": ("KIP-848: a member that does not poll",),
            "1.35.0 names its generation in a transaction, not its epoch": (
                "KIP-848: transactions: consume, transform, produce",
            ),
            NOT_CONVERTED: ("KIP-848: members of both protocols, and back",),
        }
    ),
}

RDKAFKA_LACKS = {
    "AlterConfigs: refused values": "0.39 ignores the errors in the response",
    "IncrementalAlterConfigs": "no such call",
    "alter group offsets": "no such call",
    "describe cluster": "no call for the controller",
    "describe configs: synonyms": "its entries have none",
    "list offsets (admin)": "no such call",
    "list offsets (admin): of the greatest timestamp": "no such call",
    "log dirs": "no such call",
}

RSKAFKA_LACKS = lacking(
    {
        "it has no groups": (
            BESIDE_KIP_848,
            "alter group offsets",
            "commit metadata",
            "commit without membership",
            "delete groups",
            "group: auto commit",
            "group: pattern subscription",
            "group: subscribe, commit, resume",
            "group: two members share and rebalance",
            "kill -9: groups and committed offsets survive",
            "list and describe groups",
            "nothing committed",
            "restart: everything is still there",
            "restart: running clients continue",
            "static membership",
            "static membership: fencing",
        ),
        "it has no transactions": (
            "kill -9 of a client: its successor aborts the open transaction",
            "kill -9: transactions are all or nothing",
            "transactions: a fenced zombie",
            "transactions: an open transaction is not read",
            "transactions: commit, abort",
            "transactions: consume, transform, produce",
            "transactions: many, over several partitions",
        ),
        "it has no idempotent producer": ("idempotent producer", "kill -9: acknowledged records, once and in order"),
        "it knows no configs": (
            *ALTER_CONFIGS,
            "IncrementalAlterConfigs",
            "compacted topics want keys",
            "configs take effect",
            "create topics: configs",
            "describe configs",
            "describe configs: synonyms",
        ),
        "no such call": (
            "create partitions",
            "describe cluster",
            "list offsets (admin): of the greatest timestamp",
            "log dirs",
        ),
        "create_topic has no such option": ("create topics: only validate",),
        "acks is always all": ("produce with acks=0", "produce with acks=1 and all"),
        "a partition must be given": ("keyed records keep to one partition",),
        "headers are a BTreeMap": ("repeated headers, in order",),
        "no reset policy": ("offset out of range: reset policy",),
        "it ignores the type of a batch's timestamps": (
            "timestamps: LogAppendTime",
            "timestamps: their type",
        ),
    }
)


def go(library: str) -> Callable[[str], model.Client]:
    """The driver of one of Go's libraries."""
    return functools.partial(go_client.Client, library)


FRANZ_GO_LACKS = {
    "KIP-848: a member that does not poll": "it is a member without polls",
    "KIP-848: static membership": "1.22.2 leaves without its instance id, which the broker refuses: it stays for a session",
}
NOT_TRANSACTIONAL = "its Writer is neither idempotent nor transactional"
KAFKA_GO_LACKS = {
    BESIDE_KIP_848: NOT_CONVERTED,
    "AlterConfigs: values that were read can be written": "it writes an empty value as null",
    "consume after DeleteRecords": "it cannot delete them",
    "delete records": "no such call",
    "describe configs: synonyms": "its request does not ask for them",
    EMPTY_IS_NOT_NULL: "a Reader turns empty values into null",
    "group: pattern subscription": "topics by name only",
    "idempotent producer": NOT_TRANSACTIONAL,
    "kill -9 of a client: its successor aborts the open transaction": NOT_TRANSACTIONAL,
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
                "kill -9: transactions are all or nothing": "2.3.3's commit_transaction waits indefinitely for a lost response",
                "list offsets (admin)": "no such call",
                "list offsets (admin): of the greatest timestamp": "no such call",
                "log dirs": "its DescribeLogDirs is version 0 only, which Kafka 4 has removed",
                "produce with acks=0": "2.3.3 leaves such a request in its buffer until another one needs the connection",
            },
        ),
        Entry("confluent-kafka", local("confluent"), {"log dirs": "no such call"}, group_protocols=BOTH_PROTOCOLS),
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
        Entry("java", java("4.4.0"), JAVA_LACKS, group_protocols=BOTH_PROTOCOLS),
        Entry("java-3.9", java("3.9.2")),
        Entry("kafkajs", javascript("kafkajs", "kafkajs.mjs"), KAFKAJS_LACKS, KAFKAJS_FAILS_ON_CLUSTERS),
        Entry(
            "platformatic",
            javascript("@platformatic/kafka", "platformatic.mjs"),
            PLATFORMATIC_LACKS,
            PLATFORMATIC_FAILS_ON_CLUSTERS,
            BOTH_PROTOCOLS,
        ),
        Entry("rdkafka", rust("rdkafka"), RDKAFKA_LACKS),
        Entry("rskafka", rust("rskafka"), RSKAFKA_LACKS),
        Entry("franz-go", go("franz-go"), FRANZ_GO_LACKS, group_protocols=BOTH_PROTOCOLS),
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
