"""The generator of docs/spark-versions.md: ``python -m ottla.compat_tests.spark.versions_page FILE…`` prints it.

Each file is what ``ottla compat --client spark --json FILE`` wrote, with one version of pyspark and one broker, in the order
in which they were made: of a test that is in several of the same version and broker the last result counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from ottla.compat_tests import brokers, record
from ottla.compat_tests.markdown_page import literal, table
from ottla.compat_tests.record import Cell, Report

CLIENT = "spark"
OURS = brokers.ottla_version()
INTRODUCTION = """\
# Versions of Spark

The tests of `compat_tests/spark/` that passed, by version of pyspark and broker. Make this page with

    make compat-spark

n/a: this version of Spark lacks the feature, or spark-avro, Delta or Iceberg was not released for it. `pip install '.[spark]'`
installs the newest pyspark 4. CI runs 4.0.0. The lane `spark-newest` of `make test-all` runs the tests with 4.2.0, the newest
that is tested, on Ottla only.
"""

Column = tuple[str, str]
"""pyspark and its version; the broker and its version."""


def text(cell: Cell | None) -> str:
    """What happened in a row of a column."""
    if cell is None:
        return ""
    counts = cell.counts
    if cell.outcome == record.NOT_APPLICABLE:
        return record.NOT_APPLICABLE
    told = [f"{counts[outcome]} {outcome}" for outcome in record.WORST_FIRST if outcome in counts]
    return f"**{', '.join(told)}**" if cell.outcome in (record.FAIL, record.SKIPPED) else ", ".join(told)


def page(columns: Mapping[Column, Report]) -> str:
    """The page, as Markdown."""
    rows = list(dict.fromkeys(row for report in columns.values() for row in report.rows(details=True)))
    cells = {column: report.cells(details=True) for column, report in columns.items()}
    head = ["", *(", ".join(column) for column in columns)]
    body = table(head, ([row, *(text(cells[column].get((CLIENT, row))) for column in columns)] for row in rows))
    runs = "".join(
        f"- {spark} on {broker}, {report.date}, {report.seconds} s: {report.summary()}\n"
        for (spark, broker), report in columns.items()
    )
    return "\n".join(
        [INTRODUCTION, body.replace("\\*\\*", "**"), runs, *filter(None, (failures(*each) for each in columns.items()))]
    )


def failures(column: Column, report: Report) -> str:
    """What did not pass and why."""
    lines = [
        f"- {literal(result.test)}: {result.outcome}, {literal(result.reason)}\n"
        for outcome in (record.FAIL, record.SKIPPED)
        for result in report.of(outcome)
    ]
    return f"## Not passed: {', '.join(column)}\n\n{''.join(lines)}" if lines else ""


def columns_of(files: Iterable[Path]) -> dict[Column, Report]:
    """The runs by version and broker, in order of these."""
    found: dict[Column, Report] = {}
    for file in files:
        report = record.from_json(json.loads(file.read_text(encoding="utf-8")))
        column = report.versions[CLIENT], report.broker
        found[column] = record.together(found[column], report) if column in found else report
    return {column: found[column] for column in sorted(found, key=lambda column: (column[1] != OURS, column))}


def main() -> None:
    """From the files that the arguments name."""
    sys.stdout.write(page(columns_of(map(Path, sys.argv[1:]))))


if __name__ == "__main__":
    main()
