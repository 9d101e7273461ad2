"""Two hundred topics by one pattern: Spark asks for all topics of the broker whenever it plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import KafkaFormat, Rows
from ottla.compat_tests.wire_client import Operator

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("200 topics by pattern")]
TOPICS = 200


@pytest.fixture
def topics(operator: Operator, fresh_name: Callable[[str], str]) -> Iterator[list[str]]:
    """Empty topics, and one whose name the pattern almost matches."""
    prefix = fresh_name("many")
    names = [f"{prefix}-{number:03}" for number in range(TOPICS + 1)]
    for name in names[:-1]:
        operator.create_topic(name, 1, {})
    operator.create_topic(f"{prefix}-other", 1, {})
    yield names
    for name in (*names, f"{prefix}-other"):
        operator.delete_topic(name)


def write(stock: ClientSession, topics: list[str]) -> None:
    """A record to each."""
    producer = stock.producer(linger_ms=5)
    for topic in topics:
        producer.send(topic, topic.encode(), partition=0)
    producer.flush()


def test_batch_and_stream(kafka: KafkaFormat, stock: ClientSession, operator: Operator, topics: list[str]) -> None:
    pattern = topics[0].removesuffix("000") + r"\d+"
    known = topics[:-1]
    write(stock, [*known, topics[0].removesuffix("000") + "other"])
    found = kafka.read(subscribePattern=pattern).collect()
    assert sorted((row.topic, row.value.decode()) for row in found) == [(name, name) for name in known]
    rows, checkpoint = Rows(), kafka.new_checkpoint()
    rows.run(kafka.read_stream(subscribePattern=pattern), checkpoint)
    assert rows.all() == [(name, 0, 0) for name in known]
    operator.create_topic(topics[-1], 1, {})
    write(stock, [topics[3], topics[-1]])
    rows.run(kafka.read_stream(subscribePattern=pattern), checkpoint)
    assert rows.all() == sorted([(name, 0, 0) for name in topics] + [(topics[3], 0, 1)])
