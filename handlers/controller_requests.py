"""What requests from the controller, and to it, have in common.

A request that was meant for an earlier registration of this broker is refused by its broker epoch. Early versions name the topic
with each partition; later ones group the partitions by topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import NO_BROKER_EPOCH
from .call import Call

_TopicState = TypeVar("_TopicState")


def check_broker_epoch(call: Call, broker_epoch: int) -> None:
    """Raises KafkaError STALE_BROKER_EPOCH.

    A higher epoch than the own one is valid: the controller may know of a registration before the broker itself does
    (KIP-380, ``KafkaApis.isBrokerEpochStale``).
    """
    own = call.broker.cluster.broker_epoch
    if broker_epoch != NO_BROKER_EPOCH and broker_epoch < own:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"the broker's epoch is {own}, not {broker_epoch}")


def check_is_controller(call: Call) -> None:
    """Raises KafkaError NOT_CONTROLLER. As in Kafka this comes before rights are checked: the client is to ask elsewhere."""
    if not call.broker.cluster.is_controller:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")


def by_topic(states: Iterable[tuple[str, Any]], topic_state: Callable[..., _TopicState]) -> list[_TopicState]:
    """States of partitions, each with its topic's name, as the states of topics; both in the order they came in."""
    partitions: dict[str, list[Any]] = {}
    for topic, state in states:
        partitions.setdefault(topic, []).append(state)
    return [topic_state(topic_name=topic, partition_states=found) for topic, found in partitions.items()]
