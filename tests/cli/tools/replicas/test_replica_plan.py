"""Plans of where replicas go: whatever the cluster is like, none has fewer replicas than before, and racks are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cli.tools.replicas import reassignment_file
from ottla.cli.tools.replicas.move_progress import MoveProgress
from ottla.cli.tools.replicas.moves import ClusterLayout, planned
from ottla.cli.tools.replicas.replica_drain import targets_of
from ottla.cli.tools.replicas.replica_plan import Racks, Replicas, spread, with_factor, without_broker

Assignment = dict[tuple[str, int], Replicas]
DEAD = (8, 9)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Racks, Assignment]:
    """Brokers that are alive, with racks or some without, and partitions, some of whose replicas are on dead ones."""
    ids = draw(st.sets(st.integers(1, 7), min_size=1))
    racks = {broker: draw(st.sampled_from(["a", "b", "c"])) for broker in sorted(ids)}
    without = draw(st.booleans()) and draw(st.sampled_from(sorted(ids)))
    known: Racks = {broker: None if broker == without else rack for broker, rack in racks.items()}
    anywhere = st.lists(st.sampled_from([*sorted(ids), *DEAD]), unique=True, min_size=1, max_size=4)
    found = draw(st.lists(anywhere, max_size=12))
    return known, {("t", number): tuple(replicas) for number, replicas in enumerate(found)}


def rack_count(racks: Racks, replicas: Replicas) -> int:
    return len({racks.get(replica) for replica in replicas})


def is_rack_aware(racks: Racks) -> bool:
    return None not in racks.values()


def could_be_elsewhere(racks: Racks, stay: Replicas, to: int) -> bool:
    """Whether a replica that went ``to`` a broker could have been in a rack that has none."""
    there = {racks.get(replica) for replica in stay}
    return racks[to] in there and any(racks[b] not in there for b in racks if b not in stay)


@settings(max_examples=200, deadline=None)
@given(clusters(), st.integers(1, 9))
def test_a_broker_is_emptied(cluster: tuple[Racks, Assignment], broker: int) -> None:
    racks, assignment = cluster
    plan = without_broker(assignment, broker, racks)
    assert plan.changes.keys() | set(plan.stuck) == {key for key, replicas in assignment.items() if broker in replicas}
    for key, replicas in plan.changes.items():
        before = assignment[key]
        assert broker not in replicas
        assert len(set(replicas)) == len(before)
        (new,) = set(replicas) - set(before)
        assert new in racks
        assert [r for r in replicas if r != new] == [r for r in before if r != broker], (
            "everything else stays, in its order"
        )
        stay = tuple(r for r in before if r != broker)
        if is_rack_aware(racks):
            assert not could_be_elsewhere({b: rack for b, rack in racks.items() if b != broker}, stay, new)
    for key in plan.stuck:
        assert racks.keys() <= {*assignment[key], broker}
    again = without_broker(assignment | plan.changes, broker, racks)
    assert not again.changes, "it comes to an end"


@settings(max_examples=200, deadline=None)
@given(clusters(), st.integers(1, 5))
def test_replicas_are_added(cluster: tuple[Racks, Assignment], factor: int) -> None:
    racks, assignment = cluster
    plan = with_factor(assignment, assignment, factor, racks)
    for key, before in assignment.items():
        replicas = plan.changes.get(key, before)
        assert replicas[: len(before)] == before
        assert len(set(replicas)) == len(replicas)
        assert len(replicas) == max(factor, len(before)) or key in plan.stuck
        for place in range(len(before), len(replicas)):
            if is_rack_aware(racks):
                assert not could_be_elsewhere(racks, replicas[:place], replicas[place])
    for key in plan.stuck:
        assert len(racks.keys() | set(assignment[key])) < factor
    assert not with_factor(assignment | plan.changes, assignment, factor, racks).changes


@settings(max_examples=200, deadline=None)
@given(clusters())
def test_topics_are_spread(cluster: tuple[Racks, Assignment]) -> None:
    racks, assignment = cluster
    plan = spread(assignment, racks)
    spread_out = {key: plan.changes.get(key, replicas) for key, replicas in assignment.items() if key not in plan.stuck}
    for key, replicas in spread_out.items():
        assert len(set(replicas)) == len(assignment[key])
        assert racks.keys() >= set(replicas)
        if is_rack_aware(racks) and racks.keys() >= set(assignment[key]):
            assert rack_count(racks, replicas) >= rack_count(racks, assignment[key])
    assert all(len(assignment[key]) > len(racks) for key in plan.stuck)
    if len(set(racks.values())) == 1 and not plan.stuck:
        counts = Counter(dict.fromkeys(racks, 0))
        counts.update(replica for replicas in spread_out.values() for replica in replicas)
        assert max(counts.values()) - min(counts.values()) <= 1
    assert plan.stuck or not spread(spread_out, racks).changes, "what is even stays as it is"


def test_a_new_broker_gets_its_share() -> None:
    three = {("t", number): ((1, 2, 3), (2, 3, 1), (3, 1, 2))[number % 3] for number in range(12)}
    racks: Mapping[int, str | None] = dict.fromkeys((1, 2, 3, 4))
    plan = spread(three, racks)
    now = three | plan.changes
    assert Counter(replica for replicas in now.values() for replica in replicas) == dict.fromkeys((1, 2, 3, 4), 9)
    assert Counter(replicas[0] for replicas in now.values()) == dict.fromkeys((1, 2, 3, 4), 3)
    moved = sum(len(set(now[key]) - set(three[key])) for key in three)
    assert moved == 9, "no more than the new broker gets"


def test_a_drained_broker_is_replaced_in_its_rack_and_in_its_place() -> None:
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    assert without_broker({("t", 0): (1, 2)}, 1, racks).changes == {("t", 0): (3, 2)}
    assert without_broker({("t", 0): (2, 1)}, 1, racks).changes == {("t", 0): (2, 3)}


def test_a_move_adds_and_removes() -> None:
    move = planned((1, 2, 3), (4, 2))
    assert (move.adding, move.removing, move.target, set(move.sources)) == ((4,), (1, 3), (4, 2), {1, 2, 3})


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assignment = {("b", 1): (1, 2), ("a", 0): (3,)}
    path.write_text(reassignment_file.write(assignment))
    assert reassignment_file.read(path) == (assignment, {})


def test_a_file_names_folders(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/b"]}]}')
    assert reassignment_file.read(path) == ({("t", 0): (1, 2)}, {("t", 0, 2): "/b"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON"),
        ('{"version": 2}', "version 1"),
        ('{"partitions": []}', "names no partitions"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "are required"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "each on another broker"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": []}]}',
            "1 replicas and 0 log_dirs",
        ),
    ],
)
def test_a_file_that_makes_no_sense(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(Exception, match=why):
        reassignment_file.read(path)


def test_progress_in_bytes_and_the_time_that_is_left() -> None:
    progress = MoveProgress()
    one, two = ("t", 0), ("t", 1)
    progress.look({one: (1000, [100]), two: (500, [0, 0])}, 50.0)
    assert (progress.done, progress.total, progress.seconds_left(50.0)) == (100, 2000, None)
    assert progress.text(50.0) == "100 B of 2.0 KiB moved, 2 partitions to go"
    progress.look({one: (1000, [600]), two: (500, [0, 0])}, 60.0)
    assert progress.seconds_left(60.0) == pytest.approx(28)
    assert progress.text(60.0) == "600 B of 2.0 KiB moved, 2 partitions to go, about 28 s left"
    progress.look({two: (500, [250, 600])}, 70.0)
    assert (progress.done, progress.total, progress.left) == (1750, 2000, 1), "what has arrived counts in full"


def test_a_drain_moves_nothing_twice_though_a_broker_has_not_heard_of_it() -> None:
    partitions = {("t", 0): SimpleNamespace(leader=2), ("t", 1): SimpleNamespace(leader=1)}
    before: Assignment = {("t", 0): (3, 2), ("t", 1): (1, 3)}
    racks = {1: None, 2: None, 3: None}
    known = SimpleNamespace(racks=racks, receiving=racks, moves={}, partitions=partitions, targets=before)
    layout = cast(ClusterLayout, known)
    moved = targets_of(layout, 3, {})
    assert moved == {("t", 0): (1, 2), ("t", 1): (1, 2)}
    assert targets_of(layout, 3, moved) == {}
    partitions["new", 0] = SimpleNamespace(leader=3)
    before["new", 0] = (3,)
    assert targets_of(layout, 3, moved).keys() == {("new", 0)}
