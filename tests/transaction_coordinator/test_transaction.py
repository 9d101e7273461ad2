"""The transitions of one transactional id: no clock, no disk, no network."""

from __future__ import annotations

import dataclasses

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.transaction_coordinator import transaction as transitions
from ottla.transaction_coordinator.records import build_batch, read_batch
from ottla.transaction_coordinator.transaction import Transaction, TransactionStatus
from ottla.wire.records import RecordBatch

CLASSIC, V2 = 0, 2
PARTITIONS = frozenset({("t", 0), ("t", 1), ("u", 3)})
LAST_EPOCH = (1 << 15) - 2
"""The largest a client ever gets."""


@pytest.fixture
def empty() -> Transaction:
    return transitions.create("id", 7, 60_000, now_ms=1000)


@pytest.fixture
def ongoing(empty: Transaction) -> Transaction:
    begun = transitions.add_partitions(empty, PARTITIONS, CLASSIC, 2000)
    assert begun is not None
    return begun


def end(
    known: Transaction | None, producer: tuple[int, int], *, commit: bool = True, version: int = CLASSIC
) -> Transaction:
    ended = transitions.end(known, producer, commit, version, 99, 3000)
    assert ended is not None
    return ended


def refused(code: ErrorCode):
    return pytest.raises(KafkaError, match=code.name)


def v2_after(known: Transaction) -> Transaction:
    """``known`` after one committed transaction of V2."""
    begun = transitions.add_partitions(known, PARTITIONS, V2, 2000)
    assert begun is not None
    return transitions.complete(end(begun, (begun.producer_id, begun.producer_epoch), version=V2), 4000)


def test_classic_life(ongoing):
    assert (ongoing.state, ongoing.start_ms) == (TransactionStatus.ONGOING, 2000)
    assert transitions.add_partitions(ongoing, [("t", 1)], CLASSIC, 2500) is None
    more = transitions.add_partitions(ongoing, [("v", 0)], CLASSIC, 2500)
    assert more is not None
    assert more.partitions == PARTITIONS | {("v", 0)}
    assert more.start_ms == 2000
    prepared = end(ongoing, (7, 0))
    assert (prepared.state, prepared.producer_epoch, prepared.partitions) == (
        TransactionStatus.PREPARE_COMMIT,
        0,
        PARTITIONS,
    )
    completed = transitions.complete(prepared, 4000)
    assert (completed.state, completed.producer_epoch, completed.partitions) == (
        TransactionStatus.COMPLETE_COMMIT,
        0,
        frozenset(),
    )
    assert transitions.end(completed, (7, 0), True, CLASSIC, -1, 5000) is None
    with refused(ErrorCode.INVALID_TXN_STATE):
        end(completed, (7, 0), commit=False)


def test_somebody_else(ongoing):
    for known, producer, code in (
        (None, (7, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ongoing, (8, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ongoing, (7, 1), ErrorCode.PRODUCER_FENCED),
    ):
        with refused(code):
            transitions.check_producer(known, *producer)
        for version in (CLASSIC, V2):
            with refused(code):
                end(known, producer, version=version)


def test_v2_bumps_the_epoch_with_every_end(empty):
    completed = v2_after(empty)
    assert (completed.producer_epoch, completed.state) == (1, TransactionStatus.COMPLETE_COMMIT)
    assert transitions.end(completed, (7, 0), True, V2, -1, 5000) is None, "asked for a second time"
    with refused(ErrorCode.INVALID_TXN_STATE):
        end(completed, (7, 0), commit=False, version=V2)
    with refused(ErrorCode.INVALID_TXN_STATE):
        end(completed, (7, 1), version=V2)
    aborted = end(completed, (7, 1), commit=False, version=V2)
    assert (aborted.state, aborted.producer_epoch, aborted.partitions) == (
        TransactionStatus.PREPARE_ABORT,
        2,
        frozenset(),
    )


def test_a_v2_client_is_followed_by_a_classic_one(empty):
    completed = v2_after(empty)
    begun = transitions.add_partitions(completed, PARTITIONS, CLASSIC, 5000)
    assert begun is not None
    prepared = end(begun, (7, 1))
    assert prepared.producer_epoch == 1
    ended = transitions.complete(prepared, 6000)
    assert ended.producer_epoch == 1
    assert transitions.end(ended, (7, 0), True, V2, -1, 7000) is None, "one epoch before is the repetition of an end"
    with refused(ErrorCode.PRODUCER_FENCED):
        end(ended, (7, 0))


def test_epochs_are_used_up(empty):
    worn = dataclasses.replace(empty, producer_epoch=LAST_EPOCH)
    begun = transitions.add_partitions(worn, PARTITIONS, V2, 2000)
    assert transitions.needs_producer_id(begun, V2)
    assert not transitions.needs_producer_id(begun, CLASSIC)
    prepared = end(begun, (7, LAST_EPOCH), version=V2)
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (7, LAST_EPOCH + 1, 99)
    completed = transitions.complete(prepared, 4000)
    assert (completed.producer_id, completed.producer_epoch, completed.previous_producer_id) == (99, 0, 7)
    assert transitions.end(completed, (7, LAST_EPOCH), True, V2, -1, 5000) is None, "asked for a second time"
    with refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING):
        end(completed, (7, LAST_EPOCH))
    next_one = transitions.add_partitions(completed, PARTITIONS, V2, 5000)
    with refused(ErrorCode.PRODUCER_FENCED):
        end(next_one, (7, LAST_EPOCH), version=V2)
    renewed = transitions.initialize(worn, None, 100, 60_000, 5000)
    assert (renewed.producer_id, renewed.producer_epoch) == (100, 0)
    resumed = transitions.initialize(worn, (7, LAST_EPOCH), 100, 60_000, 5000)
    assert (resumed.producer_id, resumed.producer_epoch) == (100, 0)
    again = transitions.initialize(resumed, (7, LAST_EPOCH), 101, 60_000, 5000)
    assert (again.producer_id, again.producer_epoch) == (100, 0), "the answer was lost, and the request repeated"


def test_resuming(empty):
    bumped = transitions.initialize(empty, None, -1, 5000, 2000)
    assert (bumped.producer_epoch, bumped.timeout_ms) == (1, 5000)
    resumed = transitions.initialize(bumped, (7, 1), -1, 5000, 2000)
    assert resumed.producer_epoch == 2
    assert transitions.initialize(resumed, (7, 1), -1, 5000, 2000).producer_epoch == 2
    for stranger in ((7, 0), (8, 2)):
        with refused(ErrorCode.PRODUCER_FENCED):
            transitions.initialize(resumed, stranger, -1, 5000, 2000)


def test_a_timeout_fences_but_the_producer_may_resume(ongoing):
    assert not transitions.is_timed_out(ongoing, 62_000)
    assert transitions.is_timed_out(ongoing, 62_001)
    fenced = transitions.fence(ongoing, V2, 62_001)
    assert (fenced.state, fenced.producer_epoch) == (TransactionStatus.PREPARE_ABORT, 1)
    with refused(ErrorCode.PRODUCER_FENCED):
        end(fenced, (7, 0))
    with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
        end(fenced, (7, 0), version=V2)
    aborted = transitions.complete(fenced, 62_010)
    assert not transitions.is_timed_out(aborted, 1 << 40)
    assert transitions.initialize(aborted, (7, 0), -1, 60_000, 63_000).producer_epoch == 1


def test_expiry(empty, ongoing):
    assert not transitions.is_expired(empty, 1999, 1000)
    assert transitions.is_expired(empty, 2000, 1000)
    assert not transitions.is_expired(ongoing, 1 << 40, 1000)
    prepared = end(ongoing, (7, 0))
    assert not transitions.is_expired(prepared, 1 << 40, 1000)
    assert transitions.is_expired(transitions.complete(prepared, 4000), 5000, 1000)


@pytest.mark.parametrize("version", [CLASSIC, V2])
def test_records_say_all_but_the_last_epoch(empty, ongoing, version):
    prepared = end(ongoing, (7, 0), version=version)
    for state in (empty, ongoing, prepared, transitions.complete(prepared, 4000)):
        ((name, read),) = read_batch(RecordBatch(build_batch("id", state, 5000)), SkippedRecords())
        assert name == "id"
        assert read == dataclasses.replace(state, last_producer_epoch=-1)
    ((name, read),) = read_batch(RecordBatch(build_batch("id", None, 5000)), SkippedRecords())
    assert (name, read) == ("id", None)
