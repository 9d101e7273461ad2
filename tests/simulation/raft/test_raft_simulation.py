"""Seeds of a quorum, whose inspector must find nothing; `make simulate RAFT=1 SEEDS=5000-5999` runs others."""

from __future__ import annotations

import pytest

from ottla.tests.simulation.parts import parts_of
from ottla.tests.simulation.raft.breakages import BREAKAGES
from ottla.tests.simulation.raft.simulation import simulate_raft

pytestmark = pytest.mark.computes

SEEDS = range(2000)
PARTS = 20
"""Into how many tests they are split, for the processes that run tests side by side."""
SHARE = 3
"""So many of these tests are in `make test`: 300 seeds, 20 seconds of processor time."""


def failed(seed: int) -> str:
    result = simulate_raft(seed)
    return f"make simulate RAFT=1 SEEDS={seed}-{seed}  # {result.violation}" if result.violation else ""


@pytest.mark.slow
@pytest.mark.parametrize("part", parts_of(PARTS, SHARE))
def test_many_seeds(part: int) -> None:
    assert [line for line in map(failed, SEEDS[part::PARTS]) if line] == []


@pytest.mark.slow
@pytest.mark.parametrize("is_real", [True, False], ids=["log", "model"])
def test_the_same_seed_is_the_same_run(is_real: bool) -> None:
    first, second, other = (simulate_raft(seed, is_real=is_real, is_verbose=True) for seed in (3, 3, 6))
    assert first.events == second.events != other.events


@pytest.mark.slow
@pytest.mark.parametrize("breakage", ["vote_before_sync", "fetch_before_flush", "truncation_by_offset"])
def test_seeds_detect_a_broken_rule(breakage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKAGES[breakage](monkeypatch)
    assert any(simulate_raft(seed).violation for seed in range(20))
