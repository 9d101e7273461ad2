"""``assert_topic``: the records that it takes for the expected ones, and the differences that it prints."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import ANY

import pytest

import ottla
from ottla.base.errors import KafkaError
from ottla.compat_tests.wire_client import connect
from ottla.testing.expected_records import as_record, matched
from ottla.testing.record_differences import difference
from ottla.testing.records import KafkaRecord
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.Broker]:
    with ottla.Broker() as broker:
        yield broker


def produce(broker: ottla.Broker, topic: str, *records: Record, partition: int = 0) -> None:
    data = PartitionProduceData(index=partition, records=build_batch([*records]))
    with connect(broker.bootstrap_servers) as connection:
        topics = [TopicProduceData(name=topic, partition_data=[data])]
        answer = connection.call(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def records(*values: bytes | tuple[bytes, bytes] | None, partition: int = 0) -> list[KafkaRecord]:
    pairs = [each if isinstance(each, tuple) else (None, each) for each in values]
    return [KafkaRecord("t", partition, offset, 1000 + offset, *pair, []) for offset, pair in enumerate(pairs)]


def test_every_kind_of_expected_record(broker: ottla.Broker) -> None:
    broker.create_topic("kinds")
    stored = [
        Record(value=b"plain"),
        Record(value="größer".encode()),
        Record(key=b"k", value=None),
        Record(key=b"7", value=b'{"id": 7, "price": 0.30000000000000004, "tags": ["a"]}'),
        Record(value=b"[1, 2]"),
        Record(value=b"17"),
        Record(key=b"k", value=b"v", headers=[("trace", b"abc")]),
        Record(value=b"anything"),
    ]
    produce(broker, "kinds", *stored)
    broker.assert_topic(
        "kinds",
        [
            b"plain",
            "größer",
            None,
            ("7", {"id": 7, "price": pytest.approx(0.3), "tags": ["a"]}),
            [1, 2],
            17,
            ottla.ExpectedRecord(key=b"k", headers=[("trace", b"abc")], partition=0),
            ANY,
        ],
    )


def test_waits_for_records_and_only_as_long(broker: ottla.Broker) -> None:
    broker.create_topic("late")
    broker.assert_topic("late", [])
    produce(broker, "late", Record(value=b"one"))
    with pytest.raises(AssertionError) as failed:
        broker.assert_topic("late", ["one", "two"], timeout=0.05)
    assert str(failed.value).splitlines() == [
        "late has 1 committed record, not 2, after 0.05 s",
        "late has 1 record, not the 2 expected in this order:",
        "  1 record as expected",
        "- value 'two'",
    ]


def test_records_that_are_too_many(broker: ottla.Broker) -> None:
    broker.create_topic("more")
    produce(broker, "more", Record(value=b"one"), Record(key=b"k", value=b"two"))
    with pytest.raises(AssertionError, match=r"\+ value b'two', key b'k' \(partition 0, offset 1\)"):
        broker.assert_topic("more", ["one"])


def test_a_topic_that_is_not_there(broker: ottla.Broker) -> None:
    with pytest.raises(KafkaError, match="there is no topic nowhere"):
        broker.assert_topic("nowhere", [])


def test_order_counts_in_one_partition_only(broker: ottla.Broker) -> None:
    broker.create_topic("wide", partitions=2)
    for partition, value in ((1, b"one"), (0, b"two")):
        produce(broker, "wide", Record(value=value), partition=partition)
    broker.assert_topic("wide", ["one", "two"])
    with pytest.raises(AssertionError, match="expected in this order"):
        broker.assert_topic("wide", ["one", "two"], in_order=True)
    assert difference("t", records(b"a", b"b"), ["b", "a"], None)
    assert not difference("t", records(b"a", b"b"), ["b", "a"], False)


def test_a_cluster_has_it_too() -> None:
    with ottla.Cluster(1) as cluster:
        cluster.create_topic("t")
        cluster.assert_topic("t", [])
        with pytest.raises(AssertionError, match="t has 0 records, not the 1 expected"):
            cluster.assert_topic("t", ["one"], timeout=0.01)


def told(found: Sequence[KafkaRecord], expected: Sequence[Any]) -> list[str]:
    return difference("t", found, expected, None).splitlines()[1:]


def test_the_difference_says_where_json_differs() -> None:
    found = records(b'{"id": 7, "items": [{"n": 1}, {"n": 2}], "new": true}')
    assert told(found, [{"id": 7, "items": [{"n": 1}, {"n": 3}], "old": None}]) == [
        "- value {'id': 7, 'items': [{'n': 1}, {'n': 3}], 'old': None}",
        '+ value b\'{"id": 7, "items": [{"n": 1}, {"n": 2}], "new": true}\' (partition 0, offset 0)',
        "?   value.items[1].n: 3 expected, 2 found",
        "?   value.old: None expected, missing",
        "?   value.new: True found, not expected",
    ]
    assert told(records(b"no"), [{}])[-1] == "?   value: not JSON"


def test_the_difference_says_from_which_byte_texts_differ() -> None:
    found = records(b"the quick brown fox jumps over the lazy dog" * 100)
    expected = "the quick brown fox jumps under the lazy dog" * 100
    assert told(found, [expected])[-1] == (
        "?   value from byte 26: b'fox jumps under the lazy dogthe quick br' expected,"
        " b'fox jumps over the lazy dogthe quick bro' found"
    )


def test_the_difference_aligns_what_is_equal() -> None:
    found = records(b"a", b"b", b"x", b"c", b"d", b"f")
    assert told(found, ["a", "b", "c", "d", "e", "f"]) == [
        "  2 records as expected",
        "+ value b'x' (partition 0, offset 2)",
        "  2 records as expected",
        "- value 'e'",
        "  1 record as expected",
    ]


def test_the_difference_says_which_field_is_another() -> None:
    assert told(records((b"k", b"v")), [ottla.ExpectedRecord(key="k", value="v", partition=3)]) == [
        "- value 'v', key 'k', partition 3",
        "+ value b'v', key b'k' (partition 0, offset 0)",
        "?   partition: 3 expected, 0 found",
    ]


def test_long_differences_are_cut() -> None:
    lines = told(records(*[b"%d" % number for number in range(2_000)]), [f"x{number}" for number in range(2_000)])
    assert len(lines) == 41
    assert lines[-1] == "… 5960 lines more"
    assert all(len(line) < 400 for line in told(records(b"x" * 100_000), ["y" * 100_000]))


def test_what_is_no_expected_record() -> None:
    with pytest.raises(TypeError, match="a pair of key and value"):
        as_record((b"k", b"v", 1))


def test_any_order_finds_a_matching_wherever_there_is_one() -> None:
    """Against all permutations: records that several expected ones could be, given to those that need them."""
    chosen = random.Random(1)

    def text() -> bytes:
        return b"%d" % chosen.randrange(3)

    for _ in range(100):
        found = records(*((text(), text()) for _ in range(chosen.randrange(5))))
        fields = [chosen.choice(("key", "value")) for _ in range(chosen.randrange(5))]
        expected = [ottla.ExpectedRecord(**{field: text()}) for field in fields]
        nothing = ottla.ExpectedRecord(partition=-1)
        most = max(
            sum(
                None not in step
                for each, record in zip(order, found, strict=False)
                for step in matched([each], [record])
            )
            for order in itertools.permutations([*expected, *[nothing] * max(len(found) - len(expected), 0)])
        )
        steps = matched(expected, found)
        assert sum(None not in step for step in steps) == most, (found, expected)
        assert sorted(step.found.offset for step in steps if step.found) == [*range(len(found))]
        assert sum(step.expected is not None for step in steps) == len(expected)


def test_any_order_moves_a_record_to_another_expected_one() -> None:
    found = records((b"x", b"v"), (b"k", b"v"), (b"k", b"y"))
    value, key = ottla.ExpectedRecord("v"), ottla.ExpectedRecord(key="k")
    assert not difference("t", found, [value, key, value], False)
