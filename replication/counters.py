"""Counters of a broker's replication and partition traffic: plain numbers, readable at any time."""

from __future__ import annotations

import dataclasses
from collections import Counter

TRAFFIC = (
    "bytes_in",
    "bytes_out",
    "messages_in",
    "bytes_rejected",
    "produce_requests",
    "fetch_requests",
    "failed_produce_requests",
    "failed_fetch_requests",
)
"""What a ``Partition`` counts of clients, and of followers' fetches."""


@dataclasses.dataclass(slots=True)
class ReplicationCounters:
    """The counts of all partitions since the broker started."""

    bytes_in: int = 0
    """Appended as a follower."""
    bytes_out: int = 0
    """In responses to followers."""
    reassignment_bytes_in: int = 0
    """The part of ``bytes_in`` that is of replicas which a reassignment adds."""
    reassignment_bytes_out: int = 0
    """The part of ``bytes_out`` that is of replicas which a reassignment adds."""
    isr_expands: int = 0
    """Changes that the controller has confirmed to this broker, the leader; as ``isr_shrinks``."""
    isr_shrinks: int = 0
    failed_isr_updates: int = 0
    """Changes that the controller refused, or that another state had overtaken (Kafka: AlterPartitionListener)."""
    of_removed: Counter[str] = dataclasses.field(default_factory=Counter)
    """The ``TRAFFIC`` of partitions that have left this broker; Kafka's sums over all topics keep it."""
