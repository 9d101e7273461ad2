"""Seeds of a share group's members, whose checkers must find nothing; `make simulate GROUP=1 SHARE=1` runs others."""

from __future__ import annotations

import pytest

from ottla.tests.simulation.__main__ import again
from ottla.tests.simulation.consumer_group.sharing import simulate_sharing
from ottla.tests.simulation.consumer_group.sharing_breakages import BREAKAGES
from ottla.tests.simulation.parts import parts_of

pytestmark = pytest.mark.computes

SEEDS = range(400)
PARTS = 8
"""Into how many tests they are split, for the processes that run tests side by side."""
SHARE = 1
"""So many of these tests are in `make test`: 50 seeds, 3 seconds of processor time."""


def failed(seed: int) -> str:
    result = simulate_sharing(seed)
    return again(result, is_group=True, is_share=True) if result.violations else ""


@pytest.mark.slow
@pytest.mark.parametrize("part", parts_of(PARTS, SHARE))
def test_many_seeds(part: int) -> None:
    assert [line for line in map(failed, SEEDS[part::PARTS]) if line] == []


@pytest.mark.slow
def test_the_same_seed_is_the_same_run() -> None:
    first, second, other = simulate_sharing(1), simulate_sharing(1), simulate_sharing(2)
    assert first.events == second.events
    assert first.digest == second.digest != other.digest


@pytest.mark.slow
@pytest.mark.parametrize("rule", BREAKAGES)
def test_seeds_detect_a_broken_rule(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKAGES[rule](monkeypatch)
    found = next(seed for seed in range(200) if simulate_sharing(seed).violations)
    monkeypatch.undo()
    assert failed(found) == ""
