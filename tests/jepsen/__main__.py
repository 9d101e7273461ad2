"""``make jepsen MINUTES=5 SEED=7``: clients and faults for this long on three brokers of Ottla; SYSTEM= has other systems.

    python -m ottla.tests.jepsen [--minutes 5] [--seed 7] [--system ottla] [--faults NAME,NAME...] [--folder FOLDER]
    python -m ottla.tests.jepsen --check FOLDER/history.jsonl

Everything is in a folder, build/jepsen/SYSTEM-SEED by default: the history, the brokers' logs, the report; also their data, if
something was found. ``--check`` checks a history again. Exit status 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from ottla.compat_tests import isolation

from .checker import check
from .faults import FAULTS
from .history import read_history
from .kinds import KINDS
from .report import operations, verdict
from .run import Run

_MODULE = "ottla.tests.jepsen"
REPORT = "report.txt"


def main() -> int:
    asked = _parse()
    if asked.check is not None:
        events = list(read_history(asked.check))
        violations = check(events)
        print(*operations(events), "", *verdict(violations), sep="\n")
        return 1 if violations else 0
    if not isolation.is_inside() and isolation.is_possible():
        return isolation.enter(_MODULE, sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = (asked.folder or Path("build/jepsen") / f"{asked.system}-{asked.seed}").absolute()
    report = Run(asked.system, asked.seed, asked.minutes * 60, folder, asked.faults)()
    (folder / REPORT).write_text(f"{report}\n")
    print(report, flush=True)
    # Threads of client libraries may still be waiting.
    os._exit(1 if report.violations else 0)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make jepsen", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--minutes", type=float, default=5.0, help="of faults; starting, healing and reading take 1 to 3 more"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--system", choices=sorted(KINDS), default="ottla")
    names = ", ".join(fault.name for fault in FAULTS)
    parser.add_argument("--faults", type=lambda text: text.split(","), default=(), help=f"only these of: {names}")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--check", type=Path, metavar="HISTORY", help="check this history, and run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
