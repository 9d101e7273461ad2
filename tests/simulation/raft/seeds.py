"""Runs of many seeds of a quorum, as `make simulate RAFT=1` makes them: what happened in them, and which failed."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence

import pytest

from ottla.tests.simulation.raft.breakages import BREAKAGES
from ottla.tests.simulation.raft.simulation import RaftResult, simulate_raft

_COUNTS = ("steps", "elections", "commits", "crashes")


def run_seeds(seeds: Sequence[int]) -> int:
    """Print a line for each seed that fails, and totals, which ranges of seeds may be added to. Returns 1 if any failed."""
    if len(seeds) == 1:
        logging.disable()
        return _tell(simulate_raft(seeds[0], is_verbose=True))
    logging.disable()  # what the recovery of a log says of each loss of power
    started, cpu, failed = time.monotonic(), _cpu_seconds(), 0
    totals = dict.fromkeys(_COUNTS, 0)
    with multiprocessing.get_context("spawn").Pool(os.cpu_count(), logging.disable) as pool:
        for count, result in enumerate(pool.imap_unordered(simulate_raft, seeds, chunksize=20), 1):
            for name in _COUNTS:
                totals[name] += getattr(result, name)
            if result.violation:
                failed += 1
                first = " ".join(result.violation.split())[:300]
                print(f"make simulate RAFT=1 SEEDS={result.seed}-{result.seed}  # {first}", flush=True)
            if count % 1000 == 0:
                print(f"{count} of {len(seeds)}, {failed} failed, {time.monotonic() - started:.0f} s", flush=True)
        pool.close()
        pool.join()
    print(f"seeds {seeds[0]}-{seeds[-1]}: {failed} failed, {time.monotonic() - started:.0f} s")
    for name, total in totals.items():
        label = "events" if name == "steps" else name
        print(f"{label:10} {total:12} {total / len(seeds):10.1f} per seed")
    cpu = _cpu_seconds() - cpu
    print(f"processor  {cpu:12.0f} s, {1000 * cpu / len(seeds):.0f} ms per seed")
    return 1 if failed else 0


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _tell(result: RaftResult) -> int:
    print("\n".join(result.events))
    if result.violation:
        print(f"VIOLATION: {result.violation}")
    print(f"seed {result.seed}: " + ", ".join(f"{getattr(result, name)} {name}" for name in _COUNTS))
    return 1 if result.violation else 0


def hunt_seeds(seeds: Sequence[int], breakage: str) -> int:
    """Run seeds with a broken rule until a checker detects it. Returns 1 if none does.

    A seed that also fails without the breakage does not count.
    """
    logging.disable()
    started = time.monotonic()
    for count, seed in enumerate(seeds, 1):
        with pytest.MonkeyPatch.context() as patch:
            BREAKAGES[breakage](patch)
            result = simulate_raft(seed)
        if result.violation and not simulate_raft(seed).violation:
            took = f"{time.monotonic() - started:.0f} s"
            print(f"{breakage} is caught by seed {seed}, after {count} seeds and {took}: {result.violation[:300]}")
            return 0
    print(f"{breakage} is not caught", file=sys.stderr)
    return 1
