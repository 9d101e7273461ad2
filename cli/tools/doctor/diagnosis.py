"""The lines of ``ottla doctor``: areas, levels, and the page or the JSON that they are printed as.

A check adds a line for each thing it found, or one that says all is well. Whatever it could not look at is a line of its own
(``UNKNOWN``), so that nothing unseen passes for healthy.
"""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from collections.abc import Iterable, Sequence

from ....base.wording import counted, listed
from ....view.findings import FindingRow, Severity
from ..output import console, print_json
from ..top import plain

HEALTHY, UNHEALTHY = 0, 1
_MOST_NAMED = 5
_LONGEST = 2000


class DiagnosisLevel(enum.StrEnum):
    """How serious a line is. Of a problem something does not work now; a warning may become one; a note is worth knowing."""

    OK = "ok"
    NOTE = "note"
    UNKNOWN = "not checked"
    WARNING = "warning"
    PROBLEM = "problem"


class Area(enum.StrEnum):
    """The groups of lines, in the order of the page."""

    BROKERS = "Brokers"
    QUORUM = "Quorum"
    REPLICATION = "Replication"
    TOPICS = "Topics"
    GROUPS = "Groups"
    TRANSACTIONS = "Transactions"
    DISKS = "Disks"
    CLOCKS = "Clocks"
    CERTIFICATES = "Certificates"
    VERSIONS = "Versions"
    SETTINGS = "Settings"
    LIMITS = "Limits"
    CONSOLE = "Console"


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnosis:
    """One line. ``what`` is a sentence without its full stop."""

    area: Area
    level: DiagnosisLevel
    what: str
    mend: str = ""
    """The command that fixes it, or the page of the docs that says how; empty if there is nothing to fix."""


def ok(area: Area, what: str) -> Diagnosis:
    return Diagnosis(area, DiagnosisLevel.OK, what)


def note(area: Area, what: str, mend: str = "") -> Diagnosis:
    return Diagnosis(area, DiagnosisLevel.NOTE, what, mend)


def unknown(area: Area, what: str, mend: str = "") -> Diagnosis:
    return Diagnosis(area, DiagnosisLevel.UNKNOWN, what, mend)


def warning(area: Area, what: str, mend: str) -> Diagnosis:
    return Diagnosis(area, DiagnosisLevel.WARNING, what, mend)


def problem(area: Area, what: str, mend: str) -> Diagnosis:
    return Diagnosis(area, DiagnosisLevel.PROBLEM, what, mend)


def of_finding(area: Area, finding: FindingRow, mend: str) -> Diagnosis:
    """A finding of the console's overview, with the names of its subjects behind the sentence."""
    names = [subject.name for subject in finding.subjects]
    more = ", …" if finding.count > len(names) else ""
    what = finding.what + (f": {', '.join(names)}{more}" if names else "")
    return (problem if finding.severity is Severity.PROBLEM else warning)(area, what, mend)


def named(names: Iterable[object]) -> str:
    """The first few of these, and … for the rest."""
    return listed([str(name) for name in names], _MOST_NAMED)


def exit_status(lines: Iterable[Diagnosis], *, is_strict: bool) -> int:
    """0 unless there is a problem; if strict, unless there is a warning or something that could not be looked at."""
    failing = {DiagnosisLevel.PROBLEM}
    if is_strict:
        failing |= {DiagnosisLevel.WARNING, DiagnosisLevel.UNKNOWN}
    return UNHEALTHY if any(line.level in failing for line in lines) else HEALTHY


def summary(lines: Iterable[Diagnosis]) -> str:
    """The last line of the page."""
    count = Counter(line.level for line in lines)
    return (
        f"{counted(count[DiagnosisLevel.PROBLEM], 'problem')}, {counted(count[DiagnosisLevel.WARNING], 'warning')}, "
        f"{counted(count[DiagnosisLevel.NOTE], 'note')}; {count[DiagnosisLevel.UNKNOWN]} not checked"
    )


def print_page(lines: Sequence[Diagnosis]) -> None:
    """The lines by area, each with its level in a column, and what mends it below."""
    width = max(len(level) for level in DiagnosisLevel)
    styles = {
        DiagnosisLevel.OK: "green",
        DiagnosisLevel.NOTE: "cyan",
        DiagnosisLevel.UNKNOWN: "magenta",
        DiagnosisLevel.WARNING: "yellow",
        DiagnosisLevel.PROBLEM: "bold red",
    }
    from rich.text import Text

    out = console()
    for area in Area:
        of_area = [line for line in lines if line.area is area]
        if of_area:
            out.print(Text(area, style="bold"))
        for line in of_area:
            word = "OK" if line.level is DiagnosisLevel.OK else line.level
            # One line each, however long: a pipe and grep take it whole.
            row = Text.assemble("  ", (f"{word:{width}}", styles[line.level]), "  ", plain(line.what, _LONGEST))
            out.print(row, soft_wrap=True)
            if line.mend:
                out.print(Text(f"  {'':{width}}  mend: {plain(line.mend, _LONGEST)}"), soft_wrap=True)
    out.print(Text(summary(lines), style="bold"), soft_wrap=True)


def print_as_json(lines: Sequence[Diagnosis], *, is_strict: bool) -> None:
    """An object: whether it is healthy, and the lines."""
    rows = [
        {"area": line.area.lower(), "level": line.level, "what": line.what, "mend": line.mend or None} for line in lines
    ]
    print_json({"healthy": exit_status(lines, is_strict=is_strict) == HEALTHY, "lines": rows})
