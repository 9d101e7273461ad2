"""Reading the cluster from the store into a controller's context."""

from __future__ import annotations

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


async def load_topics(store: ClusterStore) -> dict[str, TopicState]:
    """Every topic with the states of its partitions."""
    names = sorted(await store.children(znodes.TOPICS))
    topics = {}
    for name, node in zip(names, await store.get_many([znodes.topic_path(n) for n in names]), strict=True):
        if node is not None:
            assignment = znodes.decode_topic(node.data)
            partitions = {number: PartitionState(replicas) for number, replicas in assignment.partitions.items()}
            topics[name] = TopicState(name, assignment.topic_id, partitions, node.stat.version)
    keys = [(name, number) for name, topic in topics.items() for number in topic.partitions]
    states = await store.get_many([znodes.state_path(*key) for key in keys])
    for (name, number), node in zip(keys, states, strict=True):
        if node is not None:
            partition = topics[name].partitions[number]
            partition.state = znodes.decode_state(node.data)
            partition.partition_epoch = node.stat.version
            partition.modified_zxid = node.stat.mzxid
    return topics


async def load_context(store: ClusterStore, context: ControllerContext, watch: Watch) -> None:
    """Everything, into ``context``."""
    context.brokers = await load_brokers(store, watch)
    context.topics = await load_topics(store)
    context.deleting = set(await store.children(znodes.DELETE_TOPICS))
