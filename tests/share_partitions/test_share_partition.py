"""The state of a share partition: what is acquired, in which parts near the limit, and what is written of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.share_coordinator.state import ShareState, StateBatch
from ottla.share_partitions.acknowledgement import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    Acknowledgement,
    acknowledge,
    acknowledge_in_steps,
)
from ottla.share_partitions.acquisition import FoundRecords, RecordLimits, acquire
from ottla.share_partitions.delivery import painted
from ottla.share_partitions.share_partition import (
    STEP,
    SharePartition,
    Terms,
    at_once,
    complete,
    complete_in_steps,
    delivery_complete_count,
    expire,
    load,
    lock_end,
    log_start_moved,
    next_fetch_offset,
    release,
)

TERMS = Terms(delivery_count_limit=5, max_record_locks=2000, lock_seconds=30.0)
ALL = RecordLimits(500, 500)


def fetch(
    partition: SharePartition,
    *log: tuple[int, int],
    limits: RecordLimits = ALL,
    terms: Terms = TERMS,
    member: str = "m",
    aborted: Sequence[tuple[int, int]] = (),
    now: float = 0.0,
) -> list[tuple[int, ...]]:
    """What a member acquires, where the log has these batches."""
    offset = next_fetch_offset(partition)
    found = FoundRecords(offset, [batch for batch in log if batch[1] >= offset], aborted)
    return [tuple(each) for each in acquire(partition, member, found, limits, terms, now)]


def say(partition: SharePartition, first: int, last: int, *types: int, member: str = "m", terms: Terms = TERMS) -> None:
    """It is stored at once."""
    write = acknowledge(partition, member, [Acknowledgement(first, last, types)], terms, 0.0)
    assert write is not None
    complete(partition, {write.write_id}, is_stored=True)


def failed(partition: SharePartition, *log: tuple[int, int], terms: Terms, times: int) -> None:
    """The batches are delivered and released so many times."""
    for _ in range(times):
        for first, last, _ in fetch(partition, *log, terms=terms):
            say(partition, first, last, RELEASE, terms=terms)


def test_a_poison_record_is_isolated() -> None:
    """As Apache Kafka 4.3.1 does with 500 records and a limit of 10: 500 up to the fifth failure, then halves, and one alone."""
    terms = Terms(10, 2000, 30.0)
    partition = SharePartition(0)
    log = (0, 499)
    sizes = []
    for _ in range(10):
        ranges = fetch(partition, log, terms=terms)
        sizes.append(sum(last - first + 1 for first, last, _ in ranges))
        for first, last, _ in ranges:
            say(partition, first, last, RELEASE, terms=terms)
    assert sizes == [500, 500, 500, 500, 500, 250, 125, 62, 31, 1]
    assert fetch(partition, log, terms=terms) == [(1, 1, 10)], "the first one was delivered as often as it may be"


def test_records_at_the_last_delivery_come_alone() -> None:
    terms = Terms(3, 2000, 30.0)
    partition = SharePartition(0)
    failed(partition, (0, 3), (4, 5), terms=terms, times=2)
    assert fetch(partition, (0, 3), (4, 5), terms=terms) == [(0, 0, 3)]
    assert fetch(partition, (0, 3), (4, 5), terms=terms) == [(1, 1, 3)]


def test_a_full_window_gives_only_what_is_in_it() -> None:
    terms = Terms(5, 100, 30.0)
    partition = SharePartition(0)
    log = [(first, first + 39) for first in range(0, 400, 40)]
    assert fetch(partition, *log, terms=terms) == [(0, 119, 1)], "the last batch is whole"
    assert fetch(partition, *log, terms=terms) == []
    say(partition, 40, 59, RELEASE)
    assert fetch(partition, *log, terms=terms, limits=RecordLimits(15, 500, is_exact=True)) == [(40, 54, 2)]
    say(partition, 0, 39, ACCEPT)
    assert fetch(partition, *log, terms=terms) == [(55, 59, 2), (120, 159, 1)]


def test_batches_are_cut_where_those_of_the_log_begin() -> None:
    log = [(0, 3), (4, 9), (10, 11), (12, 20)]
    assert fetch(SharePartition(0), *log, limits=RecordLimits(500, 5)) == [(0, 9, 1), (10, 20, 1)]
    assert fetch(SharePartition(0), *log, limits=RecordLimits(5, 500)) == [(0, 9, 1)]
    assert fetch(SharePartition(0), *log, limits=RecordLimits(5, 500, is_exact=True)) == [(0, 4, 1)]


def test_a_request_is_valid_as_a_whole() -> None:
    partition = SharePartition(0)
    fetch(partition, (0, 9))
    before = list(partition.batches)
    for wrong, code in (
        (Acknowledgement(5, 12, (ACCEPT,)), ErrorCode.INVALID_REQUEST),
        (Acknowledgement(2, 3, (ACCEPT,)), ErrorCode.INVALID_RECORD_STATE),
    ):
        with pytest.raises(KafkaError) as raised:
            acknowledge(partition, "m", [Acknowledgement(0, 3, (ACCEPT,)), wrong], TERMS, 0.0)
        assert raised.value.code == code
        assert partition.batches == before
    with pytest.raises(KafkaError, match="INVALID_RECORD_STATE"):
        acknowledge(partition, "other", [Acknowledgement(0, 3, (ACCEPT,))], TERMS, 0.0)


def test_what_is_written() -> None:
    partition = SharePartition(0)
    fetch(partition, (0, 9))
    write = acknowledge(partition, "m", [Acknowledgement(0, 4, (1, 1, 1, 2, 3))], TERMS, 0.0)
    assert write is not None
    assert write.batches == ((0, 2, 2, 1), (3, 3, 0, 1), (4, 4, 4, 1))
    assert delivery_complete_count(partition, {write.write_id}) == 4
    assert (partition.start_offset, next_fetch_offset(partition)) == (0, 10), "nothing has changed yet"
    complete(partition, {write.write_id}, is_stored=True)
    assert (partition.start_offset, next_fetch_offset(partition)) == (3, 3)
    assert delivery_complete_count(partition) == 1


def test_a_write_that_fails_gives_the_records_back() -> None:
    partition = SharePartition(0)
    fetch(partition, (0, 9))
    write = acknowledge(partition, "m", [Acknowledgement(0, 9, (ACCEPT,))], TERMS, 0.0)
    assert write is not None
    assert lock_end(partition) is None
    assert expire(partition, TERMS, 31.0) is None, "what becomes of them is on its way"
    complete(partition, {write.write_id}, is_stored=False)
    assert lock_end(partition) == 30.0
    expired = expire(partition, TERMS, 31.0)
    assert expired is not None
    assert expired.batches == ((0, 9, 0, 1),)
    assert fetch(partition, (0, 9)) == [(0, 9, 2)]


def test_a_session_that_ends_releases_what_is_the_members() -> None:
    partition = SharePartition(0)
    fetch(partition, (0, 4))
    fetch(partition, (0, 4), (5, 9), member="other")
    write = release(partition, "m", TERMS)
    assert write is not None
    assert write.batches == ((0, 4, 0, 1),)
    complete(partition, {write.write_id}, is_stored=True)
    assert fetch(partition, (0, 4), (5, 9), member="third") == [(0, 4, 2)]


def test_a_new_leader_delivers_what_is_not_stored() -> None:
    stored = (StateBatch(0, 4, 2, 1), StateBatch(8, 9, 4, 5), StateBatch(12, 12, 0, 3))
    partition = load(ShareState(1, 0, stored, -1), 0)
    assert partition.start_offset == 5
    assert fetch(partition, (0, 9), (10, 19)) == [(5, 7, 1), (10, 11, 1)], (
        "the record with three deliveries comes later"
    )
    assert fetch(partition, (0, 9), (10, 19)) == [(12, 12, 4)]
    assert fetch(partition, (0, 9), (10, 19)) == [(13, 19, 1)]


@pytest.mark.parametrize("stored", [StateBatch(3, 4, 2, 1), StateBatch(12, 11, 2, 1), StateBatch(12, 13, 1, 1)])
def test_a_stored_state_that_cannot_be(stored: StateBatch) -> None:
    with pytest.raises(KafkaError):
        load(ShareState(1, 10, (stored,), -1), 10)


def test_what_the_log_has_no_more_is_done_with() -> None:
    partition = SharePartition(0)
    fetch(partition, (0, 9), (10, 19))
    say(partition, 2, 5, RELEASE)
    log_start_moved(partition, 4)
    assert (partition.start_offset, next_fetch_offset(partition)) == (4, 4)
    assert acknowledge(partition, "m", [Acknowledgement(0, 3, (ACCEPT,))], TERMS, 0.0) is None
    assert fetch(partition, (8, 9), (10, 19)) == [], "compaction has removed 4 and 5"
    say(partition, 6, 19, REJECT)
    assert partition.start_offset == 20


def test_aborted_records_go_to_nobody() -> None:
    partition = SharePartition(0)
    log = [(0, 4), (5, 9), (10, 14)]
    assert fetch(partition, *log, aborted=[(0, 4), (10, 14)]) == [(5, 9, 1)]
    assert partition.start_offset == 5
    say(partition, 5, 9, ACCEPT)
    assert partition.start_offset == 15


def test_writes_that_go_together() -> None:
    older = (StateBatch(0, 9, 0, 1), StateBatch(20, 29, 2, 1))
    newer = (StateBatch(3, 4, 2, 2), StateBatch(8, 21, 4, 5))
    assert painted(older, newer) == ((0, 2, 0, 1), (3, 4, 2, 2), (5, 7, 0, 1), (8, 21, 4, 5), (22, 29, 2, 1))


def test_what_is_counted() -> None:
    terms = Terms(2, 2000, 30.0)
    partition = SharePartition(0)
    fetch(partition, (0, 9), terms=terms)
    say(partition, 0, 3, ACCEPT, GAP, REJECT, RELEASE, terms=terms)
    assert (partition.redelivered, partition.archived) == (0, 1)
    assert fetch(partition, (0, 9), terms=terms) == [(3, 3, 2)]
    assert (partition.redelivered, partition.archived) == (1, 1)
    assert expire(partition, terms, 30.0) is not None
    assert (partition.redelivered, partition.archived) == (1, 2), "the limit is reached"
    fetch(partition, (0, 9), terms=terms)
    assert release(partition, "m", terms) is not None
    with pytest.raises(KafkaError):
        say(partition, 4, 4, REJECT, terms=terms)
    assert partition.redelivered > 1
    assert partition.archived == 1 + partition.redelivered


# --- many ranges ------------------------------------------------------------------------------------------------------

ONE_EACH = RecordLimits(4000, 1)
MANY = Terms(delivery_count_limit=5, max_record_locks=4000, lock_seconds=30.0)


def of_one_record(count: int, first: int = 0) -> list[tuple[int, int]]:
    return [(offset, offset) for offset in range(first, first + count)]


def all_accepted(ranges: Sequence[tuple[int, ...]]) -> list[Acknowledgement]:
    return [Acknowledgement(each[0], each[1], (ACCEPT,)) for each in ranges]


def acquire_all(partition: SharePartition, count: int, first: int = 0) -> list[tuple[int, ...]]:
    """Records of one batch each, in several fetches."""
    log = of_one_record(count, first)
    ranges: list[tuple[int, ...]] = []
    while more := fetch(partition, *log, limits=ONE_EACH, terms=MANY):
        ranges += more
    assert [each[:2] for each in ranges] == log
    return ranges


def test_a_fetch_acquires_500_ranges_and_the_next_one_more() -> None:
    partition = SharePartition(0)
    log = of_one_record(800)
    assert [each[:2] for each in fetch(partition, *log, limits=ONE_EACH, terms=MANY)] == log[:500]
    assert [each[:2] for each in fetch(partition, *log, limits=ONE_EACH, terms=MANY)] == log[500:]
    assert release(partition, "m", MANY) is not None
    complete(partition, {partition.last_write_id}, is_stored=True)
    assert [each[:2] for each in fetch(partition, *log, limits=ONE_EACH, terms=MANY)] == log[:500]
    assert [each[:2] for each in fetch(partition, *log, limits=ONE_EACH, terms=MANY)] == log[500:]


def test_many_acknowledgements_change_nothing_before_their_last_step() -> None:
    partition = SharePartition(0)
    ranges = acquire_all(partition, 1000)
    before = list(partition.batches)
    steps = acknowledge_in_steps(partition, "m", all_accepted(ranges), MANY, 0.0)
    pauses = 0
    for _ in steps:
        pauses += 1
        assert partition.batches == before
    assert pauses >= 2 * (1000 // STEP)
    assert partition.batches != before
    assert next(complete_in_steps(partition, {partition.last_write_id}, is_stored=True), "done") is None
    complete(partition, {partition.last_write_id}, is_stored=True)
    assert (partition.start_offset, partition.batches) == (1000, [])


def test_a_lock_that_ends_between_the_steps_of_an_acknowledgement_counts() -> None:
    partition = SharePartition(0)
    ranges = acquire_all(partition, 1000)
    steps = acknowledge_in_steps(partition, "m", all_accepted(ranges), MANY, 0.0)
    next(steps)
    assert expire(partition, MANY, 31.0) is not None
    with pytest.raises(KafkaError) as caught:
        at_once(steps)
    assert caught.value.code == ErrorCode.INVALID_RECORD_STATE
    assert next_fetch_offset(partition) == 0


def test_records_before_those_of_an_acknowledgement_may_be_done_with_meanwhile() -> None:
    partition = SharePartition(0)
    fetch(partition, (0, 9), limits=RecordLimits(10, 10), terms=MANY, member="other")
    ranges = acquire_all(partition, 1000, 10)
    steps = acknowledge_in_steps(partition, "m", all_accepted(ranges), MANY, 0.0)
    next(steps)
    say(partition, 0, 9, ACCEPT, member="other", terms=MANY)
    assert partition.start_offset == 10
    write = at_once(steps)
    assert write is not None
    assert write.batches == (StateBatch(10, 1009, 2, 1),)
    complete(partition, {write.write_id}, is_stored=True)
    assert partition.start_offset == 1010


def test_locks_end_in_steps() -> None:
    partition = SharePartition(0)
    acquire_all(partition, 1000)
    write = expire(partition, MANY, 31.0, STEP)
    assert write is not None
    assert write.batches == (StateBatch(0, STEP - 1, 0, 1),)
    assert lock_end(partition) == 30.0


def test_the_log_start_may_move_between_the_steps_of_a_completion() -> None:
    partition = SharePartition(0)
    write = acknowledge(partition, "m", all_accepted(acquire_all(partition, 1000)), MANY, 0.0)
    assert write is not None
    steps = complete_in_steps(partition, {write.write_id}, is_stored=True)
    next(steps)
    log_start_moved(partition, 100)
    at_once(steps)
    assert (partition.start_offset, partition.batches) == (1000, [])
