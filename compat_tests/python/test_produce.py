"""Producing: codecs, acks, what a record carries, sizes, idempotence, topics that do not exist."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.registry import EMPTY_IS_NOT_NULL
from ottla.compat_tests.session import ClientSession, consume

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Compresses well, and is longer than one block of the xerial framing (32 KiB).
BIG_VALUE = b"".join(b"%08d" % number for number in range(10_000))


@pytest.mark.capability("produce with every codec")
@pytest.mark.parametrize("codec", CODECS)
def test_codec_is_read_back(client: ClientSession, topic: str, codec: str) -> None:
    values = [b"%03d" % number for number in range(50)] + [BIG_VALUE]
    producer = client.producer(compression=codec, linger_ms=5)
    for value in values:
        producer.send(topic, value, partition=0)
    assert [delivery.offset for delivery in producer.flush()] == list(range(51))
    messages = client.read(topic, 51)
    assert [message.value for message in messages] == values
    assert [message.offset for message in messages] == list(range(51))


@pytest.mark.capability("produce with acks=0")
def test_without_acknowledgement(client: ClientSession, topic: str) -> None:
    # Several requests on one connection: any answer to the first would be taken for that to a later one.
    producer = client.producer(acks=0)
    for number in range(3):
        producer.send(topic, b"%d" % number, partition=0)
        assert len(producer.flush()) == 1
    assert [message.value for message in client.read(topic, 3)] == [b"0", b"1", b"2"]


@pytest.mark.capability("produce with acks=1 and all")
@pytest.mark.parametrize("acks", [1, -1])
def test_acknowledgements_carry_offsets(client: ClientSession, topic: str, acks: int) -> None:
    producer = client.producer(acks=acks)
    for number in range(3):
        producer.send(topic, b"%d" % number, partition=0)
        assert [delivery.offset for delivery in producer.flush()] == [number]
    assert [message.value for message in client.read(topic, 3)] == [b"0", b"1", b"2"]


@pytest.mark.capability("keys, nulls, headers")
def test_what_a_record_carries(client: ClientSession, topic: str) -> None:
    sent: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]] = [
        (b"key", b"value", ()),
        (None, b"no key", ()),
        (b"tombstone", None, ()),
        (b"\xff\x00", b"\x00\xff", (("gr\u00fc\u00df", b"3"), ("one", b"1"), ("two", b"\x00\xff"))),
    ]
    producer = client.producer()
    for key, value, headers in sent:
        producer.send(topic, value, key=key, partition=0, headers=headers)
    producer.flush()
    got = [(message.key, message.value, message.headers) for message in client.read(topic, len(sent))]
    assert got == sent


@pytest.mark.capability("repeated headers, in order")
def test_repeated_headers(client: ClientSession, topic: str) -> None:
    headers = (("two", b"2"), ("one", b"1"), ("two", b"\x00\xff"), ("one", b"again"))
    producer = client.producer()
    producer.send(topic, b"value", partition=0, headers=headers)
    producer.flush()
    assert client.read(topic, 1)[0].headers == headers


@pytest.mark.capability(EMPTY_IS_NOT_NULL)
def test_empty_is_not_null(client: ClientSession, topic: str) -> None:
    producer = client.producer()
    producer.send(topic, b"", key=b"", partition=0, headers=[("empty", b"")])
    producer.flush()
    (message,) = client.read(topic, 1)
    assert (message.key, message.value, message.headers) == (b"", b"", (("empty", b""),))


@pytest.mark.capability("timestamps: CreateTime")
def test_create_time(client: ClientSession, topic: str) -> None:
    times = [1_500_000_000_000, 1_400_000_000_000, 1_600_000_000_123]
    producer = client.producer(linger_ms=5)
    for time_ms in times:
        producer.send(topic, b"x", partition=0, timestamp_ms=time_ms)
    producer.flush()
    messages = client.read(topic, 3)
    assert [message.timestamp_ms for message in messages] == times


@pytest.mark.capability("timestamps: LogAppendTime")
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_log_append_time(client: ClientSession, make_topic: Callable[..., str], codec: str) -> None:
    topic = make_topic(**{"message.timestamp.type": "LogAppendTime"})
    long_ago = 1_400_000_000_000
    producer = client.producer(compression=codec, linger_ms=5)
    for number in range(3):
        producer.send(topic, b"%d" % number, partition=0, timestamp_ms=long_ago)
    producer.flush()
    # The CRC covers the rewritten header: a client that checks it would refuse the batch.
    messages = client.read(topic, 3)
    assert [message.value for message in messages] == [b"0", b"1", b"2"]
    assert all(message.timestamp_ms > long_ago for message in messages)


@pytest.mark.capability("timestamps: their type")
@pytest.mark.parametrize(
    ("config", "expected"), [("CreateTime", model.CREATE_TIME), ("LogAppendTime", model.LOG_APPEND_TIME)]
)
def test_timestamp_type(client: ClientSession, make_topic: Callable[..., str], config: str, expected: int) -> None:
    topic = make_topic(**{"message.timestamp.type": config})
    client.produce(topic, [b"0", b"1"], linger_ms=5)
    assert {message.timestamp_type for message in client.read(topic, 2)} == {expected}


@pytest.mark.capability("idempotent producer")
def test_idempotent_producer(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2)
    producer = client.producer(idempotent=True)
    for number in range(200):
        producer.send(topic, b"%d" % number, partition=number % 2)
        if number % 20 == 19:
            producer.flush()
    for partition in (0, 1):
        messages = client.read(topic, 100, partition=partition)
        assert [int(message.value or b"") for message in messages] == list(range(partition, 200, 2))
        assert [message.offset for message in messages] == list(range(100))


@pytest.mark.capability("large messages")
def test_just_under_max_message_bytes(client: ClientSession, topic: str) -> None:
    # The default limit of a batch is 1048588 bytes; a batch of one record adds less than 100.
    value = b"x" * (1_048_588 - 100)
    assert client.produce(topic, [value]) == [0]
    (message,) = client.read(topic, 1)
    assert message.value == value


@pytest.mark.capability("large messages")
def test_too_large_for_the_topic(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(**{"max.message.bytes": "2000"})
    producer = client.producer()
    producer.send(topic, b"x" * 2001, partition=0)
    with pytest.raises(model.ClientFailure) as failure:
        producer.flush()
    assert failure.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert client.produce(topic, [b"x" * 1800]) == [0]


@pytest.mark.capability("many partitions")
def test_many_partitions(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(100)
    producer = client.producer()
    for partition in range(100):
        producer.send(topic, b"%d" % partition, partition=partition)
    producer.flush()
    consumer = client.consumer()
    consumer.assign({(topic, partition): "beginning" for partition in range(100)})
    messages = consume(consumer, 100)
    assert sorted((message.partition, message.value, message.offset) for message in messages) == [
        (partition, b"%d" % partition, 0) for partition in range(100)
    ]


@pytest.mark.capability("keyed records keep to one partition")
def test_keys_choose_partitions(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(8)
    producer = client.producer()
    for number in range(64):
        producer.send(topic, b"%d" % number, key=b"key %d" % (number % 16))
    partitions: dict[int, set[int]] = {}
    for number, delivery in enumerate(producer.flush()):
        partitions.setdefault(number % 16, set()).add(delivery.partition)
    assert all(len(used) == 1 for used in partitions.values())
    assert len(set.union(*partitions.values())) > 1


@pytest.mark.capability("topic auto-creation")
def test_first_produce_creates_the_topic(client: ClientSession, fresh_name: Callable[[str], str]) -> None:
    topic = fresh_name("auto")
    assert client.produce(topic, [b"first"]) == [0]
    assert client.admin.describe_topic(topic).leaders.keys() >= {0}
    assert [message.value for message in client.read(topic, 1)] == [b"first"]
    client.admin.delete_topic(topic)


@pytest.mark.capability("invalid topic names are refused")
def test_invalid_topic_name(client: ClientSession) -> None:
    # Some clients check names themselves.
    with pytest.raises((model.ClientFailure, ValueError)):
        client.produce("no such/topic", [b"x"], delivery_timeout_ms=2_000)
    assert "no such/topic" not in client.admin.list_topics()
