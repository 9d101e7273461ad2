"""Index files and producer snapshots as text, index entries checked against the segment beside them.

Entries are read as they are in the file, with the zeros that Kafka allocates ahead: what is printed ends at the first of
them, but Kafka's sanity check looks at the last.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from struct import Struct

from ...base.errors import KafkaError
from ...wire.records import RecordBatch
from ..disk import Disk, OpenFile
from ..files import INDEX_SUFFIX, LOG_SUFFIX
from ..offset_index import CorruptIndexError
from ..producer_snapshot import decode_snapshot
from ..scan import scan_batches
from ..transaction_index import decode_transaction_index
from .report import DumpError, Report, base_offset_of

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")


def dump_offset_index(
    disk: Disk, path: str, report: Report, *, sanity_only: bool, verify_only: bool, max_message_size: int
) -> None:
    """Print an ``.index`` file. Raises DumpError, OSError."""
    base_offset = base_offset_of(disk, path)
    file = disk.open(_sibling(path, LOG_SUFFIX))
    try:
        data = disk.read_file(path)
        entries = _entries(data, _OFFSET_ENTRY)
        if not entries:
            report.line(f"{path} is empty.")
            return
        if sanity_only:
            _check_offset_index(path, base_offset, data, entries)
            report.line(f"{path} passed sanity check.")
            return
        for slot, (relative_offset, position) in enumerate(entries):
            if slot and not relative_offset:
                return
            offset = base_offset + relative_offset
            batch = _batch_at(file, position, max_message_size)
            if batch.last_offset != offset:
                report.mismatches.setdefault(os.path.abspath(path), {})[offset] = batch.last_offset
            if not verify_only:
                report.line(f"offset: {offset} position: {position}")
    finally:
        file.close()


def _check_offset_index(path: str, base_offset: int, data: bytes, entries: list[tuple[int, int]]) -> None:
    last_offset = base_offset + entries[-1][0]
    if last_offset < base_offset:
        raise DumpError(
            f"Corrupt index found, index file ({os.path.abspath(path)}) has non-zero size but the last offset is "
            f"{last_offset} which is less than the base offset {base_offset}"
        )
    if len(data) % _OFFSET_ENTRY.size:
        raise DumpError(
            f"Index file {os.path.abspath(path)} is corrupt, found {len(data)} bytes which is neither positive nor a "
            f"multiple of {_OFFSET_ENTRY.size}"
        )


def dump_time_index(disk: Disk, path: str, report: Report, *, sanity_only: bool, verify_only: bool) -> None:
    """Print a ``.timeindex`` file. Raises DumpError, OSError."""
    base_offset = base_offset_of(disk, path)
    file = disk.open(_sibling(path, LOG_SUFFIX))
    try:
        offsets = _entries(disk.read_file(_sibling(path, INDEX_SUFFIX)), _OFFSET_ENTRY)
        data = disk.read_file(path)
        entries = _entries(data, _TIME_ENTRY)
        if sanity_only:
            _check_time_index(path, base_offset, data, entries)
            report.line(f"{path} passed sanity check.")
            return
        previous = -1
        for slot, (timestamp, relative_offset) in enumerate(entries):
            if slot and not relative_offset:
                return
            offset = base_offset + relative_offset
            _check_time(path, file, _lookup(offsets, relative_offset), offset, timestamp, previous, report)
            if not verify_only:
                report.line(f"timestamp: {timestamp} offset: {offset}")
            previous = timestamp
    finally:
        file.close()


def _check_time_index(path: str, base_offset: int, data: bytes, entries: list[tuple[int, int]]) -> None:
    if entries:
        first_timestamp, (timestamp, relative_offset) = entries[0][0], entries[-1]
        about = f"Corrupt time index found, time index file ({os.path.abspath(path)}) has non-zero size but the last"
        if timestamp < first_timestamp:
            raise DumpError(
                f"{about} timestamp is {timestamp} which is less than the first timestamp {first_timestamp}"
            )
        if relative_offset < 0:
            raise DumpError(
                f"{about} offset is {base_offset + relative_offset} which is less than the first offset {base_offset}"
            )
    if len(data) % _TIME_ENTRY.size:
        raise DumpError(
            f"Time index file {os.path.abspath(path)} is corrupt, found {len(data)} bytes which is neither positive nor "
            f"a multiple of {_TIME_ENTRY.size}"
        )


def _check_time(
    path: str, file: OpenFile, position: int, offset: int, timestamp: int, previous: int, report: Report
) -> None:
    """Compare an entry with the batch that it names."""
    absolute = os.path.abspath(path)
    batch = next((batch for batch in _batches(file, position) if batch.last_offset >= offset), None)
    if batch is None or batch.last_offset != offset:
        found = -1 if batch is None else batch.last_offset
        report.missing_offsets.setdefault(absolute, []).append((offset, found))
        return
    largest = max((record.timestamp for record in batch.records()), default=-1)
    if largest != timestamp:
        report.wrong_timestamps.setdefault(absolute, []).append((timestamp, largest))
    if previous >= timestamp:
        report.disordered_timestamps.setdefault(absolute, []).append((timestamp, previous))


def dump_transaction_index(disk: Disk, path: str, report: Report) -> None:
    """Print a ``.txnindex`` file. Raises DumpError, OSError."""
    try:
        entries = decode_transaction_index(disk.read_file(path), base_offset_of(disk, path))
    except CorruptIndexError as error:
        raise DumpError(f"{path}: {error}") from None
    for entry in entries:
        report.line(
            f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset}"
            f" lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        )


def dump_snapshot(disk: Disk, path: str, report: Report) -> str | None:
    """Print a ``.snapshot`` file of producers; what is wrong with it. Raises OSError."""
    try:
        states = decode_snapshot(disk.read_file(path))
    except ValueError as error:
        return f"{path}: {error}"
    for state in states:
        first_offset = state.current_txn_first_offset
        transaction = "OptionalLong.empty" if first_offset < 0 else f"OptionalLong[{first_offset}]"
        text = (
            f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch}"
            f" coordinatorEpoch: {state.coordinator_epoch} currentTxnFirstOffset: {transaction}"
            f" lastTimestamp: {state.last_timestamp}"
        )
        for batch in state.batches[:1]:
            text += (
                f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence}"
                f" lastOffset: {batch.last_offset} offsetDelta: {batch.last_offset - batch.first_offset}"
                f" timestamp: {batch.timestamp}"
            )
        report.line(text)
    return None


def _entries(data: bytes, layout: Struct) -> list[tuple[int, int]]:
    """Whole entries; bytes after the last one are left out."""
    return list(layout.iter_unpack(data[: len(data) // layout.size * layout.size]))


def _lookup(entries: list[tuple[int, int]], relative_offset: int) -> int:
    """Where to begin looking for an offset."""
    used = next((slot for slot, entry in enumerate(entries) if slot and not entry[0]), len(entries))
    slot = bisect_right(entries, relative_offset, hi=used, key=lambda entry: entry[0]) - 1
    return entries[slot][1] if slot >= 0 else 0


def _batch_at(file: OpenFile, position: int, max_message_size: int) -> RecordBatch:
    for batch in _batches(file, position, max_message_size):
        return batch
    raise DumpError(f"there is no batch at position {position}")


def _batches(file: OpenFile, position: int, nbytes: int = 1 << 62) -> Iterator[RecordBatch]:
    try:
        for _, batch in scan_batches(file, position, min(file.size(), position + nbytes), 1 << 16):
            yield batch
    except KafkaError:
        return


def _sibling(path: str, suffix: str) -> str:
    return os.path.join(os.path.dirname(path), os.path.basename(path).split(".")[0] + suffix)
