"""Reading the cluster from the store into a controller's context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..base.partitions import TopicPartition
from . import znodes
from .context import ControllerContext, LiveBroker, PartitionState, TopicState
from .store import ClusterStore, Watch


async def load_brokers(store: ClusterStore, watch: Watch | None = None) -> dict[int, LiveBroker]:
    """The registered brokers; ``watch`` hears of the next one that comes or goes."""
    ids = znodes.numbers(await store.children(znodes.BROKER_IDS, watch))
    nodes = await store.get_many([znodes.broker_path(broker_id) for broker_id in ids])
    return {
        broker_id: LiveBroker(znodes.decode_broker(broker_id, node.data), node.stat.czxid)
        for broker_id, node in zip(ids, nodes, strict=True)
        if node is not None
    }


async def load_topics(store: ClusterStore, names: Iterable[str]) -> dict[str, TopicState]:
    """Those of the topics that exist, with the states of their partitions."""
    wanted = sorted(names)
    topics = {}
    for name, node in zip(wanted, await store.get_many([znodes.topic_path(n) for n in wanted]), strict=True):
        if node is not None:
            assignment = znodes.decode_topic(node.data)
            partitions = {number: PartitionState(replicas) for number, replicas in assignment.partitions.items()}
            topics[name] = TopicState(name, assignment.topic_id, partitions, node.stat.version)
    await load_states(
        store, {TopicPartition(t.name, number): p for t in topics.values() for number, p in t.partitions.items()}
    )
    return topics


async def load_states(store: ClusterStore, partitions: Mapping[TopicPartition, PartitionState]) -> None:
    """Read who leads, into ``partitions``."""
    nodes = await store.get_many([znodes.state_path(*key) for key in partitions])
    for partition, node in zip(partitions.values(), nodes, strict=True):
        if node is None:
            partition.state, partition.partition_epoch, partition.modified_zxid = None, 0, 0
        else:
            partition.state = znodes.decode_state(node.data)
            partition.partition_epoch, partition.modified_zxid = node.stat.version, node.stat.mzxid


async def load_context(store: ClusterStore, context: ControllerContext, watch: Watch) -> None:
    """Everything, into ``context``; ``watch`` hears of the next broker that comes or goes."""
    context.brokers = await load_brokers(store, watch)
    context.topics = await load_topics(store, await store.children(znodes.TOPICS))
    context.deleting = set(await store.children(znodes.DELETE_TOPICS))
