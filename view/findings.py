"""The answer to "what is wrong?": findings, and the checks that were made for them.

A finding is one line, however many topics or groups it is about: it counts them, and names the worst few. A page may say that
nothing is wrong only if every check was made (``all_made``).
"""

from __future__ import annotations

import dataclasses
import enum
import heapq
from collections.abc import Callable, Iterable, Sequence

MOST_NAMED = 3
"""A finding names at most so many of what it is about."""


class Severity(enum.StrEnum):
    """Of a problem something does not work now; a warning may become one."""

    PROBLEM = "problem"
    WARNING = "warning"


class Place(enum.StrEnum):
    """A kind of page that a finding leads to."""

    CLUSTER = "cluster"
    CONNECT = "connect"
    CONNECTOR = "connector"
    CLIENT = "client"
    """Requests of one client, by its client id."""
    ERRORS = "errors"
    GROUP = "group"
    GROUPS_BY_LAG = "groups by lag"
    GROUPS = "groups"
    OVERVIEW = "overview"
    QUORUM = "quorum"
    SLOWEST = "slowest"
    TOPIC = "topic"
    TRANSACTIONS = "transactions"


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """One of the things that a finding is about: its name for people, and the page that shows it."""

    name: str
    place: Place
    key: str = ""
    """The topic, group, client id or connector that the page is of."""
    at: str = ""
    """The Connect worker that reports a connector, by the host, port and path of its URL."""


@dataclasses.dataclass(frozen=True, slots=True)
class FindingRow:
    """Something that is wrong. ``what`` is a sentence without its full stop; the names of ``subjects`` may follow it."""

    kind: str
    """One word or two, the same for every finding of one check."""
    severity: Severity
    what: str
    place: Place
    """The page that shows all of it."""
    subjects: tuple[Subject, ...] = ()
    count: int = 0
    """How many could be named; ``subjects`` are the worst few of them."""
    since_ms: int | None = None
    """None if that is not known."""

    @property
    def is_problem(self) -> bool:
        return self.severity is Severity.PROBLEM

    def seen_by(self, may_see: Callable[[Subject], bool]) -> FindingRow:
        """Without the names that somebody may not see. The count stays."""
        return dataclasses.replace(self, subjects=tuple(each for each in self.subjects if may_see(each)))


@dataclasses.dataclass(frozen=True, slots=True)
class CheckRow:
    """Something that was looked at, or that could not be."""

    what: str
    """The end of a sentence: "the leaders and in-sync replicas of 3 partitions"."""
    why_not: str = ""
    """Why it could not be checked, or not completely; empty if it was."""

    @property
    def is_made(self) -> bool:
        return not self.why_not


class HealthReport:
    """Findings and checks as they come, after those that are known already."""

    def __init__(self, findings: Iterable[FindingRow] = (), checks: Iterable[CheckRow] = ()) -> None:
        self._findings = [*findings]
        self._checks = [*checks]

    def add(self, check: CheckRow, findings: Iterable[FindingRow] = ()) -> None:
        self._checks.append(check)
        self._findings.extend(findings)

    @property
    def findings(self) -> tuple[FindingRow, ...]:
        """Problems first."""
        return tuple(sorted(self._findings, key=lambda each: not each.is_problem))

    @property
    def checks(self) -> tuple[CheckRow, ...]:
        return tuple(self._checks)


class Worst:
    """The few of many with the largest numbers, in bounded memory."""

    def __init__(self, most: int = MOST_NAMED) -> None:
        self.count = 0
        """How many were added."""
        self._most = most
        self._heap: list[tuple[float, int, str]] = []

    def add(self, size: float, name: str) -> None:
        self.count += 1
        item = (size, -self.count, name)  # of equals the first stays
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, item)
        else:
            heapq.heappushpop(self._heap, item)

    def names(self) -> list[str]:
        """The largest first."""
        return [name for _, _, name in sorted(self._heap, reverse=True)]

    def subjects(self, place: Place) -> tuple[Subject, ...]:
        return tuple(Subject(name, place, name) for name in self.names())


def all_made(checks: Sequence[CheckRow]) -> bool:
    """Whether there were checks, and each could be made."""
    return bool(checks) and all(each.is_made for each in checks)
