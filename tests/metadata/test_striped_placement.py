"""Where new partitions go in a cluster of KRaft: the cases and numbers of Kafka's StripedReplicaPlacerTest."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import MutableSequence
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.metadata.rules.striped_placement import StripedRacks, UsableBroker, place_replicas


class JavaRandom(random.Random):
    """Kafka's MockRandom, with the bounds and the shuffling of Java: so its tests' numbers hold here."""

    def __init__(self) -> None:
        super().__init__(0)
        self._state = 17

    def _next(self) -> int:
        self._state = (self._state * 2862933555777941757 + 3037000493) % 2**64
        return self._state >> 33

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        drawn = self._next()
        return start * drawn >> 31 if start & (start - 1) == 0 else drawn % start

    def shuffle(self, x: MutableSequence[Any]) -> None:
        for i in range(len(x), 1, -1):
            j = self.randrange(i)
            x[i - 1], x[j] = x[j], x[i - 1]


def brokers(alive: str, fenced: str = "", *, racks: bool = False) -> list[UsableBroker]:
    """Brokers by id; with ``racks`` the first digit is the rack."""
    return [
        UsableBroker(int(each), each[0] if racks else None, is_fenced)
        for names, is_fenced in ((alive, False), (fenced, True))
        for each in names.split()
    ]


STRIPES = {
    "a fenced broker is left out if possible": (
        brokers("3 0 4 2", "1"),
        4,
        [(3, 4, 0, 2), (4, 0, 2, 3), (0, 2, 3, 4), (2, 3, 4, 0), (0, 4, 3, 2)],
    ),
    "a fenced broker only follows": (brokers("3 2", "1"), 3, [(3, 2, 1), (2, 3, 1), (3, 2, 1), (2, 3, 1)]),
    "several racks": (
        brokers("11 10 30 31 21", "20", racks=True),
        4,
        [(11, 21, 31, 10), (21, 30, 10, 20), (31, 11, 21, 30)],
    ),
    "racks without a living broker": (
        brokers("11 10 41", "30 31 20 21 40", racks=True),
        4,
        [(41, 11, 21, 30), (10, 20, 31, 41), (41, 21, 30, 11)],
    ),
    "one living broker leads all": (brokers("0", "1"), 1, [(0,), (0,), (0,)]),
    "five partitions on four brokers": (
        brokers("0 3 2 1"),
        3,
        [(2, 3, 0), (3, 0, 1), (0, 1, 2), (1, 2, 3), (1, 0, 2)],
    ),
}


@pytest.mark.parametrize(("usable", "factor", "expected"), STRIPES.values(), ids=STRIPES)
def test_replicas_are_placed_in_stripes(
    usable: list[UsableBroker], factor: int, expected: list[tuple[int, ...]]
) -> None:
    racks = StripedRacks(usable, JavaRandom())
    assert [racks.place(factor) for _ in expected] == expected


def test_many_partitions_are_spread_evenly() -> None:
    counts = Counter(place_replicas(brokers("0 1 2 3"), 200, 2, JavaRandom()))
    assert counts == {
        (0, 1): 14,
        (0, 2): 22,
        (0, 3): 14,
        (1, 0): 17,
        (1, 2): 17,
        (1, 3): 16,
        (2, 0): 13,
        (2, 1): 17,
        (2, 3): 20,
        (3, 0): 20,
        (3, 1): 19,
        (3, 2): 11,
    }


REFUSED = {
    "all are fenced": (
        brokers("", "11 10", racks=True),
        1,
        "All brokers are currently fenced, or have all their log directories cordoned.",
    ),
    "too few": (
        brokers("11 10", racks=True),
        3,
        (
            "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered or some brokers "
            "have all their log directories cordoned."
        ),
    ),
    "none": (
        brokers("11 10", racks=True),
        0,
        "Invalid replication factor 0: the replication factor must be positive.",
    ),
    "less than none": (
        brokers("11 10", racks=True),
        -1,
        "Invalid replication factor -1: the replication factor must be positive.",
    ),
}


@pytest.mark.parametrize(("usable", "factor", "message"), REFUSED.values(), ids=REFUSED)
def test_a_factor_that_no_cluster_can_have_is_refused(usable: list[UsableBroker], factor: int, message: str) -> None:
    with pytest.raises(KafkaError) as refused:
        place_replicas(usable, 1, factor, random.Random(1))
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REPLICATION_FACTOR, message)


@pytest.mark.parametrize("seed", range(20))
def test_no_partition_has_a_broker_twice_or_a_fenced_leader(seed: int) -> None:
    randomness = random.Random(seed)
    usable = [
        UsableBroker(broker, randomness.choice(("a", "b", "c", None)), randomness.random() < 0.3) for broker in range(9)
    ]
    usable.append(UsableBroker(9, "d", is_fenced=False))
    fenced = {broker.broker_id for broker in usable if broker.is_fenced}
    for replicas in place_replicas(usable, 50, randomness.randint(1, 10), randomness):
        assert len(set(replicas)) == len(replicas)
        assert replicas[0] not in fenced


def on_machines(*counts: int, rack: str | None = None, first: int = 0) -> list[UsableBroker]:
    """So many living brokers on each machine."""
    machines = [f"{rack}-{number}" for number, count in enumerate(counts) for _ in range(count)]
    return [UsableBroker(first + number, rack, False, machine) for number, machine in enumerate(machines)]


@pytest.mark.parametrize("counts", [(2, 2), (4, 4, 4), (3, 1), (1, 2, 5)])
@pytest.mark.parametrize("factor", [1, 2, 3, 4])
def test_replicas_are_on_different_machines_first(counts: tuple[int, ...], factor: int) -> None:
    usable = on_machines(*counts)
    machine_of = {broker.broker_id: broker.machine for broker in usable}
    for seed in range(5):
        placed = place_replicas(usable, 60, factor, random.Random(seed))
        for replicas in placed:
            assert len(set(replicas)) == factor
            assert len({machine_of[each] for each in replicas}) == min(factor, len(counts))
        led = Counter(machine_of[replicas[0]] for replicas in placed)
        assert len(led) == len(counts) and max(led.values()) - min(led.values()) <= 2 * len(counts)
        leaders = Counter(replicas[0] for replicas in placed)
        assert set(leaders) == set(machine_of), "every broker leads something"


def test_racks_come_before_machines() -> None:
    usable = [*on_machines(2, 2, rack="a"), *on_machines(2, 2, rack="b", first=10)]
    of = {broker.broker_id: broker for broker in usable}
    for replicas in place_replicas(usable, 40, 4, random.Random(1)):
        assert sorted(str(of[each].rack) for each in replicas) == ["a", "a", "b", "b"]
        assert len({of[each].machine for each in replicas}) == 4
    for replicas in place_replicas(usable, 40, 2, random.Random(1)):
        assert {of[each].rack for each in replicas} == {"a", "b"}


def test_one_machine_is_as_in_kafka() -> None:
    """And so is one broker on each."""
    for usable in (on_machines(5), on_machines(1, 1, 1, 1, 1)):
        plain = [broker._replace(machine=None) for broker in usable]
        for seed in range(5):
            expected = place_replicas(plain, 20, 3, random.Random(seed))
            assert place_replicas(usable, 20, 3, random.Random(seed)) == expected
