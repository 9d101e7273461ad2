"""Seeds of a cluster, whose checkers must find nothing.

tests/simulation/README.md lists further runs.
"""

from __future__ import annotations

import pytest

from ottla.tests.simulation.__main__ import again
from ottla.tests.simulation.cluster.simulation import simulate_cluster
from ottla.tests.simulation.parts import parts_of

pytestmark = pytest.mark.computes

SEEDS = range(150)
KEPT = {
    282: "a move is cancelled, and the replica that stays has just lost what it had not flushed",
    1388: "a leader truncates while it asks a coordinator about the first batch of a transaction",
    1739: "a process dies while it empties a log, whose partition is then moved elsewhere",
    1929: "a producer's last committed batch is compacted, and the one behind it is truncated in an election",
    2794: "a leader that was replaced without having learned of it gets the next batch of an idempotent producer",
}
"""What was found by a seed that is none of those."""
PARTS = 30
"""Into how many tests they are split, for the processes that run tests side by side."""
SHARE = 10
"""So many of these tests are in `make test`."""


def replay(seed: int) -> str:
    result = simulate_cluster(seed)
    return again(result, is_cluster=True) if result.violations else ""


@pytest.mark.slow
@pytest.mark.parametrize("part", parts_of(PARTS, SHARE))
def test_many_seeds(part: int) -> None:
    assert [line for line in map(replay, SEEDS[part::PARTS]) if line] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", KEPT)
def test_kept_seed(seed: int) -> None:
    assert replay(seed) == ""


@pytest.mark.slow
def test_the_same_seed_is_the_same_run() -> None:
    first, second, other = simulate_cluster(3), simulate_cluster(3), simulate_cluster(6)
    assert first.events == second.events
    assert first.digest == second.digest != other.digest
