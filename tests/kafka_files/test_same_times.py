"""Apache Kafka and Ottla tell the same of records' times, whatever the records and the headers of their batches say.

Random batches go to both: with times that are missing, below zero, past and to come, with a base timestamp that is not
the first record's, and with a largest timestamp that is not that of the records. Compared are the answers of produce, the
stored batches, the segments (which roll by time), ListOffsets by time, and where retention by time leaves the start of
the log; after a crash once more, which has the time indexes made again.

Left out, because Ottla believes it (``ottla.log.validation``): a largest timestamp of several records that is wrong, but
neither below the base timestamp nor too far in the future; except for topics that have every record's time looked at.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.brokers import BrokerProcess, KafkaProcess, OttlaProcess
from ottla.compat_tests.raw.requests import fetch, list_offset, produce, produce_request
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator, connect
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.records import Record, RecordBatch, build_batch, iter_batches

pytestmark = pytest.mark.slow

SEED = 20_261
HOUR_MS = 3_600_000
NOW_MS = int(time.time()) * 1000
EARLIEST, MAX_TIMESTAMP = -2, -3
PROPERTIES = {"log.retention.check.interval.ms": "200"}
KAFKA_PROPERTIES = {"log.initial.task.delay.ms": "100"}
CONFIGS = {"segment.ms": str(3 * HOUR_MS), "index.interval.bytes": "200", "retention.ms": "-1"}
SENTINEL = "sentinel"
"""A topic that shows that retention has been through all the logs."""
BATCHES = 40
TOO_LATE_MS = NOW_MS + 3 * HOUR_MS
"""Behind what message.timestamp.after.max.ms admits."""
TIMES = [
    *(NOW_MS - hours * HOUR_MS - HOUR_MS // 2 + n for hours in reversed(range(40)) for n in range(3)),
    *(NOW_MS + HOUR_MS // 2 + n for n in range(3)),
    *(-5, -1, 0, 1),
]
"""None is near a whole hour before now, where retention decides."""
BASE, ATTRIBUTES, CRC = (27, ">q"), (21, ">h"), (17, ">I")


@dataclass(frozen=True)
class Case:
    """What one topic is sent. ``retention_ms`` is set once everything is there."""

    configs: Mapping[str, str]
    batches: Sequence[bytes]
    retention_ms: int


@dataclass
class Seen:
    """What one broker answered and wrote, by topic."""

    produced: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    stored: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    segments: dict[str, list[str]] = field(default_factory=dict)
    offsets: dict[str, dict[str, list[tuple[int, int, int]]]] = field(default_factory=dict)
    """By what has happened before: the answers to QUERIES by topic."""


def with_base(times: Sequence[int], base: int, **header: Any) -> bytearray:
    """A batch with a base timestamp of its own. A delete horizon is laid out like one; only a bit tells the two apart."""
    records = [Record(timestamp=each, key=b"k", value=b"v" * 50) for each in times]
    batch = build_batch(records, delete_horizon_ms=base, **header)
    attributes = RecordBatch(batch).attributes & ~0x40
    struct.pack_into(ATTRIBUTES[1], batch, ATTRIBUTES[0], attributes)
    struct.pack_into(CRC[1], batch, CRC[0], RecordBatch(batch).compute_crc())
    return batch


def random_batch(rng: random.Random, number: int, *, any_header: bool) -> bytes:
    """A case's batch number 0 to BATCHES - 1; most follow the clock, so that segments roll."""
    around = TIMES[number * 3 : number * 3 + 12]
    pool = rng.choice([around] * 4 + [TIMES, [-1], [-1, *rng.sample(TIMES, 2)]])
    times = [rng.choice(pool) for _ in range(rng.choice([1, 1, 2, 3, 7]))]
    if rng.random() < 0.03:
        times.append(TOO_LATE_MS)
    base = rng.choice([times[0]] * 4 + [-1, 0, rng.choice(TIMES)])
    largest = max(times)
    claimed = rng.choice([largest] * 3 + [-1, 0, base - 1, TOO_LATE_MS, rng.choice(TIMES)])
    if not any_header and len(times) > 1 and 0 < base <= claimed != largest and claimed != TOO_LATE_MS:
        claimed = largest
    return bytes(with_base(times, base, max_timestamp=claimed, compression=rng.randrange(5)))


def random_cases() -> dict[str, Case]:
    rng = random.Random(SEED)
    cases = {}
    for case in range(16):
        every_record = case % 4 == 3
        configs = CONFIGS | ({"message.timestamp.before.max.ms": str(40 * HOUR_MS)} if every_record else {})
        batches = [random_batch(rng, number, any_header=every_record) for number in range(BATCHES)]
        cases[f"case-{case}"] = Case(configs, batches, rng.choice([6, 12, 24, 36]) * HOUR_MS)
    # What librdkafka sends for records without a time, and nothing else.
    untimed = [bytes(with_base([-1] * 5, -1, max_timestamp=0))] * 3
    cases["untimed"] = Case(CONFIGS, untimed, HOUR_MS)
    return cases


CASES = random_cases()
QUERIES = [EARLIEST, MAX_TIMESTAMP, *sorted({each + n for each in TIMES if each >= 0 for n in (0, 1)}), TOO_LATE_MS]


def answers(connection: Connection) -> dict[str, list[tuple[int, int, int]]]:
    """(error, offset, timestamp) for each of QUERIES."""
    found: dict[str, list[tuple[int, int, int]]] = {topic: [] for topic in CASES}
    for query in QUERIES:
        wanted = [ListOffsetsPartition(partition_index=0, timestamp=query)]
        topics = [ListOffsetsTopic(name=topic, partitions=wanted) for topic in CASES]
        for topic in connection.call(ListOffsetsRequest(replica_id=-1, topics=topics), 7).topics:
            (part,) = topic.partitions
            found[topic.name].append((part.error_code, part.offset, part.timestamp))
    return found


def stored_batches(connection: Connection, topic: str) -> list[tuple[Any, ...]]:
    batches = list(iter_batches(fetch(connection, topic, {0: 0})[0].records))
    for batch in batches:
        batch.check_crc()
    return [
        (b.base_offset, b.base_timestamp, b.max_timestamp, b.timestamp_type, [r.timestamp for r in b.records()])
        for b in batches
    ]


def set_retention(connection: Connection) -> None:
    resources = [
        AlterConfigsResource(
            resource_type=2,
            resource_name=topic,
            configs=[AlterableConfig(name="retention.ms", config_operation=0, value=str(case.retention_ms))],
        )
        for topic, case in CASES.items()
    ]
    answered = connection.call(IncrementalAlterConfigsRequest(resources=resources), 1).responses
    assert {each.error_code for each in answered} == {ErrorCode.NONE}


def wait_for_retention(connection: Connection) -> None:
    """Return when every log has been looked at. The first record may go in a round that has been under way before."""
    for _ in range(2):
        answer = produce(connection, SENTINEL, build_batch([Record(timestamp=1, value=b"old")]))
        assert answer.error_code == ErrorCode.NONE
        offset = answer.base_offset
        eventually(lambda offset=offset: list_offset(connection, SENTINEL, EARLIEST, 7).offset > offset)


def observe(process: BrokerProcess) -> Seen:
    seen = Seen()
    process.start()
    operator = Operator(process.bootstrap)
    for topic, case in CASES.items():
        operator.create_topic(topic, 1, case.configs)
    operator.create_topic(SENTINEL, 1, {"retention.ms": str(HOUR_MS)})
    with connect(process.bootstrap) as connection:
        for topic, case in CASES.items():
            seen.produced[topic] = []
            for batch in case.batches:
                response = connection.call(produce_request(topic, {0: batch}), 9)
                (answer,) = response.responses[0].partition_responses
                seen.produced[topic].append((answer.error_code, answer.base_offset))
            seen.stored[topic] = stored_batches(connection, topic)
            folder = process.data_folders[0] / f"{topic}-0"
            seen.segments[topic] = sorted(path.name for path in folder.glob("*.log"))
        seen.offsets["written"] = answers(connection)
    process.kill()
    process.start()
    for topic in (*CASES, SENTINEL):
        operator.wait_until_ready(topic, 1)
    with connect(process.bootstrap) as connection:
        seen.offsets["recovered"] = answers(connection)
        set_retention(connection)
        wait_for_retention(connection)
        seen.offsets["retained"] = answers(connection)
    return seen


def seen_by(kind: type[BrokerProcess], folder: Path, properties: Mapping[str, str]) -> Iterator[Seen]:
    process = kind(folder, properties=properties)
    try:
        yield observe(process)
    finally:
        process.close()


@pytest.fixture(scope="module")
def kafka(fetch_jars: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    fetch_jars("kafka", "kafka-tools-4.3.1")
    yield from seen_by(KafkaProcess, tmp_path_factory.mktemp("kafka"), PROPERTIES | KAFKA_PROPERTIES)


@pytest.fixture(scope="module")
def ottla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    yield from seen_by(OttlaProcess, tmp_path_factory.mktemp("ottla"), PROPERTIES)


@pytest.mark.parametrize("topic", CASES)
def test_produce(kafka: Seen, ottla: Seen, topic: str) -> None:
    assert ottla.produced[topic] == kafka.produced[topic]
    assert ottla.stored[topic] == kafka.stored[topic]


@pytest.mark.parametrize("topic", CASES)
def test_segments_roll_by_time(kafka: Seen, ottla: Seen, topic: str) -> None:
    assert ottla.segments[topic] == kafka.segments[topic]


@pytest.mark.parametrize("topic", CASES)
@pytest.mark.parametrize("when", ["written", "recovered", "retained"])
def test_offsets(kafka: Seen, ottla: Seen, topic: str, when: str) -> None:
    ours, theirs = (dict(zip(QUERIES, seen.offsets[when][topic], strict=True)) for seen in (ottla, kafka))
    assert {query: answer for query, answer in ours.items() if answer != theirs[query]} == {}, "queries that differ"


def test_something_happened(kafka: Seen) -> None:
    """The cases are worth comparing: something was refused, rolled, deleted, and kept for want of a time."""
    codes = {code for answers in kafka.produced.values() for code, _ in answers}
    assert codes == {ErrorCode.NONE, ErrorCode.INVALID_TIMESTAMP}
    assert sum(len(names) for names in kafka.segments.values()) > 3 * len(CASES)
    starts = {topic: found[0][1] for topic, found in kafka.offsets["retained"].items()}
    assert starts["untimed"] == 0 and any(starts.values())
