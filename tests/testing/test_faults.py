"""Faults as the three Python clients meet them: what they do about each, and what is in the topic in the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaConsumer, KafkaProducer

from ottla.testing.broker import Broker
from ottla.testing.faults import Faults
from ottla.testing.requests import Requests

Records = Callable[..., list[Any]]


def kafka_python(address: str, topic: str, values: list[bytes], timeout: float) -> None:
    producer = KafkaProducer(
        bootstrap_servers=address,
        client_id="p",
        retry_backoff_ms=20,
        request_timeout_ms=int(timeout * 1000),
        delivery_timeout_ms=30_000,
        max_in_flight_requests_per_connection=1,
        enable_idempotence=True,
        linger_ms=0,
    )
    for value in values:
        producer.send(topic, value).get(timeout=30)
    producer.close()


def confluent_kafka(address: str, topic: str, values: list[bytes], timeout: float) -> None:
    failures: list[Any] = []
    producer = ConfluentProducer(
        {
            "bootstrap.servers": address,
            "client.id": "p",
            "retry.backoff.ms": 20,
            "socket.timeout.ms": int(timeout * 1000),
            "request.timeout.ms": int(timeout * 1000),
            "enable.idempotence": True,
            "linger.ms": 0,
        }
    )
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
        assert producer.flush(30) == 0
    assert not failures


def aiokafka(address: str, topic: str, values: list[bytes], timeout: float) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=address,
            client_id="p",
            retry_backoff_ms=20,
            request_timeout_ms=int(timeout * 1000),
            enable_idempotence=True,
        )
        await producer.start()
        for value in values:
            await producer.send_and_wait(topic, value)
        await producer.stop()

    asyncio.run(run())


CLIENTS = pytest.mark.parametrize(
    "produce", [kafka_python, confluent_kafka, aiokafka], ids=lambda client: client.__name__
)
VALUES = [b"one", b"two", b"three", b"four"]


@CLIENTS
@pytest.mark.parametrize(
    "outcome",
    [{"error": "NOT_LEADER_OR_FOLLOWER"}, {"error": "NOT_ENOUGH_REPLICAS"}, {"drop": True}, {"disconnect": True}],
    ids=lambda outcome: "-".join(map(str, next(iter(outcome.items())))),
)
@pytest.mark.slow
def test_the_third_produce_fails_and_is_sent_again(
    produce: Callable[..., None],
    outcome: dict[str, Any],
    ottla_broker: Broker,
    kafka_topic: str,
    kafka_records: Records,
    kafka_faults: Faults,
    kafka_requests: Requests,
) -> None:
    """Every client is idempotent here: an answer that is lost makes no second record."""
    fault = kafka_faults.add(api="Produce", topic=kafka_topic, client_id="p", nth=3, **outcome)
    produce(ottla_broker.bootstrap_servers, kafka_topic, VALUES, 10.0)
    assert fault.hits == 1
    assert [record.value for record in kafka_records()] == VALUES
    assert len(kafka_requests.where(api="Produce", topic=kafka_topic)) == len(VALUES) + 1


@CLIENTS
@pytest.mark.parametrize("outcome", [{"delay": 60.0}, {"black_hole": True}], ids=["delay", "black_hole"])
@pytest.mark.slow
def test_no_answer_in_time_is_a_timeout_and_a_second_try(
    produce: Callable[..., None],
    outcome: dict[str, Any],
    ottla_broker: Broker,
    kafka_topic: str,
    kafka_records: Records,
    kafka_faults: Faults,
) -> None:
    fault = kafka_faults.add(api="Produce", topic=kafka_topic, nth=2, **outcome)
    produce(ottla_broker.bootstrap_servers, kafka_topic, VALUES, 1.5)
    assert fault.hits == 1
    assert [record.value for record in kafka_records()] == VALUES


@CLIENTS
@pytest.mark.slow
def test_a_leader_that_moved_is_found_again(
    produce: Callable[..., None],
    ottla_broker: Broker,
    kafka_topic: str,
    kafka_records: Records,
    kafka_requests: Requests,
) -> None:
    """The producer learns of the move by NOT_LEADER_OR_FOLLOWER, asks for metadata, and goes on."""

    class Values(list[bytes]):
        def __iter__(self) -> Any:
            for place, value in enumerate(VALUES):
                if place == 2:
                    assert ottla_broker.move_leader(kafka_topic) == 1
                yield value

    produce(ottla_broker.bootstrap_servers, kafka_topic, Values(), 10.0)
    assert [record.value for record in kafka_records()] == VALUES
    assert len(kafka_requests.where(api="Produce", topic=kafka_topic)) > len(VALUES)
    sent = [request.api for request in kafka_requests.where(client_id="p") if request.api in ("Produce", "Metadata")]
    assert "Metadata" in sent[sent.index("Produce") :], "the client asked where the leader is"


def test_kafka_python_sees_that_it_is_throttled(
    ottla_broker: Broker, kafka_topic: str, kafka_faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    kafka_faults.add(api="Produce", topic=kafka_topic, throttle_time_ms=300)
    producer = KafkaProducer(bootstrap_servers=ottla_broker.bootstrap_servers)
    with caplog.at_level(logging.WARNING, logger="kafka"):
        producer.send(kafka_topic, b"one").get(timeout=30)
    assert "ProduceResponse throttled by broker (300 ms)" in caplog.text
    producer.close()


def test_confluent_kafka_sees_that_it_is_throttled(
    ottla_broker: Broker, kafka_topic: str, kafka_faults: Faults
) -> None:
    throttled: list[Any] = []
    kafka_faults.add(api="Produce", topic=kafka_topic, throttle_time_ms=300)
    producer = ConfluentProducer({"bootstrap.servers": ottla_broker.bootstrap_servers, "throttle_cb": throttled.append})
    producer.produce(kafka_topic, b"one")
    assert producer.flush(30) == 0
    producer.poll(0)
    assert [event.throttle_time for event in throttled] == [0.3]


def test_aiokafka_goes_on_when_it_is_throttled(
    ottla_broker: Broker, kafka_topic: str, kafka_records: Records, kafka_faults: Faults
) -> None:
    """It has no way to say that it was."""
    fault = kafka_faults.add(api="Produce", topic=kafka_topic, throttle_time_ms=50)
    aiokafka(ottla_broker.bootstrap_servers, kafka_topic, VALUES, 10.0)
    assert fault.hits == 1
    assert [record.value for record in kafka_records()] == VALUES


def commit_with_kafka_python(address: str, topic: str) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=address,
        group_id=topic,
        client_id="c",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        retry_backoff_ms=20,
    )
    next(consumer)
    consumer.commit()
    consumer.close()


def commit_with_confluent_kafka(address: str, topic: str) -> None:
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": address,
            "group.id": topic,
            "client.id": "c",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    (message,) = consumer.consume(1, timeout=20)
    consumer.commit(message, asynchronous=False)
    consumer.close()


def commit_with_aiokafka(address: str, topic: str) -> None:
    async def run() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=topic,
            client_id="c",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            retry_backoff_ms=20,
        )
        await consumer.start()
        await consumer.getone()
        await consumer.commit()
        await consumer.stop()

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize(
    "commit",
    [commit_with_kafka_python, commit_with_confluent_kafka, commit_with_aiokafka],
    ids=["kafka_python", "confluent_kafka", "aiokafka"],
)
def test_a_coordinator_that_moved_is_looked_for_again(
    commit: Callable[..., None],
    ottla_broker: Broker,
    kafka_topic: str,
    kafka_faults: Faults,
    kafka_requests: Requests,
) -> None:
    kafka_python(ottla_broker.bootstrap_servers, kafka_topic, VALUES[:1], 10.0)
    fault = kafka_faults.add(api="OffsetCommit", client_id="c", error="NOT_COORDINATOR")
    commit(ottla_broker.bootstrap_servers, kafka_topic)
    assert fault.hits == 1
    commits = kafka_requests.where(api="OffsetCommit", client_id="c", topic=kafka_topic)
    assert [sent.body.topics[0].partitions[0].committed_offset for sent in commits] == [1, 1]
    assert {sent.body.group_id for sent in commits} == {kafka_topic}
    sent = [request.api for request in kafka_requests.where(client_id="c")]
    assert "FindCoordinator" in sent[sent.index("OffsetCommit") :], "the coordinator was asked for once more"


@pytest.mark.slow
def test_a_fetch_that_fails_is_made_again(ottla_broker: Broker, kafka_topic: str, kafka_faults: Faults) -> None:
    kafka_python(ottla_broker.bootstrap_servers, kafka_topic, VALUES, 10.0)
    fault = kafka_faults.add(api="Fetch", topic=kafka_topic, error="NOT_LEADER_OR_FOLLOWER", count=2)
    consumer = KafkaConsumer(
        kafka_topic, bootstrap_servers=ottla_broker.bootstrap_servers, auto_offset_reset="earliest", retry_backoff_ms=20
    )
    assert [next(consumer).value for _ in VALUES] == VALUES
    consumer.close()
    assert fault.hits == 2


def test_a_fault_counts_what_matches_and_ends_when_removed(ottla_broker: Broker, kafka_faults: Faults) -> None:
    with kafka_faults.add(api="Metadata", error="UNKNOWN_SERVER_ERROR", count=None, required=False) as fault:
        assert len(kafka_faults) == 1
        assert fault.hits == 0
        with pytest.raises(TimeoutError, match="0 requests were hit"):
            fault.wait(timeout=0.01)
    assert len(kafka_faults) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"error": "NO_SUCH_ERROR"},
        {"api": "Prodce", "drop": True},
        {"drop": True, "disconnect": True},
        {"drop": True, "nth": 0},
        {"drop": True, "count": 0},
    ],
    ids=str,
)
def test_a_fault_that_makes_no_sense_is_refused(wrong: dict[str, Any], kafka_faults: Faults) -> None:
    with pytest.raises(ValueError, match=r"fault|Kafka has no|begin at 1"):
        kafka_faults.add(**wrong)


def test_a_misspelt_name_of_kafka_has_the_one_that_was_meant(kafka_faults: Faults) -> None:
    with pytest.raises(ValueError, match=r"^Kafka has no API 'Produze'; did you mean Produce\?$"):
        kafka_faults.add(api="Produze", drop=True)
    with pytest.raises(ValueError, match=r"^Kafka has no error 'not_leader'; did you mean NOT_LEADER_OR_FOLLOWER\?$"):
        kafka_faults.add(error="not_leader")
    wrong: Any = 0
    with pytest.raises(TypeError, match=r"^api is 0 \(int\); it must be Kafka's name of an API"):
        kafka_faults.add(api=wrong, drop=True)
    with pytest.raises(TypeError, match=r"^error is 0 \(int\); it must be Kafka's name of an error"):
        kafka_faults.add(error=wrong)


def test_a_broker_stops_with_requests_in_its_black_hole(
    ottla_broker_factory: Callable[..., Broker], caplog: pytest.LogCaptureFixture
) -> None:
    """They are let go of, and not left to the end of what a stop waits for last answers."""
    caplog.set_level("INFO", "ottla.broker.listeners.connection")
    broker = ottla_broker_factory()
    fault = broker.faults.add(api="Metadata", black_hole=True, count=None)
    producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap_servers})
    fault.wait()
    broker.stop()
    assert "in the black hole" in caplog.text
    producer.flush(0)
