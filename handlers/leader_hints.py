"""Who leads a partition that this broker does not, and where that broker is (KIP-951), for the answers of Produce and Fetch."""

from __future__ import annotations

from ..base.errors import KafkaError
from ..base.partitions import NO_LEADER
from ..replication.metadata_cache import Node
from .call import Call

NO_HINT = (NO_LEADER, -1)


class LeaderHints:
    """The leaders named in one answer."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._named: dict[int, Node] = {}

    def leader(self, topic: str, number: int) -> tuple[int, int]:
        """Leader and leader epoch, of the replica here or else of the cluster's metadata; NO_HINT where that is unknown."""
        broker = self._call.broker
        try:
            partition = broker.replicas.partition(topic, number)
            found = partition.leader_id, partition.leader_epoch
        except KafkaError:
            state = broker.metadata.partition(topic, number)
            found = NO_HINT if state is None else (state.leader, state.leader_epoch)
        node = broker.metadata.nodes(self._call.listener).get(found[0])
        if node is not None:
            self._named[node.node_id] = node
        return found

    def nodes(self) -> list[Node]:
        """Where the leaders are that were named, as far as they are alive."""
        return list(self._named.values())
