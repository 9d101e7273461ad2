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
    """Since the broker started.

    ``bytes_in`` were appended as a follower, ``bytes_out`` were in answers to followers; those of replicas that a reassignment
    adds are counted again as ``reassignment_bytes_…``. ``isr_expands`` and ``isr_shrinks`` are changes of in-sync replicas that
    the controller has confirmed to this broker, the leader; ``failed_isr_updates`` those that it refused, or that another state
    had overtaken (Kafka: AlterPartitionListener). ``of_removed`` is the ``TRAFFIC`` of partitions that have left this broker;
    Kafka's sums over all topics keep it.
    """

    bytes_in: int = 0
    bytes_out: int = 0
    reassignment_bytes_in: int = 0
    reassignment_bytes_out: int = 0
    isr_expands: int = 0
    isr_shrinks: int = 0
    failed_isr_updates: int = 0
    of_removed: Counter[str] = dataclasses.field(default_factory=Counter)
