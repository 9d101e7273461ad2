"""Steps of a plan, and folders: at no time is a broker too busy or a volume too full."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.balance.folders import folder_moves, log_dirs_for_new
from ottla.balance.goals import capacity_of
from ottla.balance.model import BrokerModel, ClusterModel, LogDirectoryModel, PartitionModel
from ottla.balance.plan import find_plan
from ottla.balance.steps import steps_of

from .test_plan import clusters

GIB = 1 << 30


@settings(max_examples=60, deadline=None)
@given(clusters(), st.integers(1, 4))
def test_steps_keep_brokers_from_too_much(cluster: ClusterModel, at_once: int) -> None:
    plan = find_plan(cluster)
    found = steps_of(cluster, plan, at_once)
    moves = [move for step in found.steps for move in step]
    assert sorted([*moves, *found.without_room], key=str) == sorted(plan.moves, key=str)
    used = {broker: load.bytes for broker, load in plan.before.items()}
    limits = {broker: max(used[broker], capacity_of(known, used[broker])) for broker, known in cluster.by_id.items()}
    for step in found.steps:
        assert step
        copied = [move for move in step if move.adding]
        busy = Counter(broker for move in copied for broker in {move.before[0], *move.adding})
        assert all(count <= at_once for count in busy.values())
        for move in copied:
            for broker in move.adding:
                used[broker] += move.size
        assert all(used[broker] <= limits[broker] for broker in used), "old and new replicas are there together"
        for move in copied:
            for broker in move.removing:
                used[broker] -= move.size


def test_a_full_folder_is_relieved_within_its_broker() -> None:
    folders = (LogDirectoryModel("/a", 100 * GIB, 5 * GIB), LogDirectoryModel("/b", 100 * GIB, 60 * GIB))
    partitions = tuple(
        PartitionModel(("t", n), (1,), 1, frozenset((1,)), 1, 10 * GIB, folders={1: "/a" if n < 9 else "/b"})
        for n in range(12)
    )
    cluster = ClusterModel((BrokerModel(1, None, folders),), partitions)
    moves = folder_moves(cluster)
    assert [(move.before, move.after) for move in moves] == [("/a", "/b")] * 2, "15 GiB are too many, and 20 go"
    assert "capacity: /a" in moves[0].why


def test_folders_with_room_are_left_alone() -> None:
    folders = (LogDirectoryModel("/a", 100 * GIB, 30 * GIB), LogDirectoryModel("/b", 100 * GIB, 99 * GIB))
    partitions = tuple(PartitionModel(("t", n), (1,), 1, frozenset((1,)), 1, GIB, folders={1: "/a"}) for n in range(70))
    assert not folder_moves(ClusterModel((BrokerModel(1, None, folders),), partitions)), "copying is not worth it"


def test_new_replicas_go_to_the_folder_with_most_room() -> None:
    empty = BrokerModel(
        2, None, (LogDirectoryModel("/a", 100 * GIB, 50 * GIB), LogDirectoryModel("/b", 100 * GIB, 90 * GIB))
    )
    partitions = tuple(PartitionModel(("t", n), (1,), 1, frozenset((1,)), 1, GIB) for n in range(10))
    cluster = ClusterModel((BrokerModel(1), empty), partitions)
    moves = find_plan(cluster).moves
    assert {*log_dirs_for_new(cluster, moves).values()} == {"/b"}
