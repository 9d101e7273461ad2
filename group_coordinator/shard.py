"""One partition of ``__consumer_offsets`` that this broker leads, as a replicated state machine.

``write`` is the only way to change durable state: it appends the records of one request as one batch and replays them, in
one plain function, so the one is never seen without the other. After a restart or on another broker the same
``replay`` over the same records gives the same state. What reads the state answers with ``offset``, up to which the log
must be committed before the answer may be seen.

Time comes in as a ``CoordinatorTime``; nothing here reads a clock, waits or does I/O of its own.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..replication.coordinator_loading import SkippedRecords, readable_records
from ..replication.coordinator_log import CoordinatorLog, CoordinatorTime
from ..wire.messages.write_txn_markers import WritableTxnMarker
from ..wire.records import RecordBatch
from ..wire.schema import uuid_to_text
from .committed_offsets import CommittedOffsets
from .group import Group
from .group_context import GroupContext
from .modern_group import TargetAssignment
from .records import CoordinatorRecord, build_batch, read_batch
from .replay import ReplayedGroups
from .settings import GroupSettings
from .share_state_partitions import StatePartitions
from .timeline import Timeline
from .timers import Timers

COMMIT_MARKER = b"\0\1"
"""What follows the int16 version in the key of the control record that commits a transaction."""


class GroupAndOffsets(NamedTuple):
    """A group, and what it has committed."""

    group: Group
    offsets: CommittedOffsets


class GroupCoordinatorShard(ReplayedGroups):
    """The groups of one partition."""

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        log: CoordinatorLog,
        settings: GroupSettings,
        randomness: random.Random,
        timeline: Timeline,
        context: GroupContext,
    ) -> None:
        super().__init__()
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.settings = settings
        self.timeline = timeline
        self.context = context
        self.timers = Timers()
        self.checked_topics: dict[str, int] = {}
        """Of consumer and share groups, the version of the topics with which the metadata hash was compared last. Soft: after a
        load every group is compared once."""
        self.rebalances_began: dict[str, float] = {}
        """Of consumer and share groups that are not at their target, since when. Soft, by the monotonic clock in ms."""
        self.asked_states: dict[str, dict[bytes, frozenset[int]]] = {}
        """Of share groups, the partitions that the share coordinator is asked to begin with at the moment. Soft."""
        self.fully_assigned: dict[str, tuple[TargetAssignment, StatePartitions, int]] = {}
        """Of share groups, the target in which all partitions were that members may be given, of these states and at this version
        of the topics. Soft: after a load every group is looked at once."""
        self.logged_refusals: set[str] = set()
        """The groups of which the log says that members of the classic protocol cannot join. Soft."""
        self._log = log
        self._randomness = randomness

    def new_member_id(self, prefix: str) -> str:
        """A fresh member id that begins with the client's or the instance's id."""
        return f"{prefix}-{uuid.UUID(int=self._randomness.getrandbits(128), version=4)}"

    def new_consumer_id(self) -> str:
        """A fresh member id for a client of KIP-848 that has made none."""
        return uuid_to_text(uuid.UUID(int=self._randomness.getrandbits(128), version=4).bytes)

    def remove_group(self, group_id: str) -> None:
        super().remove_group(group_id)
        self.checked_topics.pop(group_id, None)
        self.rebalances_began.pop(group_id, None)
        self.fully_assigned.pop(group_id, None)
        self.logged_refusals.discard(group_id)

    def groups_and_offsets(self) -> Iterator[GroupAndOffsets]:
        """Every group, with what it has committed."""
        return (GroupAndOffsets(group, self.offsets.of(group_id)) for group_id, group in self.groups.items())

    def write(
        self, records: Sequence[CoordinatorRecord], now: CoordinatorTime, producer: tuple[int, int] = (-1, -1)
    ) -> None:
        """Append ``records`` as one batch and replay them. KafkaError, and nothing changed, when the log refuses.

        ``producer`` is the id and epoch of the transaction they are part of.
        """
        if not records:
            return
        batch = build_batch(records, now.wall_ms, self.settings.offsets_topic_compression_codec, producer)
        end_offset = self._log.append(self.partition, batch)
        for offset, record in enumerate(records, end_offset - len(records)):
            self.replay(record, offset, producer[0])

    def end_transaction(self, marker: WritableTxnMarker) -> int:
        """Append a transaction's end marker and replay it; the offset after it. KafkaError when the log refuses."""
        end_offset = self._log.append_end_marker(self.partition, marker)
        self.replay_end(marker.producer_id, end_offset, committed=marker.transaction_result)
        return end_offset

    def load(self, batch: RecordBatch, skipped: SkippedRecords) -> Iterator[None]:
        """Replay a batch of the log, and yield after each record; those that cannot be understood are noted."""
        if batch.is_control:
            for marker in readable_records(batch, skipped):
                is_commit = marker.key is not None and marker.key[2:4] == COMMIT_MARKER
                self.replay_end(batch.producer_id, batch.next_offset, committed=is_commit)
                yield
            return
        producer_id = batch.producer_id if batch.is_transactional else -1
        for offset, record in read_batch(batch, skipped):
            if record is not None:
                self.replay(record, offset, producer_id)
            yield
