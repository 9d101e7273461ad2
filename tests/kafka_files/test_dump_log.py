"""``ottla dump-log`` prints what Apache Kafka's own tool prints, of files that either of the two has written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.share_coordinator import records as share_records
from ottla.share_coordinator import share_group_offset
from ottla.share_coordinator.records import ShareRecord
from ottla.share_coordinator.state import SharePartitionKey, StateBatch
from ottla.wire.records import Record, build_batch

pytestmark = pytest.mark.slow

INDEXES = (".index", ".timeindex")


@pytest.fixture(params=["by_kafka", "by_ottla"])
def data(request) -> Path:
    """A log directory."""
    return request.getfixturevalue(request.param).data


@pytest.fixture
def agree(kafka_dump_log):
    """``agree(files, *options)``: both print the same; what that is."""

    def run(files: list[Path], *options: str) -> str:
        assert files
        command = [sys.executable, "-m", "ottla", "dump-log", "--files", ",".join(map(str, files)), *options]
        ours = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        theirs = kafka_dump_log(files, *options)
        assert ours.stdout.splitlines() == theirs.stdout.splitlines()
        # What files are complained of first depends on a hash table of Java's.
        assert sorted(ours.stderr.splitlines()) == sorted(theirs.stderr.splitlines())
        assert ours.returncode == theirs.returncode == 0
        return ours.stdout

    return run


def files(data: Path, *suffixes: str, topic: str = "[a-z]*") -> list[Path]:
    return sorted(path for path in data.glob(f"{topic}-[0-9]/*") if path.suffix in suffixes)


def test_keys_and_values(data, agree):
    printed = agree(files(data, ".log"), "--print-data-log")
    samples = ("compresscodec: zstd", "LogAppendTime", "endTxnMarker: ABORT", "OptionalLong[", "[header,empty,null]")
    for sample in samples:
        assert sample in printed


def test_batches_only(data, agree):
    assert "|" not in agree(files(data, ".log"))


def test_records_without_metadata(data, agree):
    agree(files(data, ".log"), "--print-data-log", "--skip-record-metadata", "--max-bytes", "3000")


def test_files_beside_the_segments(data, agree):
    beside = files(data, *INDEXES, ".txnindex", ".snapshot", ".deleted")
    printed = agree(beside)
    assert "lastStableOffset: " in printed and "currentTxnFirstOffset: " in printed and "timestamp: " in printed


@pytest.mark.parametrize("option", ["--verify-index-only", "--index-sanity-check"])
def test_checks_of_indexes(data, agree, option):
    agree(files(data, *INDEXES), option)


def test_offsets(data, agree):
    printed = agree(files(data, ".log", topic="__consumer_offsets"), "--offsets-decoder")
    assert '"group":"readers"' in printed


def test_transactional_ids(data, agree):
    printed = agree(files(data, ".log", topic="__transaction_state"), "--transaction-log-decoder")
    assert '"transactionalId":"third"' in printed


def test_states_of_share_partitions(agree, tmp_path):
    """A snapshot with batches, an update and a tombstone, as the share coordinator writes them."""
    key = SharePartitionKey("readers", bytes(range(16)), 2)
    begun = share_group_offset.initialize(None, 3, 0, 1_700_000_000_000)
    known = share_group_offset.after(None, begun, 0)
    change = share_group_offset.change(0, 2, [StateBatch(0, 1, 2, 1), StateBatch(2, 2, 0, 1)])
    update = share_group_offset.write(known, 3, 1, change, 500, 0)
    snapshot = share_group_offset.rewritten(share_group_offset.after(known, update, 1), 1_700_000_300_000)
    records = [ShareRecord(key, value) for value in (begun, update, snapshot, None)]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(share_records.build_batch(records, 1, 0))
    printed = agree([path], "--share-group-state-decoder")
    for sample in ('"deliveryCompleteCount":2', '"deliveryState":2', '"type":"1"', "<DELETE>"):
        assert sample in printed


def test_the_log_of_a_quorum_and_its_bootstrap_snapshot(by_kafka, agree):
    log = by_kafka.data / "__cluster_metadata-0" / "00000000000000000000.log"
    printed = agree([log, by_kafka.data / "bootstrap.checkpoint"], "--cluster-metadata-decoder")
    for sample in ("PARTITION_RECORD", "LeaderChange: {", "SnapshotHeader {", "KRaft bootstrap snapshot"):
        assert sample in printed
    agree([log], "--cluster-metadata-decoder", "--skip-record-metadata")
    agree([log])


def test_damaged_files(by_ottla, agree, tmp_path):
    """A log that is cut, a bit that is flipped, an index of another segment."""
    source = by_ottla.folder("plain")
    for path in source.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    first, second, third = sorted(tmp_path.glob("*.log"))[:3]
    first.write_bytes(first.read_bytes()[:-5])
    data = bytearray(second.read_bytes())
    data[30] ^= 1
    second.write_bytes(data)
    assert "invalid bytes at the end of" in agree([first], "--print-data-log")
    assert "isvalid: false" in agree([second])
    offsets, times = third.with_suffix(".index"), third.with_suffix(".timeindex")
    data = bytearray(offsets.read_bytes())
    data[3] += 1
    offsets.write_bytes(data)
    agree([offsets], "--verify-index-only")
    data = bytearray(times.read_bytes())
    data[7] ^= 1
    data[12:20] = data[0:8]
    data[-1] += 1
    times.write_bytes(data)
    agree([times])


def test_numbers(agree, tmp_path):
    """Other decoders than that of strings, by Java's names for them."""
    path = tmp_path / "00000000000000000000.log"
    record = Record(key=(-5).to_bytes(4, "big", signed=True), value=(1 << 40).to_bytes(8, "big"), timestamp=1)
    path.write_bytes(build_batch([record, Record(timestamp=2)]))
    classes = [f"org.apache.kafka.tools.api.{name}Decoder" for name in ("Integer", "Long")]
    printed = agree([path], "--key-decoder-class", classes[0], "--value-decoder-class", classes[1])
    assert "key: -5 payload: 1099511627776" in printed


def test_what_cannot_be_dumped(tmp_path):
    path = tmp_path / "00000000000000000000.log"

    def fails(*options: str) -> str:
        command = [sys.executable, "-m", "ottla", "dump-log", "--files", str(path), *options]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 1
        return done.stderr

    assert "No such file" in fails()
    assert "there is no decoder com.example.Mine" in fails("--value-decoder-class", "com.example.Mine")
    path.write_bytes(bytes(100))
    assert "a record batch cannot have a length of 0" in fails()
    path.write_bytes(build_batch([Record(value=b"v", timestamp=1)]))
    assert "missing key" in fails("--offsets-decoder")
