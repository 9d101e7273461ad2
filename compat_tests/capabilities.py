"""The capabilities that a test's ``@pytest.mark.capability("…")`` may name, in groups: the rows of the client matrix.

A group is a row of the summary, its capabilities are those of the table with details. Every mark belongs to one group; a
test whose capability is in none cannot be collected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

GROUPS_OF_KIP_848 = "groups of KIP-848"
"""The row of what is about members by the consumer protocol."""
GROUPS_OF_KIP_932 = "share groups"
"""The row of what is about share groups."""
KIP_848 = "KIP-848: "
"""How the capabilities begin in that row that clients have."""

GROUPS: Mapping[str, Sequence[str]] = {
    "produce: every codec": (
        "produce with every codec",
        "produce and consume with every codec",
        "every codec is read by every client",
        "broker recompresses (compression.type)",
        "snappy in the frames of Java's library",
        "Java reads every client's codecs",
        "Java's codecs are read by every client",
    ),
    "produce: acks 0, 1, all": ("produce with acks=0", "acks=0", "produce with acks=1 and all"),
    "produce: partitions, batches": (
        "keyed records keep to one partition",
        "many partitions",
        "batch header: what the broker writes",
        "produce: refused batches",
        "batch write",
        "streaming write",
        "perf tests, e2e-latency",
        "verifiable producer and consumer",
    ),
    "keys, headers, timestamps": (
        "keys, nulls, headers",
        "repeated headers, in order",
        "empty keys, values and headers are not null",
        "timestamps: CreateTime",
        "timestamps: LogAppendTime",
        "timestamps: their type",
    ),
    "large messages": ("large messages", "records larger than the fetch limits"),
    "consume": (
        "consume from beginning, end, offset",
        "seek",
        "offset out of range: reset policy",
        "offset out of range: reported without a policy",
        "topics that do not exist",
        "long poll",
        "fetch sessions",
        "fetch.min.bytes",
        "fetch limits",
        "fetch offsets",
        "kafka-console-producer, kafka-console-consumer, kafka-consumer-groups, kafka-get-offsets",
        "batch read",
        "streaming read",
        "200 topics by pattern",
        "data loss",
        "gaps: compaction, transactions",
        "retention under a query",
        "continuous mode",
        "real-time mode",
    ),
    "offsets by time, lag": (
        "consume from a timestamp",
        "offsets by time and from the end",
        "watermarks and lag",
        "list offsets (admin)",
        "list offsets (admin): of the greatest timestamp",
        "ListOffsets",
        "OffsetForLeaderEpoch",
    ),
    "groups and rebalance": (
        "group: subscribe, commit, resume",
        "group: two members share and rebalance",
        "group: pattern subscription",
        "consumer group",
        "list and describe groups",
        "delete groups",
    ),
    "static membership": ("static membership", "static membership: fencing"),
    GROUPS_OF_KIP_848: (
        "KIP-848: subscribe, commit, resume",
        "KIP-848: auto commit",
        "KIP-848: two members share and rebalance",
        "KIP-848: pattern subscription",
        "KIP-848: commit metadata",
        "KIP-848: commit without membership",
        "KIP-848: nothing committed",
        "KIP-848: alter group offsets",
        "KIP-848: list and describe groups",
        "KIP-848: delete groups",
        "KIP-848: static membership",
        "KIP-848: a second process with the same instance id",
        "KIP-848: members keep partitions that do not move",
        "KIP-848: topics come and go",
        "KIP-848: assignors",
        "KIP-848: patterns that the broker resolves",
        "KIP-848: a removed member joins again",
        "KIP-848: a member that does not poll",
        "KIP-848: a member that dies",
        "KIP-848: members of both protocols, and back",
        "KIP-848: classic members join members of the consumer protocol",
        "KIP-848: transactions: consume, transform, produce",
        "KIP-848: restart: everything is still there",
        "KIP-848: restart: running clients continue",
        "KIP-848: kill -9: groups and committed offsets survive",
        "KIP-848: kill -9: members keep their partitions",
        "KIP-848: kafka-consumer-groups, kafka-groups, kafka-configs",
        "KIP-848: verifiable consumer",
        "consumer groups: heartbeats",
        "consumer groups: refused heartbeats",
        "consumer groups: static members",
        "consumer groups: regular expressions",
        "consumer groups: conversion from and to classic groups",
        "consumer groups: commits by member epoch",
        "consumer groups: listed and described",
    ),
    GROUPS_OF_KIP_932: (
        "KIP-932: subscribe, accept, resume",
        "KIP-932: accept, release, reject",
        "KIP-932: renewed locks",
        "KIP-932: members share partitions",
        "KIP-932: a member that dies",
        "KIP-932: deliveries are limited",
        "KIP-932: transactions",
        "KIP-932: kafka-share-groups, kafka-console-share-consumer",
        "KIP-932: verifiable share consumer, perf test",
        "share groups: heartbeats",
        "share groups: refused heartbeats",
        "share groups: sessions",
        "share groups: acquired records",
        "share groups: acknowledgements",
        "share groups: locks and delivery counts",
        "share groups: start offsets",
        "share groups: transactions",
        "share groups: state requests",
        "share groups: listed and described",
        "share groups: offsets",
        "share groups: rights",
    ),
    "commit and reset": (
        "group: auto commit",
        "commit metadata",
        "commit without membership",
        "nothing committed",
        "committed offsets",
        "alter group offsets",
    ),
    "admin: topics": (
        "create and delete topics",
        "create topics: validation",
        "create topics: only validate",
        "create partitions",
        "CreateTopics, CreatePartitions",
        "topic auto-creation",
        "invalid topic names are refused",
        "topic ids",
        "Metadata",
        "metadata",
        "kafka-topics",
    ),
    "admin: configs": (
        "create topics: configs",
        "describe configs",
        "describe configs: synonyms",
        "AlterConfigs",
        "AlterConfigs: refused values",
        "AlterConfigs: values that were read can be written",
        "IncrementalAlterConfigs",
        "configs take effect",
        "kafka-configs",
    ),
    "admin: records, cluster, disks": (
        "delete records",
        "consume after DeleteRecords",
        "describe cluster",
        "kafka-broker-api-versions, kafka-cluster",
        "kafka-client-compatibility-test",
        "log dirs",
        "kafka-delete-records, kafka-log-dirs",
        "moves between data folders",
        "kafka-reassign-partitions, kafka-log-dirs: moves between data folders",
        "ACLs without an authorizer",
    ),
    "idempotence": ("idempotent producer",),
    "transactions": (
        "read_committed",
        "transactions: commit, abort",
        "transactions: many, over several partitions",
        "transactions: an open transaction is not read",
        "transactions: a fenced zombie",
        "transactions: consume, transform, produce",
        "transactions: producer-perf-test, console-consumer with read_committed",
        "kafka-transactions",
        "transactions: commit and abort, classic protocol",
        "transactions: V2",
        "transactions: V2, one right behind the other",
        "transactions: requests while the one before is ending",
        "transactions: a batch outside of its transaction is refused",
        "transactions: fencing",
        "transactions: InitProducerId",
        "transactions: offsets",
        "transactions: partitions that do not exist",
        "transactions: aborted transactions of the whole range that is read",
        "transactions: a read_committed fetch waits for what is committed",
        "transactions: what leaders ask the coordinator",
        "transactions: what administrators see",
        "transactions: end markers written by an administrator",
        "transactions: transaction.version in ApiVersions",
        "kill -9 of a client: its successor aborts the open transaction",
    ),
    "compaction": ("compaction", "compacted topics want keys"),
    "restart, kill -9, reconnect": (
        "restart: everything is still there",
        "restart: running clients continue",
        "kill -9: acknowledged records, once and in order",
        "kill -9: groups and committed offsets survive",
        "kill -9: transactions are all or nothing",
        "kill -9: a repeated batch is still known",
        "exactly_once_v2: kill -9 of the broker",
        "broker killed under a query",
        "ends never go back",
    ),
    "Streams, Connect, Spark jobs": (
        "exactly_once_v2: word count",
        "exactly_once_v2: kill -9 of the word count",
        "file source and sink",
        "file source and sink: kill -9 of the worker",
        "file source and sink, distributed",
        "archive job",
        "audit job",
        "load job",
        "replay job",
        "mirror job",
        "lag job",
        "pipelines",
        "a cluster of workers",
        "declarative pipelines",
    ),
    "security": ("authentication", "authentication: refused", "authorization: no right"),
    "protocol": (
        "ApiVersions",
        "ApiVersions at an unknown version",
        "every advertised version is answered in its layout",
        "client id and header tags",
        "answers leave in the order of requests",
        "requests that cannot be answered close the connection",
    ),
}
"""Capabilities by the name of their group, in the order of the table."""

_GROUP_OF = {capability: group for group, capabilities in GROUPS.items() for capability in capabilities}


def group_of(capability: str) -> str:
    """The group of a capability. Raises KeyError when it is in none."""
    return _GROUP_OF[capability]


def of_protocol(capability: str, group_protocol: str) -> str:
    """The capability of a test that runs by both group protocols, when it runs by this one."""
    if group_protocol == "classic" or capability.startswith(KIP_848):
        return capability
    return KIP_848 + capability.removeprefix("group: ")


def capabilities() -> list[str]:
    """All of them, in the order of the table."""
    return list(_GROUP_OF)
