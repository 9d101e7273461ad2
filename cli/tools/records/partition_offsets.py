"""Start and end offsets of partitions, from an admin client or a consumer, for the forms of ``--offset``.

They are the ``Offsets`` of ``offset_expressions``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kafka import TopicPartition
from kafka.admin import OffsetSpec

from ..client import Admin


class AdminOffsets:
    """Asks the leaders by ListOffsets."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def starts(self, wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return self._list(wanted, OffsetSpec.EARLIEST)

    def ends(self, wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return self._list(wanted, OffsetSpec.LATEST)

    def at_time(self, wanted: Collection[TopicPartition], time_ms: int) -> Mapping[TopicPartition, int | None]:
        found = self._list(wanted, time_ms)
        return {where: offset if offset >= 0 else None for where, offset in found.items()}

    def _list(self, wanted: Collection[TopicPartition], spec: int) -> dict[TopicPartition, int]:
        if not wanted:
            return {}
        found = self._admin.list_partition_offsets(dict.fromkeys(wanted, spec))
        return {where: int(at.offset) for where, at in found.items()}


class ConsumerOffsets:
    """Asks by a consumer, which is connected anyway."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def starts(self, wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        starts: dict[TopicPartition, int] = self._consumer.beginning_offsets(list(wanted))
        return starts

    def ends(self, wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        ends: dict[TopicPartition, int] = self._consumer.end_offsets(list(wanted))
        return ends

    def at_time(self, wanted: Collection[TopicPartition], time_ms: int) -> Mapping[TopicPartition, int | None]:
        found = self._consumer.offsets_for_times(dict.fromkeys(wanted, time_ms))
        return {where: at.offset if at else None for where, at in found.items()}
