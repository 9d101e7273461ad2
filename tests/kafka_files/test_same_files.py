"""The same requests leave the same files, names and bytes, whether Apache Kafka was asked or Ottla.

What may differ is masked: the time at which a broker wrote an end marker, and the leader epoch, which Apache Kafka raises
twice in a restart. A compaction's outcome is compared record by record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ottla.log.checkpoints import (
    read_leader_epochs,
    read_meta_properties,
    read_offsets,
    read_topic_id,
)
from ottla.log.disk import OsDisk
from ottla.log.producer_snapshot import decode_snapshot
from ottla.wire.records import iter_batches
from ottla.wire.schema import uuid_to_text

pytestmark = pytest.mark.slow

DISK = OsDisk()
PARTITIONS = ("plain", "trimmed", "transactions")
EPOCH = slice(12, 16)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def masked_batches(data: bytes) -> list[bytes]:
    """The batches without leader epochs and, in end markers, without CRCs and times."""
    masked = []
    for batch in iter_batches(data):
        copy = bytearray(batch.view)
        copy[EPOCH] = bytes(4)
        if batch.is_control:
            copy[17:21] = bytes(4)
            copy[27:43] = bytes(16)
        masked.append(bytes(copy))
    return masked


def masked_snapshot(data: bytes, markers: Iterable[int]) -> list[tuple[object, ...]]:
    """The producers in a snapshot, without the times of end markers."""
    found = []
    for state in decode_snapshot(data):
        is_marked = state.producer_id in markers
        batches = [(b.first_sequence, b.last_sequence, b.first_offset, b.last_offset) for b in state.batches]
        timestamp = None if is_marked else state.last_timestamp
        found.append(
            (
                state.producer_id,
                state.producer_epoch,
                state.coordinator_epoch,
                state.current_txn_first_offset,
                timestamp,
                batches,
            )
        )
    return sorted(found, key=str)


@pytest.mark.parametrize("topic", PARTITIONS)
def test_names(by_kafka, by_ottla, topic):
    """Segments, what is left of deleted ones, producer snapshots and the two small files."""
    theirs, ours = names(by_kafka.folder(topic)), names(by_ottla.folder(topic))
    # A start makes a snapshot of where the log ended, and how many of them are left is chance.
    passing = {name for name in theirs ^ ours if name.endswith((".snapshot", ".snapshot.deleted"))}
    assert theirs - passing == ours - passing
    assert len([name for name in ours if name.endswith(".log")]) > 3


@pytest.mark.parametrize("topic", PARTITIONS)
def test_bytes(by_kafka, by_ottla, topic):
    compared = 0
    for path in sorted(by_ottla.folder(topic).iterdir()):
        other = by_kafka.folder(topic) / path.name
        if path.suffix in (".index", ".timeindex", ".txnindex"):
            assert path.read_bytes() == other.read_bytes(), path.name
        elif path.suffix == ".log":
            assert masked_batches(path.read_bytes()) == masked_batches(other.read_bytes())
        elif path.suffix == ".snapshot" and other.exists():
            markers = range(7000)
            assert masked_snapshot(path.read_bytes(), markers) == masked_snapshot(other.read_bytes(), markers)
        else:
            continue
        compared += 1
    assert compared > 12


def test_snapshot_bytes(by_kafka, by_ottla):
    """Without transactions there is nothing to mask."""
    folder = by_ottla.folder("plain")
    both = [path for path in folder.glob("*.snapshot") if (by_kafka.folder("plain") / path.name).exists()]
    assert len(both) > 5
    for path in both:
        assert path.read_bytes() == (by_kafka.folder("plain") / path.name).read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        "cleaner-offset-checkpoint",
    ],
)
def test_offset_checkpoints(by_kafka, by_ottla, name):
    """The same offsets of the same partitions, in the same form; the order of the lines is a hash table's."""
    topics = ("plain", "appended", "trimmed", "transactions", "stock", "compacted")
    theirs, ours = (
        {key: offset for key, offset in read_offsets(DISK, str(filled.data / name)).items() if key[0] in topics}
        for filled in (by_kafka, by_ottla)
    )
    assert theirs == ours
    for filled in (by_kafka, by_ottla):
        entries = read_offsets(DISK, str(filled.data / name))
        lines = "".join(f"{topic} {partition} {offset}\n" for (topic, partition), offset in entries.items())
        assert (filled.data / name).read_text() == f"0\n{len(entries)}\n{lines}"


def test_leader_epochs(by_kafka, by_ottla):
    for topic in ("plain", "trimmed", "transactions", "stock"):
        both = []
        for filled in (by_kafka, by_ottla):
            path = filled.folder(topic) / "leader-epoch-checkpoint"
            entries = read_leader_epochs(DISK, str(path))
            lines = "".join(f"{epoch} {offset}\n" for epoch, offset in entries)
            assert path.read_text() == f"0\n{len(entries)}\n{lines}"
            both.append([offset for _, offset in entries])
        assert both[0] == both[1], "epochs begin at the same offsets"


def test_partition_metadata(by_kafka, by_ottla):
    for filled in (by_kafka, by_ottla):
        path = filled.folder("plain") / "partition.metadata"
        topic_id = read_topic_id(DISK, str(path))
        assert topic_id is not None
        assert path.read_text() == f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"


def test_clean_shutdown(by_kafka, by_ottla):
    """The mark of a broker that has a controller quorum names its epoch."""
    theirs, ours = ((filled.data / ".kafka_cleanshutdown").read_text() for filled in (by_kafka, by_ottla))
    for mark in (theirs, ours):
        assert re.fullmatch(r'\{"version":0,"brokerEpoch":\d+\}', mark)


def test_meta_properties(by_kafka, by_ottla):
    """Version 1 is a KRaft node's, version 0 that of a broker in ZooKeeper's mode."""
    for filled in (by_kafka, by_ottla):
        meta = read_meta_properties(DISK, str(filled.data))
        assert meta is not None and meta.broker_id == 1 and meta.cluster_id


def printed_batches(kafka_dump_log: Callable[..., object], folder: Path) -> list[str]:
    """What Kafka's tool prints of a compacted partition, without what must differ."""
    files = sorted(folder.glob("*.log"))
    lines = kafka_dump_log(files, "--print-data-log").stdout.splitlines()
    masks = (
        (r"Dumping \S+/", "Dumping "),
        (r"partitionLeaderEpoch: \d+", ""),
        (r"(crc|size|position): \d+", ""),
        (r"OptionalLong\[\d+\]", "some time"),
        (r"(isControl: true.*) CreateTime: \d+", r"\1"),
        (r"(\|.*) CreateTime: \d+(.*endTxnMarker)", r"\1\2"),
    )
    for pattern, replacement in masks:
        lines = [re.sub(pattern, replacement, line) for line in lines]
    return lines


def test_compaction(by_kafka, by_ottla, kafka_dump_log):
    """Two cleanings: offsets, keys, values, tombstones, markers, batches without records and segments are the same."""
    theirs, ours = (printed_batches(kafka_dump_log, filled.folder("compacted")) for filled in (by_kafka, by_ottla))
    assert theirs == ours
    text = "\n".join(ours)
    for sample in ("count: 0", "endTxnMarker: ABORT", "endTxnMarker: COMMIT", "compresscodec: lz4", "valueSize: -1"):
        assert sample in text
    for isolation in ("read_uncommitted", "read_committed"):
        assert by_kafka.contents.rows[isolation]["compacted"] == by_ottla.contents.rows[isolation]["compacted"]


def test_consumers_are_given_the_same(by_kafka, by_ottla):
    for isolation, rows in by_kafka.contents.rows.items():
        for topic in ("plain", "trimmed", "transactions"):
            assert rows[topic] == by_ottla.contents.rows[isolation][topic]
    assert by_kafka.contents.committed == by_ottla.contents.committed
