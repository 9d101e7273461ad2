"""A compacted topic: the last record of each key stays at its offset, tombstones go when their time has ended.

Records are produced once, with timestamps that make the broker begin a new segment every now and then, and the suite waits
until the broker's cleaner has been there twice: one cleaning gives tombstones their time, a later one drops them. What is
left follows from the rules alone, so every broker must come to it. Consumers then read it, gaps and all.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.raw.requests import fetch, produce
from ottla.compat_tests.session import ClientSession, consume, eventually
from ottla.compat_tests.wire_client import Connection, Operator, connect
from ottla.wire.records import Record, build_batch, iter_complete_batches

CONFIGS = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.0",
    "message.timestamp.type": "CreateTime",
}
# The cleaner looks every 15 s by default, and after the first look the tombstones' time must pass.
TIMEOUT_S = 120.0
START_MS = int(time.time() * 1000) - 3_600_000

# Keys and values of each batch, and whether it begins a segment of its own; the last one is in the active segment.
BATCHES: list[tuple[bool, list[tuple[str, str | None]]]] = [
    (True, [("a", "a0"), ("b", "b1"), ("a", "a2")]),
    (False, [("c", "c3"), ("d", "d4")]),
    (True, [("gone", "gone5"), ("b", "b6")]),
    (True, [("gone", None), ("e", "e8")]),
    (False, [("a", "a9")]),
    (True, [("f", "f10"), ("back", None), ("f", "f12")]),
    (True, [("back", "back13"), ("d", None)]),
    (True, [("e", "e15"), ("e", "e16")]),
    (True, [("", "empty key 17"), ("g", "")]),
    (True, [("active", "19")]),
]
LATER: list[tuple[str, str | None]] = [("active", "20"), ("active", "21")]
Pairs = list[tuple[int, str, str | None]]


@dataclass(frozen=True)
class Compacted:
    """A topic after its second cleaning, and the (offset, key, value)s in it."""

    topic: str
    left: Pairs


def written() -> Pairs:
    """Everything that the first part produces, with its offsets."""
    pairs = [pair for _, batch in BATCHES for pair in batch]
    return [(offset, *pair) for offset, pair in enumerate(pairs)]


def compacted_to(pairs: Pairs, end: int, *, tombstones: bool) -> Pairs:
    """What a cleaning of the offsets below ``end`` leaves of ``pairs``."""
    last = {key: offset for offset, key, _ in pairs if offset < end}
    return [
        (offset, key, value)
        for offset, key, value in pairs
        if offset >= end or (offset == last[key] and (tombstones or value is not None))
    ]


def read_all(connection: Connection, topic: str) -> Pairs:
    """Everything in the partition, batch by batch."""
    pairs: Pairs = []
    offset = 0
    while True:
        part = fetch(connection, topic, {0: offset})[0]
        assert part.error_code == 0
        batches = list(iter_complete_batches(bytes(part.records or b"")))
        if not batches:
            return pairs
        for batch in batches:
            batch.check_crc()
            for record in batch.records():
                assert record.key is not None
                pairs.append(
                    (record.offset, record.key.decode(), None if record.value is None else record.value.decode())
                )
        offset = batches[-1].next_offset


def records(pairs: list[tuple[str, str | None]], timestamp: int) -> list[Record]:
    return [
        Record(key=key.encode(), value=None if value is None else value.encode(), timestamp=timestamp)
        for key, value in pairs
    ]


def fill(connection: Connection, topic: str) -> int:
    """Produce BATCHES, each with another codec; the time of the last one."""
    timestamp = START_MS
    for number, (begins_segment, pairs) in enumerate(BATCHES):
        timestamp += 2000 if begins_segment else 1
        assert (
            produce(connection, topic, build_batch(records(pairs, timestamp), compression=number % 5)).error_code == 0
        )
    return timestamp


@pytest.fixture(scope="session")
def both_compacted(operator: Operator, fresh_name: Callable[[str], str]) -> Iterator[dict[str, Compacted]]:
    """A topic that keeps tombstones for a day, and one that hardly keeps them, once the broker has cleaned both twice."""
    everything = written()
    active = everything[-1][0]
    values = compacted_to(everything, active, tombstones=False)
    topics = {"long": fresh_name("keeps-tombstones"), "short": fresh_name("drops-tombstones")}
    result = {}
    with contextlib.ExitStack() as stack:
        leaders = {}
        for kind, topic in topics.items():
            operator.create_topic(topic, 1, CONFIGS | {"delete.retention.ms": "86400000" if kind == "long" else "0"})
            leaders[topic] = stack.enter_context(connect(operator.leader(topic)))
            timestamp = fill(leaders[topic], topic)
        for topic, leader in leaders.items():
            eventually(partial(has_values, leader, topic, values), TIMEOUT_S)
        for number, pair in enumerate(LATER):
            timestamp += 2000
            everything.append((active + 1 + number, *pair))
            for topic, leader in leaders.items():
                produce(leader, topic, build_batch(records([pair], timestamp)))
        for kind, topic in topics.items():
            left = compacted_to(everything, everything[-1][0], tombstones=kind == "long")
            eventually(partial(has_become, leaders[topic], topic, left), TIMEOUT_S)
            result[kind] = Compacted(topic, left)
    yield result
    for topic in topics.values():
        operator.delete_topic(topic)


def has_values(connection: Connection, topic: str, values: Pairs) -> bool:
    """Whether the topic holds these, whatever tombstones are among them."""
    return [pair for pair in read_all(connection, topic) if pair[2] is not None] == values


def has_become(connection: Connection, topic: str, left: Pairs) -> bool:
    return read_all(connection, topic) == left


@pytest.fixture(params=["long", "short"])
def compacted(request: pytest.FixtureRequest, both_compacted: dict[str, Compacted]) -> Compacted:
    """One of the two topics."""
    return both_compacted[request.param]


@pytest.mark.timeout(300)
@pytest.mark.capability("compaction")
def test_what_is_left(client: ClientSession, compacted: Compacted) -> None:
    messages = client.read(compacted.topic, len(compacted.left))
    found = [(message.offset, (message.key or b"").decode(), message.value) for message in messages]
    assert found == [
        (offset, key, None if value is None else CLIENTS[client.name].sees(value.encode()))
        for offset, key, value in compacted.left
    ]


@pytest.mark.timeout(300)
@pytest.mark.capability("compaction")
def test_from_an_offset_that_is_gone(client: ClientSession, compacted: Compacted) -> None:
    gone = next(offset for offset in range(1, 20) if offset not in {left[0] for left in compacted.left})
    consumer = client.consumer()
    consumer.assign({(compacted.topic, 0): gone})
    following = [left[0] for left in compacted.left if left[0] > gone]
    assert [message.offset for message in consume(consumer, len(following))] == following


@pytest.mark.capability("compaction")
def test_record_without_a_key(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(**{"cleanup.policy": "compact"})
    producer = client.producer()
    producer.send(topic, b"no key", partition=0)
    with pytest.raises(model.ClientFailure) as failure:
        producer.flush()
    assert failure.value.code in (ErrorCode.INVALID_RECORD, None), "None: a client that does not know the code"
