"""``ottla serve`` with a watched loop; ``python -m bench.watched_broker FILE serve ...``.

SIGUSR1 forgets the steps so far (``loop_steps``), SIGUSR2 writes the longest since then to FILE, as JSON:
``{"steps": [[CPU ms, wall ms, task], ...], "collection_ms": ...}``, without collections and with the longest of these.
"""

from __future__ import annotations

import functools
import json
import signal
import sys
from pathlib import Path

import trio

from ottla.cli import main as ottla_main

from .loop_steps import Steps


def main() -> None:
    target = Path(sys.argv.pop(1))
    steps = Steps()
    steps.watch_collections()

    def forget(*_: object) -> None:
        steps.take()
        steps.take_longest_collection()

    def write(*_: object) -> None:
        unfinished = target.with_suffix(".new")
        found = {"steps": steps.take(), "collection_ms": steps.take_longest_collection()}
        unfinished.write_text(json.dumps(found))
        unfinished.rename(target)

    signal.signal(signal.SIGUSR1, forget)
    signal.signal(signal.SIGUSR2, write)
    trio.run = functools.partial(trio.run, instruments=[steps])  # type: ignore[assignment]
    ottla_main()


if __name__ == "__main__":
    main()
