"""The leaders of partitions led by other brokers, and their addresses (KIP-951), in responses of Produce and Fetch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from ..base.errors import KafkaError
from .call import Call

_Endpoint = TypeVar("_Endpoint")


class NotLeaderPartition(NamedTuple):
    """A partition that this broker does not lead; the topic has a name or an id."""

    topic: str
    topic_id: bytes
    number: int
    answer: Any
    """The partition's part of the response, to which the leader is added."""


def add_current_leaders(
    call: Call, refused: Iterable[NotLeaderPartition], leader_of: Callable[..., Any], endpoint: Callable[..., _Endpoint]
) -> list[_Endpoint]:
    """Put leader and epoch into each response, where they are known; returns the endpoints of the leaders that are alive.

    ``leader_of`` and ``endpoint`` are the API's own structures for a leader with its epoch and for a node.
    """
    metadata = call.broker.metadata
    nodes = metadata.nodes(call.connection.listener)
    named = {}
    for topic, topic_id, number, answer in refused:
        found = _find(call, topic or metadata.topic_name(topic_id) or "", number)
        if found is not None:
            leader, epoch = found
            answer.current_leader = leader_of(leader_id=leader, leader_epoch=epoch)
            if leader in nodes:
                named[leader] = nodes[leader]
    return [endpoint(**node._asdict()) for node in named.values()]


def _find(call: Call, topic: str, number: int) -> tuple[int, int] | None:
    """Leader and leader epoch, of the replica here or else of the cluster's metadata."""
    try:
        partition = call.broker.replicas.partition(topic, number)
    except KafkaError:
        state = call.broker.metadata.partition(topic, number)
        return None if state is None else (state.leader, state.leader_epoch)
    return partition.leader_id, partition.leader_epoch
