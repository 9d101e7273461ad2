"""``make simulate SEEDS=1000`` runs the seeds 0 to 999, ``SEEDS=5000-5999`` those; one line for each that fails.

With one seed (``SEEDS=123-123``) all its events are printed. With ``CLUSTER=1`` they are seeds of a cluster of several
machines, otherwise of one machine; with ``HARSH=1`` it has more faults. With ``CLUSTER=1 QUORUM=1`` that is a cluster of KRaft,
with controllers in place of a store. With ``BREAK=no_epoch_truncation`` clusters have a rule broken on purpose
(``cluster/breakages``, with a quorum those of ``quorum/breakages`` as well): seeds run one after the other, up to the first that
detects it. With ``RAFT=1`` they are seeds of a quorum of Raft nodes, whose rules are in ``raft/breakages``. With ``GROUP=1`` they
are seeds of a consumer group of KIP-848, whose rules are in ``consumer_group/breakages``, with ``SHARE=1`` of a share group of
KIP-932, whose rules are in ``share/breakages``. With both they are seeds of the members of a share group
(``consumer_group/sharing_breakages``).
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import sys
import time
from collections.abc import Callable

import pytest

from ottla.tests.simulation.cluster.breakages import BREAKAGES
from ottla.tests.simulation.cluster.simulation import simulate_cluster
from ottla.tests.simulation.consumer_group.breakages import BREAKAGES as GROUP_BREAKAGES
from ottla.tests.simulation.consumer_group.sharing import simulate_sharing
from ottla.tests.simulation.consumer_group.sharing_breakages import BREAKAGES as SHARING_BREAKAGES
from ottla.tests.simulation.consumer_group.simulation import simulate_group
from ottla.tests.simulation.outcome import Result
from ottla.tests.simulation.quorum.breakages import BREAKAGES as QUORUM_BREAKAGES
from ottla.tests.simulation.quorum.simulation import simulate_quorum_cluster
from ottla.tests.simulation.raft.breakages import BREAKAGES as RAFT_BREAKAGES
from ottla.tests.simulation.raft.seeds import hunt_seeds, run_seeds
from ottla.tests.simulation.share.breakages import BREAKAGES as SHARE_BREAKAGES
from ottla.tests.simulation.share.simulation import simulate_share
from ottla.tests.simulation.simulation import simulate


def parse_seeds(text: str) -> range:
    """``1000`` or ``5000-5999``."""
    first, dash, last = text.partition("-")
    return range(int(first), int(last) + 1) if dash else range(int(first))


def main(
    text: str,
    *,
    is_cluster: bool,
    is_harsh: bool = False,
    is_quorum: bool = False,
    is_group: bool = False,
    is_share: bool = False,
) -> int:
    seeds = parse_seeds(text)
    cluster = simulate_quorum_cluster if is_quorum else simulate_cluster
    run: Callable[[int], Result] = simulate_group if is_group else simulate_share if is_share else simulate
    if is_group and is_share:
        run = simulate_sharing
    if is_cluster:
        run = functools.partial(cluster, is_harsh=is_harsh)
    if len(seeds) == 1:
        return _tell(run(seeds[0]))
    started = time.monotonic()
    failed = []
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for count, result in enumerate(pool.imap_unordered(run, seeds, chunksize=2), 1):
            if result.violations:
                failed.append(result.seed)
                options = {"is_harsh": is_harsh, "is_quorum": is_quorum, "is_group": is_group}
                options["is_share"] = is_share
                print(again(result, is_cluster=is_cluster, **options), flush=True)
            if count % 100 == 0:
                print(f"{count} of {len(seeds)}, {len(failed)} failed, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(seeds)} seeds, {len(failed)} failed, {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


def again(
    result: Result,
    *,
    is_cluster: bool = False,
    is_harsh: bool = False,
    is_quorum: bool = False,
    is_group: bool = False,
    is_share: bool = False,
) -> str:
    """The command that repeats a failed seed, and why it failed."""
    options = "CLUSTER=1 " * is_cluster + "QUORUM=1 " * is_quorum + "HARSH=1 " * is_harsh + "GROUP=1 " * is_group
    options += "SHARE=1 " * is_share
    return f"make simulate {options}SEEDS={result.seed}-{result.seed}  # {summary(result)}"


def summary(result: Result) -> str:
    """The violations in one line."""
    first = " ".join(result.violations[0].split())
    return f"{result.mode.value}, {len(result.violations)} violations, the first one: {first[:300]}"


def _tell(result: Result) -> int:
    print("\n".join(result.events))
    for violation in result.violations:
        print(f"VIOLATION: {violation}")
    print(f"seed {result.seed}, {result.mode.value}, {result.lives} starts, digest {result.digest[:16]}")
    return 1 if result.violations else 0


def hunt(text: str, breakage: str, *, is_quorum: bool = False, is_group: bool = False, is_share: bool = False) -> int:
    """Run seeds with a broken rule, of clusters where nothing else is said, until a checker detects it. Returns 1 if none does.

    A seed that also fails without the breakage does not count.
    """
    started = time.monotonic()
    cluster = simulate_quorum_cluster if is_quorum else simulate_cluster
    run: Callable[[int], Result] = functools.partial(cluster, is_harsh=True)
    breakages: dict[str, Callable[[pytest.MonkeyPatch], None]] = (
        {**BREAKAGES, **QUORUM_BREAKAGES} if is_quorum else BREAKAGES
    )
    if is_group or is_share:
        run, breakages = (simulate_group, GROUP_BREAKAGES) if is_group else (simulate_share, SHARE_BREAKAGES)
    if is_group and is_share:
        run, breakages = simulate_sharing, SHARING_BREAKAGES
    for count, seed in enumerate(parse_seeds(text), 1):
        with pytest.MonkeyPatch.context() as patch:
            breakages[breakage](patch)
            result = run(seed)
        took = f"{time.monotonic() - started:.0f} s"
        if result.violations and not run(seed).violations:
            print(f"{breakage} is caught by seed {seed}, after {count} seeds and {took}: {summary(result)}")
            return 0
        if result.violations:
            print(f"seed {seed} fails without the breakage, too", flush=True)
        if count % 10 == 0:
            print(f"{count} seeds, {took}", flush=True)
    print(f"{breakage} is not caught")
    return 1


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument("seeds", nargs="?", default="300")
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--harsh", action="store_true")
    parser.add_argument("--quorum", action="store_true")
    parser.add_argument("--raft", action="store_true")
    parser.add_argument("--group", action="store_true")
    parser.add_argument("--share", action="store_true")
    breakages = {*BREAKAGES, *QUORUM_BREAKAGES, *RAFT_BREAKAGES, *GROUP_BREAKAGES, *SHARE_BREAKAGES, *SHARING_BREAKAGES}
    parser.add_argument("--break", dest="breakage", choices=sorted(breakages))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = _parse(sys.argv[1:])
    if options.raft and options.breakage:
        sys.exit(hunt_seeds(parse_seeds(options.seeds), options.breakage))
    if options.raft:
        sys.exit(run_seeds(parse_seeds(options.seeds)))
    if options.breakage:
        of = {"is_quorum": options.quorum, "is_group": options.group, "is_share": options.share}
        sys.exit(hunt(options.seeds, options.breakage, **of))
    kinds = {"is_cluster": options.cluster, "is_quorum": options.quorum, "is_group": options.group}
    kinds["is_share"] = options.share
    sys.exit(main(options.seeds, is_harsh=options.harsh, **kinds))
