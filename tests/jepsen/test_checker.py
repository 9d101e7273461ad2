"""Histories that are wrong in each way are caught; histories that only look wrong are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from .checker import Kind, check
from .history import (
    PROCESSED,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Act,
    Event,
    Partition,
    Read,
    Type,
    read_history,
    write_history,
)

A0 = Partition("a", 0)
A1 = Partition("a", 1)


# --- What histories are made of ---------------------------------------------------------------------------------------


def send(
    value: int,
    offset: int | None = None,
    outcome: Type = Type.OK,
    *,
    process: str = "p",
    partition: Partition = A0,
    transaction: str | None = None,
    source: int | None = None,
) -> list[Event]:
    about = {"partition": partition, "value": value, "transaction": transaction, "source": source}
    return [
        Event(process, Type.INVOKE, Act.SEND, **about),
        Event(process, outcome, Act.SEND, offset=offset, **about),
    ]


def end(transaction: str, act: Act = Act.COMMIT, outcome: Type | None = Type.OK, process: str = "p") -> list[Event]:
    events = [Event(process, Type.INVOKE, act, transaction=transaction)]
    return events if outcome is None else [*events, Event(process, outcome, act, transaction=transaction)]


def poll(
    *reads: tuple[int, int], process: str = "c", partition: Partition = A0, isolation: str = READ_COMMITTED
) -> list[Event]:
    found = tuple(Read(offset, value) for offset, value in reads)
    return [Event(process, Type.OK, Act.POLL, partition=partition, isolation=isolation, reads=found)]


def final(upto: int, process: str = "c", partition: Partition = A0, isolation: str = READ_COMMITTED) -> list[Event]:
    return [Event(process, Type.OK, Act.FINAL, partition=partition, isolation=isolation, offset=upto)]


def assign(*partitions: Partition, process: str = "c", group: str = "g", generation: int = 1) -> list[Event]:
    return [Event(process, Type.OK, Act.ASSIGN, group=group, generation=generation, partitions=partitions)]


def wrong(*parts: list[Event]) -> set[Kind]:
    return {violation.kind for violation in check(event for part in parts for event in part)}


# --- Lost, unseen -----------------------------------------------------------------------------------------------------


def test_nothing_is_wrong_with_a_history_in_which_all_is_read_once() -> None:
    assert wrong(send(1, 0), send(2, 1), poll((0, 1), (1, 2)), final(2)) == set()


def test_a_write_is_lost_if_it_was_acknowledged_and_a_reader_is_beyond_it() -> None:
    assert Kind.LOST_WRITE in wrong(send(1, 0), send(2, 1), poll((1, 2)))


def test_a_write_is_lost_if_another_value_is_at_its_offset() -> None:
    assert {Kind.LOST_WRITE, Kind.INCONSISTENT_OFFSET} <= wrong(send(1, 0), send(2, 0, Type.INFO), poll((0, 2)))


def test_a_write_is_not_lost_while_no_reader_is_beyond_it() -> None:
    assert wrong(send(1, 0), send(2, 1), poll((0, 1))) == set()


@pytest.mark.parametrize("outcome", [Type.INFO, Type.FAIL])
def test_a_write_that_was_not_acknowledged_need_not_be_there(outcome: Type) -> None:
    assert wrong(send(1, None, outcome), send(2, 1), poll((1, 2)), final(2)) == set()


def test_a_write_of_unknown_outcome_may_be_there() -> None:
    assert wrong(send(1, None, Type.INFO), send(2, 1), poll((0, 1), (1, 2)), final(2)) == set()


def test_the_write_of_a_transaction_is_lost_if_that_is_committed() -> None:
    history = [*send(1, 0, transaction="t"), *end("t"), *send(2, 2), *poll((2, 2))]
    assert Kind.LOST_WRITE in wrong(history)


def test_the_write_of_an_aborted_transaction_is_not_lost() -> None:
    assert wrong(send(1, 0, transaction="t"), end("t", Act.ABORT), send(2, 2), poll((2, 2)), final(3)) == set()


def test_a_write_is_unseen_that_is_not_there_in_the_end() -> None:
    assert wrong(send(1, 0), send(2, 1), poll((0, 1)), final(1)) == {Kind.UNSEEN}


def test_each_final_reader_has_to_see_everything() -> None:
    one = [*poll((0, 1), (1, 2), process="one"), *final(2, "one")]
    other = [*poll((0, 1), process="other"), *final(1, "other")]
    assert wrong(send(1, 0), send(2, 1), one, other) == {Kind.UNSEEN}


# --- Doubled, inconsistent, invented ----------------------------------------------------------------------------------


def test_a_value_at_two_offsets_is_a_duplicate() -> None:
    assert wrong(send(1, 0), poll((0, 1), (1, 1))) == {Kind.DUPLICATE}


def test_a_value_that_is_read_elsewhere_than_it_was_acknowledged_is_a_duplicate() -> None:
    assert Kind.DUPLICATE in wrong(send(1, 0), poll((5, 1)))


def test_two_values_at_one_offset_are_inconsistent() -> None:
    writes = send(1, None, Type.INFO) + send(2, None, Type.INFO)
    assert wrong(writes, poll((0, 1), process="c"), poll((0, 2), process="d")) == {Kind.INCONSISTENT_OFFSET}


def test_two_acknowledgements_of_one_offset_are_inconsistent() -> None:
    assert Kind.INCONSISTENT_OFFSET in wrong(send(1, 0, process="p"), send(2, 0, process="q"))


def test_an_acknowledged_record_of_an_aborted_transaction_keeps_its_offset() -> None:
    aborted = [*send(1, 0, transaction="t"), *end("t", Act.ABORT)]
    assert wrong(aborted, send(2, None, Type.INFO), poll((0, 2))) == {Kind.INCONSISTENT_OFFSET}


def test_a_value_that_nobody_has_sent_there_is_a_phantom() -> None:
    assert wrong(poll((0, 7))) == {Kind.PHANTOM}
    assert wrong(send(1, None, Type.INFO), poll((0, 1), partition=A1)) == {Kind.PHANTOM}


# --- Transactions -----------------------------------------------------------------------------------------------------


def test_who_reads_what_is_committed_reads_nothing_of_an_aborted_transaction() -> None:
    aborted = [*send(1, 0, transaction="t"), *end("t", Act.ABORT)]
    assert wrong(aborted, poll((0, 1))) == {Kind.ABORTED_READ}
    assert wrong(aborted, poll((0, 1), isolation=READ_UNCOMMITTED)) == set()


def test_a_commit_that_failed_before_the_abort_commits_nothing() -> None:
    history = [*send(1, 0, transaction="t"), *end("t", outcome=Type.FAIL), *end("t", Act.ABORT), *poll((0, 1))]
    assert wrong(history) == {Kind.ABORTED_READ}


def test_a_transaction_that_nobody_has_asked_to_commit_is_not_committed() -> None:
    assert wrong(send(1, 0, transaction="t"), poll((0, 1))) == {Kind.ABORTED_READ}


def test_a_transaction_whose_commit_has_no_known_outcome_may_be_there() -> None:
    open_end = [*send(1, 0, transaction="t"), *end("t", outcome=Type.INFO)]
    assert wrong(open_end, poll((0, 1))) == set()
    assert wrong(open_end, send(2, 2), poll((2, 2)), final(3)) == set()


def test_a_value_whose_send_has_failed_is_read_by_nobody() -> None:
    assert wrong(send(1, None, Type.FAIL), poll((0, 1), isolation=READ_UNCOMMITTED)) == {Kind.ABORTED_READ}


def test_a_transaction_is_not_seen_before_its_commit_was_asked_for() -> None:
    assert wrong(send(1, 0, transaction="t"), poll((0, 1)), end("t")) == {Kind.PRECOMMITTED_READ}


def test_a_transaction_may_be_seen_before_its_commit_is_answered() -> None:
    asked, answered = end("t")
    assert wrong(send(1, 0, transaction="t"), [asked], poll((0, 1)), [answered]) == set()


def test_a_transaction_of_which_a_part_is_missing_is_torn() -> None:
    both = [*send(1, 0, transaction="t"), *send(2, 0, partition=A1, transaction="t")]
    assert Kind.TORN_TRANSACTION in wrong(both, end("t"), poll((0, 1)), final(2), final(2, partition=A1))


def test_a_transaction_of_unknown_outcome_is_not_torn_either() -> None:
    both = [*send(1, 0, transaction="t"), *send(2, 0, partition=A1, transaction="t")]
    history = [*both, *end("t", outcome=Type.INFO), *poll((0, 1)), *final(2), *final(2, partition=A1)]
    assert Kind.TORN_TRANSACTION in wrong(history)


def test_a_transaction_is_not_torn_while_a_partition_is_not_read_that_far() -> None:
    both = [*send(1, 0, transaction="t"), *send(2, 0, partition=A1, transaction="t")]
    assert wrong(both, end("t"), poll((0, 1))) == set()


def test_a_record_is_processed_once() -> None:
    once = [*send(1, 0), *send(11, 0, partition=A1, transaction="t", source=1), *end("t")]
    again = [*send(12, 1, partition=A1, transaction="u", source=1), *end("u")]
    assert wrong(once, poll((0, 11), partition=A1)) == set()
    assert wrong(once, again, poll((0, 11), (1, 12), partition=A1)) == {Kind.PROCESSED_TWICE}


def test_a_result_that_was_aborted_does_not_count() -> None:
    aborted = [*send(11, 0, partition=A1, transaction="t", source=1), *end("t", Act.ABORT)]
    again = [*send(12, 2, partition=A1, transaction="u", source=1), *end("u")]
    assert wrong(send(1, 0), aborted, again, poll((2, 12), partition=A1)) == set()


def test_a_record_is_unprocessed_that_the_group_has_committed_and_made_nothing_of() -> None:
    history = [*send(1, 0), *send(2, 1), *poll((0, 1), (1, 2)), *send(11, 0, partition=A1, transaction="t", source=1)]
    history += [*end("t"), *poll((0, 11), partition=A1)]
    assert wrong(history, final(1, "group", isolation=PROCESSED)) == set()
    assert wrong(history, final(2, "group", isolation=PROCESSED)) == {Kind.UNPROCESSED}


# --- Order ------------------------------------------------------------------------------------------------------------

THREE = [*send(1, 0), *send(2, 1), *send(3, 2)]


def test_a_poll_goes_forward() -> None:
    assert wrong(THREE, poll((1, 2), (0, 1), (2, 3))) >= {Kind.INTERNAL_NONMONOTONIC_POLL}
    assert wrong(THREE, poll((0, 1), (1, 2)), poll((1, 2), (2, 3))) == {Kind.NONMONOTONIC_POLL}


def test_a_poll_leaves_nothing_out() -> None:
    everything = poll((0, 1), (1, 2), (2, 3), process="other")
    assert wrong(THREE, everything, poll((0, 1), (2, 3))) == {Kind.INTERNAL_POLL_SKIP}
    assert wrong(THREE, everything, poll((0, 1)), poll((2, 3))) == {Kind.POLL_SKIP}


def test_offsets_that_are_not_visible_are_no_gap() -> None:
    history = [*send(1, 0), *send(2, 1, transaction="t"), *end("t", Act.ABORT), *send(3, 3)]
    assert wrong(history, poll((0, 1), (3, 3))) == set()
    seen = poll((0, 1), (1, 2), (3, 3), process="u", isolation=READ_UNCOMMITTED)
    assert wrong(history, poll((0, 1), (3, 3)), seen) == set()
    other = poll((0, 1), (3, 3), process="v", isolation=READ_UNCOMMITTED)
    assert wrong(history, seen, other) == {Kind.INTERNAL_POLL_SKIP}


def test_after_an_assignment_a_consumer_goes_on_from_anywhere() -> None:
    assert (
        wrong(THREE, assign(A0), poll((0, 1), (1, 2), (2, 3)), assign(A0, generation=2), poll((1, 2), (2, 3))) == set()
    )


def test_sends_of_a_process_are_in_their_order() -> None:
    assert wrong(send(1, 1), send(2, 0)) == {Kind.NONMONOTONIC_SEND}
    assert wrong(send(1, 1, process="p"), send(2, 0, process="q")) == set()
    assert wrong(send(1, 1), send(2, 0, partition=A1)) == set()


def test_sends_in_a_transaction_are_in_their_order() -> None:
    history = [*send(1, 1, transaction="t"), *send(2, 0, transaction="t"), *end("t")]
    assert wrong(history) == {Kind.INTERNAL_NONMONOTONIC_SEND}


def test_the_order_is_that_of_the_sends_and_not_of_the_answers() -> None:
    first, second = send(1, 0), send(2, 1)
    assert wrong([first[0], second[0], second[1], first[1]]) == set()


def test_a_send_of_unknown_outcome_may_be_done_later() -> None:
    assert wrong(send(1, None, Type.INFO), send(2, 0), poll((0, 2), (1, 1))) == set()


# --- Groups -----------------------------------------------------------------------------------------------------------


def test_a_partition_has_one_owner_in_a_generation() -> None:
    assert wrong(assign(A0, process="c"), assign(A0, process="d")) == {Kind.TWO_OWNERS}
    assert wrong(assign(A0, process="c"), assign(A1, process="d")) == set()
    assert wrong(assign(A0, process="c"), assign(A0, process="d", generation=2)) == set()
    assert wrong(assign(A0, process="c"), assign(A0, process="d", group="h")) == set()


def test_a_group_reads_everything_that_it_passes() -> None:
    everything = [*poll((0, 1), (1, 2), (2, 3), process="final"), *final(3, "final")]
    first = [*assign(A0, process="c"), *poll((0, 1), process="c")]
    goes_on = [*assign(A0, process="d", generation=2), *poll((1, 2), (2, 3), process="d")]
    skips = [*assign(A0, process="d", generation=2), *poll((2, 3), process="d")]
    assert wrong(THREE, everything, first, goes_on) == set()
    assert wrong(THREE, everything, first, skips) == {Kind.GROUP_SKIP}


# --- Files ------------------------------------------------------------------------------------------------------------


def test_a_history_is_the_same_when_it_was_written_and_read(tmp_path: Path) -> None:
    history = [*send(1, 0, transaction="t", source=7), *end("t"), *poll((0, 1)), *assign(A0, A1), *final(1)]
    write_history(tmp_path / "history.jsonl", history)
    assert list(read_history(tmp_path / "history.jsonl")) == history
