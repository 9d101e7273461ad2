"""`make test`: runs its parts side by side on all processors, and prints a table of their results.

Nothing has a second turn: a test that fails by chance is mended, or marked ``in_lane_only`` with its reason. With CI=true a part
or a test that is left out is a failure. ``OTTLA_TEST_SETUP_BEGAN`` is when setting up began, in seconds since the epoch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import trio

from ottla.tools.suite import speed
from ottla.tools.suite.parts import PARTS, Part
from ottla.tools.suite.run_part import ROOT, Outcome, SetupFailed, run, set_up
from ottla.tools.suite.table import minutes, table

FOLDER = ROOT / "build" / "test"
WALL_MINUTES, CPU_MINUTES = 15, 22
"""What it may take on a machine whose factor is 1."""
_WORKERS_PER_PROCESSOR = 2
"""Of parts that run at once: tests of brokers and clients wait half of the time."""


def main(extra: Sequence[str]) -> int:
    """The exit status; ``extra`` are options of pytest for every part."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for log in FOLDER.glob("*.log"):
        log.unlink()
    chosen, outcomes = set_up_parts()
    factors = [speed.factor()]
    began = time.time()
    set_up_s = began - float(os.environ.get("OTTLA_TEST_SETUP_BEGAN", began))
    outcomes += trio.run(run_all, chosen, extra)
    wall_s = time.time() - began
    factors.append(speed.factor())
    order = [part.name for part in PARTS]
    outcomes.sort(key=lambda outcome: order.index(outcome.part))
    print(summary(outcomes))
    print(costs(set_up_s, wall_s, sum(outcome.cpu_s for outcome in outcomes), factors))
    is_ci = os.environ.get("CI") == "true"
    failed = [outcome for outcome in outcomes if not is_good(outcome, is_ci=is_ci)]
    if failed:
        print(f"FAILED: {', '.join(outcome.part for outcome in failed)} (logs in {FOLDER.relative_to(ROOT)}/)")
    print(closing_line(outcomes))
    return 1 if failed else 0


def set_up_parts() -> tuple[list[Part], list[Outcome]]:
    """The parts that can run here, and the outcomes of those that can't."""
    missing: dict[str, SetupFailed] = {}
    for step in dict.fromkeys(step for part in PARTS for step in part.needs):
        try:
            set_up(step)
        except SetupFailed as error:
            missing[step] = error
    chosen, outcomes = [], []
    for part in PARTS:
        lacks = [missing[step] for step in part.needs if step in missing]
        if lacks:
            outcomes.append(Outcome(part.name, is_left_out=lacks[0].is_missing, why=str(lacks[0])))
        else:
            chosen.append(part)
    return chosen, outcomes


async def run_all(parts: Sequence[Part], extra: Sequence[str]) -> list[Outcome]:
    """Begin each as soon as there is room for its workers, in their order."""
    outcomes: list[Outcome] = []
    room = max(_WORKERS_PER_PROCESSOR * (os.cpu_count() or 1), max(part.workers for part in parts))
    ended = trio.Event()

    async def perform(part: Part) -> None:
        nonlocal room
        outcome = await run(part, FOLDER, extra)
        print(progress(outcome), flush=True)
        outcomes.append(outcome)
        room += part.workers
        ended.set()

    async with trio.open_nursery() as nursery:
        for part in parts:
            while room < part.workers:
                await ended.wait()
                ended = trio.Event()
            room -= part.workers
            nursery.start_soon(perform, part)
    return outcomes


def progress(outcome: Outcome) -> str:
    """A line, behind the log where something failed."""
    line = f"{outcome.part}: {outcome.passed} passed, {len(outcome.failed)} failed in {minutes(outcome.wall_s)} minutes"
    if outcome.is_green:
        return line
    log = (FOLDER / f"{outcome.part}.log").read_text(errors="replace")
    return f"== {outcome.part}\n{log}\n{line}: {outcome.why}"


def is_good(outcome: Outcome, *, is_ci: bool) -> bool:
    """In CI nothing may be left out."""
    if is_ci:
        return outcome.is_green and not outcome.left_out
    return outcome.is_green or outcome.is_left_out


def summary(outcomes: Sequence[Outcome]) -> str:
    """What ran, what was left out and why."""
    abouts = {part.name: part.about for part in PARTS}
    rows = []
    for outcome in outcomes:
        skipped = str(sum(outcome.left_out.values()))
        cost = (minutes(outcome.wall_s), minutes(outcome.cpu_s))
        word = "green" if outcome.is_green else "left out" if outcome.is_left_out else "FAILED"
        rows.append(
            (outcome.part, word, str(outcome.passed), str(len(outcome.failed)), skipped, *cost, abouts[outcome.part])
        )
    lines = ["", table(("part", "", "passed", "failed", "left out", "minutes", "CPU minutes", ""), rows)]
    for outcome in outcomes:
        if outcome.is_left_out:
            lines.append(f"left out: {outcome.part}: {outcome.why}")
        lines += [f"left out: {count} of {outcome.part}: {why}" for why, count in outcome.left_out.items()]
    return "\n".join(lines)


def costs(set_up_s: float, wall_s: float, cpu_s: float, factors: Sequence[float]) -> str:
    """The times of the whole, and what they may be."""
    factor = sum(factors) / len(factors)
    allowed = f"{WALL_MINUTES * factor:.1f} and {CPU_MINUTES * factor:.1f}"
    spread = " and ".join(f"{each:.2f}" for each in factors)
    return (
        f"{minutes(wall_s)} minutes, {minutes(cpu_s)} CPU minutes; {allowed} are allowed at this machine's factor "
        f"({spread} before and after; {speed.build_of_python()}). Setting up took {minutes(set_up_s)} minutes."
    )


def closing_line(outcomes: Sequence[Outcome]) -> str:
    """The numbers of tests."""
    passed, failed = (sum(outcome.passed for outcome in outcomes), sum(len(outcome.failed) for outcome in outcomes))
    skipped = sum(sum(outcome.left_out.values()) for outcome in outcomes)
    return f"{passed} passed, {failed} failed, {skipped} skipped"
