"""The state of a consumer group (KIP-848): traces of Kafka 4.3.1, and replay of any part of the log."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.consumer_group import (
    NOBODY,
    ConsumerGroup,
    ConsumerGroupState,
    ResolvedExpression,
)
from ottla.group_coordinator.consumer_group_member import (
    AssignedPartitions,
    ClassicSupport,
    ConsumerGroupMember,
    MemberState,
)
from ottla.group_coordinator.consumer_group_records import ConsumerGroupChange, group_removal
from ottla.wire.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    TopicPartitions,
)

from .helpers.consumer_groups import Answer, Heartbeats, encoded, partitions_of, replayed, told, topic_id

T = topic_id("t")
NO_CHANGE = None


def t(*numbers: int) -> dict[bytes, set[int]]:
    return partitions_of("t", *numbers)


def refusal(beat: Heartbeats, *arguments, **fields) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        beat(*arguments, **fields)
    return refused.value.code


def of_one() -> Heartbeats:
    """A has all of the topic."""
    beat = Heartbeats({"t": 4, "other": 1})
    beat("A", 0, {}, ["t"])
    return beat


def of_two() -> Heartbeats:
    """A and B share the topic, and are at epoch 3."""
    beat = of_one()
    beat("B", 0, {}, ["t"])
    beat("A", 2)
    beat("A", 2, t(0, 1))
    beat("B", 3)
    return beat


def test_a_member_joins() -> None:
    beat = Heartbeats({"t": 4})
    assert beat.group.state is ConsumerGroupState.EMPTY
    assert beat("A", 0, {}, ["t"]) == Answer(2, t(0, 1, 2, 3))
    assert told(beat.written) == "5A 3(2) 7A 6(2) 8A(2)"
    member = beat.group.members["A"]
    assert (member.previous_epoch, member.state) == (0, MemberState.STABLE)
    assert beat("A", 2, t(0, 1, 2, 3)) == Answer(2, NO_CHANGE)
    assert beat.written == []
    assert beat.group.state is ConsumerGroupState.STABLE


def test_a_second_member_joins() -> None:
    beat = of_one()
    beat.is_interval_over = False
    assert beat("B", 0, {}, ["t"]) == Answer(2, {})
    assert told(beat.written) == "5B 3(3) 8B(2)"
    assert beat.group.state is ConsumerGroupState.ASSIGNING
    beat.is_interval_over = True
    assert beat("B", 2) == Answer(3, NO_CHANGE)
    assert told(beat.written) == "7A 7B 6(3) 8B(3)"
    assert beat.group.members["B"].state is MemberState.UNRELEASED_PARTITIONS
    assert beat.group.state is ConsumerGroupState.RECONCILING
    assert beat("A", 2) == Answer(2, t(0, 1))
    assert beat.group.members["A"].state is MemberState.UNREVOKED_PARTITIONS
    assert set(beat.group.members["A"].pending_revocation) == {(T, 2), (T, 3)}
    for owned in (None, t(0, 1, 2, 3), t(1, 3)):
        assert beat("A", 2, owned) == Answer(2, NO_CHANGE)
        assert beat.written == []
    assert beat("A", 2, t(0, 1, 2, 3), is_full=True) == Answer(2, t(0, 1))
    assert beat("B", 3) == Answer(3, NO_CHANGE)
    assert told(beat.written) == "8B(3)", "once more, because the previous epoch changes"
    assert beat("B", 3) == Answer(3, NO_CHANGE)
    assert beat.written == []
    assert beat("A", 2, t(0, 1)) == Answer(3, NO_CHANGE)
    assert beat.group.state is ConsumerGroupState.RECONCILING, "B has not got its partitions"
    assert beat("B", 3) == Answer(3, t(2, 3))
    assert beat.group.state is ConsumerGroupState.STABLE
    assert beat.group.members["A"].assigned.of(T) == {0: 2, 1: 2}
    assert beat.group.members["B"].assigned.of(T) == {2: 3, 3: 3}


def test_a_response_is_lost() -> None:
    beat = of_two()
    assert beat("A", 2, t(0, 1)) == Answer(3, NO_CHANGE)
    for epoch, owned in ((2, t(0, 1, 2, 3)), (2, None), (4, None)):
        assert refusal(beat, "A", epoch, owned) is ErrorCode.FENCED_MEMBER_EPOCH
    assert beat("A", 0, {}) == Answer(3, t(0, 1)), "a known member keeps all that it has"


def test_a_member_leaves() -> None:
    beat = of_two()
    assert beat("B", -1) == Answer(-1, None)
    assert told(beat.written) == "t8B t7B t5B 3(4)"
    assert beat("A", 3) == Answer(4, t(0, 1, 2, 3))
    assert beat.group.members["A"].assigned.of(T) == {0: 2, 1: 2, 2: 4, 3: 4}
    assert beat("A", -1) == Answer(-1, None)
    assert (beat.group.state, beat.group.epoch, beat.group.exists) == (ConsumerGroupState.EMPTY, 5, True)
    assert dict(beat.group.owners) == dict(beat.group.topic_subscribers) == dict(beat.group.settled) == {}
    assert refusal(beat, "A", 4) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_reads_another_topic() -> None:
    beat = of_one()
    beat.is_interval_over = False
    assert beat("A", 2, names=["other"]) == Answer(2, {}), "before there is a target for it"
    assert told(beat.written) == "5A 3(3) 8A(2)"
    assert beat.group.members["A"].state is MemberState.UNREVOKED_PARTITIONS
    beat.is_interval_over = True
    assert beat("A", 2) == Answer(2, NO_CHANGE)
    assert beat("A", 2, {}) == Answer(3, partitions_of("other", 0))
    assert dict(beat.group.topic_subscribers) == {"other": 1}


def test_a_static_member_leaves_and_returns() -> None:
    beat = Heartbeats({"t": 4})
    assert beat("A", 0, {}, ["t"], "i1") == Answer(2, t(0, 1, 2, 3))
    beat("B", 0, {}, ["t"])
    beat("A", 2, instance_id="i1")
    beat("A", 2, t(0, 1), instance_id="i1")
    assert refusal(beat, "A2", 0, {}, ["t"], "i1") is ErrorCode.UNRELEASED_INSTANCE_ID
    assert refusal(beat, "A2", 2, {}, ["t"], "i1") is ErrorCode.FENCED_INSTANCE_ID
    assert beat("A", -2, instance_id="i1") == Answer(-2, None)
    assert told(beat.written) == "8A(-2)"
    left = beat.group.members["A"]
    assert (left.epoch, left.previous_epoch, left.assigned.of(T)) == (-2, 2, {0: 0, 1: 0})
    assert beat.group.owner_epoch(T, 0) == -2
    assert refusal(beat, "A", 3, instance_id="i1") is ErrorCode.FENCED_MEMBER_EPOCH
    assert beat.group.state is ConsumerGroupState.RECONCILING
    beat("B", 3)
    assert beat("A2", 0, {}, ["t"], "i1") == Answer(3, t(0, 1))
    assert told(beat.written) == "t8A t7A t5A 5A2 7A2 8A2(0) 8A2(3)"
    assert (beat.group.epoch, beat.group.target.epoch) == (3, 3)
    assert dict(beat.group.static_members) == {"i1": "A2"}
    assert refusal(beat, "A", 2, {}, instance_id="i1") is ErrorCode.FENCED_INSTANCE_ID
    assert beat.group.state is ConsumerGroupState.STABLE


def test_owners_are_known_by_partition() -> None:
    beat = of_one()
    beat("B", 0, {}, ["t"])
    beat("A", 2)
    group = beat.group
    assert [group.owner_epoch(T, number) for number in range(5)] == [2, 2, 2, 2, NOBODY]
    assert dict(group.owners) == {(T, number): ("A",) for number in range(4)}
    assert group.owner_epoch(topic_id("other"), 0) == NOBODY


def test_expressions_and_votes() -> None:
    a = ConsumerGroupMember("A", topic_names=frozenset({"t"}), expression="u.*", server_assignor="range")
    b = ConsumerGroupMember("B", topic_names=frozenset({"t", "v"}), expression="w.*", server_assignor="uniform")
    change = ConsumerGroupChange("g", subscriptions=[a, b, replace(b, member_id="C")])
    change.expressions["u.*"] = ResolvedExpression(frozenset({"u1", "u2"}), 7, 1234)
    change.expressions["x.*"] = ResolvedExpression(frozenset({"x1"}), 7, 1234)
    assert told(change.records()) == "5A 5B 5C 16 16"
    group = replayed(map(encoded, change.records()))
    assert group.expressions["u.*"] == change.expressions["u.*"]
    assert group.topics_of(group.members["A"]) == {"t", "u1", "u2"}
    assert group.topics_of(group.members["B"]) == {"t", "v"}
    assert group.subscribed_topics() == {"t", "v", "u1", "u2"}, "nobody has x.*"
    assert dict(group.expression_subscribers) == {"u.*": 1, "w.*": 2}
    assert group.preferred_assignor == "uniform"
    last = ConsumerGroupChange("g", removed=["A"], expressions={"u.*": None}, epoch=(9, 0))
    assert told(last.records()) == "t8A t7A t5A t16 3(9)"
    group = replayed(map(encoded, last.records()), group)
    assert group.subscribed_topics() == {"t", "v"}
    assert (group.epoch, list(group.expressions)) == (9, ["x.*"])


def test_a_member_comes_back_from_its_records() -> None:
    member = ConsumerGroupMember(
        "A",
        has_subscription=True,
        instance_id="i",
        rack_id="r",
        client_id="c",
        client_host="/127.0.0.1",
        topic_names=frozenset({"b", "a"}),
        expression="a.*",
        rebalance_timeout_ms=300_000,
        server_assignor="range",
        classic=ClassicSupport(45_000, (("range", b"x"), ("roundrobin", b"y"))),
        epoch=5,
        previous_epoch=4,
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned=AssignedPartitions({T: {0: 3, 2: 5}}),
        pending_revocation=AssignedPartitions({topic_id("u"): {1: 4}}),
    )
    change = ConsumerGroupChange("g", subscriptions=[member], assignments=[member])
    assert replayed(map(encoded, change.records())).members["A"] == member
    assert member.subscription().subscribed_topic_names == ["a", "b"]


@pytest.mark.parametrize(
    ("member_epoch", "epochs", "expected"),
    [(7, None, {1: 7, 2: 7}), (-2, None, {1: 0, 2: 0}), (7, [5], {1: 7, 2: 7}), (7, [5, 6], {1: 5, 2: 6})],
)
def test_epochs_that_older_brokers_do_not_write(member_epoch, epochs, expected) -> None:
    partitions = TopicPartitions(topic_id=T, partitions=[1, 2], assignment_epochs=epochs)
    assert AssignedPartitions.from_record([partitions], member_epoch).of(T) == expected


def test_a_state_of_a_newer_broker_is_unknown() -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=2, previous_member_epoch=1, state=5)
    member = ConsumerGroupMember("A").with_current_assignment(value)
    assert member.state is MemberState.UNKNOWN


def test_a_group_is_removed_with_all_its_records() -> None:
    beat = of_two()
    change = ConsumerGroupChange("g", expressions={"x": ResolvedExpression(frozenset(), 1, 1)})
    beat.write(change)
    removal = group_removal(beat.group)
    assert told(removal) == "t8A t8B t7A t7B t6 t5A t5B t16 t4 t3"
    keys = {key for key, _ in beat.log}
    partition_metadata = encoded(removal[-2])[0]
    assert {encoded(record)[0] for record in removal} == keys | {partition_metadata}, "which Kafka 4.0 writes"
    group = replayed(map(encoded, removal), beat.group)
    assert group == ConsumerGroup("g")
    assert not group.exists


def test_older_values_stay_as_they_were() -> None:
    beat = of_one()
    before = beat.group
    beat("B", 0, {}, ["t"])
    beat("A", 2)
    beat("A", -1)
    assert dict(before.owners) == {(T, number): ("A",) for number in range(4)}
    assert list(before.members) == ["A"]
    assert before.state is ConsumerGroupState.STABLE


def test_records_of_other_types_and_tombstones_of_nothing_change_nothing() -> None:
    group = ConsumerGroup("g")
    assert group.with_record(ConsumerGroupPartitionMetadataKey(group_id="g"), None) == group
    for record in group_removal(of_two().group):
        assert group.with_record(record.key, None) == group
    assert not group.exists


def test_half_of_a_member() -> None:
    """Either record may be missing in a part of the log."""
    beat = of_one()
    subscription, _, _, _, current = beat.log
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="A")
    only_current = replayed([current])
    assert only_current.owner_epoch(T, 3) == 2
    assert replayed([subscription], only_current).members["A"] == beat.group.members["A"]
    assert dict(only_current.with_record(key, None).members) == {}
    only_subscription = replayed([subscription])
    assert only_subscription.members["A"].topic_names == {"t"}
    assert only_subscription.with_record(key, None) == only_subscription
    assert replayed([subscription, current, (subscription[0], None)]) == only_current


def test_half_of_a_target() -> None:
    beat = of_one()
    _, _, of_member, epoch, _ = beat.log
    assert replayed([of_member, epoch]).target == beat.group.target
    assert replayed([of_member, epoch, (epoch[0], None)]) == replayed([of_member])
    assert replayed([of_member]).target.of("A") == t(0, 1, 2, 3)


def test_an_instance_id_stays_with_the_newest_member() -> None:
    """The records of the member before may come a second time."""
    beat = Heartbeats({"t": 4})
    beat("A", 0, {}, ["t"], "i1")
    until_then = len(beat.log)
    beat("A", -2, instance_id="i1")
    beat("A2", 0, {}, ["t"], "i1")
    key = next(record.key for record in beat.written if record.value is None and record.key.api_key == 5)
    group = replayed(beat.log[:until_then], beat.group)
    assert group.member_of_instance("i1").member_id == "A"
    group = replayed(beat.log[until_then:], group)
    assert group.with_record(key, None).member_of_instance("i1").member_id == "A2"
    taken_over = next(record for record in beat.log if record[0] == encoded_key(beat, "A2"))
    without_a_gap = replayed([*beat.log[:until_then], taken_over])
    assert without_a_gap.with_record(key, None).member_of_instance("i1").member_id == "A2"


def encoded_key(beat: Heartbeats, member_id: str) -> bytes:
    """The key of the record of a member's subscription."""
    change = ConsumerGroupChange("g", subscriptions=[beat.group.members[member_id]])
    return encoded(change.records()[0])[0]


@pytest.mark.parametrize("seed", range(20))
def test_any_part_of_the_log_leads_to_the_same_group(seed: int) -> None:
    chance = random.Random(seed)
    beat = random_history(chance)
    whole = replayed(beat.log)
    assert whole == beat.group
    for _ in range(10):
        cut = chance.randrange(len(beat.log) + 1)
        assert replayed(beat.log, replayed(beat.log[:cut])) == whole
        last = {key: number for number, (key, _) in enumerate(beat.log[:cut])}
        compacted = [beat.log[number] for number in sorted(last.values())]
        assert replayed([*compacted, *beat.log[cut:]]) == whole
        without_tombstones = [record for record in compacted if record[1] is not None]
        assert replayed([*without_tombstones, *beat.log[cut:]]) == whole
    assert derived_anew(whole) == whole


def random_history(chance: random.Random) -> Heartbeats:
    """Heartbeats of members that come, go, and change what they read."""
    beat = Heartbeats({"t": 5, "u": 3})
    epochs: dict[str, int] = {}
    for _ in range(chance.randrange(20, 120)):
        member_id = chance.choice("ABCD")
        instance_id = "i" if member_id == "D" else None
        beat.is_interval_over = chance.random() < 0.5
        epoch = epochs.get(member_id, 0)
        names = chance.choice([["t"], ["t", "u"], []]) if epoch == 0 or chance.random() < 0.1 else None
        if epoch > 0 and chance.random() < 0.1:
            epoch = -1 if instance_id is None or chance.random() < 0.5 else -2
        member = beat.group.members.get(member_id)
        owned = {topic: set(member.assigned.of(topic)) for topic in member.assigned.epochs} if member else {}
        answer = beat(member_id, epoch, owned if chance.random() < 0.7 or epoch == 0 else None, names, instance_id)
        epochs[member_id] = max(answer.epoch, 0)
    return beat


def derived_anew(group: ConsumerGroup) -> ConsumerGroup:
    """Made of the members alone."""
    members = group.members.values()
    change = ConsumerGroupChange(
        "g",
        subscriptions=[member for member in members if member.has_subscription],
        epoch=(group.epoch, group.metadata_hash),
        targets=dict(group.target.members),
        target_epoch=(group.target.epoch, group.target.timestamp_ms),
        assignments=[member for member in members if member.has_current_assignment],
    )
    return replayed(map(encoded, change.records()))
