"""Small clusters: no plan is better by the goals in their order, nor as good with fewer bytes; found by trying everything."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ottla.balance.goals import CHOICE, Goal, even
from ottla.balance.model import BrokerModel, ClusterModel, LogDirectoryModel, PartitionModel, Replicas
from ottla.balance.plan import find_plan
from ottla.balance.state import State

from .test_plan import GIB, LEAST_TIMES, after, cluster_of

MOST_TRIED = 1_500
"""Assignments of one cluster."""


@st.composite
def small(draw: st.DrawFn) -> ClusterModel:
    """Two to four brokers, some with racks, one at times to leave, and up to six partitions with one to three replicas."""
    count = draw(st.integers(2, 4))
    has_racks, leaves = draw(st.booleans()), draw(st.integers(0, 7)) == 0
    brokers = tuple(
        BrokerModel(number, draw(st.sampled_from("abc")) if has_racks else None, is_leaving=leaves and number == count)
        for number in range(1, count + 1)
    )
    partitions = []
    for number in range(draw(st.integers(1, 6))):
        replicas = tuple(draw(st.permutations(range(1, count + 1)))[: draw(st.integers(1, min(count, 3)))])
        size, written, read = (draw(st.integers(0, 100)) for _ in range(3))
        partitions.append(
            PartitionModel(("t", number), replicas, replicas[0], frozenset(replicas), 1, size, written, read)
        )
    return ClusterModel(brokers, tuple(partitions))


def costs(state: State, replicas: Sequence[Replicas]) -> tuple[int, ...]:
    """How far from each goal, in their order; counted from the start."""
    found = {Goal.RACKS: sum(state.rack_lack(now) for now in replicas)}
    for measure in state.measures:
        load = dict.fromkeys(measure.load, 0)
        for number, now in enumerate(replicas):
            for place, broker in enumerate(now):
                load[broker] += measure.weight(number, leads=place == 0)
        found[measure.goal] = sum(max(load[b] - measure.upper[b], measure.lower[b] - load[b], 0) ** 2 for b in load)
    return tuple(found[goal] for goal in state.goals)


def possible(state: State, number: int) -> list[Replicas]:
    """What a partition may have: who else leads is all that the order of replicas says."""
    before = state.before[number]
    brokers = sorted({*state.receivers, *before})
    return [
        (leader, *(broker for broker in chosen if broker != leader))
        for chosen in itertools.combinations(brokers, len(before))
        if state.rack_lack(chosen) <= state.rack_lack(before)
        for leader in chosen
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(small(), st.permutations(CHOICE), st.integers(1, len(CHOICE)))
def test_no_other_plan_is_as_good_and_moves_less(cluster: ClusterModel, order: Sequence[Goal], count: int) -> None:
    goals = order[:count]
    state = State(cluster, goals, 0.09)
    every = [possible(state, number) for number in range(len(cluster.partitions))]
    assume(math.prod(map(len, every)) <= MOST_TRIED)
    plan = find_plan(cluster, goals)
    now = after(cluster, plan)
    reached = costs(state, [now[partition.key] for partition in cluster.partitions])
    tried = [
        (costs(state, replicas), sum(state.moved_bytes(number, new) for number, new in enumerate(replicas)))
        for replicas in itertools.product(*every)
    ]
    assert reached == min(tried)[0], "no goal can be reached better"
    assert plan.bytes <= LEAST_TIMES * min(size for each, size in tried if each <= reached)


def test_what_is_moved_in_a_small_cluster_is_the_least() -> None:
    """One replica of 8 GiB is what broker 1 needs; one change after the other takes two, of 5 and of 4 GiB."""
    cluster = cluster_of(dict.fromkeys((1, 2, 3)), [(2, 3), (2,), (3, 2)], [5 * GIB, 8 * GIB, 4 * GIB])
    plan = find_plan(cluster, [Goal.BYTES])
    assert [(move.key[1], move.after) for move in plan.moves] == [(1, (1,))]
    assert plan.bytes == 8 * GIB and not plan.missed
    assert plan.moves[0].why == f"bytes: broker 1 would have 0 without it, below {plan_lower(26 * GIB, 3)}"


def plan_lower(total: int, brokers: int) -> int:
    return even(total, brokers, 0.09)[0]


def test_a_full_disk_gets_nothing_from_an_exchange_either() -> None:
    """Bytes would be even if broker 1 took the large one; its disk has no room for it."""
    full = BrokerModel(1, None, (LogDirectoryModel("/d", 10 * GIB, 2 * GIB),))
    cluster = cluster_of([full, BrokerModel(2)], [(1,), (2,), (2,)], [3 * GIB, 5 * GIB, 4 * GIB])
    plan = find_plan(cluster, [Goal.BYTES])
    assert plan.after[1].bytes <= 3 * GIB
    assert Goal.BYTES in plan.missed


def test_many_partitions_with_one_way_to_place_them_are_no_small_cluster() -> None:
    """Each has a replica on every broker."""
    cluster = cluster_of(dict.fromkeys((1, 2)), [(1, 2)] * 2000, [GIB] * 2000)
    assert len(find_plan(cluster).moves) > 800
