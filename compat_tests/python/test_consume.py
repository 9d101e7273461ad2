"""Consuming: where to start, how much at once, how long to wait, what lies outside the log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.compat_tests.clients import model
from ottla.compat_tests.session import ClientSession, consume, eventually

VALUES = [b"%d" % number for number in range(10)]


@pytest.fixture
def filled(client: ClientSession, topic: str) -> str:
    """A topic whose partition 0 holds VALUES at offsets 0 to 9, three to a batch, timestamps 1000, 1010, ... ms."""
    producer = client.producer(linger_ms=50)
    for number, value in enumerate(VALUES):
        producer.send(topic, value, partition=0, timestamp_ms=1000 + 10 * number)
        if number % 3 == 2:
            producer.flush()
    producer.flush()
    return topic


def offsets(messages: list[model.Message]) -> list[int]:
    """The offsets, as they came."""
    return [message.offset for message in messages]


@pytest.mark.capability("consume from beginning, end, offset")
def test_from_the_beginning(client: ClientSession, filled: str) -> None:
    consumer = client.consumer()
    consumer.assign({(filled, 0): "beginning"})
    assert offsets(consume(consumer, 10)) == list(range(10))
    assert consumer.position(filled, 0) == 10


@pytest.mark.capability("consume from beginning, end, offset")
def test_from_the_end(client: ClientSession, filled: str) -> None:
    consumer = client.consumer()
    consumer.assign({(filled, 0): "end"})
    producer = client.producer()
    # When the client has found the end cannot be seen from outside: only that nothing older than that is delivered.
    assert eventually(lambda: produce_and_poll(producer, consumer, filled))[0].offset >= 10


def produce_and_poll(producer: model.Producer, consumer: model.Consumer, topic: str) -> list[model.Message]:
    """One more record, and what the consumer has got by then."""
    producer.send(topic, b"new", partition=0)
    producer.flush()
    return consumer.poll(0.2)


@pytest.mark.capability("consume from beginning, end, offset")
@pytest.mark.parametrize("start", [0, 1, 5, 9, 10])
def test_from_any_offset(client: ClientSession, filled: str, start: int) -> None:
    # Most of these lie inside a batch: the broker sends the batch whole, the client skips.
    consumer = client.consumer()
    consumer.assign({(filled, 0): start})
    client.produce(filled, [b"last"])
    assert offsets(consume(consumer, 11 - start)) == list(range(start, 11))


@pytest.mark.capability("consume from a timestamp")
def test_from_a_timestamp(client: ClientSession, filled: str) -> None:
    consumer = client.consumer()
    assert [consumer.offset_for_time(filled, 0, time_ms) for time_ms in (0, 1000, 1001, 1045, 1090)] == [0, 0, 1, 5, 9]
    assert consumer.offset_for_time(filled, 0, 1091) in (None, 10)
    consumer.assign({(filled, 0): 5})
    assert offsets(consume(consumer, 5)) == [5, 6, 7, 8, 9]


@pytest.mark.capability("seek")
def test_seek_back_and_forth(client: ClientSession, filled: str) -> None:
    consumer = client.consumer()
    consumer.assign({(filled, 0): "beginning"})
    consume(consumer, 10)
    for start in (7, 0, 3):
        consumer.seek(filled, 0, start)
        assert offsets(consume(consumer, 10 - start)) == list(range(start, 10))


@pytest.mark.capability("watermarks and lag")
def test_watermarks_and_lag(client: ClientSession, filled: str) -> None:
    consumer = client.consumer()
    consumer.assign({(filled, 0): 4})
    assert consumer.watermarks(filled, 0) == (0, 10)
    assert len(consume(consumer, 1)) >= 1
    lag = consumer.watermarks(filled, 0)[1] - consumer.position(filled, 0)
    assert lag == 10 - consumer.position(filled, 0)
    eventually(lambda: consumer.poll(0.1) is not None and consumer.position(filled, 0) == 10)
    assert consumer.watermarks(filled, 0)[1] - consumer.position(filled, 0) == 0


@pytest.mark.capability("watermarks and lag")
def test_empty_partition(client: ClientSession, topic: str) -> None:
    consumer = client.consumer()
    assert consumer.watermarks(topic, 0) == (0, 0)
    assert consumer.offset_for_time(topic, 0, 0) in (None, 0)


@pytest.mark.capability("long poll")
def test_a_record_ends_the_wait(client: ClientSession, topic: str) -> None:
    # The broker may hold the fetch for longer than the test waits: only the new record can end it in time.
    consumer = client.consumer(fetch_max_wait_ms=50_000)
    consumer.assign({(topic, 0): "beginning"})
    assert consumer.poll(0.5) == []
    client.produce(topic, [b"wake up"])
    assert [message.value for message in consume(consumer, 1)] == [b"wake up"]


@pytest.mark.capability("fetch sessions")
def test_one_busy_partition_of_many(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(20)
    consumer = client.consumer(fetch_max_wait_ms=1_000)
    consumer.assign({(topic, partition): "beginning" for partition in range(20)})
    producer = client.producer()
    # For a client with sessions each round is an incremental fetch in which most partitions have nothing to say.
    for number, partition in enumerate((13, 2, 13, 19)):
        producer.send(topic, b"%d" % number, partition=partition)
        producer.flush()
        assert [(message.partition, message.value) for message in consume(consumer, 1)] == [(partition, b"%d" % number)]


@pytest.mark.capability("records larger than the fetch limits")
def test_first_batch_is_whole(client: ClientSession, topic: str) -> None:
    values = [bytes([number]) * 100_000 for number in range(5)]
    client.produce(topic, values)
    messages = client.read(topic, 5, max_partition_fetch_bytes=1_000, fetch_max_bytes=2_000)
    assert [message.value for message in messages] == values


@pytest.mark.capability("records larger than the fetch limits")
def test_small_fetches_serve_every_partition(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(6)
    for partition in range(6):
        client.produce(topic, [bytes([number]) * 3_000 for number in range(10)], partition=partition, linger_ms=20)
    consumer = client.consumer(max_partition_fetch_bytes=10_000, fetch_max_bytes=15_000)
    consumer.assign({(topic, partition): "beginning" for partition in range(6)})
    messages = consume(consumer, 60)
    for partition in range(6):
        assert offsets([message for message in messages if message.partition == partition]) == list(range(10))


@pytest.mark.capability("fetch.min.bytes")
def test_min_bytes_gathers(client: ClientSession, topic: str) -> None:
    consumer = client.consumer(fetch_min_bytes=50_000, fetch_max_wait_ms=2_000)
    consumer.assign({(topic, 0): "beginning"})
    client.produce(topic, [b"x" * 1000] * 60)
    assert offsets(consume(consumer, 60)) == list(range(60))


@pytest.mark.capability("offset out of range: reset policy")
@pytest.mark.parametrize(("policy", "expected"), [("earliest", 0), ("latest", 10)])
def test_reset_policy(client: ClientSession, filled: str, policy: str, expected: int) -> None:
    consumer = client.consumer(auto_offset_reset=policy)
    consumer.assign({(filled, 0): 1000})
    producer = client.producer()
    first = eventually(lambda: produce_and_poll(producer, consumer, filled))[0].offset
    assert first == 0 if expected == 0 else first >= expected


@pytest.mark.capability("offset out of range: reported without a policy")
def test_no_reset_policy(client: ClientSession, filled: str) -> None:
    consumer = client.consumer(auto_offset_reset="none")
    consumer.assign({(filled, 0): 1000})
    with pytest.raises(model.ClientFailure):
        consume(consumer, 1)


@pytest.mark.capability("read_committed")
def test_read_committed_without_transactions(client: ClientSession, filled: str) -> None:
    assert offsets(client.read(filled, 10, read_committed=True)) == list(range(10))


@pytest.mark.capability("consume after DeleteRecords")
def test_start_of_the_log_moves(client: ClientSession, filled: str) -> None:
    assert client.admin.delete_records(filled, 0, 4) == 4
    consumer = client.consumer()
    assert consumer.watermarks(filled, 0) == (4, 10)
    consumer.assign({(filled, 0): "beginning"})
    assert offsets(consume(consumer, 6)) == [4, 5, 6, 7, 8, 9]


@pytest.mark.capability("topics that do not exist")
def test_unknown_partition(client: ClientSession, filled: str) -> None:
    with pytest.raises(model.ClientFailure):
        client.admin.delete_records(filled, 7, 0)
