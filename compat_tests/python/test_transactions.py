"""Transactions of stock clients: all of them or nothing, zombies stopped, offsets and output together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.compat_tests.clients import model
from ottla.compat_tests.session import ClientSession, consume


def read_committed(client: ClientSession, topic: str, count: int) -> list[bytes | None]:
    """The values of the first ``count`` records that are committed."""
    return [message.value for message in client.read(topic, count, read_committed=True)]


def write(producer: model.Producer, topic: str, *values: bytes) -> None:
    """Queue values for partition 0."""
    for value in values:
        producer.send(topic, value, partition=0)


@pytest.mark.capability("transactions: commit, abort")
def test_commit_and_abort(client: ClientSession, topic: str, fresh_name: Callable[[str], str]) -> None:
    producer = client.producer(transactional_id=fresh_name("txn"))
    producer.begin()
    write(producer, topic, b"a", b"b")
    producer.commit()
    producer.begin()
    write(producer, topic, b"x", b"y")
    producer.flush()
    producer.abort()
    producer.begin()
    write(producer, topic, b"c")
    producer.commit()
    assert read_committed(client, topic, 3) == [b"a", b"b", b"c"]
    everything = [message.value for message in client.read(topic, 5)]
    assert everything == [b"a", b"b", b"x", b"y", b"c"]


@pytest.mark.capability("transactions: many, over several partitions")
def test_many(client: ClientSession, make_topic: Callable[..., str], fresh_name: Callable[[str], str]) -> None:
    topic = make_topic(3)
    producer = client.producer(transactional_id=fresh_name("txn"))
    committed = []
    for number in range(30):
        producer.begin()
        for partition in range(3):
            producer.send(topic, b"%d" % number, partition=partition)
        if number % 3 == 2:
            producer.flush()
            producer.abort()
        else:
            producer.commit()
            committed.append(b"%d" % number)
    for partition in range(3):
        messages = client.read(topic, len(committed), partition=partition, read_committed=True)
        assert [message.value for message in messages] == committed


@pytest.mark.capability("transactions: an open transaction is not read")
def test_open_transaction(client: ClientSession, topic: str, fresh_name: Callable[[str], str]) -> None:
    client.produce(topic, [b"before"])
    producer = client.producer(transactional_id=fresh_name("txn"))
    producer.begin()
    write(producer, topic, b"open")
    producer.flush()
    client.produce(topic, [b"behind"])
    reader = client.consumer(read_committed=True)
    reader.assign({(topic, 0): "beginning"})
    assert [message.value for message in consume(reader, 1)] == [b"before"]
    assert reader.poll(0.5) == []
    producer.commit()
    assert [message.value for message in consume(reader, 2)] == [b"open", b"behind"]


@pytest.mark.capability("transactions: a fenced zombie")
def test_zombie(client: ClientSession, topic: str, fresh_name: Callable[[str], str]) -> None:
    transactional_id = fresh_name("txn")
    zombie = client.producer(transactional_id=transactional_id)
    zombie.begin()
    write(zombie, topic, b"zombie")
    zombie.flush()
    successor = client.producer(transactional_id=transactional_id)
    successor.begin()
    write(successor, topic, b"successor")
    successor.commit()
    with pytest.raises((model.ClientFailure, RuntimeError)):
        zombie.commit()
    assert read_committed(client, topic, 1) == [b"successor"]


@pytest.mark.capability("transactions: consume, transform, produce")
def test_consume_transform_produce(
    group_client: ClientSession, make_topic: Callable[..., str], group_id: str, fresh_name: Callable[[str], str]
) -> None:
    source, target = make_topic(), make_topic()
    group_client.produce(source, [b"%d" % number for number in range(20)])
    transactional_id = fresh_name("txn")

    def run(count: int, *, commits: bool) -> None:
        """Move ``count`` records in one transaction."""
        consumer = group_client.consumer(group_id=group_id, read_committed=True)
        consumer.subscribe([source])
        producer = group_client.producer(transactional_id=transactional_id)
        messages = consume(consumer, count)[:count]
        producer.begin()
        for message in messages:
            assert message.value is not None
            producer.send(target, message.value * 2, partition=0)
        producer.send_offsets({(source, 0): messages[-1].offset + 1}, consumer.group())
        if commits:
            producer.commit()
        else:
            producer.flush()
            producer.abort()
        producer.close()
        consumer.close()

    run(7, commits=True)
    run(5, commits=False)
    run(13, commits=True)
    assert read_committed(group_client, target, 20) == [b"%d" % number * 2 for number in range(20)]
    rest = group_client.consumer(group_id=group_id)
    rest.subscribe([source])
    group_client.produce(source, [b"end"])
    assert [message.value for message in consume(rest, 1)] == [b"end"]
