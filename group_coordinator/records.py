"""The records of ``__consumer_offsets``: their creation from changes of state, and their decoding.

Keys and values are Kafka's own (``OffsetCommitKey``, ``GroupMetadataKey``, ...), each with its int16 type or version in
front, so Kafka's tools and brokers read them. A record without a value is a tombstone. As Kafka 4.3 does, groups are
written at value version 3, and offsets at 4, which has the topic's id; at 3 where that is not known, and at 1 where the
commit names its own expiry, because no other version has the field. Kafka 3.9 reads all of them.

Records of newer groups, as brokers with KIP-848 or share groups write them, are read (``modern``); to remove such a group, or
its members, tombstones are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..base.errors import ProtocolError
from ..replication.coordinator_loading import SkippedRecords, decoded_records
from ..wire.coordinator_records import decode_coordinator_key, decode_coordinator_value, encode_coordinator_record
from ..wire.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ..wire.records import Record, RecordBatch, RecordsBuilder
from ..wire.schema import ZERO_UUID, Message
from .generation import Generation, GenerationMember

GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION = 3
OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1
OFFSET_COMMIT_VERSION_WITH_TOPIC_ID = 4


class CoordinatorRecord(NamedTuple):
    """A record to write, or that was read: its value at ``version``, or with no value a tombstone."""

    key: Message
    value: Message | None
    version: int = 0


def offset_commit(group_id: str, topic: str, partition: int, value: OffsetCommitValue) -> CoordinatorRecord:
    """A commit of one partition."""
    version = OFFSET_COMMIT_VERSION
    if value.expire_timestamp != -1:
        version = OFFSET_COMMIT_VERSION_WITH_EXPIRY
    elif value.topic_id != ZERO_UUID:
        version = OFFSET_COMMIT_VERSION_WITH_TOPIC_ID
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """The removal of one partition's commit."""
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """The end of a group."""
    return CoordinatorRecord(GroupMetadataKey(group=group_id), None)


def group_metadata(group_id: str, generation: Generation) -> CoordinatorRecord:
    """A completed rebalance."""
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.subscription,
            assignment=member.assignment,
        )
        for member in generation.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=generation.protocol_type or "",
        generation=generation.generation_id,
        protocol=generation.protocol_name,
        leader=generation.leader_id,
        current_state_timestamp=generation.state_timestamp_ms,
        members=members,
    )
    return CoordinatorRecord(GroupMetadataKey(group=group_id), value, GROUP_METADATA_VERSION)


def read_generation(value: GroupMetadataValue) -> Generation:
    """The generation that the record of a completed rebalance is of."""
    members: dict[str, GenerationMember] = {}
    static: dict[str, str] = {}
    for written in value.members:
        session_ms, rebalance_ms = written.session_timeout, written.rebalance_timeout
        member = GenerationMember(
            written.member_id,
            written.group_instance_id,
            written.client_id,
            written.client_host,
            session_ms if rebalance_ms == -1 else rebalance_ms,
            session_ms,
            written.subscription,
            written.assignment,
        )
        if member.group_instance_id is not None:
            members.pop(static.get(member.group_instance_id, ""), None)
            static[member.group_instance_id] = member.member_id
        members[member.member_id] = member
    return Generation(
        value.generation,
        value.protocol_type or None,
        value.protocol,
        value.leader,
        members,
        value.current_state_timestamp,
    )


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
    return decoded_records(batch, skipped, _decode)


def _decode(record: Record) -> CoordinatorRecord:
    """Raises ProtocolError."""
    if record.key is None:
        raise ProtocolError("a record without a key")
    key = decode_coordinator_key(record.key)
    if key is None:
        raise ProtocolError(f"the record type {int.from_bytes(record.key[:2], signed=True)} is unknown")
    return CoordinatorRecord(key, None if record.value is None else decode_coordinator_value(key, record.value))
