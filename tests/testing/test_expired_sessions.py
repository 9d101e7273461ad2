"""A session that ends: the member finds out with its next heartbeat, joins again, and goes on where it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer as ConfluentConsumer
from kafka import KafkaConsumer, KafkaProducer

from ottla.testing.broker import Broker
from ottla.testing.requests import Requests


class Halfway:
    """What happens between the first record and the second."""

    def __init__(self, broker: Broker, requests: Requests, producer: KafkaProducer, topic: str) -> None:
        self._broker, self._requests, self._producer, self._topic = broker, requests, producer, topic
        self._joined = 0

    def expire(self) -> None:
        self._joined = self._generations()
        assert len(self._broker.expire_session(self._topic, "m")) == 1

    def is_back(self) -> bool:
        """Whether the member has joined once more; the second record is sent then."""
        if self._generations() == self._joined:
            return False
        self._producer.send(self._topic, b"second").get(timeout=30)
        return True

    def _generations(self) -> int:
        return len(self._requests.where(api="SyncGroup", client_id="m"))


def kafka_python(address: str, topic: str, halfway: Halfway) -> list[bytes]:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=address,
        group_id=topic,
        client_id="m",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
    )
    first = next(consumer).value
    consumer.commit()
    halfway.expire()
    while not halfway.is_back():
        assert not consumer.poll(timeout_ms=50)
    second = next(consumer).value
    consumer.close()
    return [first, second]


def confluent_kafka(address: str, topic: str, halfway: Halfway) -> list[bytes]:
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": address,
            "group.id": topic,
            "client.id": "m",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
        }
    )
    consumer.subscribe([topic])
    (first,) = consumer.consume(1, timeout=20)
    consumer.commit(first, asynchronous=False)
    halfway.expire()
    while not halfway.is_back():
        assert consumer.poll(0.05) is None
    (second,) = consumer.consume(1, timeout=20)
    consumer.close()
    return [first.value(), second.value()]


def aiokafka(address: str, topic: str, halfway: Halfway) -> list[bytes]:
    async def run() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=topic,
            client_id="m",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
        )
        await consumer.start()
        first = await consumer.getone()
        await consumer.commit()
        halfway.expire()
        while not halfway.is_back():
            assert not await consumer.getmany(timeout_ms=50)
        second = await consumer.getone()
        await consumer.stop()
        return [first.value, second.value]

    return asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize(
    "consume", [kafka_python, confluent_kafka, aiokafka], ids=["kafka_python", "confluent_kafka", "aiokafka"]
)
def test_the_member_joins_again(
    consume: Callable[[str, str, Halfway], list[bytes]],
    ottla_broker: Broker,
    kafka_topic: str,
    kafka_requests: Requests,
) -> None:
    producer = KafkaProducer(bootstrap_servers=ottla_broker.bootstrap_servers)
    producer.send(kafka_topic, b"first").get(timeout=30)
    halfway = Halfway(ottla_broker, kafka_requests, producer, kafka_topic)
    assert consume(ottla_broker.bootstrap_servers, kafka_topic, halfway) == [b"first", b"second"]
    producer.close()
