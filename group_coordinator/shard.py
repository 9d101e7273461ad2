"""One partition of ``__consumer_offsets`` that this broker leads, as a replicated state machine.

``write`` is the only way to change durable state: it appends the records of one request as one batch and replays them, in
one plain function, so the one is never seen without the other. After a restart or on another broker the same
``replay`` over the same records gives the same state. What reads the state answers with ``offset``, up to which the log
must be committed before the answer may be seen.

Time comes in as a ``Moment``; nothing here reads a clock, waits or does I/O of its own.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..replication.coordinator_loading import SkippedRecords, readable_records
from ..replication.coordinator_log import CoordinatorLog, Moment
from ..wire.messages.consumer_offsets import GroupMetadataValue, MemberMetadata
from ..wire.messages.write_txn_markers import WritableTxnMarker
from ..wire.records import RecordBatch
from .committed_offsets import CommittedOffset, CommittedOffsets, OffsetTable
from .group import Group, GroupState, Member
from .modern import RECORD_KINDS, ModernGroup
from .records import CoordinatorRecord, ModernRecord, OffsetRecord, build_batch, read_batch
from .settings import GroupSettings
from .timeline import Timeline
from .timers import Timers

logger = logging.getLogger(__name__)


COMMIT_MARKER = b"\0\1"
"""What follows the int16 version in the key of the control record that commits a transaction."""


class GroupAndOffsets(NamedTuple):
    """A group, and what it has committed."""

    group: Group
    offsets: CommittedOffsets


class Shard:
    """The groups of one partition."""

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        log: CoordinatorLog,
        settings: GroupSettings,
        randomness: random.Random,
        timeline: Timeline,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.settings = settings
        self.timeline = timeline
        self.groups: dict[str, Group] = {}
        self.modern: dict[str, ModernGroup] = {}
        """Groups of the newer protocols; where they have offsets, a group of that id is in ``groups``, too."""
        self.offsets = OffsetTable()
        self.timers = Timers()
        self.last_offset = 0
        self._log = log
        self._randomness = randomness

    def new_member_id(self, prefix: str) -> str:
        """A fresh member id that begins with the client's or the instance's id."""
        return f"{prefix}-{uuid.UUID(int=self._randomness.getrandbits(128), version=4)}"

    def depends_on(self, group_id: str) -> int:
        """The offset up to which the log must be committed before anything about this group may be told."""
        known = [group for group in (self.groups.get(group_id), self.modern.get(group_id)) if group is not None]
        return max((group.last_offset for group in known), default=self.last_offset)

    def groups_and_offsets(self) -> Iterator[GroupAndOffsets]:
        """Every group, with what it has committed."""
        return (GroupAndOffsets(group, self.offsets.of(group_id)) for group_id, group in self.groups.items())

    def write(self, records: Sequence[CoordinatorRecord], now: Moment, producer: tuple[int, int] = (-1, -1)) -> None:
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
        self._end_transaction(marker.producer_id, end_offset, committed=marker.transaction_result)
        return end_offset

    def load(self, batch: RecordBatch, skipped: SkippedRecords) -> Iterator[None]:
        """Replay a batch of the log, and yield after each record; those that cannot be understood are noted."""
        if batch.is_control:
            for marker in readable_records(batch, skipped):
                is_commit = marker.key is not None and marker.key[2:4] == COMMIT_MARKER
                self._end_transaction(batch.producer_id, batch.next_offset, committed=is_commit)
                yield
            return
        producer_id = batch.producer_id if batch.is_transactional else -1
        for offset, record in read_batch(batch, skipped):
            if record is not None:
                self.replay(record, offset, producer_id)
            yield

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int = -1) -> None:
        """Apply one record. ``producer_id`` is that of the transaction the record belongs to, -1 for none."""
        if isinstance(record, OffsetRecord):
            self._replay_offset(record, offset, producer_id)
        elif isinstance(record, ModernRecord):
            self._replay_modern(record, offset)
        elif record.value is None:
            self._replay_group_tombstone(record.key.group)
        else:
            self._replay_group(record.key.group, record.value)
        group = self.groups.get(record.group_id)
        if group is not None:
            group.last_offset = offset + 1
        self.last_offset = offset + 1

    def _replay_modern(self, record: ModernRecord, offset: int) -> None:
        group = self.modern.get(record.group_id)
        if group is None:
            if record.value is None:
                return
            group = self.modern[record.group_id] = ModernGroup(record.group_id, RECORD_KINDS[record.key.api_key])
        group.replay(record.key, record.value)
        group.last_offset = offset + 1
        if not group.keys:
            del self.modern[record.group_id]

    def _replay_offset(self, record: OffsetRecord, offset: int, producer_id: int) -> None:
        key, value = record.key, record.value
        if value is None:
            self.offsets.remove(key.group, key.topic, key.partition)
            return
        if key.group not in self.groups:
            self.groups[key.group] = Group(key.group, value.commit_timestamp)
        self.offsets.commit(key.group, key.topic, key.partition, CommittedOffset(value, offset), producer_id)

    def _end_transaction(self, producer_id: int, end_offset: int, *, committed: bool) -> None:
        """Take over or drop a transaction's commits; its marker ends at ``end_offset``."""
        self.last_offset = end_offset
        for group_id in self.offsets.end_transaction(producer_id, committed=committed):
            if group_id in self.groups:
                self.groups[group_id].last_offset = end_offset

    def _replay_group_tombstone(self, group_id: str) -> None:
        group = self.groups.pop(group_id, None)
        if group is not None and self.offsets.has_any(group_id):
            self.groups[group_id] = Group(group_id, group.state_timestamp_ms)

    def _replay_group(self, group_id: str, value: GroupMetadataValue) -> None:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, value.current_state_timestamp)
        kept = {member.member_id for member in value.members}
        for member_id in [member_id for member_id in group.members if member_id not in kept]:
            group.remove(member_id)
        for written in value.members:
            _replay_member(group, written, value.protocol)
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.generation_id = value.generation
        group.leader_id = value.leader
        group.state = GroupState.STABLE if value.members else GroupState.EMPTY
        group.state_timestamp_ms = value.current_state_timestamp
        group.subscribed_topics = group.compute_subscribed_topics()


def _replay_member(group: Group, written: MemberMetadata, protocol_name: str | None) -> None:
    member = group.members.get(written.member_id)
    if member is None:
        member = Member(written.member_id, written.group_instance_id, written.client_id, written.client_host, 0, 0, [])
        if written.group_instance_id in group.static_members:
            group.remove(group.static_members[written.group_instance_id])
        group.add(member)
    member.rebalance_timeout_ms = (
        written.session_timeout if written.rebalance_timeout == -1 else written.rebalance_timeout
    )
    member.session_timeout_ms = written.session_timeout
    member.assignment = written.assignment
    # The record has one of the protocols a member offered; a member that is here to offer the others keeps them.
    offered = (protocol_name or "", written.subscription)
    if offered not in member.protocols:
        member.protocols = [offered]
