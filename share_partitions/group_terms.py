"""What the configuration of a share group says of its records, and where the group begins in a partition.

It is read when it is needed, so a change counts from then on. A group that has not begun begins where its
``share.auto.offset.reset`` says: at the start of the log, at the high watermark, or at the first record that is not older than a
duration; where there is none, at the high watermark.
"""

from __future__ import annotations

from ..base.config import Config
from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock
from ..group_coordinator.group_configs import duration_of
from ..group_coordinator.share_record_settings import ShareRecordSettings, ShareRecordTerms, share_record_terms
from ..metadata.published import PublishedMetadata
from ..replication.partition import Partition
from ..security.entities import GROUPS, Entity
from .share_partition import Terms


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

    async def start_of(self, group_id: str, partition: Partition) -> int:
        """Where a group begins. Raises KafkaError, OFFSET_NOT_AVAILABLE while the high watermark may be an older one."""
        reset, log = self.configured(group_id).auto_offset_reset, partition.log
        if reset == "earliest":
            return log.log_start_offset
        leader = partition.leader
        if leader is not None and log.high_watermark < leader.epoch_start_offset:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "the high watermark is not known yet")
        duration = duration_of(reset)
        if duration is not None:
            found = await log.offset_for_timestamp(int(self._clock.now_ms() - duration * 1000), log.high_watermark)
            if found[0] >= 0:
                return found[0]
        return log.high_watermark
