"""The kinds of systems, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ottla.compat_tests.clusters import KINDS as CLUSTERS

from .coordination import Kind
from .quorum_coordination import ALL_OTTLA, APART, KAFKA_ON_OTTLA, MIXED, QuorumCoordination
from .zookeeper_coordination import BROKERS, ZOOKEEPER, ZooKeeperCoordination

PROPERTIES: Mapping[str, str] = {
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "5000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "auto.create.topics.enable": "false",
    "leader.imbalance.check.interval.seconds": "20",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "controlled.shutdown.retry.backoff.ms": "500",
    "log.segment.bytes": "1048576",
}
"""Acknowledged records are on two of three replicas, readers find a replica in their rack, and logs roll."""

KINDS: Mapping[str, Kind] = {
    name: Kind(BROKERS, (ZOOKEEPER,), partial(ZooKeeperCoordination, cluster, PROPERTIES))
    for name, cluster in CLUSTERS.items()
} | {
    name: Kind(len(seats), (), partial(QuorumCoordination, seats, PROPERTIES))
    for name, seats in (
        ("quorum", MIXED),
        ("own-quorum", ALL_OTTLA),
        ("own-controllers", APART),
        ("kafka-on-own", KAFKA_ON_OTTLA),
    )
}
