"""Seeds of the simulation, whose checkers must find nothing; and breakages, which they must find."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import trio

from ottla.log.producer_state import ProducerStateManager
from ottla.log.transaction_index import TransactionIndex
from ottla.replication.coordinator_shards import CoordinatorShards
from ottla.replication.partition import Partition
from ottla.tests.simulation import every_step
from ottla.tests.simulation.__main__ import again, parse_seeds
from ottla.tests.simulation.parts import parts_of
from ottla.tests.simulation.simulation import simulate
from ottla.tests.simulation.world import Mode
from ottla.transaction_coordinator.coordinator import TransactionCoordinator

pytestmark = pytest.mark.computes

OUTDATED = 20
"""Power is lost without a flush, and with it the last states of a transactional id whose later epoch a partition still knows."""
SEEDS = range(150)
PARTS = 15
"""Into how many tests they are split, for the processes that run tests side by side."""
SHARE = 5
"""So many of these tests are in `make test`."""


def replay(seed: int) -> str:
    result = simulate(seed)
    return again(result, is_cluster=False) if result.violations else ""


def test_a_few_seeds() -> None:
    assert [line for line in map(replay, (1, 2, 4)) if line] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", parts_of(PARTS, SHARE))
def test_many_seeds(part: int) -> None:
    assert [line for line in map(replay, SEEDS[part::PARTS]) if line] == []


def test_a_transaction_that_a_partition_knows_better_is_outdone() -> None:
    result = simulate(OUTDATED)
    assert any("Transaction t1 was not the last one" in line for line in result.events)
    assert result.violations == []


def test_the_same_seed_is_the_same_run() -> None:
    first, second, other = simulate(3), simulate(3), simulate(6)
    assert first.events == second.events
    assert first.digest == second.digest != other.digest


@contextmanager
def trio_in_another_thread() -> Iterator[None]:
    """A client whose tasks are shuffled a thousand times a second."""
    stopped = threading.Event()

    async def doze() -> None:
        while not stopped.is_set():
            await trio.sleep(0.001)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(doze)

    thread = threading.Thread(target=trio.run, args=(main,))
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def test_a_broker_in_another_thread_changes_nothing() -> None:
    alone = simulate(3)
    with trio_in_another_thread():
        assert simulate(3).events == alone.events


@pytest.mark.slow
@pytest.mark.parametrize("is_v2", [False, True], ids=["classic", "v2"])
@pytest.mark.parametrize("mode", [Mode.KILLS, Mode.POWER_WITH_FLUSH], ids=lambda mode: mode.value)
def test_transactions_survive_a_death_at_every_step(mode: Mode, is_v2: bool) -> None:
    _, changes, _ = every_step.run(mode, is_v2=is_v2, at=0)
    assert changes > 30
    wrong = {}
    for at in range(1, changes + 1):
        violations, _, deaths = every_step.run(mode, is_v2=is_v2, at=at)
        assert deaths == 1
        if violations:
            wrong[at] = violations
    assert wrong == {}


def forget_duplicates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStateManager, "check", lambda self, batch: None)


def commit_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    from ottla.log.partition_log import PartitionLog

    patch.setattr(PartitionLog, "safe_end_offset", property(lambda self: self.log_end_offset))


def leave_the_index_of_aborted_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionIndex, "sync", lambda self: None)


def forget_how_a_transaction_was_to_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionCoordinator, "_finish_soon", lambda self, shard, name: None)


def answer_before_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    async def committed(*args: object) -> None:
        pass

    patch.setattr(CoordinatorShards, "committed", committed)


def show_aborted_records(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("ottla.replication.fetching.aborted_transactions", lambda *args: [])


def commit_nothing_stable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "fetchable_end", lambda self, isolation_level: self.log.high_watermark)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("breakage", "seed"),
    [
        (forget_duplicates, 2),
        (commit_before_the_flush, 26),
        (leave_the_index_of_aborted_transactions, 10),
        (forget_how_a_transaction_was_to_end, 0),
        (answer_before_it_is_committed, 26),
        (show_aborted_records, 0),
        (commit_nothing_stable, 0),
    ],
)
def test_a_broken_broker_is_found_out(
    breakage: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``seed`` finds it, and is tried first: the others are for a broker that does other things with that seed."""
    breakage(monkeypatch)
    assert any(simulate(one).violations for one in (seed, *range(40)))


@pytest.mark.parametrize(("text", "seeds"), [("3", [0, 1, 2]), ("5-7", [5, 6, 7]), ("8-8", [8])])
def test_seeds_are_a_number_or_a_range(text: str, seeds: list[int]) -> None:
    assert list(parse_seeds(text)) == seeds
