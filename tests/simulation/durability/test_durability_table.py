"""The table of docs/durability.md, "what is lost when", cell by cell, on each keeper of the metadata.

A line of the table is how a producer and its topic are set, a column is what happens to the brokers of the topic's three
replicas. Where a cell says that records may be lost, some seed loses one that its producer took for written; where it does not,
no seed does. In either case what is left is sound, and the same on all replicas (``Stage.judge``).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ottla.tests.simulation.durability import events
from ottla.tests.simulation.durability.events import AS_KILLED, EVENTS, Event, Setting, Trial
from ottla.tests.simulation.durability.keepers import KEEPERS, QUORUM_WITH_ELR, STORE, Keeper
from ottla.tests.simulation.run import Mode

pytestmark = pytest.mark.computes

SEEDS_TO_LOSE = range(1, 9)
SEEDS_TO_KEEP = range(1, 4)
ONE_SEED = 1
"""It loses records wherever the usual setting may."""
PAGE = Path(__file__).resolve().parents[3] / "docs" / "durability.md"
SETTINGS = [
    *(Setting(0, 2, unclean) for unclean in (False, True)),
    *(Setting(1, 2, unclean) for unclean in (False, True)),
    *(Setting(-1, least, unclean) for least in (1, 2, 3) for unclean in (False, True)),
]
USUAL = Setting(-1, 2, unclean=False)
CELLS = {"": (), "lost": (False, True), "ELR off": (False,), "ELR on": (True,)}
"""Whether records may be lost, by whether there are eligible leader replicas."""


def is_slow(keeper: Keeper) -> list[pytest.MarkDecorator]:
    """Of all lines. Those of a quorum are left to the lane, because they take twice the time, and the same brokers."""
    return [pytest.mark.slow] if keeper is STORE else [pytest.mark.slow, pytest.mark.in_lane_only]


def cases(settings: list[Setting]) -> list[object]:
    """Each of these settings on each keeper."""
    return [
        pytest.param(keeper, setting, id=f"{keeper.name}: {setting.name}", marks=is_slow(keeper))
        for keeper in KEEPERS
        for setting in settings
    ]


def cells() -> dict[str, list[str]]:
    """The lines of the page's table by their settings."""
    found = {}
    for line in PAGE.read_text().splitlines():
        if re.match(r"\| (0|1|all), (any|[123]), (no|yes) \|", line):
            name, *rest = (cell.strip() for cell in line.strip("|").split("|"))
            found[name] = rest
    return found


def events_of(keeper: Keeper, setting: Setting) -> dict[Event, bool]:
    """Whether records may be lost by each event, according to the page."""
    line = cells()[setting.name]
    return {event: keeper.has_elr in CELLS[cell] for event, cell in zip(EVENTS, line, strict=True)}


def test_every_line_of_the_page_has_its_proof() -> None:
    found = cells()
    assert list(found) == [setting.name for setting in SETTINGS]
    assert {len(line) for line in found.values()} == {len(EVENTS)}
    assert {cell for line in found.values() for cell in line} == set(CELLS)


@pytest.mark.parametrize("keeper", KEEPERS, ids=lambda keeper: keeper.name)
def test_the_usual_line_in_one_seed(keeper: Keeper) -> None:
    found = {event.__name__: keeper.lost(USUAL, event, ONE_SEED) > 0 for event in EVENTS}
    assert found == {event.__name__: may_lose for event, may_lose in events_of(keeper, USUAL).items()}


@pytest.mark.parametrize(("keeper", "setting"), cases(SETTINGS))
def test_a_line(keeper: Keeper, setting: Setting) -> None:
    for event, may_lose in events_of(keeper, setting).items():
        if may_lose:
            assert any(keeper.lost(setting, event, seed) for seed in SEEDS_TO_LOSE), f"{event.__name__} loses nothing"
        else:
            assert [seed for seed in SEEDS_TO_KEEP if keeper.lost(setting, event, seed)] == [], event.__name__


@pytest.mark.parametrize(("keeper", "setting"), cases([one for one in SETTINGS if one.acks == -1]))
def test_what_is_flushed_outlives_a_loss_of_power(keeper: Keeper, setting: Setting) -> None:
    may_lose = events_of(keeper, setting)
    for power_lost, killed in AS_KILLED.items():
        if not may_lose[killed]:
            seeds = [seed for seed in SEEDS_TO_KEEP if keeper.lost(setting, power_lost, seed, Mode.POWER_WITH_FLUSH)]
            assert seeds == [], power_lost.__name__


# --- eligible leader replicas -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [0, 1])
def test_with_a_minimum_of_one_nobody_else_is_eligible(acks: int) -> None:
    setting = Setting(acks, 1, unclean=False)
    assert QUORUM_WITH_ELR.lost(setting, events.the_only_one_in_sync_dies, ONE_SEED) == 0


async def the_eligible_were_killed(trial: Trial) -> None:
    """Those that fell out of sync are killed and come back; then the leader's machine loses power."""
    await trial.have_leader_alone()
    await trial.leave(2, 3)
    await trial.come_back(2, 3)
    await trial.leave(1, power_lost=True)
    await trial.come_back(1)


async def the_eligible_were_stopped(trial: Trial) -> None:
    """As ``the_eligible_were_killed``, but they are stopped cleanly."""
    await trial.have_leader_alone()
    for broker_id in (2, 3):
        await trial.stage.machine(broker_id).restart()
    await trial.leave(1, power_lost=True)
    await trial.come_back(1)


def test_a_replica_that_was_stopped_cleanly_stays_eligible() -> None:
    assert [seed for seed in SEEDS_TO_KEEP if QUORUM_WITH_ELR.lost(USUAL, the_eligible_were_stopped, seed)] == []


def test_a_replica_that_was_killed_is_not_eligible_any_more() -> None:
    assert any(QUORUM_WITH_ELR.lost(USUAL, the_eligible_were_killed, seed) for seed in SEEDS_TO_LOSE)
