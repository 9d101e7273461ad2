"""Deliveries of a share group that a test ends: the record goes to another member, or to nobody any more."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from kafka import KafkaProducer

from ottla.base.errors import KafkaError
from ottla.cli.tools.client import Admin
from ottla.cli.tools.records.share_member import DeliveredRecord, ShareMember
from ottla.cli.tools.wire_request import WireRequest
from ottla.testing.broker import Broker
from ottla.testing.cluster import Cluster
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

_GROUP_RESOURCE = 32
_MOST_POLLS = 200

MakeMember = Callable[[str], ShareMember]


@pytest.fixture
def three(ottla_broker: Broker, kafka_topic: str, kafka_group: str) -> str:
    """A topic with three records, of which the test's group gets the first one first."""
    begin_early(ottla_broker.bootstrap_servers, kafka_group)
    fill(ottla_broker.bootstrap_servers, kafka_topic, b"a", b"b", b"c")
    return kafka_topic


def begin_early(bootstrap_servers: str, group: str) -> None:
    config = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = AlterConfigsResource(resource_type=_GROUP_RESOURCE, resource_name=group, configs=[config])
    with closing(Admin(bootstrap_servers=bootstrap_servers)) as admin:
        response = admin.ask(WireRequest(IncrementalAlterConfigsRequest(resources=[resource]), 1, 1))
    assert [each.error_code for each in response.responses] == [0]


def fill(bootstrap_servers: str, topic: str, *values: bytes) -> None:
    with KafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
        for value in values:
            producer.send(topic, value).get(timeout=30)


@pytest.fixture
def make_member(ottla_broker: Broker, kafka_group: str) -> Iterator[MakeMember]:
    """``make_member(topic)``: a member of the test's group with connections of its own."""
    with ExitStack() as stack:
        yield lambda topic: member_of(stack, ottla_broker.bootstrap_servers, kafka_group, topic)


def member_of(stack: ExitStack, bootstrap_servers: str, group: str, topic: str) -> ShareMember:
    admin = stack.enter_context(closing(Admin(bootstrap_servers=bootstrap_servers)))
    return stack.enter_context(closing(ShareMember(admin, group, [topic])))


def take(member: ShareMember, count: int) -> list[DeliveredRecord]:
    """The next records of a member, of which there must be so many."""
    found: list[DeliveredRecord] = []
    for _ in range(_MOST_POLLS):
        if len(found) >= count:
            break
        found += member.poll()
    return seen(found, count)


def seen(found: list[DeliveredRecord], count: int) -> list[DeliveredRecord]:
    assert len(found) == count, found
    return found


def counts(records: list[DeliveredRecord]) -> dict[int, int]:
    return {record.offset: record.delivery_count for record in records}


def test_a_record_is_redelivered(ottla_broker: Broker, three: str, kafka_group: str, make_member: MakeMember) -> None:
    first = make_member(three)
    assert counts(take(first, 3)) == {0: 1, 1: 1, 2: 1}
    second = make_member(three)
    assert ottla_broker.redeliver(kafka_group, three, offset=1) == [1]
    assert counts(take(second, 1)) == {1: 2}
    assert ottla_broker.redeliver(kafka_group, three) == [0, 1, 2]
    assert counts(take(second, 3)) == {0: 2, 1: 3, 2: 2}


def test_a_record_that_has_expired_cannot_be_acknowledged(
    ottla_broker: Broker, three: str, kafka_group: str, make_member: MakeMember
) -> None:
    member = make_member(three)
    records = take(member, 3)
    assert ottla_broker.expire_locks(kafka_group, three, 0, 2) == [2]
    member.acknowledge(records[2:])
    assert counts(take(member, 1)) == {2: 2}
    assert member.unacknowledged == 1


def test_a_record_is_archived(ottla_broker: Broker, three: str, kafka_group: str, make_member: MakeMember) -> None:
    member = make_member(three)
    records = take(member, 3)
    assert ottla_broker.archive(kafka_group, three, 0, 1) == [1]
    member.acknowledge([records[0], records[2]])
    fill(ottla_broker.bootstrap_servers, three, b"d")
    assert counts(take(member, 1)) == {3: 1}
    assert member.unacknowledged == 0
    assert ottla_broker.archive(kafka_group, three) == [3]
    assert member.poll() == []


def test_a_record_whose_locks_always_end_is_archived(
    ottla_broker: Broker, three: str, kafka_group: str, make_member: MakeMember
) -> None:
    member = make_member(three)
    member.acknowledge(take(member, 3)[1:])
    assert member.poll() == []
    for count in range(2, 6):
        assert ottla_broker.expire_locks(kafka_group, three) == [0]
        assert counts(take(member, 1)) == {0: count}
    assert ottla_broker.expire_locks(kafka_group, three) == [0]
    fill(ottla_broker.bootstrap_servers, three, b"d")
    assert counts(take(member, 1)) == {3: 1}


def test_what_is_not_in_flight_is_refused(
    ottla_broker: Broker, three: str, kafka_group: str, make_member: MakeMember
) -> None:
    with pytest.raises(KafkaError, match="was not fetched"):
        ottla_broker.redeliver(kafka_group, three)
    member = make_member(three)
    member.acknowledge(take(member, 3))
    member.poll()
    for offset in (0, 7):
        with pytest.raises(KafkaError, match=f"no member has the record at {offset}"):
            ottla_broker.archive(kafka_group, three, 0, offset)
    assert ottla_broker.expire_locks(kafka_group, three) == []


def test_figures_of_a_share_partition(ottla_broker_factory: Callable[..., Broker]) -> None:
    broker = ottla_broker_factory(properties={"metrics.listener": "127.0.0.1:0"})
    broker.create_topic("jobs")
    begin_early(broker.bootstrap_servers, "g")
    fill(broker.bootstrap_servers, "jobs", b"a", b"b", b"c")
    with ExitStack() as stack:
        member = member_of(stack, broker.bootstrap_servers, "g", "jobs")
        take(member, 3)
        broker.redeliver("g", "jobs", 0, 0)
        take(member, 1)
        broker.archive("g", "jobs", 0, 1)
        with urllib.request.urlopen(f"http://{broker.metrics_address}/metrics") as page:
            shown = page.read().decode()
        labels = '{group="g",partition="0",topic="jobs"}'
        assert f"ottla_share_partition_redelivered_records_total{labels} 1.0" in shown
        assert f"ottla_share_partition_archived_records_total{labels} 1.0" in shown


@pytest.mark.slow
def test_in_a_cluster_the_leader_is_asked() -> None:
    with Cluster(3) as cluster, ExitStack() as stack:
        cluster.create_topic("jobs", replication_factor=3)
        begin_early(cluster.bootstrap_servers, "g")
        fill(cluster.bootstrap_servers, "jobs", b"a", b"b")
        member = member_of(stack, cluster.bootstrap_servers, "g", "jobs")
        assert counts(take(member, 2)) == {0: 1, 1: 1}
        assert cluster.redeliver("g", "jobs", 0, 0) == [0]
        assert cluster.archive("g", "jobs", 0, 1) == [1]
        assert counts(take(member, 1)) == {0: 2}
        assert cluster.expire_locks("g", "jobs", 0, 0) == [0]
        assert counts(take(member, 1)) == {0: 3}
