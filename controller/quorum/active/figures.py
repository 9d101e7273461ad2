"""The values of a controller's metrics, on the active controller and on standbys.

What is counted of the metadata is that of the newest state, which the active controller may not have committed yet. Meanings are
those of Kafka's QuorumControllerMetrics and ControllerMetadataMetrics.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import NamedTuple

import trio

from ....base.partitions import NO_LEADER
from ....metadata.types import LogPosition, QuorumBroker
from ..figures import QuorumFigures, quorum_figures
from .metadata_counts import MetadataCounts
from .node import ControllerNode, NodeCounts


class RegistrationState(enum.IntEnum):
    """Kafka's BrokerRegistrationState."""

    FENCED = 10
    CONTROLLED_SHUTDOWN = 20
    ACTIVE = 30


class QuorumControllerFigures(NamedTuple):
    """A quorum controller at one moment, active or standby."""

    is_active: bool
    brokers: Mapping[int, RegistrationState]
    """All that are registered, by id."""
    topics: int
    offline_partitions: int
    preferred_imbalance: int
    metadata: MetadataCounts
    applied: LogPosition
    committed_offset: int
    silent_ms: Mapping[int, int]
    """By broker id, the time since its last heartbeat, at most a session; empty for a standby."""
    operations_started: int
    counts: NodeCounts
    quorum: QuorumFigures
    partitions_by_topic: Callable[[], list[tuple[str, int]]]
    """Every topic with the number of its partitions, counted when it is called."""


def controller_figures(node: ControllerNode) -> QuorumControllerFigures:
    """As they are now, at a cost of the number of brokers."""
    controller, state = node.controller, node.controller.state
    image, committed = state.image, controller.committed_state.image.position
    applied = image.position or LogPosition(-1, -1, -1)
    if applied.timestamp < 0 <= applied.offset:
        applied = applied._replace(timestamp=node.written_at_ms)
    leaders = state.index.leaders.get(NO_LEADER)
    return QuorumControllerFigures(
        controller.is_active,
        {broker_id: _state_of(broker) for broker_id, broker in image.quorum_brokers.newest().items()},
        len(image.topics),
        0 if leaders is None else len(leaders),
        len(state.index.not_preferred),
        state.counts,
        applied,
        -1 if committed is None else committed.offset,
        controller.silent_ms(int(trio.current_time() * 1000)),
        controller.operations_started,
        node.counts,
        quorum_figures(node.driver, applied, image.features, node.counts.snapshots_loaded),
        lambda: [(topic.name, len(topic.partitions)) for topic in image.topics.newest().values()],
    )


def _state_of(broker: QuorumBroker) -> RegistrationState:
    if broker.is_fenced:
        return RegistrationState.FENCED
    return RegistrationState.CONTROLLED_SHUTDOWN if broker.is_shutting_down else RegistrationState.ACTIVE
