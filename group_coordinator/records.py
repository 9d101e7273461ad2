"""The records of ``__consumer_offsets``: what is written for a change of state, and how it is read back.

Keys and values are Kafka's own (``OffsetCommitKey``, ``GroupMetadataKey``, ...), each with its int16 type or version in
front, so Kafka's tools and brokers read them. A record without a value is a tombstone. As Kafka 4.3 does, groups are
written at value version 3, and offsets at 4, which has the topic's id; at 3 where that is not known, and at 1 where the
commit names its own expiry, because no other version has the field. Kafka 3.9 reads all of them.

Records of newer groups, as brokers with KIP-848 or share groups write them, are read (``modern``); to remove such a group, or
its members, tombstones are written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from ..base.errors import ProtocolError
from ..replication.coordinator_loading import SkippedRecords, readable_records
from ..wire.coordinator_records import decode_coordinator_key, decode_coordinator_value, encode_coordinator_record
from ..wire.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ..wire.records import Record, RecordBatch, RecordsBuilder
from ..wire.schema import ZERO_UUID, Message
from .group import Group
from .modern import RECORD_KINDS

GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION = 3
OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1
OFFSET_COMMIT_VERSION_WITH_TOPIC_ID = 4


@dataclasses.dataclass(slots=True, frozen=True)
class OffsetRecord:
    """A commit, or with no value its removal."""

    key: OffsetCommitKey
    value: OffsetCommitValue | None

    @property
    def group_id(self) -> str:
        return self.key.group

    @property
    def version(self) -> int:
        """Of the value."""
        if self.value is not None and self.value.expire_timestamp != -1:
            return OFFSET_COMMIT_VERSION_WITH_EXPIRY
        if self.value is not None and self.value.topic_id != ZERO_UUID:
            return OFFSET_COMMIT_VERSION_WITH_TOPIC_ID
        return OFFSET_COMMIT_VERSION


@dataclasses.dataclass(slots=True, frozen=True)
class GroupRecord:
    """A completed rebalance, or with no value the end of the group."""

    key: GroupMetadataKey
    value: GroupMetadataValue | None

    @property
    def group_id(self) -> str:
        return self.key.group

    @property
    def version(self) -> int:
        """Of the value."""
        return GROUP_METADATA_VERSION


@dataclasses.dataclass(slots=True, frozen=True)
class ModernRecord:
    """A record of a group of a newer protocol, of any of ``RECORD_KINDS``."""

    key: Message
    value: Message | None

    @property
    def group_id(self) -> str:
        group_id: str = self.key.group_id  # type: ignore[attr-defined]
        return group_id

    @property
    def version(self) -> int:
        """Of the value; there is no other."""
        return 0


CoordinatorRecord = OffsetRecord | GroupRecord | ModernRecord


def offset_commit(group_id: str, topic: str, partition: int, value: OffsetCommitValue) -> OffsetRecord:
    """A commit of one partition."""
    return OffsetRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), value)


def offset_tombstone(group_id: str, topic: str, partition: int) -> OffsetRecord:
    """The removal of one partition's commit."""
    return OffsetRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def group_tombstone(group_id: str) -> GroupRecord:
    """The end of a group."""
    return GroupRecord(GroupMetadataKey(group=group_id), None)


def group_metadata(group: Group, assignments: Mapping[str, bytes], now_ms: int) -> GroupRecord:
    """The group's current generation with these assignments (member id -> bytes); members left out get none."""
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol_name),
            assignment=assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=now_ms,
        members=members,
    )
    return GroupRecord(GroupMetadataKey(group=group.group_id), value)


def build_batch(
    records: Sequence[CoordinatorRecord], now_ms: int, compression: int, producer: tuple[int, int] = (-1, -1)
) -> bytearray:
    """One batch of ``records``, all with the timestamp ``now_ms``; ``producer`` (id, epoch) makes it transactional."""
    producer_id, producer_epoch = producer
    builder = RecordsBuilder(
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=producer_id >= 0,
    )
    for record in records:
        key = encode_coordinator_record(record.key, 0)
        value = None if record.value is None else encode_coordinator_record(record.value, record.version)
        builder.append(key, value, now_ms)
    return builder.build()


def read_batch(batch: RecordBatch, skipped: SkippedRecords) -> Iterator[tuple[int, CoordinatorRecord | None]]:
    """The records of ``batch`` with their offsets; those that cannot be understood are None, and noted."""
    for record in readable_records(batch, skipped):
        try:
            decoded = _decode(record)
        except ProtocolError as error:
            skipped.note(record.offset, str(error))
            yield record.offset, None
            continue
        yield record.offset, decoded


def _decode(record: Record) -> CoordinatorRecord:
    """Raises ProtocolError."""
    if record.key is None:
        raise ProtocolError("a record without a key")
    key = decode_coordinator_key(record.key)
    if key is None:
        raise ProtocolError(f"the record type {int.from_bytes(record.key[:2], signed=True)} is unknown")
    return _typed(key, None if record.value is None else decode_coordinator_value(key, record.value))


def _typed(key: Message, value: Message | None) -> CoordinatorRecord:
    if key.api_key in RECORD_KINDS:
        return ModernRecord(key, value)
    if isinstance(key, GroupMetadataKey):
        assert value is None or isinstance(value, GroupMetadataValue)
        return GroupRecord(key, value)
    if isinstance(key, LegacyOffsetCommitKey):
        key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
        if isinstance(value, LegacyOffsetCommitValue):
            value = OffsetCommitValue(
                offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
            )
    assert isinstance(key, OffsetCommitKey)
    assert value is None or isinstance(value, OffsetCommitValue)
    return OffsetRecord(key, value)
