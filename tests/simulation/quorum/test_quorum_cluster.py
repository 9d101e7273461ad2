"""Seeds of a KRaft cluster with Ottla's controllers, whose checkers must find nothing."""

from __future__ import annotations

import pytest

from ottla.tests.simulation.__main__ import again
from ottla.tests.simulation.consumer_group.breakages import BREAKAGES
from ottla.tests.simulation.parts import parts_of
from ottla.tests.simulation.quorum.simulation import simulate_quorum_cluster

pytestmark = pytest.mark.computes

SHARE = range(3)
SEEDS = range(40)
PARTS = 4
"""Into how many tests they are split, for the processes that run tests side by side."""
IN_TEST = 2
"""The number of these tests in `make test`."""


def replay(seed: int) -> str:
    result = simulate_quorum_cluster(seed)
    return again(result, is_cluster=True, is_quorum=True) if result.violations else ""


@pytest.mark.parametrize("seed", SHARE)
def test_some_seeds(seed: int) -> None:
    assert replay(seed) == ""


@pytest.mark.slow
@pytest.mark.parametrize("part", parts_of(PARTS, IN_TEST))
def test_many_seeds(part: int) -> None:
    assert [line for line in map(replay, SEEDS[len(SHARE) + part :: PARTS]) if line] == []


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["revocation_is_not_awaited", "takes_owned_partitions"])
def test_seeds_detect_a_broken_rule_of_consumer_groups(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKAGES[rule](monkeypatch)
    assert any(simulate_quorum_cluster(seed).violations for seed in range(1, 20))


@pytest.mark.slow
def test_the_same_seed_is_the_same_run() -> None:
    first, second = simulate_quorum_cluster(1), simulate_quorum_cluster(1)
    assert first.events == second.events
