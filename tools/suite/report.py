"""A pytest plugin that writes the outcome of a run as JSON: ``-p ottla.tools.suite.report --outcome FILE``.

``passed`` is a number; ``failed`` the ids of tests that failed or had errors, as pytest takes them in the folder of the run;
``left_out`` the numbers of skipped tests by their reason. Nothing is written where pytest did not get as far as running tests.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The file."""
    parser.addoption("--outcome", metavar="FILE", type=Path, help="write what passed, failed and was left out there")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write it; in the processes of pytest-xdist there is nothing to write."""
    file: Path | None = session.config.getoption("--outcome")
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    is_complete = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    if file is None or reporter is None or hasattr(session.config, "workerinput") or not is_complete:
        return
    stats = reporter.stats
    root = os.path.relpath(session.config.rootpath, session.config.invocation_params.dir)
    names = {test_id(report.nodeid) for kind in ("failed", "error") for report in stats.get(kind, [])}
    failed = sorted(os.path.normpath(f"{root}/{file}") + rest for file, rest in map(split, names))
    left_out = Counter(reason(report) for report in stats.get("skipped", []))
    outcome = {"passed": len(stats.get("passed", [])), "failed": failed, "left_out": dict(left_out)}
    file.write_text(json.dumps(outcome))


def test_id(name: str) -> str:
    """What pytest takes: without the group that pytest-xdist ran the test in."""
    return re.sub(r"@[^]@]*$", "", name)


def split(name: str) -> tuple[str, str]:
    """The file of an id, and the rest."""
    file, colons, rest = name.partition("::")
    return file, colons + rest


def reason(report: Any) -> str:
    """Why a test was skipped."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(text).removeprefix("Skipped: ")
