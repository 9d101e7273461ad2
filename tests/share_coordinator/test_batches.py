"""The merge of state batches, against a model that has a state for each record."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.share_coordinator.batches import merge
from ottla.share_coordinator.state import StateBatch

OFFSETS = st.integers(0, 30)
BATCHES = st.lists(
    st.builds(
        lambda first, length, state, count: StateBatch(first, first + length, state, count),
        OFFSETS,
        st.integers(0, 8),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    max_size=8,
)

Model = dict[int, tuple[int, int]]
"""Offset -> delivery count and delivery state."""


def records(batches: list[StateBatch] | tuple[StateBatch, ...], start_offset: int = -1) -> Model:
    model: Model = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start_offset), last + 1):
            model[offset] = max(model.get(offset, (count, state)), (count, state))
    return model


@given(BATCHES, BATCHES, st.one_of(st.just(-1), OFFSETS))
def test_each_record_has_the_state_that_outranks_the_others(
    known: list[StateBatch], added: list[StateBatch], start_offset: int
) -> None:
    merged = merge(merge((), known, -1), added, start_offset)
    assert records(merged) == records([*known, *added], start_offset)
    for before, after in pairwise(merged):
        assert before.last_offset < after.first_offset
        touch = before.last_offset + 1 == after.first_offset
        assert not touch or before[2:] != after[2:], "neighbours in one state are one batch"


@given(BATCHES, BATCHES)
def test_what_is_written_twice_or_in_another_order_changes_nothing(
    known: list[StateBatch], added: list[StateBatch]
) -> None:
    merged = merge(merge((), known, -1), added, -1)
    assert merge(merged, added, -1) == merged
    assert merge(merge((), added, -1), known, -1) == merged


def test_an_acknowledgement_splits_a_batch() -> None:
    known = (StateBatch(0, 9, 0, 1),)
    assert merge(known, [StateBatch(3, 4, 2, 1)], -1) == (
        StateBatch(0, 2, 0, 1),
        StateBatch(3, 4, 2, 1),
        StateBatch(5, 9, 0, 1),
    )


def test_what_is_below_the_start_offset_goes() -> None:
    known = (StateBatch(0, 4, 2, 1), StateBatch(6, 9, 4, 2))
    assert merge(known, [], 7) == (StateBatch(7, 9, 4, 2),)
    assert merge(known, [], 5) == (StateBatch(6, 9, 4, 2),)
    assert merge(known, [], 10) == ()
