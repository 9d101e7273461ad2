"""Value types for topics to create (``NewTopic``) and for created ones (``CreatedTopic``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from .settings import ControllerSettings

Charge = Callable[[int], None]
"""Charges partitions that are about to be made to a client's quota. Raises KafkaError where that is exhausted."""


@dataclasses.dataclass(frozen=True)
class NewTopic:
    """A topic to make. -1 is the broker's default; ``assignment`` (replicas by partition) stands instead of numbers."""

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str | None] = dataclasses.field(default_factory=dict)

    def numbers(self, settings: ControllerSettings) -> tuple[int, int]:
        """How many partitions, and how many replicas of each."""
        count = settings.num_partitions if self.partition_count == -1 else self.partition_count
        factor = settings.default_replication_factor if self.replication_factor == -1 else self.replication_factor
        return count, factor


@dataclasses.dataclass(frozen=True)
class CreatedTopic:
    """A topic that was made, or would be. ``configs`` are its overrides."""

    topic_id: bytes
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]
