"""Consumer groups: sharing partitions, committing and resuming, static members, and what an admin client sees of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clients import model
from ottla.compat_tests.session import ClientSession, commit, consume, eventually

Owned = frozenset[tuple[str, int]]


def poll_all(consumers: Sequence[model.Consumer]) -> list[model.Message]:
    """Give every member its turn: a rebalance needs them all. (kafka-python 3 gets nowhere in much shorter polls.)"""
    return [message for consumer in consumers for message in consumer.poll(0.2)]


def balanced(consumers: Sequence[model.Consumer], everything: Owned) -> bool:
    """Whether all partitions have an owner, one each, and every consumer has its share."""
    poll_all(consumers)
    parts = [consumer.assignment() for consumer in consumers]
    return frozenset().union(*parts) == everything and sum(map(len, parts)) == len(everything) and all(parts)


def all_partitions(topic: str, count: int) -> Owned:
    """Partitions 0 to count - 1."""
    return frozenset((topic, partition) for partition in range(count))


@pytest.mark.capability("group: subscribe, commit, resume")
def test_commit_and_resume(group_client: ClientSession, topic: str, group_id: str) -> None:
    group_client.produce(topic, [b"%d" % number for number in range(10)])
    first = group_client.consumer(group_id=group_id)
    first.subscribe([topic])
    assert [message.offset for message in consume(first, 10)] == list(range(10))
    commit(first, {(topic, 0): model.Committed(6)})
    first.close()
    second = group_client.consumer(group_id=group_id)
    second.subscribe([topic])
    assert [message.offset for message in consume(second, 4)] == [6, 7, 8, 9]
    committed = second.committed(topic, 0)
    assert committed is not None
    assert committed.offset == 6


@pytest.mark.capability("group: auto commit")
def test_auto_commit(group_client: ClientSession, topic: str, group_id: str) -> None:
    group_client.produce(topic, [b"%d" % number for number in range(10)])
    consumer = group_client.consumer(group_id=group_id, auto_commit=True)
    consumer.subscribe([topic])
    consume(consumer, 10)

    def is_committed() -> bool:
        consumer.poll(0.2)
        # The metadata is the client's choice: franz-go puts the member's id there.
        committed = group_client.admin.group_offsets(group_id).get((topic, 0))
        return committed is not None and committed.offset == 10

    eventually(is_committed)


@pytest.mark.capability("group: two members share and rebalance")
def test_members_share_and_rebalance(
    group_client: ClientSession, make_topic: Callable[..., str], group_id: str
) -> None:
    topic = make_topic(4)
    everything = all_partitions(topic, 4)
    first = group_client.consumer(group_id=group_id)
    first.subscribe([topic])
    eventually(lambda: balanced([first], everything))
    second = group_client.consumer(group_id=group_id)
    second.subscribe([topic])
    eventually(lambda: balanced([first, second], everything))
    assert {len(first.assignment()), len(second.assignment())} == {2}
    for partition in range(4):
        group_client.produce(topic, [b"%d" % partition], partition=partition)
    received: list[model.Message] = []

    def all_received() -> bool:
        received.extend(poll_all([first, second]))
        return len(received) == 4

    eventually(all_received)
    assert sorted(message.partition for message in received) == [0, 1, 2, 3]
    first.close()
    eventually(lambda: balanced([second], everything))


@pytest.mark.capability("group: pattern subscription")
def test_pattern_subscription(
    group_client: ClientSession, make_topic: Callable[..., str], group_id: str, fresh_name: Callable[[str], str]
) -> None:
    topic, _other = make_topic(2), make_topic(1)
    consumer = group_client.consumer(group_id=group_id)
    consumer.subscribe_pattern("^" + topic.replace(".", "[.]") + "$")
    eventually(lambda: balanced([consumer], all_partitions(topic, 2)))


@pytest.mark.capability("commit metadata")
def test_commit_metadata(group_client: ClientSession, topic: str, group_id: str) -> None:
    consumer = group_client.consumer(group_id=group_id)
    consumer.subscribe([topic])
    eventually(lambda: balanced([consumer], all_partitions(topic, 1)))
    commit(consumer, {(topic, 0): model.Committed(0, "n\u00f6te: 42")})
    # Not at once: kafka-python 3 gives the answer to a question that its poll had asked before, and ended without.
    eventually(lambda: consumer.committed(topic, 0) == model.Committed(0, "n\u00f6te: 42"))
    assert group_client.admin.group_offsets(group_id) == {(topic, 0): model.Committed(0, "n\u00f6te: 42")}


@pytest.mark.capability("commit without membership")
def test_commit_without_membership(group_client: ClientSession, topic: str, group_id: str) -> None:
    group_client.produce(topic, [b"a", b"b", b"c"])
    consumer = group_client.consumer(group_id=group_id)
    consumer.assign({(topic, 0): "beginning"})
    consume(consumer, 3)
    consumer.commit({(topic, 0): model.Committed(2)})
    committed = consumer.committed(topic, 0)
    assert committed is not None
    assert committed.offset == 2
    group = group_client.admin.describe_group(group_id)
    assert (group.state, group.members) == ("Empty", {})


@pytest.mark.capability("nothing committed")
def test_nothing_committed(group_client: ClientSession, topic: str, group_id: str) -> None:
    consumer = group_client.consumer(group_id=group_id)
    consumer.assign({(topic, 0): "beginning"})
    assert consumer.committed(topic, 0) is None


@pytest.mark.capability("static membership")
def test_static_member_returns_without_rebalance(
    group_client: ClientSession, make_topic: Callable[..., str], group_id: str
) -> None:
    topic = make_topic(4)
    everything = all_partitions(topic, 4)
    # What it takes to come back has to be less than the session, on a busy machine too.
    session_s = 30
    settings = {"group_id": group_id, "session_timeout_ms": session_s * 1000}
    stays = group_client.consumer(group_instance_id="stays", **settings)
    goes = group_client.consumer(group_instance_id="goes", **settings)
    stays.subscribe([topic])
    goes.subscribe([topic])
    # A member whose client forgot that it was to join is in the way for a session.
    eventually(lambda: balanced([stays, goes], everything), 2 * session_s)
    kept, owned = stays.assignment(), goes.assignment()
    # A static member that closes does not leave: its partitions wait for it.
    goes.close()
    for _ in range(4):
        stays.poll(0.2)
    assert stays.assignment() == kept
    back = group_client.consumer(group_instance_id="goes", **settings)
    back.subscribe([topic])
    eventually(lambda: balanced([stays, back], everything))
    assert (stays.assignment(), back.assignment()) == (kept, owned)


@pytest.mark.capability("static membership: fencing")
def test_second_process_fences_the_first(client: ClientSession, topic: str, group_id: str) -> None:
    old = client.consumer(group_id=group_id, group_instance_id="the-one")
    old.subscribe([topic])
    eventually(lambda: balanced([old], all_partitions(topic, 1)))
    new = client.consumer(group_id=group_id, group_instance_id="the-one")
    new.subscribe([topic])
    eventually(lambda: balanced([new], all_partitions(topic, 1)))
    commit(new, {(topic, 0): model.Committed(0)})

    def is_fenced() -> bool:
        try:
            old.poll(0.2)
            old.commit({(topic, 0): model.Committed(0)})
        except model.ClientFailure:
            return True
        return False

    eventually(is_fenced)


@pytest.mark.capability("list and describe groups")
def test_list_and_describe(group_client: ClientSession, make_topic: Callable[..., str], group_id: str) -> None:
    topic = make_topic(2)
    consumer = group_client.consumer(group_id=group_id)
    consumer.subscribe([topic])
    eventually(lambda: balanced([consumer], all_partitions(topic, 2)))
    assert group_id in group_client.admin.list_groups()
    group = group_client.admin.describe_group(group_id)
    assert (group.group_id, group.state, group.protocol_type) == (group_id, "Stable", "consumer")
    assert list(group.members.values()) == [all_partitions(topic, 2)]
    commit(consumer, {(topic, 0): model.Committed(0)})
    consumer.close()
    eventually(lambda: group_client.admin.describe_group(group_id).state == "Empty")


@pytest.mark.capability("delete groups")
def test_delete_group(group_client: ClientSession, topic: str, group_id: str) -> None:
    consumer = group_client.consumer(group_id=group_id)
    consumer.subscribe([topic])
    eventually(lambda: balanced([consumer], all_partitions(topic, 1)))
    commit(consumer, {(topic, 0): model.Committed(0)})
    with pytest.raises(model.ClientFailure) as failure:
        group_client.admin.delete_group(group_id)
    assert failure.value.code == ErrorCode.NON_EMPTY_GROUP
    consumer.close()
    eventually(lambda: group_client.admin.describe_group(group_id).state == "Empty")
    group_client.admin.delete_group(group_id)
    assert group_id not in group_client.admin.list_groups()
    with pytest.raises(model.ClientFailure) as failure:
        group_client.admin.delete_group(group_id)
    assert failure.value.code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.capability("alter group offsets")
def test_alter_group_offsets(group_client: ClientSession, topic: str, group_id: str) -> None:
    group_client.produce(topic, [b"%d" % number for number in range(5)])
    group_client.admin.alter_group_offsets(group_id, {(topic, 0): model.Committed(3, "moved")})
    assert group_client.admin.group_offsets(group_id) == {(topic, 0): model.Committed(3, "moved")}
    consumer = group_client.consumer(group_id=group_id)
    consumer.subscribe([topic])
    assert [message.offset for message in consume(consumer, 2)] == [3, 4]
