"""What a test may do to ``ottla.Broker``: move its clock, end sessions, read topics, record requests."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient

import ottla
from ottla.base.errors import KafkaError
from ottla.base.settings import SettingError
from ottla.compat_tests.wire_client import Connection
from ottla.testing.broker import Broker
from ottla.testing.clock import AdjustableClock
from ottla.testing.requests import Requests
from ottla.wire.messages.metadata import MetadataRequest

Records = Callable[..., list[Any]]
Produce = Callable[..., None]


@pytest.fixture(scope="module")
def produce(ottla_broker: Broker) -> Iterator[Produce]:
    producer = KafkaProducer(bootstrap_servers=ottla_broker.bootstrap_servers, client_id="filler")

    def send(topic: str, *values: bytes) -> None:
        for value in values:
            producer.send(topic, value, key=b"k", headers=[("h", b"1")]).get(timeout=30)

    yield send
    producer.close()


def test_records_are_read_back_without_a_client(
    produce: Produce, kafka_topic: str, kafka_records: Records, ottla_broker: Broker
) -> None:
    assert kafka_records() == []
    produce(kafka_topic, b"one", b"two")
    one, two = kafka_records(2)
    assert (one.topic, one.partition, one.offset, one.key, one.value) == (kafka_topic, 0, 0, b"k", b"one")
    assert one.headers == [("h", b"1")]
    assert abs(one.timestamp - ottla_broker.clock.now_ms()) < 60_000
    assert two.offset == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda given: ottla.Broker(properties=given),
        lambda given: ottla.Cluster(2, properties=given),
        lambda given: ottla.Cluster(2, broker_properties={2: given}),
        lambda given: trio.run(ottla.open_broker(properties=given).__aenter__),
    ],
    ids=["broker", "cluster", "broker of a cluster", "in a trio program"],
)
def test_a_property_that_does_not_exist_is_refused(make: Callable[[dict[str, str]], Any]) -> None:
    with pytest.raises(SettingError, match=r"num\.partition: no such property; did you mean num\.partitions\?"):
        make({"num.partition": "3"})


def test_a_topic_that_does_not_exist_is_an_error_that_names_those_that_do(
    ottla_broker_factory: Callable[..., Broker],
) -> None:
    broker = ottla_broker_factory()
    with pytest.raises(KafkaError, match=r"there is no topic orders, nor any other$"):
        broker.records("orders")
    for number in range(22):
        broker.create_topic(f"t-{number:02}")
    with pytest.raises(KafkaError, match=r"there is no topic orders; there are: t-00, t-01, .*, t-19 and 2 more$"):
        broker.records("orders")
    with pytest.raises(KafkaError, match="there is no topic orders"):
        broker.records("orders", 1, timeout=0.05)
    maker = threading.Thread(target=broker.create_topic, args=("orders",))
    maker.start()
    with pytest.raises(TimeoutError, match="orders has 0 committed records, not 1"):
        broker.records("orders", 1, timeout=0.5)
    maker.join()


def test_reading_waits_until_there_are_so_many(produce: Produce, kafka_topic: str, kafka_records: Records) -> None:
    with pytest.raises(TimeoutError, match="has 0 committed records, not 1"):
        kafka_records(1, timeout=0.02)
    writer = threading.Thread(target=produce, args=(kafka_topic, b"late"))
    writer.start()
    assert [record.value for record in kafka_records(1)] == [b"late"]
    writer.join()


@pytest.mark.slow
def test_records_of_an_aborted_transaction_are_not_there(
    ottla_broker: Broker, kafka_topic: str, kafka_records: Records
) -> None:
    producer = KafkaProducer(bootstrap_servers=ottla_broker.bootstrap_servers, transactional_id=kafka_topic)
    producer.init_transactions()
    for value in (b"kept", b"dropped", b"kept too"):
        producer.begin_transaction()
        producer.send(kafka_topic, value).get(timeout=30)
        if value == b"dropped":
            producer.abort_transaction()
        else:
            assert value not in [record.value for record in kafka_records()], "not before the commit"
            producer.commit_transaction()
    producer.close()
    assert [record.value for record in kafka_records(2)] == [b"kept", b"kept too"]


def test_asyncio_tests_use_the_same_fixtures(ottla_broker: Broker, kafka_topic: str, kafka_records: Records) -> None:
    async def run() -> None:
        async with AIOKafkaProducer(bootstrap_servers=ottla_broker.bootstrap_servers) as producer:
            await producer.send_and_wait(kafka_topic, b"async")
            assert [record.value for record in kafka_records()] == [b"async"]

    asyncio.run(run())


async def test_trio_tests_use_the_same_fixtures(produce: Produce, kafka_topic: str, kafka_records: Records) -> None:
    """This one runs in a trio loop of its own, beside the broker's."""
    await trio.to_thread.run_sync(produce, kafka_topic, b"from trio")
    assert [record.value for record in kafka_records()] == [b"from trio"]


def test_requests_are_recorded_only_when_asked_for(
    produce: Produce, ottla_broker_factory: Callable[..., Broker]
) -> None:
    broker = ottla_broker_factory()
    with pytest.raises(RuntimeError, match="start"):
        broker.requests.where(api="Produce")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="me")
    producer.send("before", b"").get(timeout=30)
    with broker.requests.recording():
        producer.send("during", b"seen", partition=0).get(timeout=30)
    producer.send("after", b"").get(timeout=30)
    producer.close()
    (sent,) = broker.requests.where(api="Produce")
    assert (sent.api, sent.client_id, sent.topics) == ("Produce", "me", {"during"})
    assert b"seen" in sent.body.topic_data[0].partition_data[0].records
    assert broker.requests.where(api="Produce", topic="before") == []
    assert broker.requests.where(api="Produce", client_id="another") == []
    with pytest.raises(ValueError, match="no API 'Prodce'"):
        broker.requests.where(api="Prodce")


def test_a_request_with_a_value_is_recorded(ottla_broker: Broker, kafka_requests: Requests) -> None:
    with KafkaAdminClient(bootstrap_servers=ottla_broker.bootstrap_servers) as admin:
        admin.create_topics({"configured": {"num_partitions": 1, "configs": {"retention.ms": "1000"}}})
    (sent,) = kafka_requests.where(api="CreateTopics", topic="configured")
    assert [(each.name, each.value) for each in sent.body.topics[0].configs] == [("retention.ms", "1000")]


@pytest.mark.slow
def test_a_session_that_ends_is_a_rebalance(
    ottla_broker: Broker, produce: Produce, kafka_topic: str, kafka_requests: Requests
) -> None:
    """The member finds out with its next heartbeat and joins again; it goes on where it was."""
    lost: list[Any] = []
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": ottla_broker.bootstrap_servers,
            "client.id": "member",
            "group.id": kafka_topic,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
        }
    )
    consumer.subscribe([kafka_topic], on_lost=lambda _, partitions: lost.extend(partitions))
    produce(kafka_topic, b"one")
    (message,) = consumer.consume(1, timeout=20)
    assert message.value() == b"one"
    (gone,) = ottla_broker.expire_session(kafka_topic, "member")
    assert gone.startswith("member-")
    deadline = time.monotonic() + 20
    while not lost and time.monotonic() < deadline:
        consumer.poll(0.1)
    assert [partition.topic for partition in lost] == [kafka_topic]
    consumer.close()
    with pytest.raises(KafkaError, match="no group"):
        ottla_broker.expire_session("unknown")


@pytest.mark.slow
def test_time_that_goes_by_ends_sessions_and_deletes_records_and_offsets(
    ottla_broker_factory: Callable[..., Broker],
) -> None:
    broker = ottla_broker_factory(properties={"offsets.retention.minutes": "60"})
    address = broker.bootstrap_servers
    broker.create_topic("short", configs={"retention.ms": "3600000"})
    broker.create_topic("long", configs={"retention.ms": "-1"})
    producer = ConfluentProducer({"bootstrap.servers": address})
    for topic in ("short", "long"):
        producer.produce(topic, b"old")
    assert producer.flush(30) == 0
    consumer = KafkaConsumer(
        "long", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest", heartbeat_interval_ms=60_000 // 3
    )
    assert next(consumer).value == b"old"
    consumer.commit()
    admin = KafkaAdminClient(bootstrap_servers=address)
    before = broker.clock.now_ms()

    broker.clock.advance(minutes=30)
    assert broker.clock.now_ms() - before >= 30 * 60_000
    assert [record.value for record in broker.records("short")] == [b"old"]
    assert admin.describe_groups(["g"])["g"]["members"] == [], "the member was silent for half an hour"
    assert admin.list_group_offsets("g")["g"]

    broker.clock.advance(hours=1)
    assert broker.records("short") == []
    assert [record.value for record in broker.records("long")] == [b"old"]
    assert not admin.list_group_offsets("g")["g"], "the group was empty for more than an hour"

    producer.produce("short", b"new", timestamp=broker.clock.now_ms())
    assert producer.flush(30) == 0
    assert [(record.offset, record.value) for record in broker.records("short")] == [(1, b"new")]
    consumer.close(autocommit=False)
    admin.close()


def test_the_broker_stays_alive_while_the_clock_is_advanced(ottla_broker_factory: Callable[..., Broker]) -> None:
    """It keeps what it leads: a session that ended would have brought the next leader epoch."""
    broker = ottla_broker_factory()
    broker.create_topic("t")
    with contextlib.closing(Connection(broker.bootstrap_servers)) as connection:
        before = connection.call(MetadataRequest(topics=None), 9).topics[0].partitions[0]
        broker.clock.advance(days=30)
    with contextlib.closing(Connection(broker.bootstrap_servers)) as connection:
        after = connection.call(MetadataRequest(topics=None), 9).topics[0].partitions[0]
    assert (after.leader_id, after.leader_epoch) == (before.leader_id, before.leader_epoch)


def test_the_clock_goes_from_deadline_to_deadline() -> None:
    """What follows from one event has its own time: a sleep that begins when another ends."""
    clock = AdjustableClock()

    async def main() -> list[float]:
        woken: list[float] = []

        async def sleeper() -> None:
            for seconds in (100.0, 250.0):
                await trio.sleep(seconds)
                woken.append(trio.current_time() - began)

        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            nursery.start_soon(sleeper)
            await clock.advance(360.0)
        return woken

    first, second = trio.run(main, clock=clock)
    assert 100 <= first < 102
    assert 350 <= second < 354


def test_time_does_not_go_back(ottla_broker: Broker) -> None:
    with pytest.raises(ValueError, match="back"):
        ottla_broker.clock.advance(seconds=-1)


def test_a_broker_that_never_had_a_group_has_none_to_expire(ottla_broker_factory: Callable[..., Broker]) -> None:
    broker = ottla_broker_factory()
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        broker.expire_session("g")
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        broker.delete_group("g")


def test_what_cannot_be_done_is_told_to_the_caller(ottla_broker: Broker, kafka_topic: str) -> None:
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        ottla_broker.create_topic(kafka_topic)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        ottla_broker.move_leader("not-made")
    with pytest.raises(KafkaError, match="not running"):
        ottla.Broker().records("t")
