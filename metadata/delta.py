"""What has changed of a cluster's metadata, as whoever keeps it tells its brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .types import BrokerRegistration, PartitionRegistration


class TopicDelta(NamedTuple):
    """The partitions of a topic that have changed, by number; None where one is gone.

    The id is ZERO_UUID where whoever tells of the topic knows of none.
    """

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionRegistration | None]


class ClusterDelta(NamedTuple):
    """``brokers`` are all that are alive, also where none has changed. ``controller_id`` is -1 where no broker is controller."""

    controller_id: int
    brokers: Sequence[BrokerRegistration]
    topics: Sequence[TopicDelta] = ()
