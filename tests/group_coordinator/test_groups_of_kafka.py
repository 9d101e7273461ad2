"""Groups of newer protocols in a log that was Apache Kafka 4's: consumer groups go on, share groups are kept and left alone."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator import expiry
from ottla.group_coordinator.describe import list_groups
from ottla.group_coordinator.records import CoordinatorRecord, build_batch, offset_commit
from ottla.wire.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ottla.wire.messages.consumer_offsets import OffsetCommitValue
from ottla.wire.messages.share_group_records import ShareGroupMetadataKey, ShareGroupMetadataValue

NONE = ErrorCode.NONE
SESSION_TIMEOUT_MS = 45_000
EIGHT_DAYS_MS = 8 * 24 * 3600 * 1000


def records_of_members(*members: str, epoch: int = 2, assigned: int | None = None) -> list[CoordinatorRecord]:
    """What Kafka 4.3 writes when members have joined: of each 5, 7 and 8, then 3 and 6."""
    records = []
    for member in members:
        names = {"group_id": "g", "member_id": member}
        subscribed = ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="c",
            client_host="/127.0.0.1",
            subscribed_topic_names=["t"],
            subscribed_topic_regex="",
            rebalance_timeout_ms=60_000,
            server_assignor=None,
            classic_member_metadata=None,
        )
        current = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=epoch, previous_member_epoch=0, state=0)
        records += [
            CoordinatorRecord(ConsumerGroupMemberMetadataKey(**names), subscribed),
            CoordinatorRecord(
                ConsumerGroupTargetAssignmentMemberKey(**names), ConsumerGroupTargetAssignmentMemberValue()
            ),
            CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(**names), current),
        ]
    target = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch if assigned is None else assigned)
    return [
        *records,
        CoordinatorRecord(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=epoch)),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id="g"), target),
    ]


def take_over(machine, *records) -> None:
    """Load a folder in which Kafka wrote these records, after the commit of offset 5 of t-0."""
    value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=machine.wall_ms)
    machine.log.append(0, build_batch([offset_commit("g", "t", 0, value), *records], machine.wall_ms, 0))
    machine.restart()


def listed(machine, states=(), types=()):
    found = list_groups(machine.shard, states, types)
    return [(group.group_id, group.protocol_type, group.group_state, group.group_type) for group in found]


def refusal(call, *arguments, **fields) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        call(*arguments, **fields)
    return refused.value.code


def test_classic_members_are_refused_while_a_group_has_members_of_its_own(make_machine):
    machine = make_machine({"migration_policy": "disabled"})
    take_over(machine, *records_of_members("A", "B"))
    for member_id in ("", "A", "somebody"):
        answer = machine.join(member_id).answer
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refusal(machine.heartbeat, "A", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert machine.sync("A", 2).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(machine.commit, 7) is ErrorCode.UNKNOWN_MEMBER_ID
    assert machine.fetch().committed_offset == 5
    assert listed(machine) == [("g", "consumer", "Stable", "consumer")]


def test_an_unknown_member_leaves_an_empty_group_as_it_is(machine):
    take_over(machine, *records_of_members())
    assert machine.join("somebody").answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert machine.join(protocol_type="").answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert listed(machine) == [("g", "consumer", "Empty", "consumer")]


def test_the_session_of_members_that_nobody_hears_ends_and_the_group_is_free(make_machine):
    machine = make_machine({"migration_policy": "disabled"})
    take_over(machine, *records_of_members("A", "B", epoch=4))
    machine.advance(SESSION_TIMEOUT_MS - 1)
    assert machine.join().answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    machine.advance(1)
    assert listed(machine) == [("g", "consumer", "Empty", "consumer")]
    assert machine.shard.groups["g"].epoch == 6, "each of the two had a session of its own"
    machine.restart()
    assert listed(machine) == [("g", "consumer", "Empty", "consumer")]
    member, waiter = machine.enter()
    assert waiter.answer.error_code == NONE
    machine.sync(member, waiter.answer.generation_id, {member: b"all"})
    assert listed(machine) == [("g", "consumer", "Stable", "classic")]
    assert machine.fetch().committed_offset == 5
    assert machine.commit(6, member_id=member, generation=waiter.answer.generation_id) == NONE
    machine.restart()
    assert listed(machine) == [("g", "consumer", "Stable", "classic")], "nothing is left of the other group"
    assert machine.fetch().committed_offset == 6


def test_members_that_cannot_be_removed_now_are_removed_later(make_machine):
    machine = make_machine({"migration_policy": "disabled"})
    take_over(machine, *records_of_members("A"))
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    machine.advance(SESSION_TIMEOUT_MS)
    assert machine.join().answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    machine.advance(SESSION_TIMEOUT_MS)
    assert machine.enter()[1].answer.error_code == NONE


def test_an_empty_group_becomes_classic_only_when_that_is_written(machine):
    take_over(machine, *records_of_members())
    assert listed(machine) == [("g", "consumer", "Empty", "consumer")]
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert machine.join().answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert listed(machine) == [("g", "consumer", "Empty", "consumer")]
    assert machine.join().answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert listed(machine) == [("g", "", "Empty", "classic")]


def test_offsets_expire_where_nobody_reads_their_topic(machine):
    take_over(machine, *records_of_members("A"))
    machine.wall_ms += EIGHT_DAYS_MS
    machine.expire_offsets()
    assert machine.fetch().committed_offset == 5
    machine.advance(SESSION_TIMEOUT_MS)
    machine.expire_offsets()
    assert machine.fetch().committed_offset == -1
    machine.restart()
    assert listed(machine) == [], "the group went with its last offset"


def test_the_offsets_expire_once_it_is_a_classic_group(machine):
    take_over(machine, *records_of_members())
    member, waiter = machine.enter()
    machine.sync(member, waiter.answer.generation_id, {member: b"all"})
    machine.leave(member)
    machine.wall_ms += EIGHT_DAYS_MS
    machine.expire_offsets()
    assert machine.fetch().committed_offset == -1


def test_tools_commit_and_delete_while_nobody_is_in_the_group(machine):
    take_over(machine, *records_of_members())
    assert machine.commit(9) == NONE
    assert refusal(machine.commit, 9, member_id="A", generation=2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert machine.fetch().committed_offset == 9
    assert machine.delete_offset() == NONE
    assert machine.fetch().committed_offset == -1
    assert expiry.delete_group(machine.shard, "g", machine.now).error_code == NONE
    assert listed(machine) == []
    machine.restart()
    assert listed(machine) == []


def test_what_members_read_is_not_deleted(machine):
    expression = ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="u.*")
    resolved = ConsumerGroupRegularExpressionValue(topics=["us"], version=1, timestamp=1)
    take_over(machine, *records_of_members("A"), CoordinatorRecord(expression, resolved))
    assert machine.delete_offset("t") == machine.delete_offset("us") == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert machine.delete_offset("other") == NONE
    assert refusal(expiry.delete_group, machine.shard, "g", machine.now) is ErrorCode.NON_EMPTY_GROUP
    machine.advance(SESSION_TIMEOUT_MS)
    assert machine.delete_offset("t") == NONE


def test_describe_does_not_know_it_as_in_kafka(machine):
    take_over(machine, *records_of_members("A"))
    old, new = machine.describe(version=5), machine.describe(version=6)
    assert (old.error_code, old.group_state) == (NONE, "Dead")
    assert (new.error_code, new.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a classic group.")


def test_the_list_is_filtered_by_state_and_type(machine):
    take_over(machine, *records_of_members("A"))
    assert listed(machine, types=["Consumer"]) == listed(machine, states=["stable"]) != []
    assert listed(machine, types=["classic"]) == listed(machine, states=["Empty"]) == []


@pytest.mark.parametrize(
    ("epoch", "assigned", "member_epochs", "state"),
    [(3, 2, (2, 2), "Assigning"), (3, 3, (3, 2), "Reconciling"), (3, 3, (3, 3), "Stable")],
)
def test_state_of_a_group(machine, epoch, assigned, member_epochs, state):
    current = [
        CoordinatorRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member),
            ConsumerGroupCurrentMemberAssignmentValue(member_epoch=member_epoch, state=0),
        )
        for member, member_epoch in zip("AB", member_epochs, strict=True)
    ]
    take_over(machine, *records_of_members("A", "B", epoch=epoch, assigned=assigned), *current)
    assert listed(machine) == [("g", "consumer", state, "consumer")]


def test_a_share_group_is_left_alone(machine):
    take_over(
        machine,
        CoordinatorRecord(ShareGroupMetadataKey(group_id="g"), ShareGroupMetadataValue(epoch=1, metadata_hash=0)),
    )
    assert listed(machine) == [("g", "share", "Empty", "share")]
    assert machine.join().answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refusal(machine.commit, 1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert refusal(machine.delete_offset) is ErrorCode.GROUP_ID_NOT_FOUND
    assert expiry.delete_group(machine.shard, "g", machine.now).error_code == NONE


def test_a_group_that_kafka_made_classic_again_is_classic(machine):
    """The tombstones of the one stand before the record of the other."""
    gone = [CoordinatorRecord(record.key, None) for record in records_of_members("A")]
    take_over(machine, *records_of_members("A"), *gone)
    assert listed(machine) == [("g", "", "Empty", "classic")]
    assert machine.enter()[1].answer.error_code == NONE
