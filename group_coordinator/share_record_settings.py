"""Settings of the delivery of records to share groups (KIP-932): ``group.share.*``, under Kafka's names.

The bounds are for the values of groups; the broker's own have to be within them.
"""

from __future__ import annotations

from ..base.settings import setting
from .ordered_settings import OrderedSettings

_KINDS = ("record_lock_duration_ms", "delivery_count_limit", "partition_max_record_locks")


class ShareRecordSettings(OrderedSettings):
    """Records in flight in share groups."""

    record_lock_duration_ms: int = setting(
        "group.share.record.lock.duration.ms",
        default=30_000,
        at_least=1000,
        at_most=3_600_000,
        doc="Time that a member of a share group (KIP-932) holds a record, before it is delivered again.",
    )
    min_record_lock_duration_ms: int = setting(
        "group.share.min.record.lock.duration.ms",
        default=15_000,
        at_least=1000,
        at_most=30_000,
        doc="Shortest lock duration that may be set for a share group.",
    )
    max_record_lock_duration_ms: int = setting(
        "group.share.max.record.lock.duration.ms",
        default=60_000,
        at_least=30_000,
        at_most=3_600_000,
        doc="Longest lock duration that may be set for a share group.",
    )
    delivery_count_limit: int = setting(
        "group.share.delivery.count.limit",
        default=5,
        at_least=2,
        at_most=10,
        doc="Most deliveries of a record that is not acknowledged.",
    )
    min_delivery_count_limit: int = setting(
        "group.share.min.delivery.count.limit",
        default=2,
        at_least=2,
        at_most=5,
        doc="Lowest limit of deliveries that may be set for a share group.",
    )
    max_delivery_count_limit: int = setting(
        "group.share.max.delivery.count.limit",
        default=10,
        at_least=5,
        at_most=25,
        doc="Highest limit of deliveries that may be set for a share group.",
    )
    partition_max_record_locks: int = setting(
        "group.share.partition.max.record.locks",
        default=2000,
        at_least=100,
        at_most=10_000,
        doc="Most locked records of a partition in a share group.",
    )
    min_partition_max_record_locks: int = setting(
        "group.share.min.partition.max.record.locks",
        default=100,
        at_least=100,
        at_most=2000,
        doc="Fewest record locks that may be set for a share group.",
    )
    max_partition_max_record_locks: int = setting(
        "group.share.max.partition.max.record.locks",
        default=4000,
        at_least=2000,
        at_most=10_000,
        doc="Most record locks that may be set for a share group.",
    )

    def check_relations(self) -> None:
        """Values are within the bounds for groups, as Kafka's ShareGroupConfig has it."""
        for kind in _KINDS:
            self.check_order(f"min_{kind}", kind)
            self.check_order(kind, f"max_{kind}")
