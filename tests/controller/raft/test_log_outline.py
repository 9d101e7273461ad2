"""The outline of a metadata log by itself: ends of epochs, fetches that fit, cuts, snapshots, flushes (``KafkaRaftLog``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ottla.controller.raft.log_outline import Divergence, LogOutline, QuorumEntry
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, MetadataSnapshotId
from ottla.tests.controller.raft.helpers.quorum_parts import voters_of
from ottla.wire.messages.control_records import KRaftVersionRecord

OLD, NEW = MetadataSnapshotId(4, 2), MetadataSnapshotId(8, 5)


def outline(start: int = 0, snapshots: tuple[MetadataSnapshotId, ...] = (), end: int = 10) -> LogOutline:
    """Epoch 2 from offset 0, epoch 5 from 6, epoch 7 from 8; as far as these are behind ``start``."""
    epochs = [(epoch, max(first, start)) for epoch, first, last in ((2, 0, 6), (5, 6, 8), (7, 8, 10)) if last > start]
    return LogOutline(start, end, start, epochs, dict.fromkeys(snapshots, 100))


class OutlineRow(NamedTuple):
    start: int
    snapshots: tuple[MetadataSnapshotId, ...]
    offset: int
    epoch: int
    expected: Divergence | MetadataSnapshotId | None


FETCHES = {
    "an empty replica": OutlineRow(0, (), 0, 0, None),
    "an empty replica of an epoch": OutlineRow(0, (), 0, 9, None),
    "an empty replica, and the snapshot of formatting": OutlineRow(0, (BOOTSTRAP_ID,), 0, 0, None),
    "an empty replica, and a snapshot": OutlineRow(0, (OLD,), 0, 0, OLD),
    "an empty replica, and two": OutlineRow(4, (OLD, NEW), 0, 0, NEW),
    "of an epoch above the last": OutlineRow(0, (), 10, 8, Divergence(7, 10)),
    "of an epoch above the last, in the log": OutlineRow(0, (), 5, 8, Divergence(7, 10)),
    "of an epoch before the oldest snapshot's": OutlineRow(4, (OLD,), 5, 1, OLD),
    "of an epoch before the log": OutlineRow(0, (), 5, 1, Divergence(1, 0)),
    "before the oldest snapshot": OutlineRow(4, (OLD, NEW), 3, 2, NEW),
    "at the oldest snapshot": OutlineRow(4, (OLD,), 4, 2, None),
    "at the oldest snapshot, of a later epoch": OutlineRow(4, (OLD,), 4, 3, OLD),
    "at the oldest snapshot, of a later known epoch": OutlineRow(4, (OLD,), 4, 5, OLD),
    "of an unknown epoch in between": OutlineRow(4, (OLD,), 7, 3, Divergence(2, 6)),
    "of an unknown epoch right behind a snapshot": OutlineRow(8, (NEW,), 9, 6, Divergence(5, 8)),
    "beyond its epoch": OutlineRow(0, (), 7, 2, Divergence(2, 6)),
    "beyond the end": OutlineRow(0, (), 11, 7, Divergence(7, 10)),
    "at the end": OutlineRow(0, (), 10, 7, None),
    "before the end": OutlineRow(0, (), 9, 7, None),
    "at the end of its epoch": OutlineRow(0, (), 6, 2, None),
    "at the beginning of its epoch": OutlineRow(0, (), 6, 5, None),
}


@pytest.mark.parametrize("row", FETCHES)
def test_which_fetch_fits(row: str) -> None:
    start, snapshots, offset, epoch, expected = FETCHES[row]
    assert outline(start, snapshots).check_fetch(offset, epoch) == expected


@pytest.mark.parametrize(
    ("start", "snapshots", "epoch", "expected"),
    [
        (0, (), 2, (2, 6)),
        (0, (), 3, (2, 6)),
        (0, (), 5, (5, 8)),
        (0, (), 7, (7, 10)),
        (0, (), 8, (7, 10)),
        (0, (), 1, (1, 0)),
        (4, (OLD,), 2, (2, 6)),
        (8, (NEW,), 5, (5, 8)),
        (8, (NEW,), 6, (5, 8)),
    ],
)
def test_where_an_epoch_ends(
    start: int, snapshots: tuple[MetadataSnapshotId, ...], epoch: int, expected: tuple[int, int]
) -> None:
    """Or the newest one before it; of what is before the log the snapshot knows."""
    assert outline(start, snapshots).end_offset_for_epoch(epoch) == Divergence(*expected)


@pytest.mark.parametrize(
    ("log", "end"),
    [
        (LogOutline(), (0, 0)),
        (LogOutline(snapshots={BOOTSTRAP_ID: 9}), (0, 0)),
        (LogOutline(8, 8, 8, [], {NEW: 9}), (5, 8)),
        (outline(), (7, 10)),
        (outline(8, (NEW,)), (7, 10)),
    ],
    ids=["new", "formatted", "a snapshot and no records", "records", "both"],
)
def test_the_end_of_a_log(log: LogOutline, end: tuple[int, int]) -> None:
    assert log.end == end


def test_appending() -> None:
    log = outline()
    assert log.append(7, 2) == 10
    assert log.append(9, 1) == 12
    assert (log.end, log.epoch_at(11), log.epoch_at(12)) == ((9, 13), 7, 9)
    with pytest.raises(AssertionError):
        log.append(8, 1)


@pytest.mark.parametrize(
    ("offset", "end"), [(10, (7, 10)), (9, (7, 9)), (8, (5, 8)), (7, (5, 7)), (6, (2, 6)), (0, (0, 0))]
)
def test_cutting(offset: int, end: tuple[int, int]) -> None:
    log = outline()
    log.truncate(offset)
    assert log.end == end
    assert log.flushed_offset <= offset


@pytest.mark.parametrize(("committed", "offset"), [(9, 8), (0, 11)], ids=["what is committed", "beyond the end"])
def test_what_is_never_cut(committed: int, offset: int) -> None:
    log = outline()
    log.committed_offset = committed
    with pytest.raises(AssertionError):
        log.truncate(offset)


@pytest.mark.parametrize(
    ("start", "snapshots", "committed"), [(0, (), 0), (4, (OLD,), 4), (4, (OLD, NEW), 8), (0, (BOOTSTRAP_ID,), 0)]
)
def test_what_a_log_that_is_opened_knows_to_be_committed(
    start: int, snapshots: tuple[MetadataSnapshotId, ...], committed: int
) -> None:
    assert outline(start, snapshots).committed_offset == committed


# --- snapshots --------------------------------------------------------------------------------------------------------


def test_snapshots_are_in_their_order() -> None:
    log = outline()
    log.add_snapshot(NEW, 1)
    log.add_snapshot(OLD, 2)
    assert (log.oldest_snapshot, log.newest_snapshot) == (OLD, NEW)
    assert log.snapshots == {OLD: 2, NEW: 1}


@pytest.mark.parametrize(
    ("snapshot", "committed", "start"),
    [(OLD, 10, 4), (NEW, 10, 8), (MetadataSnapshotId(6, 2), 10, 0), (NEW, 7, 0), (NEW, 8, 8)],
    ids=["old", "new", "not there", "not committed", "just committed"],
)
def test_deleting_before_a_snapshot(snapshot: MetadataSnapshotId, committed: int, start: int) -> None:
    log = outline()
    log.committed_offset = committed
    log.add_snapshot(OLD, 1)
    log.add_snapshot(NEW, 1)
    assert log.delete_before(snapshot) == (start > 0)
    assert log.start_offset == start
    assert list(log.snapshots) == [each for each in (OLD, NEW) if each.end_offset >= start]
    assert log.end == (7, 10)
    assert log.flushed_offset >= start
    assert not log.delete_before(snapshot)


def test_beginning_after_a_snapshot() -> None:
    """As Kafka's ``truncateToLatestSnapshot``."""
    log = outline()
    log.add_snapshot(OLD, 1)
    log.start_after(MetadataSnapshotId(20, 9), 7, 1, voters_of(1, 2))
    assert (log.start_offset, log.end, log.committed_offset, log.flushed_offset) == (20, (9, 20), 20, 20)
    assert log.snapshots == {MetadataSnapshotId(20, 9): 7}
    assert log.quorum == QuorumEntry(19, 1, voters_of(1, 2))
    assert log.check_fetch(20, 9) is None
    assert log.end_offset_for_epoch(12) == Divergence(9, 20)
    assert log.append(9, 1) == 20


# --- what it says of the quorum ---------------------------------------------------------------------------------------


def test_the_quorum_at_each_offset() -> None:
    """As Kafka's ``VoterSetHistory``: the newest at or below an offset, and cut with the log."""
    log = outline(end=20)
    log.note_control(10, [KRaftVersionRecord(k_raft_version=1), voters_of(1).to_record(), None])
    log.note_control(15, [voters_of(1, 2).to_record()])
    assert log.quorum_at(9) == QuorumEntry(-1)
    assert log.quorum_at(10) == QuorumEntry(10, 1, None)
    assert log.quorum_at(11) == log.quorum_at(14) == QuorumEntry(11, 1, voters_of(1))
    assert log.quorum_at(15) == log.quorum == QuorumEntry(15, 1, voters_of(1, 2))
    log.truncate(15)
    assert log.quorum == QuorumEntry(11, 1, voters_of(1))
    log.truncate(11)
    assert log.quorum == QuorumEntry(10, 1, None)
    log.truncate(10)
    assert log.quorum == QuorumEntry(-1)


def test_the_quorum_at_the_start_of_a_log_is_kept() -> None:
    """Also where the first record of the log changes it, which may be cut."""
    log = outline()
    log.note_control(2, [voters_of(1).to_record()])
    log.note_control(3, [voters_of(1, 2).to_record()])
    log.note_control(8, [voters_of(1, 2, 3).to_record()])
    log.committed_offset = 8
    log.add_snapshot(NEW, 1)
    assert log.delete_before(NEW)
    assert log.quorum_at(7).voters == voters_of(1, 2)
    log.truncate(8)
    assert log.quorum.voters == voters_of(1, 2)


# --- flushes ----------------------------------------------------------------------------------------------------------


def test_one_flush_at_a_time() -> None:
    log = outline()
    assert log.begin_flush()
    log.append(7, 1)
    assert not log.begin_flush()
    log.end_flush()
    assert log.flushed_offset == 10
    assert log.begin_flush()
    log.end_flush()
    assert log.flushed_offset == 11
    assert not log.begin_flush()
    with pytest.raises(AssertionError):
        log.end_flush()


@pytest.mark.parametrize(
    ("change", "flushed"),
    [
        (lambda log: log.truncate(8), 8),
        (lambda log: log.start_after(MetadataSnapshotId(20, 9), 7, 0, None), 20),
    ],
    ids=["cut", "begun after a snapshot"],
)
def test_a_flush_in_flight_counts_for_what_was_there_only(change: Any, flushed: int) -> None:
    log = outline()
    log.begin_flush()
    change(log)
    log.append(9, 5)
    log.end_flush()
    assert log.flushed_offset == flushed
