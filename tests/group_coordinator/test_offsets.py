"""Committed offsets, their retention and deletion.

That unknown partitions are refused is tested with the handlers, which know the topics.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator import conversion, expiry
from ottla.group_coordinator.live_group import GroupState
from ottla.group_coordinator.records import build_batch, offset_commit
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.wire.messages.consumer_offsets import OffsetCommitValue
from ottla.wire.records import Record, RecordBatch, RecordsBuilder

NONE = ErrorCode.NONE
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
OPAQUE = (("default", b""),)


def refused(call, *arguments, **fields):
    with pytest.raises(KafkaError) as error:
        call(*arguments, **fields)
    return error.value.code


def test_offset_leader_epoch_and_metadata_come_back(machine):
    assert machine.commit(42, epoch=7, metadata="mémo") == NONE
    fetched = machine.fetch()
    assert (fetched.committed_offset, fetched.committed_leader_epoch, fetched.metadata) == (42, 7, "mémo")


def test_nothing_committed_is_minus_1_without_an_error(machine):
    for fetched in (machine.fetch(group="unknown"), machine.fetch(partition=9)):
        assert (fetched.committed_offset, fetched.committed_leader_epoch) == (-1, -1)
        assert (fetched.metadata, fetched.error_code) == ("", NONE)


def test_all_topics_of_a_group(machine):
    machine.commit(1, topic="b", partition=1)
    machine.commit(2, topic="a", partition=0)
    machine.commit(3, topic="b", partition=0)
    machine.commit(4, topic="a", group="other")
    assert machine.fetch_all() == {("a", 0): 2, ("b", 0): 3, ("b", 1): 1}
    assert machine.fetch_all("unknown") == {}


def test_anyone_commits_to_an_unknown_or_empty_group(machine):
    assert machine.commit(1) == NONE
    assert machine.group().state is GroupState.EMPTY
    (member,) = machine.stable()
    assert refused(machine.commit, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    machine.leave(member)
    assert machine.commit(3) == NONE
    assert machine.fetch().committed_offset == 3


def test_members_commit_in_their_own_generation_only(machine):
    (member,) = machine.stable()
    assert machine.commit(1, member_id=member, generation=1) == NONE
    assert refused(machine.commit, 2, member_id=member, generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert refused(machine.commit, 2, member_id="unknown", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(machine.commit, 2, member_id=member, generation=-1) is ErrorCode.ILLEGAL_GENERATION


def test_a_generation_of_an_unknown_group_is_refused(machine):
    commit = {"group": "unknown", "member_id": "m", "generation": 3}
    assert refused(machine.commit, 2, version=9, **commit) is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused(machine.commit, 2, version=8, **commit) is ErrorCode.ILLEGAL_GENERATION


def test_between_join_and_sync_nobody_commits_but_during_the_joining_members_do(machine):
    first, second = machine.stable(2)
    machine.leave(second)
    assert machine.commit(2, member_id=first, generation=2) == NONE
    machine.join(first)
    assert machine.group().state is GroupState.COMPLETING_REBALANCE
    assert refused(machine.commit, 3, member_id=first, generation=3) is ErrorCode.REBALANCE_IN_PROGRESS


def test_metadata_that_is_too_long_is_refused_for_its_partition(make_machine):
    machine = make_machine(offset_metadata_max_bytes=4)
    assert machine.commit(1, metadata="12345") == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert machine.fetch().committed_offset == -1
    assert machine.log.batch_count == 0
    assert machine.commit(1, metadata="1234") == NONE


def test_metadata_is_counted_in_utf_16_units(make_machine):
    machine = make_machine(offset_metadata_max_bytes=4)
    assert machine.commit(1, metadata="\U0001f600\U0001f600") == NONE
    assert machine.commit(1, metadata="\U0001f600\U0001f600x") == ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_groups_are_found_and_metadata_counted_while_no_descriptor_is_left():
    """Python loads a codec from its file when it is first used."""
    script = """
import resource
from ottla.group_coordinator.offsets import is_metadata_too_long
from ottla.replication.coordinator_log import java_hash
resource.setrlimit(resource.RLIMIT_NOFILE, (0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
assert java_hash("group") == 98629247
assert is_metadata_too_long("abc", 2)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_commit_that_cannot_be_written_changes_nothing(machine):
    machine.commit(1)
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert refused(machine.commit, 2) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    machine.log.error = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
    assert refused(machine.commit, 2) is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert machine.fetch().committed_offset == 1


def test_one_request_is_one_batch(machine):
    machine.commit(1)
    machine.commit(2)
    assert machine.log.batch_count == 2


def test_a_commit_for_a_topic_that_was_made_again_does_not_count(machine):
    old, new, unknown = b"1" * 16, b"2" * 16, bytes(16)
    machine.commit(5, topic_id=old)
    machine.restart()
    assert machine.fetch(topic_id=old).committed_offset == 5
    assert machine.fetch(topic_id=unknown).committed_offset == 5
    assert machine.fetch(topic_id=new).committed_offset == -1
    machine.commit(6)
    assert machine.fetch(topic_id=new).committed_offset == 6


# Retention. The default is a week.


def test_offsets_of_a_simple_group_expire_with_their_age_and_take_the_group_along(machine):
    machine.commit(1, partition=0)
    machine.advance(3 * DAY)
    machine.commit(2, partition=1)
    machine.advance(4 * DAY)
    machine.expire_offsets()
    assert machine.fetch_all() == {("t", 1): 2}
    machine.advance(3 * DAY)
    machine.expire_offsets()
    assert machine.shard.groups == {}
    machine.restart()
    assert machine.shard.groups == {}


def test_with_members_retention_counts_from_when_the_group_became_empty(machine):
    (member,) = machine.stable(session=1_800_000)
    machine.commit(1, member_id=member, generation=1)
    for _ in range(8 * 50):
        machine.advance(DAY / 50)
        machine.heartbeat(member, 1)
    machine.expire_offsets()
    assert machine.fetch().committed_offset == 1
    machine.leave(member)
    machine.advance(7 * DAY - 1)
    machine.expire_offsets()
    assert machine.fetch().committed_offset == 1
    machine.advance(1)
    machine.expire_offsets()
    assert machine.fetch().committed_offset == -1
    assert machine.shard.groups == {}


def test_a_retention_near_the_end_of_time_is_for_ever(machine):
    assert machine.commit(1, version=2, retention_time_ms=(1 << 63) - 1) == NONE
    machine.advance(100 * DAY)
    machine.expire_offsets()
    machine.restart()
    assert machine.fetch().committed_offset == 1


def test_the_time_a_group_became_empty_survives_a_restart(machine):
    (member,) = machine.stable()
    machine.commit(1, member_id=member, generation=1)
    machine.leave(member)
    machine.advance(5 * DAY)
    machine.restart()
    machine.advance(2 * DAY - 1)
    machine.expire_offsets()
    assert machine.fetch().committed_offset == 1
    machine.advance(1)
    machine.expire_offsets()
    assert machine.fetch().committed_offset == -1


def test_a_topic_a_stable_group_no_longer_reads_expires(machine):
    (member,) = machine.stable(session=1_800_000)
    machine.commit(1, topic="t", member_id=member, generation=1)
    machine.commit(1, topic="former", member_id=member, generation=1)
    for _ in range(7 * 50 + 1):
        machine.advance(DAY / 50)
        machine.heartbeat(member, 1)
    machine.expire_offsets()
    assert machine.fetch_all() == {("t", 0): 1}


def test_a_group_whose_subscription_cannot_be_read_expires_nothing_while_it_has_members(machine):
    join = {"protocol_type": "connect", "protocols": OPAQUE, "session": 1_800_000}
    (member,) = machine.stable(**join)
    machine.commit(1, topic="other", member_id=member, generation=1)
    for _ in range(7 * 50 + 1):
        machine.advance(DAY / 50)
        machine.heartbeat(member, 1)
    machine.expire_offsets()
    assert machine.fetch("other").committed_offset == 1


def test_a_commit_may_name_its_own_retention(machine):
    machine.commit(1, version=2, retention_time_ms=MINUTE)
    machine.commit(2, partition=1, version=2, retention_time_ms=30 * DAY)
    machine.advance(MINUTE)
    machine.expire_offsets()
    assert machine.fetch_all() == {("t", 1): 2}
    machine.restart()
    machine.advance(29 * DAY)
    machine.expire_offsets()
    assert machine.fetch_all() == {("t", 1): 2}
    machine.advance(DAY)
    machine.expire_offsets()
    assert machine.shard.groups == {}


def test_an_empty_group_without_offsets_dies_but_not_while_a_member_is_pending(machine):
    machine.join()
    machine.expire_offsets()
    assert "g" in machine.shard.groups
    machine.advance(10_001)
    machine.expire_offsets()
    assert machine.shard.groups == {}


# Deletion


def test_delete_groups(machine):
    (member,) = machine.stable()
    machine.commit(1, member_id=member, generation=1)
    assert refused(expiry.delete_group, machine.shard, "g", machine.now) is ErrorCode.NON_EMPTY_GROUP
    assert refused(expiry.delete_group, machine.shard, "unknown", machine.now) is ErrorCode.GROUP_ID_NOT_FOUND
    machine.leave(member)
    assert expiry.delete_group(machine.shard, "g", machine.now).error_code == NONE
    assert machine.describe(version=5).group_state == "Dead"
    machine.restart()
    assert machine.shard.groups == {}
    assert machine.fetch().committed_offset == -1


def test_offsets_of_deleted_topics_go(machine):
    machine.commit(1, topic="keep")
    machine.commit(2, topic="gone", partition=0)
    machine.commit(3, topic="gone", partition=5)
    machine.commit(4, topic="gone", group="h")
    expiry.delete_topics(machine.shard, {"gone", "never was"}, machine.now)
    assert machine.fetch_all() == {("keep", 0): 1}
    assert machine.fetch_all("h") == {}
    machine.restart()
    assert machine.fetch_all() == {("keep", 0): 1}


def test_many_deletions_are_written_in_several_batches(machine):
    for partition in range(conversion.RECORDS_PER_BATCH + 1):
        machine.commit(1, partition=partition)
    before = machine.log.batch_count
    expiry.delete_group(machine.shard, "g", machine.now)
    assert machine.log.batch_count == before + 2
    machine.restart()
    assert machine.shard.groups == {}


def test_offset_delete_spares_what_members_read(machine):
    machine.commit(1, topic="t")
    machine.commit(2, topic="former")
    (member,) = machine.stable()
    assert machine.delete_offset("t") == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert machine.delete_offset("former") == NONE
    assert machine.fetch_all() == {("t", 0): 1}
    machine.leave(member)
    assert machine.delete_offset("t") == NONE
    assert machine.fetch_all() == {}


def test_offset_delete_of_other_groups(machine):
    assert refused(machine.delete_offset, group="unknown") is ErrorCode.GROUP_ID_NOT_FOUND
    machine.stable(group="connect", protocol_type="connect", protocols=OPAQUE)
    assert refused(machine.delete_offset, group="connect") is ErrorCode.NON_EMPTY_GROUP
    machine.commit(1)
    assert machine.delete_offset(partition=3) == NONE


# Transactions: what a log may hold that another broker wrote.


def transactional(machine, offset, producer_id, value):
    record = offset_commit("g", "t", 0, OffsetCommitValue(offset=value, metadata="", commit_timestamp=1))
    (plain,) = RecordBatch(build_batch([record], 1, 0)).records()
    builder = RecordsBuilder(base_offset=offset, producer_id=producer_id, producer_epoch=0, is_transactional=True)
    builder.append(plain.key, plain.value, 1)
    list(machine.shard.load(RecordBatch(builder.build()), SkippedRecords()))


def marker(machine, offset, producer_id, *, commit):
    builder = RecordsBuilder(
        base_offset=offset, producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True
    )
    end = Record(key=b"\0\0\0\1" if commit else b"\0\0\0\0", value=bytes(6))
    builder.append(end.key, end.value, 1)
    list(machine.shard.load(RecordBatch(builder.build()), SkippedRecords()))


def test_commits_of_an_open_transaction_are_unstable_and_count_when_it_commits(machine):
    transactional(machine, 0, 11, 100)
    assert machine.fetch().committed_offset == -1
    assert machine.fetch(require_stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    machine.expire_offsets()
    assert "g" in machine.shard.groups, "a group with an open transaction is not expired"
    marker(machine, 1, 11, commit=True)
    assert machine.fetch(require_stable=True).committed_offset == 100


def test_what_a_marker_changed_is_told_once_the_marker_is_committed(machine):
    transactional(machine, 0, 11, 100)
    marker(machine, 1, 11, commit=True)
    assert machine.shard.depends_on("g") == machine.shard.last_offset == 2


def test_an_aborted_transaction_commits_nothing(machine):
    transactional(machine, 0, 11, 100)
    marker(machine, 1, 11, commit=False)
    fetched = machine.fetch(require_stable=True)
    assert (fetched.committed_offset, fetched.error_code) == (-1, NONE)


def test_a_plain_commit_after_a_transactional_one_is_the_newer_word(machine):
    transactional(machine, 0, 11, 100)
    machine.log.ends[0] = 1
    machine.commit(50)
    marker(machine, 2, 11, commit=True)
    assert machine.fetch().committed_offset == 50
