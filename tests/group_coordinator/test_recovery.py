"""What survives the coordinator, and the records it survives in."""

from __future__ import annotations

import struct

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.committed_offsets import each_commit
from ottla.group_coordinator.live_group import GroupState
from ottla.group_coordinator.records import read_batch
from ottla.group_coordinator.replay import RECORD_TYPES
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.wire.coordinator_records import OFFSETS_TOPIC_TYPES
from ottla.wire.messages.consumer_offsets import GroupMetadataKey
from ottla.wire.records import RecordBatch, RecordsBuilder

NONE = ErrorCode.NONE
COMMIT_KEY = struct.pack(">h", 1) + b"\0\1g\0\1t\0\0\0\0"


def test_a_stable_group_goes_on_after_a_restart_without_a_rebalance(machine):
    leader, follower = machine.stable(2)
    machine.commit(9, member_id=leader, generation=2, epoch=3, metadata="m")
    machine.restart()
    assert machine.heartbeat(leader, 2).error_code == NONE
    assert machine.heartbeat(follower, 2).error_code == NONE
    assert machine.sync(follower, 2).answer.assignment == b"a1"
    fetched = machine.fetch()
    assert (fetched.committed_offset, fetched.committed_leader_epoch, fetched.metadata) == (9, 3, "m")
    described = machine.describe()
    assert (described.group_state, described.protocol_data, len(described.members)) == ("Stable", "range", 2)


def test_members_get_a_fresh_session_after_a_restart(machine):
    (member,) = machine.stable()
    machine.advance(9_000)
    machine.restart()
    machine.advance(9_000)
    assert machine.heartbeat(member, 1).error_code == NONE
    machine.advance(10_001)
    assert machine.group().state is GroupState.EMPTY


def test_a_restart_between_join_and_sync_forces_another_round(machine):
    leader, follower = machine.stable(2)
    late, _ = machine.enter()
    machine.join(leader)
    machine.join(follower)
    assert machine.group().state is GroupState.COMPLETING_REBALANCE
    machine.restart()
    assert machine.group().generation.generation_id == 2
    with pytest.raises(KafkaError) as refused:
        machine.heartbeat(leader, 3)
    assert refused.value.code is ErrorCode.ILLEGAL_GENERATION
    assert machine.sync(leader, 3, {}).answer.error_code == ErrorCode.ILLEGAL_GENERATION
    assert machine.join(late).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    machine.enter()
    machine.join(leader)
    answer = machine.join(follower).answer
    assert (answer.generation_id, answer.leader) == (3, leader)
    assert len(machine.group().members) == 3


def test_who_waits_when_the_coordinator_goes_is_sent_away(machine):
    first, second = machine.stable(2)
    joining = machine.join(first)
    machine.restart()
    assert joining.answer.error_code == ErrorCode.NOT_COORDINATOR
    leader = machine.join(first)
    machine.join(second)
    syncing = machine.sync(second, leader.answer.generation_id)
    machine.restart()
    assert syncing.answer.error_code == ErrorCode.NOT_COORDINATOR


def test_the_generation_of_an_empty_group_goes_on_counting_after_a_restart(machine):
    (member,) = machine.stable()
    machine.leave(member)
    machine.restart()
    _, waiter = machine.enter()
    assert waiter.answer.generation_id == 3


def test_assignments_that_cannot_be_written_are_not_handed_out(machine):
    leader, _ = machine.enter()
    follower, _ = machine.enter()
    machine.join(leader)
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    waiting = machine.sync(follower, 2)
    answer = machine.sync(leader, 2, {leader: b"x", follower: b"y"}).answer
    assert answer.error_code == waiting.answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert machine.group().state is GroupState.PREPARING_REBALANCE
    machine.join(leader)
    assert machine.join(follower).answer.generation_id == 3


def test_replaying_the_log_twice_gives_the_same_state(machine):
    members = machine.stable(3)
    machine.commit(1, member_id=members[0], generation=machine.group().generation.generation_id)
    machine.commit(1, group="simple")
    machine.leave(members[2])

    def state():
        return {
            group_id: (
                group.generation,
                {(t, p): c.value for t, p, c in each_commit(machine.shard.offsets.of(group_id))},
            )
            for group_id, group in machine.shard.groups.items()
        }

    machine.restart()
    once = state()
    machine.restart()
    assert state() == once


def records_of(machine):
    batches = [RecordBatch(bytearray(batch)) for batch in machine.log.partitions[0]]
    return [record for batch in batches for _, record in read_batch(batch, SkippedRecords()) if record is not None]


def test_records_have_kafkas_keys_and_versions(machine):
    (member,) = machine.stable()
    machine.commit(1, member_id=member, generation=1)
    machine.commit(1, partition=1, member_id=member, generation=1, version=2, retention_time_ms=5)
    machine.commit(1, partition=2, member_id=member, generation=1, topic_id=b"1" * 16)
    machine.delete_offset("other")
    machine.leave(member)
    machine.delete_offset("t", 0)
    raw = [record for batch in machine.log.partitions[0] for record in RecordBatch(bytearray(batch)).records()]
    prefixes = [
        (
            struct.unpack(">h", record.key[:2])[0],
            None if record.value is None else struct.unpack(">h", record.value[:2])[0],
        )
        for record in raw
    ]
    assert prefixes == [(2, 3), (1, 3), (1, 1), (1, 4), (2, 3), (1, None)]
    assert raw[1].key[2:] == b"\0\1g\0\1t\0\0\0\0"


def test_a_group_record_says_who_is_in_the_group(machine):
    leader, follower = machine.stable(2)
    record = records_of(machine)[-1]
    assert isinstance(record.key, GroupMetadataKey)
    value = record.value
    assert (value.protocol_type, value.protocol, value.generation, value.leader) == ("consumer", "range", 2, leader)
    assert {m.member_id: m.assignment for m in value.members} == {leader: b"a0", follower: b"a1"}
    assert value.current_state_timestamp == machine.wall_ms


def test_all_records_of_a_request_are_one_batch(machine):
    machine.commit(1)
    machine.commit(2, partition=1)
    machine.log.partitions.clear()
    machine.log.ends.clear()
    machine.shard.last_offset = 0
    from ottla.group_coordinator.expiry import delete_group

    delete_group(machine.shard, "g", machine.now)
    (batch,) = machine.log.partitions[0]
    assert RecordBatch(bytearray(batch)).record_count == 3


def test_records_that_cannot_be_understood_are_left_out_and_counted(machine):
    builder = RecordsBuilder()
    builder.append(struct.pack(">h", 99) + b"whatever", b"\0\0", 1)
    builder.append(COMMIT_KEY, struct.pack(">h", 9) + b"a version of the future", 1)
    builder.append(COMMIT_KEY, struct.pack(">h", 3) + b"\0", 1)
    builder.append(COMMIT_KEY[:-2], None, 1)
    builder.append(b"\0", None, 1)
    builder.append(None, b"no key", 1)
    builder.append(struct.pack(">h", 2) + b"\0\1g", struct.pack(">h", 3) + b"\xff" * 40, 1)
    legacy_key = struct.pack(">h", 0) + b"\0\1g\0\1t\0\0\0\0"
    legacy_value = struct.pack(">hqhq", 0, 77, 0, 1234)
    builder.append(legacy_key, legacy_value, 1)
    skipped = SkippedRecords()
    list(machine.shard.load(RecordBatch(builder.build()), skipped))
    assert machine.fetch().committed_offset == 77
    assert (skipped.count, skipped.first) == (7, "offset 0: the record type 99 is unknown")
    found = [record for _, record in read_batch(RecordBatch(builder.build()), skipped)]
    assert found[:7] == [None] * 7
    assert found[7] is not None


def test_every_type_of_record_that_can_be_read_has_a_rule():
    assert set(RECORD_TYPES) == set(OFFSETS_TOPIC_TYPES)


def test_a_large_batch_is_replayed_step_by_step(machine):
    """Others have their turn in between: a compressed batch of a kilobyte can have millions of records."""
    builder = RecordsBuilder(compression=4)
    for _ in range(5000):
        builder.append(struct.pack(">h", 99), b"", 1)
    steps = machine.shard.load(RecordBatch(builder.build()), skipped := SkippedRecords())
    for seen in range(1, 5001):
        next(steps)
        assert skipped.count == seen
    assert next(steps, "ended") == "ended"


def test_batch_that_is_no_batch_inside_is_left_out_from_there_on(machine):
    builder = RecordsBuilder()
    legacy_key = struct.pack(">h", 0) + b"\0\1g\0\1t\0\0\0\0"
    for offset in range(3):
        builder.append(legacy_key, struct.pack(">hqhq", 0, offset, 0, 1234), 1)
    batch = builder.build()
    last = batch.rindex(legacy_key) - 1
    batch[last] = 0xFE  # the length of the last key is more than is left
    struct.pack_into(">I", batch, 17, RecordBatch(bytes(batch)).compute_crc())
    skipped = SkippedRecords()
    list(machine.shard.load(RecordBatch(batch), skipped))
    assert machine.fetch().committed_offset == 1
    assert skipped.count == 1
    assert skipped.first.startswith("offset 2: INVALID_RECORD: the records of a batch are malformed")
