"""Record batches against Kafka's own classes: theirs are read here with the same values, ours are read there."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.wire.codec import encode_bytes
from ottla.wire.compression import LZ4, NONE, ZSTD
from ottla.wire.control_records import decode_control_key, decode_end_marker, decode_quorum_record
from ottla.wire.records import CREATE_TIME, Record, RecordBatch, build_batch, iter_batches
from ottla.wire.schema import Struct, uuid_to_text

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[1] / "java" / "RecordBatches.java"
SEED = 20261121
SAMPLES = 400
TEXTS = ("", "a", "Grüße", "ключ\0", "日本語", "😀 emoji", '"\\\n\t')

Run = Callable[[list[str], str], list[str]]


@pytest.fixture(scope="module")
def kafka(releases: Callable[[str], Any]) -> Run:
    """``kafka(arguments, input)``: the lines that Kafka's side prints."""
    folder = releases("kafka-clients-4.4.0").folder

    def run(arguments: list[str], text: str) -> list[str]:
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", f"{folder}/*"]
        done = subprocess.run(
            [*command, str(PROGRAM), *arguments], input=text.encode(), capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().splitlines()

    return run


@pytest.fixture(scope="module")
def samples(kafka: Run) -> list[tuple[bytes, list[dict[str, Any]]]]:
    """Kafka's batches, and what Kafka reads in them."""
    lines = [line.split("\t") for line in kafka([str(SEED), str(SAMPLES)], "")]
    assert len(lines) == SAMPLES
    return [(bytes.fromhex(data), json.loads(value)) for data, value in lines]


def as_hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def as_json(value: Any) -> Any:
    """A message as Kafka's JSON converters show it."""
    if isinstance(value, Struct):
        return {camel_case(spec.name): as_json(getattr(value, spec.name)) for spec in value.fields}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    return uuid_to_text(value) if isinstance(value, bytes) else value


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def control(record: Record) -> dict[str, Any]:
    record_type = decode_control_key(record.key)
    assert record_type is not None
    marker = decode_end_marker(record)
    if marker is not None:
        return {"type": record_type.name, "value": marker.coordinator_epoch}
    message = decode_quorum_record(record)
    assert message is not None
    assert encode_bytes(message, 0) == record.value
    shown = as_json(message)
    if record_type.name == "LEADER_CHANGE":
        for voter in (*shown["voters"], *shown["grantingVoters"]):
            del voter["voterDirectoryId"]  # not in version 0
    return {"type": record_type.name, "value": shown}


def description(batch: RecordBatch, records: list[Record]) -> dict[str, Any]:
    names = (
        "base_offset last_offset next_offset size partition_leader_epoch magic crc compression timestamp_type "
        "is_transactional is_control delete_horizon_ms max_timestamp producer_id producer_epoch base_sequence "
        "last_sequence record_count"
    )
    shown = {name: getattr(batch, name) for name in names.split()}
    shown["records"] = [
        {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": as_hex(record.key),
            "value": as_hex(record.value),
            "headers": [[name.encode().hex(), as_hex(value)] for name, value in record.headers],
            "control": control(record) if batch.is_control else None,
        }
        for record in records
    ]
    return shown


def test_kafkas_batches_are_read_with_kafkas_values(samples: list[tuple[bytes, list[dict[str, Any]]]]) -> None:
    for data, value in samples:
        batches = list(iter_batches(data))
        for batch in batches:
            batch.check_crc()
        assert [description(batch, list(batch.records())) for batch in batches] == value


def test_the_samples_hold_what_they_are_to_test(samples: list[tuple[bytes, list[dict[str, Any]]]]) -> None:
    batches = [batch for _, value in samples for batch in value]
    assert {(batch["compression"], batch["timestamp_type"]) for batch in batches} == {
        (codec, kind) for codec in range(5) for kind in range(2)
    }
    assert {record["control"]["type"] for batch in batches if batch["is_control"] for record in batch["records"]} == {
        *("ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS")
    }
    assert any(batch["record_count"] == 0 for batch in batches)
    assert any(batch["delete_horizon_ms"] is not None for batch in batches)
    assert any(batch["is_transactional"] and not batch["is_control"] for batch in batches)
    assert any(0 <= batch["last_sequence"] < batch["base_sequence"] for batch in batches)


def test_a_batch_built_from_kafkas_records_has_kafkas_bytes(samples: list[tuple[bytes, list[dict[str, Any]]]]) -> None:
    """Where the bytes are determined: not compressed, and with the records' own timestamps."""
    compared = 0
    for data, _ in samples:
        for batch in iter_batches(data):
            if batch.compression != NONE or batch.timestamp_type != CREATE_TIME or batch.record_count == 0:
                continue
            compared += 1
            assert batch.view == build_batch(
                batch.records(),
                base_offset=batch.base_offset,
                last_offset=batch.last_offset,
                leader_epoch=batch.partition_leader_epoch,
                delete_horizon_ms=batch.delete_horizon_ms,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
                is_transactional=batch.is_transactional,
                is_control=batch.is_control,
            )
    assert compared > SAMPLES / 8


def random_blob(source: random.Random) -> bytes | None:
    size = source.choice((0, 1, 63, 64, 100, 8191, 8192, 70_000, 3, 10, 20))
    return source.choice((None, bytes(size), source.randbytes(size)))


def random_batch(source: random.Random) -> tuple[bytearray, list[Record]]:
    """A batch, and the records that Kafka is to see in it."""
    base_offset = offset = source.choice((0, 7, source.randrange(2**50)))
    start = source.choice((0, 1_732_000_000_000, 2**40))
    records = []
    for _ in range(source.randrange(12)):
        headers = [(source.choice(TEXTS), random_blob(source)) for _ in range(source.choice((0, 0, 1, 3)))]
        timestamp = source.choice((start, start + source.randrange(100), source.randrange(2**45)))
        records.append(Record(offset, timestamp, random_blob(source), random_blob(source), headers))
        offset += source.choice((1, 1, 70, source.randrange(1, 2**20)))
    compression = source.randrange(5)
    append_time = source.choice((None, 1_732_000_000_000))
    levels = {LZ4: (None, 1, 9, 17), ZSTD: (None, -5, 1, 19)}.get(compression, (None, 1, 9))
    batch = build_batch(
        records,
        base_offset=base_offset,
        last_offset=max(offset - 1, base_offset) + source.choice((0, 5)),
        leader_epoch=source.choice((-1, 0, 2**31 - 1)),
        compression=compression,
        compression_level=source.choice(levels),
        timestamp_type=0 if append_time is None else 1,
        max_timestamp=append_time,
        delete_horizon_ms=source.choice((None, None, 1_731_000_000_000)),
        producer_id=source.choice((-1, 2**63 - 1)),
        producer_epoch=source.choice((-1, 2**15 - 1)),
        base_sequence=source.choice((-1, 0, 2**31 - 1)),
        is_transactional=source.choice((False, True)),
    )
    if append_time is not None:
        for record in records:
            record.timestamp = append_time
    return batch, records


def test_kafka_reads_the_batches_built_here(kafka: Run) -> None:
    source = random.Random(SEED)
    inputs, expected = [], []
    for _ in range(SAMPLES):
        batches = [random_batch(source) for _ in range(source.choice((1, 1, 2)))]
        inputs.append("".join(data.hex() for data, _ in batches))
        expected.append([description(RecordBatch(data), records) for data, records in batches])
    answers = kafka([], "\n".join(inputs))
    assert len(answers) == SAMPLES
    for answer, value in zip(answers, expected, strict=True):
        assert not answer.startswith("error"), answer
        assert json.loads(answer) == value


def test_kafka_refuses_what_is_refused_here(kafka: Run) -> None:
    """So that the reader on Kafka's side is known to look."""
    data = build_batch([Record(value=b"value")])
    data[-2] ^= 1
    assert [answer[:6] for answer in kafka([], f"{data.hex()}\n{bytes(100).hex()}\n{data[:-1].hex()}")] == [
        "error:"
    ] * 3
