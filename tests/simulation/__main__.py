"""``make simulate SEEDS=1000`` runs the seeds 0 to 999, ``SEEDS=5000-5999`` those; one line for each that fails.

With one seed (``SEEDS=123-123``) everything that happened is printed. With ``CLUSTER=1`` they are seeds of a cluster of several
machines, else of one machine.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time

from ottla.tests.simulation.cluster.simulation import simulate_cluster
from ottla.tests.simulation.outcome import Result
from ottla.tests.simulation.simulation import simulate


def parse_seeds(text: str) -> range:
    """``1000`` or ``5000-5999``."""
    first, dash, last = text.partition("-")
    return range(int(first), int(last) + 1) if dash else range(int(first))


def main(text: str, *, is_cluster: bool) -> int:
    seeds = parse_seeds(text)
    run = simulate_cluster if is_cluster else simulate
    if len(seeds) == 1:
        return _tell(run(seeds[0]))
    started = time.monotonic()
    failed = []
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for count, result in enumerate(pool.imap_unordered(run, seeds, chunksize=2), 1):
            if result.violations:
                failed.append(result.seed)
                print(again(result, is_cluster=is_cluster), flush=True)
            if count % 100 == 0:
                print(f"{count} of {len(seeds)}, {len(failed)} failed, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(seeds)} seeds, {len(failed)} failed, {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


def again(result: Result, *, is_cluster: bool) -> str:
    """How to see a seed that failed again, and why."""
    return f"make simulate {'CLUSTER=1 ' * is_cluster}SEEDS={result.seed}-{result.seed}  # {summary(result)}"


def summary(result: Result) -> str:
    """One line on what went wrong."""
    first = " ".join(result.violations[0].split())
    return f"{result.mode.value}, {len(result.violations)} violations, the first one: {first[:300]}"


def _tell(result: Result) -> int:
    print("\n".join(result.events))
    for violation in result.violations:
        print(f"VIOLATION: {violation}")
    print(f"seed {result.seed}, {result.mode.value}, {result.lives} starts, digest {result.digest[:16]}")
    return 1 if result.violations else 0


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--cluster"]
    sys.exit(main(arguments[0] if arguments else "300", is_cluster="--cluster" in sys.argv))
