"""The report of a run, as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .clients import Client
from .history import Act, Event, Type
from .nemesis import Nemesis
from .system import System
from .violations import Violation

if TYPE_CHECKING:
    from .run import Run

_SHOWN = 20
_TRACEBACK = re.compile(r"^(?:Traceback|Exception Group Traceback)", re.MULTILINE)


class Report:
    """``str`` gives the text."""

    def __init__(
        self,
        run: Run,
        system: System,
        nemesis: Nemesis,
        clients: Sequence[Client],
        events: Sequence[Event],
        seconds: float,
    ) -> None:
        self.violations: Sequence[Violation] = run.violations
        self.faults = dict(sorted(nemesis.done.items()))
        self._lines = [
            f"system {run.kind}, seed {run.seed}, {run.seconds:.0f} s of faults, {seconds:.0f} s in all",
            *(f"not done here: {each}" for each in system.lacks),
            "",
            f"{sum(nemesis.done.values())} faults: {_counts(nemesis.done)}",
            f"nodes that ended themselves, as they may: {_counts(nemesis.ended)}",
            f"starts of nodes that had to be tried again: {system.failed_starts}",
            *operations(events),
            "",
            *_of_clients(clients),
            "",
            *(
                f"{len(_TRACEBACK.findall(machine.process.log()))} tracebacks in the log of node {machine.number}"
                for machine in system.machines
                if machine.process.log_file.exists()
            ),
            "",
            *verdict(self.violations),
        ]

    def __str__(self) -> str:
        return "\n".join(self._lines)


def operations(events: Iterable[Event]) -> Iterator[str]:
    """The number of operations, by outcome."""
    counts = Counter((event.act, event.type) for event in events if event.act is not Act.FAULT)
    for act in (Act.SEND, Act.COMMIT, Act.ABORT):
        outcomes = ", ".join(f"{counts[act, type]} {type}" for type in (Type.OK, Type.FAIL, Type.INFO))
        yield f"{act}: {counts[act, Type.INVOKE]}, of which {outcomes}"
    yield f"polls that returned records: {counts[Act.POLL, Type.OK]}; assignments: {counts[Act.ASSIGN, Type.OK]}"


def _of_clients(clients: Sequence[Client]) -> Iterator[str]:
    for client in clients:
        shown = "; ".join(f"{count} x {error}" for error, count in client.errors.most_common(4))
        yield f"{client.name}: {client.lives} lives, {sum(client.errors.values())} errors{': ' if shown else ''}{shown}"


def verdict(violations: Sequence[Violation]) -> Iterator[str]:
    """The violations, with the first of each kind."""
    if not violations:
        yield "Nothing is wrong."
        return
    counts = Counter(violation.kind for violation in violations)
    yield f"WRONG: {_counts(counts)}"
    shown: Counter[str] = Counter()
    for violation in violations:
        shown[violation.kind] += 1
        if shown[violation.kind] <= _SHOWN:
            yield f"  {violation}"


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
