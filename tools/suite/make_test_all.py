"""`make test-all`: runs lanes one after the other, each with all processors; results are in ``build/test-all``.

If at most MOST_RETRIED tests of a lane fail, they run a second time, alone: stock clients, JVMs and browsers have races of their
own, and there are thousands of tests of them. Apache Kafka's own build does the same (maxTestRetries and maxTestRetryFailures in
its build.gradle). The first failure stays in the log and in the table, for it is a bug in a test or worse. A simulation has no
such excuse, and gets no second turn.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Sequence

import trio

from ottla.tools.suite import results, speed
from ottla.tools.suite.parts import LANES, Part
from ottla.tools.suite.results import Result, Results
from ottla.tools.suite.run_part import ROOT, Outcome, SetupFailed, run, set_up
from ottla.tools.suite.table import minutes, table

FOLDER = ROOT / "build" / "test-all"
KEPT = FOLDER / "results.json"
MOST_RETRIED = 3
MOST_MINUTES = 9
"""Of a lane on a machine whose factor is 1; a longer one is split."""


def main(words: Sequence[str]) -> int:
    """The exit status: 1 if a lane failed, or was left out with CI=true."""
    parser = argparse.ArgumentParser(prog="make test-all", description="Every test, lane by lane.")
    names = [lane.name for lane in LANES]
    parser.add_argument(
        "--lane", action="append", choices=names, metavar="NAME", help=f"only this one: {', '.join(names)}"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with the lanes of the last run that were not green"
    )
    parser.add_argument("--table", action="store_true", help="run nothing: print what is known of each lane")
    parser.add_argument("pytest", nargs="*", metavar="-- OPTION", help="pytest's; then the result is not kept")
    wanted = parser.parse_args(words)
    known = results.load(KEPT)
    if wanted.table:
        print(lanes_table(known))
        return 0
    if not wanted.resume:
        known.begin(wanted.lane or names)
        if not wanted.pytest:
            results.save(known, KEPT)
    chosen = [lane for lane in LANES if lane.name in known.pending]
    lacking = missing_of(chosen)
    for lane in chosen:
        if lane.name in lacking:
            print(f"left out: {lane.name}: {lacking[lane.name]}", flush=True)
    failed = False
    for lane in chosen:
        if lane.name not in lacking:
            failed |= not run_lane(lane, known, wanted.pytest)
    print(lanes_table(known))
    return 1 if failed or (lacking and os.environ.get("CI") == "true") else 0


def missing_of(lanes: Sequence[Part]) -> dict[str, str]:
    """Set up what the lanes need; for those that can't run here, what they lack."""
    lacks: dict[str, str] = {}
    for step in dict.fromkeys(step for lane in lanes for step in lane.needs):
        try:
            set_up(step)
        except SetupFailed as error:
            lacks[step] = str(error)
    return {lane.name: lacks[step] for lane in lanes for step in lane.needs if step in lacks}


def run_lane(lane: Part, known: Results, extra: Sequence[str]) -> bool:
    """Run one and keep its result, unless it is only a part of the lane; whether it was green."""
    log = FOLDER / f"{lane.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    print(f"{lane.name}: {lane.about} (log: {log.relative_to(ROOT)})", flush=True)
    at, factor = results.commit(ROOT), speed.factor()
    outcome = trio.run(_with_second_turn, lane, extra)
    first = outcome.failed if outcome.is_green else ()
    result = Result(
        commit=at,
        day=results.today(),
        is_green=outcome.is_green,
        why=outcome.why,
        wall_s=outcome.wall_s,
        cpu_s=outcome.cpu_s,
        factor=factor,
        failed_at_first=first,
    )
    if not extra:
        known.add(lane.name, result)
        results.save(known, KEPT)
    if extra or not outcome.is_green:
        print(log.read_text(errors="replace"))
    for name in first:
        print(f"FAILED AT FIRST: {name}")
    word = "green" if outcome.is_green else f"FAILED, {outcome.why}"
    print(f"{lane.name}: {word}: {outcome.passed} passed in {minutes(outcome.wall_s)} minutes", flush=True)
    return outcome.is_green


async def _with_second_turn(lane: Part, extra: Sequence[str]) -> Outcome:
    """A green outcome that has failed tests is one whose second turn was green."""
    os.environ["CI"] = "true"  # what a lane needs is there, so a test that finds something missing fails
    outcome = await run(lane, FOLDER, extra)
    if outcome.left_out:
        why = "; ".join(f"{count} left out: {reason}" for reason, count in outcome.left_out.items())
        return dataclasses.replace(outcome, is_green=False, why=why)
    may_retry = 0 < len(outcome.failed) <= MOST_RETRIED and not any("simulation/" in name for name in outcome.failed)
    if not may_retry:
        return outcome
    second = await run(lane, FOLDER, extra, chosen=outcome.failed)
    return dataclasses.replace(
        outcome,
        is_green=second.is_green,
        why="" if second.is_green else outcome.why,
        passed=outcome.passed + second.passed,
        wall_s=outcome.wall_s + second.wall_s,
        cpu_s=outcome.cpu_s + second.cpu_s,
    )


def lanes_table(known: Results) -> str:
    """For each lane what it needs, what it took and where it was green last."""
    rows = []
    for lane in LANES:
        last, green = known.last.get(lane.name), known.green.get(lane.name)
        took = green or last
        cost = (minutes(took.wall_s), minutes(took.cpu_s), f"{took.factor:.2f}") if took else ("", "", "")
        at = f"{green.commit} ({green.day})" if green else "never"
        rows.append((lane.name, ", ".join(lane.needs), *cost, at, remark(last)))
    head = ("lane", "needs", "minutes", "CPU minutes", "factor", "last green at", "")
    return f"\n{table(head, rows)}\n{len(known.pending)} pending: {', '.join(known.pending) or 'none'}"


def remark(last: Result | None) -> str:
    """What a reader should know of the last run."""
    if last is None:
        return ""
    if not last.is_green:
        return f"FAILED at {last.commit}: {last.why}"
    words = [f"failed at first: {', '.join(last.failed_at_first)}"] if last.failed_at_first else []
    if last.wall_s / 60 > MOST_MINUTES * last.factor:
        words.append(f"over {MOST_MINUTES} minutes")
    return "; ".join(words)
