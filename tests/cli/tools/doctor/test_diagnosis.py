"""The page of ``ottla doctor``: levels, exit status, links to the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ottla
from ottla.cli.tools.doctor.diagnosis import (
    Area,
    Diagnosis,
    exit_status,
    note,
    ok,
    print_page,
    problem,
    unknown,
    warning,
)

PROJECT = Path(ottla.__file__).parent
LINK = re.compile(r"docs/(?P<page>[a-z-]+)\.md(?:#(?P<anchor>[a-z0-9_-]+))?")
WELL = ok(Area.BROKERS, "All is well")
NOTED = note(Area.DISKS, "Some")
UNSEEN = unknown(Area.CLOCKS, "The clock")
WARNED = warning(Area.DISKS, "Full soon", "delete")
BROKEN = problem(Area.DISKS, "Full", "delete")


@pytest.mark.parametrize(
    ("lines", "lenient", "strict"),
    [((WELL, NOTED), 0, 0), ((WELL, UNSEEN), 0, 1), ((WARNED,), 0, 1), ((WELL, WARNED, BROKEN), 1, 1)],
)
def test_only_problems_fail_unless_it_is_strict(lines: tuple[Diagnosis, ...], lenient: int, strict: int) -> None:
    assert exit_status(lines, is_strict=False) == lenient
    assert exit_status(lines, is_strict=True) == strict


def test_the_page_has_a_line_for_each_and_what_mends_it(capsys: pytest.CaptureFixture[str]) -> None:
    print_page([WELL, problem(Area.DISKS, "A name of \x1b[31m clients", "delete it"), UNSEEN])
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "Brokers",
        "  OK           All is well",
        "Disks",
        r"  problem      A name of \x1b[31m clients",
        "               mend: delete it",
        "Clocks",
        "  not checked  The clock",
        "1 problem, 0 warnings, 0 notes; 1 not checked",
    ]


def test_the_docs_have_the_places_that_it_points_to() -> None:
    links = {
        (found["page"], found["anchor"])
        for file in (PROJECT / "cli/tools/doctor").glob("*.py")
        for found in LINK.finditer(file.read_text())
    }
    assert len(links) > 10
    for page, anchor in links:
        text = (PROJECT / f"docs/{page}.md").read_text()
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        anchors |= set(re.findall(r'<a id="([^"]+)">', text))
        assert anchor is None or anchor in anchors, (page, anchor)
