"""``make stress ARGS="-k … --times 20"``: a selection of tests many times, beside processes that keep the processors busy.

A test that awaits what it needs passes here; one that counts on being quick does not. Every word but the options below is
pytest's, and a file or folder among them replaces ``tests``. The exit status is 1 if any run failed; each failed run's output
is shown.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path


def spin() -> None:
    """Keep one processor busy until the process is ended."""
    while True:
        pass


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="how often the selection is run (20)")
    busy = 2 * (os.cpu_count() or 1)
    parser.add_argument("--busy", type=int, default=busy, help=f"how many processes keep the processors busy ({busy})")
    wanted, words = parser.parse_known_args()
    if not any(Path(word.partition("::")[0]).exists() for word in words):
        words.append("tests")
    loops = [multiprocessing.Process(target=spin, daemon=True) for _ in range(wanted.busy)]
    for loop in loops:
        loop.start()
    failed = 0
    for number in range(1, wanted.times + 1):
        began = time.monotonic()
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        closing = run.stdout.rstrip().rpartition("\n")[2]
        print(f"run {number} of {wanted.times}: {closing} ({time.monotonic() - began:.0f} s)", flush=True)
        if run.returncode:
            failed += 1
            print(run.stdout, flush=True)
    print(f"{failed} of {wanted.times} runs failed, beside {wanted.busy} busy processes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
