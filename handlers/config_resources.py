"""Config resources by type and name, with their checks, for the config APIs."""

from __future__ import annotations

import re
from enum import IntEnum

from ..base.errors import ErrorCode, KafkaError
from ..metadata.rules.topic_names import check_name
from ..security.acl import Operation
from .call import NodeCall
from .node_services import NodeServices
from .rights import CLUSTER, GROUP, TOPIC, check

_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
"""What Java's ``parseInt`` takes, except for leading zeros without end and figures of other scripts."""


class ConfigResourceKind(IntEnum):
    """Kafka's ConfigResource types."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def check_right(call: NodeCall, operation: Operation, kind: int, name: str) -> None:
    """Whether the client may do this to the settings of a resource. Raises KafkaError.

    A topic has rights of its own, and so has a group (KIP-848); brokers, their loggers and client metrics are the cluster's.
    """
    if kind == ConfigResourceKind.TOPIC:
        check(call, operation, TOPIC, name)
    elif kind == ConfigResourceKind.GROUP:
        check(call, operation, GROUP, name)
    elif kind in (ConfigResourceKind.BROKER, ConfigResourceKind.BROKER_LOGGER, ConfigResourceKind.CLIENT_METRICS):
        check(call, operation, CLUSTER)


def check_topic(node: NodeServices, name: str) -> None:
    """Raises KafkaError when there is no such topic."""
    check_name(name)
    if name not in node.metadata.image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def check_broker(node: NodeServices, name: str) -> None:
    """Raises KafkaError unless ``name`` is this node's id."""
    if _INTEGER.fullmatch(name) is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != node.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node.node_id}, but received {name}"
        )
