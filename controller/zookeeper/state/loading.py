"""Loading of the cluster from ZooKeeper into a controller's context."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TypeVar

from ....base.partitions import TopicPartition
from ..nodes import znodes
from ..nodes.decoding import decoded
from ..store.cluster_store import ClusterStore, Watch
from .context import LiveBroker, PartitionState, TopicState

logger = logging.getLogger(__name__)

T = TypeVar("T")


async def load_brokers(store: ClusterStore, watch: Watch | None = None) -> dict[int, LiveBroker]:
    """The registered brokers; ``watch`` hears of the next one that comes, goes, or changes its registration."""
    ids = znodes.numbers(await store.children(znodes.BROKER_IDS, watch))
    nodes = await store.get_many([znodes.broker_path(broker_id) for broker_id in ids], watch)
    brokers = {}
    for broker_id, node in zip(ids, nodes, strict=True):
        if node is not None:
            path = znodes.broker_path(broker_id)
            registration = decoded(path, node, lambda data, i=broker_id: znodes.decode_broker(i, data))  # type: ignore[misc]
            if registration is not None:
                brokers[broker_id] = LiveBroker(registration, node.stat.czxid)
    return brokers


async def load_topics(store: ClusterStore, names: Iterable[str], watch: Watch | None = None) -> dict[str, TopicState]:
    """Those of the topics that exist, with the states of their partitions; ``watch`` hears when one of their nodes changes."""
    topics = await load_assignments(store, names, watch)
    lost = await load_states(
        store, {TopicPartition(t.name, number): p for t in topics.values() for number, p in t.partitions.items()}
    )
    for key in lost:
        topics.pop(key.topic, None)
    return topics


async def load_assignments(
    store: ClusterStore, names: Iterable[str], watch: Watch | None = None
) -> dict[str, TopicState]:
    """Those of the topics that exist, their partitions without states."""
    wanted = sorted(names)
    topics = {}
    for name, node in zip(wanted, await store.get_many([znodes.topic_path(n) for n in wanted], watch), strict=True):
        if node is not None:
            assignment = decoded(znodes.topic_path(name), node, znodes.decode_topic)
            if assignment is not None:
                partitions = {number: PartitionState(replicas) for number, replicas in assignment.partitions.items()}
                topics[name] = TopicState(name, assignment.topic_id, partitions, node.stat.version)
    return topics


async def is_stored(store: ClusterStore, name: str, topic_id: bytes) -> bool | None:
    """Whether a topic that was perhaps written is in the store under its id; None when there is none of that name."""
    (node,) = await store.get_many([znodes.topic_path(name)])
    if node is None:
        return None
    assignment = decoded(znodes.topic_path(name), node, znodes.decode_topic)
    return assignment is not None and assignment.topic_id == topic_id


async def load_states(store: ClusterStore, partitions: Mapping[TopicPartition, PartitionState]) -> set[TopicPartition]:
    """Read states into ``partitions``; returns those whose state is not understood, which keep what they have."""
    lost = set()
    nodes = await store.get_many([znodes.state_path(*key) for key in partitions])
    for (key, partition), node in zip(partitions.items(), nodes, strict=True):
        if node is None:
            partition.state, partition.partition_epoch, partition.modified_zxid = None, 0, 0
            continue
        partition.partition_epoch, partition.modified_zxid = node.stat.version, node.stat.mzxid
        state = decoded(znodes.state_path(*key), node, znodes.decode_state)
        if state is None:
            lost.add(key)
        else:
            partition.state = state
    return lost
