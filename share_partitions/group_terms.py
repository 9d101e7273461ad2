"""The configs of share groups for the delivery of records, and the offset where a group begins in a partition.

They are read when they are needed, so a change counts from then on. A group's own value counts where it is set, within the bounds
of the broker; the controller may have let other values in. A group that has not begun begins where its
``share.auto.offset.reset`` says: at the start of the log, at the high watermark, or at the first record that is not older than a
duration; members get OFFSET_NOT_AVAILABLE until there is one, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..base.config import Config
from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock
from ..base.settings import SettingError
from ..group_coordinator.group_configs import GROUP_SETTINGS, duration_of
from ..group_coordinator.share_record_settings import ShareRecordSettings
from ..metadata.published import PublishedMetadata
from ..replication.partition import Partition
from ..security.entities import GROUPS, Entity
from .manager import GroupStart
from .share_partition import Terms


class ShareRecordTerms(NamedTuple):
    """How records are delivered to one share group."""

    record_lock_duration_ms: int
    delivery_count_limit: int
    partition_max_record_locks: int
    is_renew_enabled: bool
    is_read_committed: bool
    auto_offset_reset: str
    """``earliest``, ``latest``, or ``by_duration:`` and a duration."""


class GroupTerms:
    """The configs of all share groups, by the configuration and the metadata of the moment."""

    def __init__(self, config: Config, metadata: PublishedMetadata, clock: Clock) -> None:
        self._config = config
        self._metadata = metadata
        self._clock = clock

    def configured(self, group_id: str) -> ShareRecordTerms:
        """All that is configured of a group."""
        overrides = self._metadata.image.configs.get(Entity(GROUPS, group_id), {})
        return share_record_terms(self._config.settings(ShareRecordSettings), overrides)

    def terms(self, group_id: str) -> Terms:
        """What the state of a share partition depends on."""
        found = self.configured(group_id)
        return Terms(
            found.delivery_count_limit,
            found.partition_max_record_locks,
            found.record_lock_duration_ms / 1000,
            found.is_renew_enabled,
        )

    async def start_of(self, group_id: str, partition: Partition) -> GroupStart:
        """Where a group begins.

        Raises KafkaError, OFFSET_NOT_AVAILABLE while the high watermark may be an older one, or no record is new enough.
        """
        reset, log = self.configured(group_id).auto_offset_reset, partition.log
        if reset == "earliest":
            return GroupStart(log.log_start_offset, is_lasting=True)
        leader = partition.leader
        if leader is not None and log.high_watermark < leader.epoch_start_offset:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "the high watermark is not known yet")
        duration = duration_of(reset)
        if duration is not None:
            found = await log.offset_for_timestamp(int(self._clock.now_ms() - duration * 1000), log.high_watermark)
            if found[0] < 0:
                raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"no record is newer than {reset.partition(':')[2]}")
            return GroupStart(found[0], is_lasting=False)
        return GroupStart(log.high_watermark, is_lasting=False)


def share_record_terms(settings: ShareRecordSettings, overrides: Mapping[str, str]) -> ShareRecordTerms:
    """What is in force for a share group with these configs of its own."""
    kept = settings

    def number(name: str, value: int, lowest: int, highest: int) -> int:
        own = _own(overrides, name)
        return min(max(own, lowest), highest) if isinstance(own, int) else value

    return ShareRecordTerms(
        number(
            "share.record.lock.duration.ms",
            kept.record_lock_duration_ms,
            kept.min_record_lock_duration_ms,
            kept.max_record_lock_duration_ms,
        ),
        number(
            "share.delivery.count.limit",
            kept.delivery_count_limit,
            kept.min_delivery_count_limit,
            kept.max_delivery_count_limit,
        ),
        number(
            "share.partition.max.record.locks",
            kept.partition_max_record_locks,
            kept.min_partition_max_record_locks,
            kept.max_partition_max_record_locks,
        ),
        _own(overrides, "share.renew.acknowledge.enable") is not False,
        _own(overrides, "share.isolation.level") == "read_committed",
        str(_own(overrides, "share.auto.offset.reset") or "latest"),
    )


def _own(overrides: Mapping[str, str], name: str) -> object:
    """The value of a group's own config; None where it has none, or one that cannot be."""
    text = overrides.get(name)
    if text is None:
        return None
    try:
        return GROUP_SETTINGS[name].parse(text)
    except SettingError:
        return None
