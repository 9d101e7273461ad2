"""The results of a run, one for each test, and the table of clients and capabilities made from them.

A test that the client's public API has no way for is ``n/a``, one that would have to restart a broker which is not ours is
``not run``, one whose toolchain is missing is ``skipped``: each is a result like the others, with its reason.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from ottla.compat_tests import capabilities, programs

PASS = "pass"
FAIL = "fail"
SKIPPED = "skipped"
NOT_RUN = "not run"
NOT_APPLICABLE = "n/a"
WORST_FIRST = (FAIL, SKIPPED, PASS, NOT_RUN, NOT_APPLICABLE)


@dataclasses.dataclass(frozen=True)
class Result:
    """One test of one client. ``reason`` is one line, for every outcome but pass; ``trace`` of failures ends with stderr."""

    test: str
    client: str
    capability: str
    outcome: str
    reason: str = ""
    trace: str = ""


@dataclasses.dataclass(frozen=True)
class Cell:
    """What a client did in one row; there is at least one result."""

    results: tuple[Result, ...]

    @property
    def outcome(self) -> str:
        """The worst of the results."""
        found = {result.outcome for result in self.results}
        return next(outcome for outcome in WORST_FIRST if outcome in found)

    @property
    def counts(self) -> dict[str, int]:
        """How many results of each outcome."""
        return dict(Counter(result.outcome for result in self.results))

    @property
    def reasons(self) -> list[str]:
        """Why it is not a pass, each once."""
        return list(dict.fromkeys(r.reason for r in self.results if r.outcome == self.outcome and r.reason))

    def text(self) -> str:
        """The outcome; of how many tests when a part of those that ran is bad; and how many did not run when they're good."""
        counts, outcome = self.counts, self.outcome
        ran = sum(counts.get(each, 0) for each in (FAIL, SKIPPED, PASS))
        if outcome in (FAIL, SKIPPED) and ran > 1:
            return f"{outcome} {counts[outcome]}/{ran}"
        if outcome == PASS:
            return ", ".join(
                [PASS, *(f"{counts[each]} {each}" for each in (NOT_RUN, NOT_APPLICABLE) if each in counts)]
            )
        return outcome


@dataclasses.dataclass
class Record:
    """The results of a run in progress, by test; of several results of a test the worst one stays."""

    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    _results: dict[str, Result] = dataclasses.field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Keep a result."""
        known = self._results.get(result.test)
        if known is None or WORST_FIRST.index(result.outcome) < WORST_FIRST.index(known.outcome):
            self._results[result.test] = result

    def result(self, test: str) -> Result:
        """Of a test that has ended."""
        return self._results[test]

    def results(self) -> list[Result]:
        """All that there is."""
        return list(self._results.values())


KEY = pytest.StashKey[Record]()
"""Where pytest's config keeps the record."""


@dataclasses.dataclass(frozen=True)
class Report:
    """A finished run. ``broker`` and ``command`` are for people, ``date`` is ISO 8601; ``versions`` are by client."""

    broker: str
    command: str
    date: str
    seconds: int
    versions: Mapping[str, str]
    results: Collection[Result]

    def clients(self) -> list[str]:
        """All who took part, in the order of the registry."""
        present = {result.client for result in self.results}
        return [name for name in programs.names() if name in present]

    def rows(self, *, details: bool = False) -> list[str]:
        """The groups, or with ``details`` the capabilities, that there are results for."""
        row_of = _row_of(details)
        present = {row_of(result.capability) for result in self.results}
        order = capabilities.capabilities() if details else capabilities.GROUPS
        return [row for row in order if row in present]

    def cells(self, *, details: bool = False) -> dict[tuple[str, str], Cell]:
        """By (client, row); where a client has no test there is no cell."""
        row_of = _row_of(details)
        found: dict[tuple[str, str], list[Result]] = {}
        for result in self.results:
            found.setdefault((result.client, row_of(result.capability)), []).append(result)
        return {where: Cell(tuple(results)) for where, results in found.items()}

    def of(self, outcome: str) -> list[Result]:
        """The results of one outcome."""
        return [result for result in self.results if result.outcome == outcome]

    def reasons(self, outcome: str) -> list[tuple[str, str, int]]:
        """(client, reason, number of tests) of one outcome, alike ones together."""
        found = Counter((result.client, result.reason) for result in self.of(outcome))
        return [(client, reason, found[client, reason]) for client, reason in found]

    def summary(self) -> str:
        """The numbers in a line."""
        words = {PASS: "passed", FAIL: "failed", NOT_APPLICABLE: "not applicable"}
        counts = Counter(result.outcome for result in self.results)
        told = [f"{counts[outcome]} {words.get(outcome, outcome)}" for outcome in WORST_FIRST if counts[outcome]]
        return ", ".join(told)

    def as_json(self) -> dict[str, Any]:
        """The document of ``--json``, which ``from_json`` reads."""
        cells = self.cells()
        fine = self.rows(details=True)
        return {
            "broker": self.broker,
            "command": self.command,
            "date": self.date,
            "seconds": self.seconds,
            "summary": dict(Counter(result.outcome for result in self.results)),
            "clients": [{"name": name, "version": self.versions.get(name)} for name in self.clients()],
            "capabilities": [
                {"name": row, "details": [name for name in fine if capabilities.group_of(name) == row]}
                for row in self.rows()
            ],
            "cells": [
                {
                    "client": client,
                    "capability": row,
                    "outcome": cells[client, row].outcome,
                    "reasons": cells[client, row].reasons,
                    "tests": [_test_as_json(result) for result in cells[client, row].results],
                }
                for row in self.rows()
                for client in self.clients()
                if (client, row) in cells
            ],
        }


def from_json(document: Mapping[str, Any]) -> Report:
    """The report that ``as_json`` made the document of."""
    versions = {each["name"]: each["version"] for each in document["clients"] if each["version"] is not None}
    results = [Result(client=cell["client"], **test) for cell in document["cells"] for test in cell["tests"]]
    facts = {name: document[name] for name in ("broker", "command", "date", "seconds")}
    return Report(versions=versions, results=results, **facts)


def _test_as_json(result: Result) -> dict[str, str]:
    return {name: value for name, value in dataclasses.asdict(result).items() if value and name != "client"}


def _row_of(details: bool) -> Any:
    return str if details else capabilities.group_of


def together(first: Report, second: Report) -> Report:
    """Two runs on one broker as one: of a test that is in both the second result counts."""
    results = {result.test: result for report in (first, second) for result in report.results}
    return Report(
        broker=first.broker,
        command=f"{first.command}\n{second.command}",
        date=max(first.date, second.date),
        seconds=first.seconds + second.seconds,
        versions={**first.versions, **second.versions},
        results=list(results.values()),
    )
