"""Seeds of a share group, whose checkers must find nothing; `make simulate SHARE=1 SEEDS=5000-5999` runs others."""

from __future__ import annotations

import pytest

from ottla.tests.simulation.__main__ import again
from ottla.tests.simulation.parts import parts_of
from ottla.tests.simulation.share.breakages import BREAKAGES
from ottla.tests.simulation.share.simulation import simulate_share

pytestmark = pytest.mark.computes

SEEDS = range(1200)
PARTS = 24
"""Into how many tests they are split, for the processes that run tests side by side."""
SHARE = 1
"""So many of these tests are in `make test`: 50 seeds, 5 seconds of processor time."""

FIRST = {"first_start_is_not_stored": 37, "start_moves_before_the_write": 47, "leader_epochs_are_not_compared": 18}
"""The seed that finds a broken rule, where the first few do not. It is tried first."""


def failed(seed: int) -> str:
    result = simulate_share(seed)
    return again(result, is_share=True) if result.violations else ""


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_some_seeds(seed: int) -> None:
    assert failed(seed) == ""


@pytest.mark.slow
@pytest.mark.parametrize("part", parts_of(PARTS, SHARE))
def test_many_seeds(part: int) -> None:
    assert [line for line in map(failed, SEEDS[part::PARTS]) if line] == []


@pytest.mark.slow
def test_the_same_seed_is_the_same_run() -> None:
    first, second, other = simulate_share(1), simulate_share(1), simulate_share(2)
    assert first.events == second.events
    assert first.digest == second.digest != other.digest


@pytest.mark.slow
@pytest.mark.parametrize("rule", BREAKAGES)
def test_seeds_detect_a_broken_rule(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKAGES[rule](monkeypatch)
    found = next(seed for seed in (FIRST.get(rule, 0), *range(300)) if simulate_share(seed).violations)
    monkeypatch.undo()
    assert failed(found) == ""
