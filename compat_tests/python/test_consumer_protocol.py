"""Members of a group by the consumer protocol (KIP-848): partitions are assigned by the broker, and move one by one.

What groups have by either protocol is in ``test_groups``.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.abandoned_member import join_and_hang
from ottla.compat_tests.clients import model
from ottla.compat_tests.group_on_wire import GroupOnWire
from ottla.compat_tests.session import ClientSession, commit, eventually
from ottla.compat_tests.wire_client import Operator

Owned = frozenset[tuple[str, int]]


class Reader:
    """A member, and all that it has read."""

    def __init__(self, consumer: model.Consumer) -> None:
        self.consumer = consumer
        self.read: list[model.Message] = []

    def poll(self) -> None:
        """Its turn."""
        self.read += self.consumer.poll(0.2)

    def values(self) -> list[bytes]:
        """Those of the records, as they came."""
        return [message.value or b"" for message in self.read]

    def gone(self) -> list[tuple[str, int]]:
        """Every partition that the client told was taken from it."""
        told = self.consumer.rebalances()
        return [where for each in told if each.change != "assigned" for where in sorted(each.partitions)]


def all_partitions(topic: str, count: int) -> Owned:
    """Partitions 0 to count - 1."""
    return frozenset((topic, partition) for partition in range(count))


def shared(readers: Sequence[Reader], everything: Owned) -> bool:
    """Whether all partitions have an owner, one each, and every member has its share; after a turn of each."""
    for reader in readers:
        reader.poll()
    parts = [reader.consumer.assignment() for reader in readers]
    return frozenset().union(*parts) == everything and sum(map(len, parts)) == len(everything) and all(parts)


def have_read(readers: Sequence[Reader], values: set[bytes]) -> bool:
    """Whether these have all been read by now; after a turn of each."""
    for reader in readers:
        reader.poll()
    return values <= {value for reader in readers for value in reader.values()}


def refusal(consumers: Sequence[model.Consumer]) -> str:
    """The text of the failure that the turn of one of them ended with; empty while there is none.

    Not its code, without which librdkafka tells of an error that is fatal.
    """
    try:
        for consumer in consumers:
            consumer.poll(0.2)
    except model.ClientFailure as failure:
        return failure.text
    return ""


@pytest.fixture
def group(bootstrap: str, group_id: str) -> GroupOnWire:
    """The group of the test, as the broker knows it."""
    return GroupOnWire(bootstrap, group_id)


@pytest.fixture
def join(group_client: ClientSession, group_id: str) -> Callable[..., Reader]:
    """``join(topic, …, **settings)``: one more member."""

    def joined(*topics: str, **settings: object) -> Reader:
        reader = Reader(group_client.consumer(group_id=group_id, **settings))
        reader.consumer.subscribe(topics)
        return reader

    return joined


def write_everywhere(client: ClientSession, everything: Owned, text: bytes) -> set[bytes]:
    """A record to each partition, with its number behind ``text``; their values."""
    for topic, partition in everything:
        client.produce(topic, [b"%s %d" % (text, partition)], partition=partition)
    return {b"%s %d" % (text, partition) for _, partition in everything}


@pytest.mark.capability("KIP-848: members keep partitions that do not move")
def test_members_keep_what_does_not_move(
    group_client: ClientSession,
    make_topic: Callable[..., str],
    join: Callable[..., Reader],
    group: GroupOnWire,
) -> None:
    everything = all_partitions(topic := make_topic(4), 4)
    first = join(topic)
    eventually(lambda: shared([first], everything))
    assert group.type() == "consumer"
    before = write_everywhere(group_client, everything, b"before")
    eventually(lambda: have_read([first], before))
    second = join(topic)
    eventually(lambda: shared([first, second], everything))
    moved = sorted(second.consumer.assignment())
    assert sorted(first.gone()) == moved
    # Nothing is committed: a partition that is assigned anew is read from its beginning.
    after = write_everywhere(group_client, everything, b"after")
    eventually(lambda: have_read([first, second], after))
    kept = first.consumer.assignment()
    assert sorted(first.values()) == sorted(before | {b"after %d" % partition for _, partition in kept})
    assert len(second.values()) == 2 * len(moved)
    first.consumer.close()
    eventually(lambda: shared([second], everything))
    assert second.gone() == []


@pytest.mark.capability("KIP-848: topics come and go")
def test_topics_grow_and_go(
    group_client: ClientSession, make_topic: Callable[..., str], join: Callable[..., Reader]
) -> None:
    stays, goes = make_topic(2), make_topic(2)
    readers = [join(stays, goes), join(stays, goes)]
    eventually(lambda: shared(readers, all_partitions(stays, 2) | all_partitions(goes, 2)))
    group_client.admin.create_partitions(stays, 4)
    eventually(lambda: shared(readers, all_partitions(stays, 4) | all_partitions(goes, 2)))
    group_client.admin.delete_topic(goes)

    def is_gone() -> bool:
        try:
            return shared(readers, all_partitions(stays, 4))
        except model.ClientFailure as failure:
            # franz-go says so where it has fetched a few times from a topic that is no more.
            assert failure.code == ErrorCode.UNKNOWN_TOPIC_ID
            return False

    eventually(is_gone)
    values = write_everywhere(group_client, all_partitions(stays, 4), b"still read")
    eventually(lambda: have_read(readers, values))


@pytest.mark.capability("KIP-848: assignors")
@pytest.mark.parametrize(("assignor", "sizes"), [("range", [2, 4]), ("uniform", [3, 3])])
def test_assignor_of_the_members(
    make_topic: Callable[..., str], join: Callable[..., Reader], group: GroupOnWire, assignor: str, sizes: list[int]
) -> None:
    topics = [make_topic(3), make_topic(3)]
    everything = all_partitions(topics[0], 3) | all_partitions(topics[1], 3)
    readers = [join(*topics, remote_assignor=assignor) for _ in range(2)]
    eventually(lambda: shared(readers, everything))
    assert sorted(len(reader.consumer.assignment()) for reader in readers) == sizes
    assert group.described().assignor_name == assignor


@pytest.mark.capability("KIP-848: patterns that the broker resolves")
def test_broker_resolves_the_pattern(
    group_client: ClientSession,
    group_id: str,
    group: GroupOnWire,
    operator: Operator,
    fresh_name: Callable[[str], str],
    topics_to_delete: list[str],
) -> None:
    prefix = fresh_name("pattern")

    def create(suffix: str) -> Owned:
        operator.create_topic(f"{prefix}-{suffix}", 2, {})
        topics_to_delete.append(f"{prefix}-{suffix}")
        return all_partitions(f"{prefix}-{suffix}", 2)

    everything = create("a") | create("b")
    create("abc")
    reader = Reader(group_client.consumer(group_id=group_id))
    reader.consumer.subscribe_broker_pattern(f"^{prefix}-(a|b|c)$")
    eventually(lambda: shared([reader], everything))
    member = group.member()
    assert prefix in member.subscribed_topic_regex
    assert member.subscribed_topic_names == []
    # The broker looks for new topics ten seconds after it did so last.
    everything |= create("c")
    eventually(lambda: shared([reader], everything), timeout_s=60)
    assert reader.gone() == []


@pytest.mark.capability("KIP-848: patterns that the broker resolves")
def test_pattern_that_is_none(group_client: ClientSession, group_id: str) -> None:
    consumer = group_client.consumer(group_id=group_id)

    try:
        consumer.subscribe_broker_pattern(r"^(a|b)\1$")
    except model.ClientFailure:
        return  # the client has the same language of patterns, and has looked
    assert "regular expression" in eventually(lambda: refusal([consumer]))


@pytest.mark.capability("KIP-848: a second process with the same instance id")
def test_second_process_is_refused(topic: str, join: Callable[..., Reader], group: GroupOnWire) -> None:
    first = join(topic, group_instance_id="the-one")
    eventually(lambda: shared([first], all_partitions(topic, 1)))
    try:
        second = join(topic, group_instance_id="the-one")
    except model.ClientFailure as failure:
        assert failure.code == ErrorCode.UNRELEASED_INSTANCE_ID
    else:
        assert "instance id" in eventually(lambda: refusal([first.consumer, second.consumer])).lower()
    first.consumer.commit({(topic, 0): model.Committed(0)})
    assert first.consumer.assignment() == all_partitions(topic, 1)
    assert group.member().instance_id == "the-one"


@pytest.mark.capability("KIP-848: a removed member joins again")
@pytest.mark.parametrize("way", ["removed", "fenced"])
def test_removed_member_joins_again(
    group_client: ClientSession,
    make_topic: Callable[..., str],
    join: Callable[..., Reader],
    group: GroupOnWire,
    way: str,
) -> None:
    everything = all_partitions(topic := make_topic(2), 2)
    reader = join(topic)
    eventually(lambda: shared([reader], everything))
    before = write_everywhere(group_client, everything, b"before")
    eventually(lambda: have_read([reader], before))

    def is_out() -> bool:
        """Have the broker go on without it: to the next heartbeat the response is UNKNOWN_MEMBER_ID or FENCED_MEMBER_EPOCH."""
        member = group.member()
        if way == "removed":
            group.remove(member.member_id)
        else:
            # Another subscription gives the member a new epoch, of which the client is not told, unless it is quicker.
            topics = [topic] if len(member.subscribed_topic_names) > 1 else [topic, "of no partition"]
            eventually(lambda: group.join_as(member.member_id, topics) > member.member_epoch)
        for _ in range(10):
            reader.poll()
            if reader.gone():
                return True
        return False

    eventually(is_out)
    eventually(lambda: shared([reader], everything))
    assert set(reader.gone()) == everything
    after = write_everywhere(group_client, everything, b"after")
    eventually(lambda: have_read([reader], after))
    eventually(lambda: group.described().group_state == "Stable")
    assert group.member().subscribed_topic_names == [topic]


@pytest.mark.capability("KIP-848: a member that does not poll")
def test_member_that_does_not_poll(make_topic: Callable[..., str], join: Callable[..., Reader]) -> None:
    everything = all_partitions(topic := make_topic(4), 4)
    idle = join(topic, max_poll_interval_ms=5_000)
    eventually(lambda: shared([idle], everything))
    other = join(topic)
    eventually(lambda: shared([other], everything))

    def goes_on() -> bool:
        try:
            return shared([idle, other], everything)
        except model.ClientFailure:
            return False  # which tells its user of it

    eventually(goes_on)


@pytest.mark.capability("KIP-848: a member that dies")
def test_member_that_dies(
    group_client: ClientSession,
    bootstrap: str,
    make_topic: Callable[..., str],
    join: Callable[..., Reader],
    group_id: str,
    group: GroupOnWire,
) -> None:
    everything = all_partitions(topic := make_topic(4), 4)
    settings = model.ConsumerSettings(group_id=group_id, group_protocol="consumer")
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    victim = spawn.Process(target=join_and_hang, args=(group_client.name, bootstrap, settings, topic, ready))
    victim.start()
    eventually(lambda: ready.is_set() or not victim.is_alive(), timeout_s=120)  # some clients need a JVM for it
    assert ready.is_set()
    victim.kill()
    victim.join()
    assert len(group.described().members) == 1
    successor = join(topic)
    # A session's time later.
    eventually(lambda: shared([successor], everything), timeout_s=90)
    assert len(group.described().members) == 1


@pytest.mark.capability("KIP-848: members of both protocols, and back")
def test_group_changes_its_protocol(
    group_client: ClientSession, make_topic: Callable[..., str], join: Callable[..., Reader], group: GroupOnWire
) -> None:
    everything = all_partitions(topic := make_topic(4), 4)
    settings = {"auto_commit": True}
    members = [join(topic, group_protocol="classic", **settings) for _ in range(2)]
    everyone = list(members)
    written: set[bytes] = set()

    def goes_on(text: bytes, group_type: str) -> None:
        """What is written while members come and go is read all the same."""
        values = write_everywhere(group_client, everything, text)
        written.update(values)
        eventually(lambda: shared(members, everything) and have_read(members, values), timeout_s=60)
        assert group.type() == group_type

    goes_on(b"two classic members", "classic")
    for step, protocol in enumerate(("consumer", "consumer", "classic", "classic")):
        members.pop(0).consumer.close()
        members.append(join(topic, group_protocol=protocol, **settings))
        everyone.append(members[-1])
        goes_on(b"step %d" % step, "classic" if step == 3 else "consumer")
    values = [value for reader in everyone for value in reader.values()]
    assert sorted(values) == sorted(written), "each once"


@pytest.mark.capability("KIP-848: classic members join members of the consumer protocol")
def test_classic_member_beside_another(
    client: ClientSession,
    sessions: Callable[[str], ClientSession],
    make_topic: Callable[..., str],
    group_id: str,
    group: GroupOnWire,
) -> None:
    everything = all_partitions(topic := make_topic(4), 4)
    classic = Reader(client.consumer(group_id=group_id, group_protocol="classic"))
    classic.consumer.subscribe([topic])
    eventually(lambda: shared([classic], everything))
    other = Reader(sessions("confluent-kafka").consumer(group_id=group_id, group_protocol="consumer"))
    other.consumer.subscribe([topic])
    eventually(lambda: shared([classic, other], everything), timeout_s=60)
    assert group.type() == "consumer"
    assert {len(classic.consumer.assignment()), len(other.consumer.assignment())} == {2}
    values = write_everywhere(client, everything, b"both")
    eventually(lambda: have_read([classic, other], values))
    assert sorted(classic.values() + other.values()) == sorted(values)
    commit(classic.consumer, {where: model.Committed(1) for where in classic.consumer.assignment()})
    other.consumer.commit({where: model.Committed(1) for where in other.consumer.assignment()})
    other.consumer.close()
    eventually(lambda: shared([classic], everything), timeout_s=60)
    assert group.type() == "classic"
    values = write_everywhere(client, everything, b"alone")
    eventually(lambda: have_read([classic], values))
    assert sorted(each for each in classic.values() if each in values) == sorted(values), "each once"
