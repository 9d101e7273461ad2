"""Share consumers: Java's KafkaShareConsumer, franz-go's, and confluent-kafka's."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from _pytest.mark.structures import ParameterSet

from ottla.compat_tests.raw.requests import batch, produce
from ottla.compat_tests.raw.transactional import RawProducer
from ottla.compat_tests.share_consumers.conftest import Configure, MakeReader
from ottla.compat_tests.share_consumers.reader import COMMANDS, NO_SHARE_CONSUMER, Delivered, ShareReaderFailed
from ottla.compat_tests.wire_client import Operator, connect

pytestmark = [
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
EXPLICIT = {"share_acknowledgement_mode": "explicit"}


def columns(lacking: Mapping[str, str]) -> list[ParameterSet]:
    """The clients with a share consumer, and those that are ``lacking`` something, which are not run."""
    marks = {name: [pytest.mark.client(name)] for name in (*COMMANDS, *lacking)}
    for name, why in lacking.items():
        marks[name].append(pytest.mark.not_offered(why))
    return [pytest.param(name, marks=each) for name, each in marks.items()]


EVERY_CLIENT = pytest.mark.parametrize("share_client", columns(NO_SHARE_CONSUMER), indirect=True)
JAVA = pytest.mark.parametrize("share_client", columns({})[:1], indirect=True)
RENEWING = pytest.mark.parametrize(
    "share_client", columns({"confluent-kafka": "librdkafka 2.16 cannot renew a lock"}), indirect=True
)


@pytest.fixture(params=columns({}))
def share_client(request: pytest.FixtureRequest) -> str:
    """Each of the clients with a share consumer."""
    return str(request.param)


def where(records: list[Delivered]) -> list[tuple[int, int]]:
    """Partition and offset of each, sorted."""
    return sorted((each.partition, each.offset) for each in records)


ALL = [(partition, offset) for partition in (0, 1) for offset in range(10)]


@EVERY_CLIENT
@pytest.mark.capability("KIP-932: subscribe, accept, resume")
def test_every_record_once(make_reader: MakeReader, filled: str) -> None:
    a = make_reader(filled)
    found = a.take(20)
    assert where(found) == ALL
    assert {each.delivery_count for each in found} == {1}
    assert all(each.value == str(each.offset) for each in found)
    assert a.poll() == []  # which accepts those of the poll before
    a.close()
    b = make_reader(filled)
    assert [b.poll() for _ in range(6)] == [[]] * 6


@pytest.mark.capability("KIP-932: subscribe, accept, resume")
def test_records_of_the_last_poll_are_released_at_the_end(make_reader: MakeReader, filled: str) -> None:
    a = make_reader(filled)
    last = where(a.first())
    a.close()
    b = make_reader(filled)
    found = b.take(20)
    assert where(found) == ALL
    # franz-go's client had more in store than it has given.
    assert set(last) <= set(where([each for each in found if each.delivery_count > 1]))


@pytest.mark.capability("KIP-932: accept, release, reject")
def test_released_records_come_again(make_reader: MakeReader, filled: str) -> None:
    a = make_reader(filled, max_poll_records=500, **EXPLICIT)
    counts: dict[tuple[int, int], int] = {}
    ends: dict[tuple[int, int], str] = {}
    while len(ends) < 20:
        for each in a.first():
            place = (each.partition, each.offset)
            counts[place] = each.delivery_count
            kind = "release" if each.delivery_count <= each.offset % 3 else "reject" if each.offset == 9 else "accept"
            a.acknowledge(each, kind)
            if kind != "release":
                ends[place] = kind
        a.commit()
    assert counts == {(partition, offset): offset % 3 + 1 for partition, offset in ALL}
    assert a.poll() == []


@JAVA
@pytest.mark.capability("KIP-932: accept, release, reject")
def test_each_record_needs_an_acknowledgement(make_reader: MakeReader, filled: str) -> None:
    a = make_reader(filled, **EXPLICIT)
    a.first()
    with pytest.raises(ShareReaderFailed, match="IllegalStateException"):
        a.poll()


@RENEWING
@pytest.mark.capability("KIP-932: renewed locks")
def test_renew(make_reader: MakeReader, topic: str, bootstrap: str, configure: Configure, share_client: str) -> None:
    configure(record_lock_duration_ms=3000)
    with connect(bootstrap) as wire:
        produce(wire, topic, batch(b"0", b"1"))
    a = make_reader(topic, max_poll_records=1, share_acquire_mode="record_limit", **EXPLICIT)
    (record,) = a.first()
    b = make_reader(topic, **EXPLICIT)
    if share_client == "java":
        assert a.lock_ms() == 3000
    (other,) = b.first()
    b.acknowledge(other, "accept")
    b.commit()
    for _ in range(5):
        a.acknowledge(record, "renew")
        assert set(a.commit().values()) == {"-"}
        assert b.poll(1000) == []
        if share_client == "java":
            assert a.first() == [record]  # the consumer itself gives it again
    a.acknowledge(record, "accept")
    assert set(a.commit().values()) == {"-"}
    assert b.poll(4000) == []


@pytest.mark.capability("KIP-932: members share partitions")
def test_two_members_share(make_reader: MakeReader, filled: str) -> None:
    limited = {"max_poll_records": 1, "share_acquire_mode": "record_limit"}
    a, b = make_reader(filled, **limited), make_reader(filled, **limited)
    found_a, found_b = a.first(), b.first()
    while len(found_a) + len(found_b) < 20:
        found_a += a.poll()
        found_b += b.poll()
    assert where(found_a + found_b) == ALL
    assert len(found_a) > 3
    assert len(found_b) > 3


@pytest.mark.capability("KIP-932: a member that dies")
def test_a_member_that_dies(make_reader: MakeReader, filled: str, configure: Configure) -> None:
    configure(session_timeout_ms=2000)
    a, b = make_reader(filled, **EXPLICIT), make_reader(filled)
    held = where(a.first())
    a.kill()
    found = b.take(20)
    assert where(found) == ALL
    assert {
        (each.partition, each.offset): each.delivery_count for each in found if each.delivery_count > 1
    } == dict.fromkeys(held, 2)


@pytest.mark.capability("KIP-932: deliveries are limited")
def test_deliveries_are_limited(make_reader: MakeReader, filled: str, configure: Configure) -> None:
    configure(delivery_count_limit=2)
    a = make_reader(filled, **EXPLICIT)
    deliveries: list[Delivered] = []
    while len(deliveries) < 40:
        records = a.first()
        deliveries += records
        for each in records:
            a.acknowledge(each, "release")
        a.commit()
    assert where([each for each in deliveries if each.delivery_count == 1]) == ALL
    assert where([each for each in deliveries if each.delivery_count == 2]) == ALL
    assert [a.poll() for _ in range(3)] == [[]] * 3


@pytest.mark.capability("KIP-932: transactions")
def test_read_committed(
    make_reader: MakeReader, topic: str, bootstrap: str, group_id: str, configure: Configure, operator: Operator
) -> None:
    configure(isolation_level="read_committed")
    with connect(bootstrap) as wire:
        producer = RawProducer(wire, group_id + "-txn").start()
        for value, commit in ((b"1", True), (b"2", False), (b"3", True)):
            producer.begin(topic)
            producer.send(topic, value)
            producer.end(commit=commit)
            operator.wait_until_ended(topic)
    a = make_reader(topic)
    assert [each.value for each in a.take(2)] == ["1", "3"]
    assert a.poll() == []
