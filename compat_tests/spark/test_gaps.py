"""Offsets that hold no record: what compaction has removed, the ends of transactions, what was aborted.

To Spark nothing is lost where the log has a gap, as long as the log's start is not behind it and a fetch inside the gap gives
what follows. The records stay at their offsets; a range that holds none of them ends without waiting for any.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from ottla.compat_tests.clients import model
from ottla.compat_tests.session import ClientSession, consume, eventually
from ottla.compat_tests.spark.kafka_format import KafkaFormat, Rows, fill, offsets, positions, span
from ottla.compat_tests.wire_client import Operator

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("gaps: compaction, transactions")]
COMMITTED = {"kafka.isolation.level": "read_committed"}

KEYS = 10
ROUNDS = 12
# The last round lies in the active segment, the one before it is the last that the cleaner sees.
COMPACTED = {*range((ROUNDS - 2) * KEYS, ROUNDS * KEYS)}


@pytest.fixture(scope="module")
def compacting(
    drivers: Callable[[str], model.Client], operator: Operator, fresh_name: Callable[[str], str]
) -> Iterator[str]:
    """A topic in which each round overwrites all keys, in a segment of its own; the cleaner comes by some time later."""
    topic = fresh_name("compacting")
    operator.create_topic(
        topic, 1, {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.0"}
    )
    stock = ClientSession("kafka-python", drivers("kafka-python"))
    producer = stock.producer(linger_ms=50)
    began = int(time.time() * 1000) - 3_600_000
    for number in range(ROUNDS):
        for key in range(KEYS):
            producer.send(topic, b"%d" % number, key=b"%d" % key, partition=0, timestamp_ms=began + 2000 * number)
        producer.flush()
    stock.close()
    yield topic
    operator.delete_topic(topic)


@pytest.fixture
def write(
    stock: ClientSession, operator: Operator, topic: str, fresh_name: Callable[[str], str]
) -> Callable[[int, bool], set[int]]:
    """Writes one transaction of so many records to the topic, and commits or aborts it; the records' offsets."""
    producer = stock.producer(transactional_id=fresh_name("txn"))

    def transaction(count: int, is_kept: bool) -> set[int]:
        producer.begin()
        for number in range(count):
            producer.send(topic, b"kept %d" % number if is_kept else b"aborted %d" % number, partition=0)
        written = {delivery.offset for delivery in producer.flush()}
        if is_kept:
            producer.commit()
        else:
            producer.abort()
        operator.wait_until_ended(topic)
        return written

    return transaction


def at(topic: str, wanted: set[int]) -> list[tuple[str, int, int]]:
    """Positions in partition 0, sorted."""
    return [(topic, 0, offset) for offset in sorted(wanted)]


@pytest.mark.usefixtures("compacting")
def test_ends_of_transactions(kafka: KafkaFormat, topic: str, write: Callable[[int, bool], set[int]]) -> None:
    kept: set[int] = set()
    aborted: set[int] = set()
    for number in range(6):
        (kept if number % 3 else aborted).update(write(5, bool(number % 3)))
    assert kept | aborted < set(range(36)), "a marker after each transaction"
    assert positions(kafka.read(subscribe=topic)) == at(topic, kept | aborted)
    assert positions(kafka.read(subscribe=topic, **COMMITTED)) == at(topic, kept)
    for wanted, isolation in ((kept | aborted, {}), (kept, COMMITTED)):
        rows = Rows()
        # Every other batch of four offsets begins or ends somewhere in a transaction, or holds none of its records.
        rows.run(kafka.read_stream(subscribe=topic, maxOffsetsPerTrigger="4", **isolation), kafka.new_checkpoint())
        assert rows.all() == at(topic, wanted)
        assert len(rows.batches) == 36 / 4


@pytest.mark.usefixtures("compacting")
def test_ranges_of_markers_only(kafka: KafkaFormat, topic: str, write: Callable[[int, bool], set[int]]) -> None:
    (kept,) = write(1, True)
    aborted = write(3, False)

    def between(start: int, end: int) -> list[tuple[str, int, int]]:
        bounds = {"startingOffsets": offsets({topic: {0: start}}), "endingOffsets": offsets({topic: {0: end}})}
        return positions(kafka.read(subscribe=topic, **bounds, **COMMITTED))

    assert between(kept + 1, kept + 2) == []  # the marker
    assert between(min(aborted), max(aborted) + 1) == []
    assert between(max(aborted), max(aborted) + 2) == []  # the last aborted record and its marker
    assert between(kept, max(aborted) + 2) == at(topic, {kept})


@pytest.mark.usefixtures("compacting")
def test_an_aborted_tail(
    kafka: KafkaFormat, stock: ClientSession, topic: str, write: Callable[[int, bool], set[int]]
) -> None:
    fill(stock, topic, 10)
    write(10, False)
    assert positions(kafka.read(subscribe=topic, **COMMITTED)) == span(topic, 10)
    rows, checkpoint = Rows(), kafka.new_checkpoint()
    rows.run(kafka.read_stream(subscribe=topic, **COMMITTED), checkpoint)
    assert rows.all() == span(topic, 10)
    later = write(5, True)
    rows.run(kafka.read_stream(subscribe=topic, **COMMITTED), checkpoint)
    assert rows.all() == at(topic, {*range(10), *later})


@pytest.mark.usefixtures("compacting")
def test_nothing_but_what_was_aborted(kafka: KafkaFormat, topic: str, write: Callable[[int, bool], set[int]]) -> None:
    write(20, False)
    assert positions(kafka.read(subscribe=topic, **COMMITTED)) == []
    assert positions(kafka.read(subscribe=topic)) == span(topic, 20)


@pytest.mark.usefixtures("compacting")
def test_an_open_transaction(
    kafka: KafkaFormat, stock: ClientSession, topic: str, fresh_name: Callable[[str], str]
) -> None:
    fill(stock, topic, 10)
    rows = Rows()
    query = rows.start(kafka.read_stream(subscribe=topic, **COMMITTED), kafka.new_checkpoint())
    try:
        rows.wait_for(query, span(topic, 10))
        producer = stock.producer(transactional_id=fresh_name("open"), transaction_timeout_ms=600_000)
        producer.begin()
        for _ in range(30):
            producer.send(topic, b"in a transaction", partition=0)
        producer.flush()
        fill(stock, topic, 5)  # of no transaction, and after the open one
        assert positions(kafka.read(subscribe=topic)) == span(topic, 45)
        assert positions(kafka.read(subscribe=topic, **COMMITTED)) == span(topic, 10)
        assert rows.all() == span(topic, 10)
        producer.commit()
        rows.wait_for(query, span(topic, 45))
        assert positions(kafka.read(subscribe=topic, **COMMITTED)) == span(topic, 45)
    finally:
        query.stop()


@pytest.mark.timeout(300)
def test_compaction(kafka: KafkaFormat, stock: ClientSession, compacting: str) -> None:
    def left() -> set[int]:
        consumer = stock.consumer()
        consumer.assign({(compacting, 0): "beginning"})
        found: set[int] = set()
        while max(found, default=0) < max(COMPACTED):
            found.update(message.offset for message in consume(consumer, 1))
        consumer.close()
        return found

    eventually(lambda: left() == COMPACTED, timeout_s=120)
    assert positions(kafka.read(subscribe=compacting)) == at(compacting, COMPACTED)
    in_the_gap = {"startingOffsets": offsets({compacting: {0: 15}})}
    assert positions(kafka.read(subscribe=compacting, **in_the_gap)) == at(compacting, COMPACTED)
    inside = {**in_the_gap, "endingOffsets": offsets({compacting: {0: 25}})}
    assert positions(kafka.read(subscribe=compacting, **inside)) == []
    rows = Rows()
    rows.run(kafka.read_stream(subscribe=compacting, maxOffsetsPerTrigger="40"), kafka.new_checkpoint())
    assert [len(rows.batches[number]) for number in sorted(rows.batches)] == [0, 0, 20]
    assert rows.all() == at(compacting, COMPACTED)
