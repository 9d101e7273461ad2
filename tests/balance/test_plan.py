"""Plans for clusters of any kind: no hard goal is made worse, replicas in sync stay enough, and few bytes are moved."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.balance.goals import CHOICE, Goal, capacity_of
from ottla.balance.model import BrokerModel, ClusterModel, LogDirectoryModel, PartitionModel, Replicas, why_fixed
from ottla.balance.plan import BalancePlan, find_plan
from ottla.balance.state import State

GIB = 1 << 30
LEAST_TIMES = 1.3


@st.composite
def clusters(draw: st.DrawFn) -> ClusterModel:
    """Up to six brokers in racks or without, some down or to leave, some with a full disk, and partitions in any state."""
    has_racks = draw(st.booleans())
    brokers = tuple(
        BrokerModel(
            broker_id,
            draw(st.sampled_from("abc")) if has_racks else None,
            draw(st.sampled_from([(), (LogDirectoryModel("/1", 1000, 100),), (LogDirectoryModel("/1", 1000, 900),)])),
            is_alive=draw(st.integers(0, 9)) > 0,
            is_leaving=draw(st.integers(0, 9)) == 0,
            out_of_sync=draw(st.integers(0, 9)) == 0,
        )
        for broker_id in range(1, draw(st.integers(1, 6)) + 1)
    )
    ids = [broker.broker_id for broker in brokers]
    partitions = []
    for number in range(draw(st.integers(0, 14))):
        replicas = tuple(draw(st.lists(st.sampled_from(ids), unique=True, min_size=1, max_size=3)))
        alive = [replica for replica in replicas if brokers[replica - 1].is_alive]
        isr = draw(st.sets(st.sampled_from(alive), min_size=1)) if alive else set()
        leader = draw(st.sampled_from(sorted(isr))) if isr else None
        size, written, read = (draw(st.integers(0, 300)) for _ in range(3))
        min_isr = draw(st.integers(1, 3))
        partitions.append(PartitionModel(("t", number), replicas, leader, frozenset(isr), min_isr, size, written, read))
    return ClusterModel(brokers, tuple(partitions))


def after(cluster: ClusterModel, plan: BalancePlan) -> dict[tuple[str, int], Replicas]:
    return {p.key: p.replicas for p in cluster.partitions} | {move.key: move.after for move in plan.moves}


def planned(cluster: ClusterModel, plan: BalancePlan) -> ClusterModel:
    """The cluster when all is done, and every replica in sync."""
    now = after(cluster, plan)
    moved = {move.key for move in plan.moves}
    freed = {broker: load.bytes - plan.after[broker].bytes for broker, load in plan.before.items()}
    return dataclasses.replace(
        cluster,
        brokers=tuple(
            dataclasses.replace(
                broker,
                folders=tuple(
                    LogDirectoryModel(f.path, f.total, (f.usable or 0) + freed[broker.broker_id])
                    for f in broker.folders
                ),
            )
            for broker in cluster.brokers
        ),
        partitions=tuple(
            dataclasses.replace(p, replicas=now[p.key], leader=now[p.key][0], isr=frozenset(now[p.key]))
            if p.key in moved
            else p
            for p in cluster.partitions
        ),
    )


@settings(max_examples=60, deadline=None)
@given(clusters(), st.permutations(CHOICE), st.integers(0, len(CHOICE)))
def test_no_hard_goal_is_made_worse(cluster: ClusterModel, order: Sequence[Goal], count: int) -> None:
    plan = find_plan(cluster, order[:count])
    brokers = cluster.by_id
    partitions = {partition.key: partition for partition in cluster.partitions}
    state = State(cluster, CHOICE, 0.1)
    assert len({move.key for move in plan.moves}) == len(plan.moves)
    for move in plan.moves:
        partition = partitions[move.key]
        assert why_fixed(partition, brokers) is None and move.why
        assert len(set(move.after)) == len(move.after) == len(move.before), "as many replicas as before"
        assert all(brokers[broker].receives for broker in move.adding)
        assert state.rack_lack(move.after) <= state.rack_lack(move.before)
        assert move.after[0] == move.before[0] or move.after[0] in {*partition.isr, *move.adding}
    for broker_id, load in plan.after.items():
        before = plan.before[broker_id]
        assert load.bytes <= max(before.bytes, capacity_of(brokers[broker_id], before.bytes))
        assert not brokers[broker_id].is_leaving or load.replicas <= before.replicas


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_there_are_always_as_many_replicas_in_sync_as_acks_all_asks_for(cluster: ClusterModel) -> None:
    """A move adds replicas, waits for them, and removes others then (KIP-455): so in sync are those from before until it ends."""
    partitions = {partition.key: partition for partition in cluster.partitions}
    for move in find_plan(cluster).moves:
        partition = partitions[move.key]
        needed = min(partition.min_isr, len(partition.replicas))
        meanwhile, then = partition.isr, {*move.after}
        assert len(then) >= needed
        assert len(meanwhile) >= needed or partition.isr >= {
            replica for replica in move.before if not cluster.by_id[replica].is_leaving
        }


@settings(max_examples=40, deadline=None)
@given(clusters(), st.integers(0, 30))
def test_a_search_that_is_ended_early_is_right_as_far_as_it_goes(cluster: ClusterModel, asked: int) -> None:
    answers = itertools.chain([True] * asked, itertools.repeat(False))
    plan = find_plan(cluster, may_go_on=lambda: next(answers))
    whole = find_plan(cluster)
    assert whole.is_whole
    if plan.is_whole:
        assert plan == whole
    state = State(cluster, CHOICE, 0.1)
    for move in plan.moves:
        assert state.rack_lack(move.after) <= state.rack_lack(move.before)
    for broker_id, load in plan.after.items():
        before = plan.before[broker_id]
        assert load.bytes <= max(before.bytes, capacity_of(cluster.by_id[broker_id], before.bytes))


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_what_is_balanced_stays_as_it_is(cluster: ClusterModel) -> None:
    plan = find_plan(cluster)
    if not plan.missed:
        assert not find_plan(planned(cluster, plan)).moves


# Cases that people have.


def cluster_of(
    brokers: Mapping[int, str | None] | Sequence[BrokerModel], replicas: Sequence[Replicas], sizes: Sequence[int]
) -> ClusterModel:
    made = tuple(BrokerModel(b, r) for b, r in brokers.items()) if isinstance(brokers, Mapping) else tuple(brokers)
    return ClusterModel(
        made,
        tuple(
            PartitionModel(("t", number), now, now[0], frozenset(now), 1, size)
            for number, (now, size) in enumerate(zip(replicas, sizes, strict=True))
        ),
    )


def is_within_tolerance(loads: Sequence[int]) -> bool:
    mean = sum(loads) / len(loads)
    return all(abs(load - mean) <= 0.1 * mean for load in loads)


def check_even(plan: BalancePlan, brokers: Sequence[int]) -> None:
    """Bytes and leaders within 10 %."""
    assert is_within_tolerance([plan.after[broker].bytes for broker in brokers])
    assert is_within_tolerance([plan.after[broker].leaders for broker in brokers])
    assert not plan.missed


def in_turn(count: int, brokers: Sequence[int], factor: int) -> list[Replicas]:
    return [tuple(brokers[(n + place) % len(brokers)] for place in range(factor)) for n in range(count)]


def test_an_empty_broker_gets_its_share() -> None:
    sizes = [(1 + number % 7) * GIB for number in range(90)]
    cluster = cluster_of(dict.fromkeys((1, 2, 3, 4)), in_turn(90, (1, 2, 3), 2), sizes)
    plan = find_plan(cluster)
    check_even(plan, (1, 2, 3, 4))
    share = 2 * sum(sizes) / 4
    assert plan.bytes <= LEAST_TIMES * 0.91 * share
    assert all(move.adding in ((4,), ()) for move in plan.moves), "nothing is moved between the others"


def test_a_broker_that_leaves_has_nothing_in_the_end() -> None:
    brokers = [BrokerModel(1), BrokerModel(2), BrokerModel(3, is_leaving=True), BrokerModel(4)]
    sizes = [(1 + number % 5) * GIB for number in range(80)]
    cluster = cluster_of(brokers, in_turn(80, (1, 2, 3, 4), 2), sizes)
    plan = find_plan(cluster)
    assert (plan.after[3].replicas, plan.after[3].leaders) == (0, 0)
    check_even(plan, (1, 2, 4))
    assert plan.bytes <= LEAST_TIMES * plan.before[3].bytes


def test_a_disk_that_fills_up_is_relieved_first() -> None:
    """With no goal but capacity, as much goes as is above four fifths of the disk, and hardly more."""
    full = BrokerModel(1, None, (LogDirectoryModel("/d", 100 * GIB, 5 * GIB),))
    others = [BrokerModel(number, None, (LogDirectoryModel("/d", 100 * GIB, 70 * GIB),)) for number in (2, 3)]
    sizes = [5 * GIB] * 19 + [10 * GIB] * 6
    cluster = cluster_of([full, *others], [(1,)] * 19 + [(2,), (3,)] * 3, sizes)
    plan = find_plan(cluster, [Goal.CAPACITY])
    assert plan.after[1].bytes == 80 * GIB
    assert plan.bytes == 15 * GIB
    assert all("capacity" in move.why for move in plan.moves)


def test_racks_of_unequal_size_keep_each_partition_in_both() -> None:
    """The only broker of rack b has a replica of every partition; the three of rack a share the others."""
    racks = {1: "a", 2: "a", 3: "a", 4: "b"}
    cluster = cluster_of(racks, [(1, 4)] * 30 + [(2, 4)] * 12, [GIB] * 42)
    plan = find_plan(cluster)
    assert all(sorted(racks[broker] for broker in replicas) == ["a", "b"] for replicas in after(cluster, plan).values())
    assert [plan.after[broker].replicas for broker in (1, 2, 3)] == [14, 14, 14]
    assert Goal.REPLICAS in plan.missed
    assert is_within_tolerance([plan.after[broker].leaders for broker in (1, 2, 3, 4)])


def test_replicas_in_one_rack_are_spread() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    cluster = cluster_of(racks, [(1, 2)] * 10 + [(3, 4)] * 10, [GIB] * 20)
    plan = find_plan(cluster)
    assert all({racks[broker] for broker in replicas} == {"a", "b"} for replicas in after(cluster, plan).values())
    assert plan.bytes == 20 * GIB
    check_even(plan, (1, 2, 3, 4))


def test_leaders_change_without_a_copy() -> None:
    cluster = cluster_of(dict.fromkeys((1, 2, 3)), [(1, 2, 3)] * 30, [GIB] * 30)
    plan = find_plan(cluster)
    assert plan.bytes == 0
    assert [plan.after[broker].leaders for broker in (1, 2, 3)] == [10, 10, 10]
    assert "leaders: broker 1 has" in plan.moves[0].why


def test_network_is_evened_without_touching_the_count_of_leaders() -> None:
    partitions = tuple(
        PartitionModel(
            ("t", n), (1, 2) if n < 10 else (2, 1), 1 + n // 10, frozenset((1, 2)), 1, GIB, 100, 1000 if n < 10 else 10
        )
        for n in range(20)
    )
    plan = find_plan(ClusterModel((BrokerModel(1), BrokerModel(2)), partitions))
    assert plan.bytes == 0
    assert is_within_tolerance([plan.after[broker].network_out for broker in (1, 2)])
    assert [plan.after[broker].leaders for broker in (1, 2)] == [10, 10]


def test_the_order_of_goals_decides() -> None:
    """One large partition: bytes and replicas cannot both be even."""
    cluster = cluster_of(dict.fromkeys((1, 2)), [(1,)] + [(2,)] * 10, [10 * GIB] + [GIB] * 10)
    assert not find_plan(cluster, [Goal.BYTES, Goal.REPLICAS]).moves
    by_count = find_plan(cluster, [Goal.REPLICAS, Goal.BYTES])
    assert sorted(load.replicas for load in by_count.after.values()) == [5, 6]


@pytest.mark.parametrize("goal", [Goal.BYTES, Goal.REPLICAS, Goal.LEADERS])
def test_one_goal_alone(goal: Goal) -> None:
    cluster = cluster_of(dict.fromkeys((1, 2, 3)), [(1,)] * 40 + [(2,)] * 15 + [(3,)] * 5, [GIB] * 60)
    plan = find_plan(cluster, [goal])
    assert not plan.missed
    assert len(plan.moves) == 15 + 4, "broker 2 is just above what is wanted, or gets the rest"
