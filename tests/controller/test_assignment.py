"""Replica assignment: Kafka's own example tables, and what every assignment keeps."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode, KafkaError
from ottla.metadata.rules.assignment import assign_replicas, check_assignment, rack_alternated


def unaware(brokers: int) -> dict[int, str | None]:
    return dict.fromkeys(range(brokers))


def test_five_brokers_as_in_kafkas_description() -> None:
    """The table in Kafka's AdminUtils: three replicas over five brokers, start index 0."""
    assigned = assign_replicas(unaware(5), 10, 3, random.Random(0), start_index=0)
    assert list(assigned.values()) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_racks_as_in_kafkas_description() -> None:
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert rack_alternated(racks) == [0, 3, 1, 5, 4, 2]
    assigned = assign_replicas(racks, 7, 3, random.Random(0), start_index=0)
    assert list(assigned.values()) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


def test_racks_of_uneven_size() -> None:
    assert rack_alternated({0: "a", 1: "a", 2: "a", 3: "b"}) == [0, 3, 1, 2]


def test_brokers_without_racks_among_others_are_taken_without_racks() -> None:
    assigned = assign_replicas({1: "a", 2: None}, 4, 2, random.Random(0))
    assert all(sorted(replicas) == [1, 2] for replicas in assigned.values())


def test_added_partitions_go_on_where_the_first_ones_ended() -> None:
    whole = assign_replicas(unaware(4), 9, 2, random.Random(0), start_index=1)
    added = assign_replicas(unaware(4), 4, 2, random.Random(0), start_index=1, first_partition=5)
    assert list(added) == [5, 6, 7, 8]
    assert {p: r[0] for p, r in added.items()} == {p: whole[p][0] for p in added}


@given(
    st.integers(1, 8),
    st.integers(1, 40),
    st.integers(1, 8),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=8, max_size=8),
    st.booleans(),
    st.integers(),
)
def test_every_assignment_is_even_and_without_repeats(
    brokers: int, partitions: int, factor: int, rack_names: list[str], with_racks: bool, seed: int
) -> None:
    factor = min(factor, brokers)
    racks = {b: rack_names[b] if with_racks else None for b in range(brokers)}
    assigned = assign_replicas(racks, partitions, factor, random.Random(seed))
    assert list(assigned) == list(range(partitions))
    leaders = Counter(replicas[0] for replicas in assigned.values())
    assert max(leaders.values()) - min(leaders[b] for b in range(brokers)) <= 1
    for replicas in assigned.values():
        assert len(replicas) == len(set(replicas)) == factor
        assert set(replicas) <= set(range(brokers))
        if with_racks:
            used = {racks[b] for b in replicas}
            assert len(used) == min(factor, len(set(racks.values())))


@pytest.mark.parametrize(
    ("partitions", "factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-1, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 4, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_numbers_that_cannot_be(partitions: int, factor: int, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        assign_replicas(unaware(3), partitions, factor, random.Random(0))
    assert caught.value.code == code


def test_an_even_replication_factor_is_legal() -> None:
    assert len(assign_replicas(unaware(3), 1, 2, random.Random(0))[0]) == 2


@pytest.mark.parametrize(
    "assignment",
    [
        {1: [1]},
        {0: [1], 2: [1]},
        {0: []},
        {0: [1], 1: [1, 2]},
        {0: [1, 1]},
        {0: [9]},
    ],
)
def test_replicas_named_by_hand_that_make_no_sense(assignment: dict[int, list[int]]) -> None:
    with pytest.raises(KafkaError) as caught:
        check_assignment(assignment, {1: None, 2: None})
    assert caught.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_replicas_named_by_hand() -> None:
    check_assignment({0: [2, 1], 1: [1, 2]}, {1: None, 2: None})
    check_assignment({3: [1]}, {1: None}, first_partition=3)
