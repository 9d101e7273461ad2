"""What a run found, put together: cells from results, and the document that holds everything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from ottla.compat_tests import capabilities, programs, record
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.record import Cell, Report, Result

TRIED = "IncrementalAlterConfigs"
COLLECT = """
import json, sys
import pytest
from ottla.compat_tests.conftest import capability_of
from ottla.compat_tests.run import FOLDER

class Marks:
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        self.capabilities = sorted({capability_of(item) for item in items})
        clients = [item.get_closest_marker("client") for item in items]
        self.clients = sorted({mark.args[0] for mark in clients if mark is not None})

marks = Marks()
options = "-c /dev/null --import-mode=importlib -p no:cacheprovider --collect-only -q".split()
status = pytest.main([*options, str(FOLDER)], [marks])
print("MARKS" + json.dumps([int(status), marks.capabilities, marks.clients]))
"""


@pytest.mark.slow
def test_every_mark_of_the_suite_has_its_place() -> None:
    done = subprocess.run([sys.executable, "-c", COLLECT], capture_output=True, text=True, timeout=120)
    assert "MARKS" in done.stdout, done.stdout[-2000:] + done.stderr
    status, found, clients = json.loads(done.stdout.rpartition("MARKS")[2])
    assert status == 0, done.stdout.partition("MARKS")[0][-2000:]
    assert sorted(capabilities.capabilities()) == found
    assert set(programs.PROGRAMS) <= set(clients) <= set(programs.names())


def test_every_capability_is_in_one_group() -> None:
    listed = [name for names in capabilities.GROUPS.values() for name in names]
    assert [name for name, times in Counter(listed).items() if times > 1] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_client_lacks_is_a_capability(client: str) -> None:
    assert CLIENTS[client].lacks.keys() <= set(capabilities.capabilities())


def result(test: str, outcome: str, client: str = "aiokafka", capability: str = TRIED, reason: str = "") -> Result:
    return Result(test, client, capability, outcome, reason)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["pass"], "pass"),
        (["pass", "fail", "pass"], "fail 1/3"),
        (["fail"], "fail"),
        (["skipped", "skipped"], "skipped 2/2"),
        (["skipped", "fail"], "fail 1/2"),
        (["pass", "n/a", "not run", "n/a"], "pass, 1 not run, 2 n/a"),
        (["pass", "n/a", "fail"], "fail 1/2"),
        (["n/a", "not run"], "not run"),
        (["n/a"], "n/a"),
    ],
)
def test_a_cell_shows_the_worst(outcomes: list[str], expected: str) -> None:
    assert Cell(tuple(result(str(number), outcome) for number, outcome in enumerate(outcomes))).text() == expected


def test_of_a_test_the_worst_result_stays() -> None:
    kept = record.Record()
    for outcome in ("pass", "fail", "pass"):
        kept.add(result("one", outcome))
    kept.add(result("two", "pass"))
    assert [each.outcome for each in kept.results()] == ["fail", "pass"]


@pytest.fixture
def report() -> Report:
    """Two clients; three rows in groups, four in detail."""
    results = [
        result("t1", "pass", "java"),
        result("t1[aiokafka]", "n/a", reason="no such call"),
        result("t2", "pass", capability="describe configs"),
        Result("t3", "java", "seek", "fail", "assert 1 == 2", "the\ntrace"),
        result("t4", "skipped", "java", "compaction", "no java"),
        result("t5", "skipped", "java", "compaction", "no java"),
    ]
    return Report("a broker", "ottla compat", "2026-01-31", 7, {"java": "4.4.0"}, results)


def test_groups_and_details(report: Report) -> None:
    assert report.clients() == ["aiokafka", "java"]
    assert report.rows() == ["consume", "admin: configs", "compaction"]
    assert report.rows(details=True) == ["seek", "describe configs", TRIED, "compaction"]
    texts = {where: cell.text() for where, cell in report.cells().items()}
    assert texts == {
        ("java", "consume"): "fail",
        ("java", "admin: configs"): "pass",
        ("java", "compaction"): "skipped 2/2",
        ("aiokafka", "admin: configs"): "pass, 1 n/a",
    }
    assert report.cells(details=True)["aiokafka", TRIED].text() == "n/a"
    assert report.reasons("skipped") == [("java", "no java", 2)]
    assert report.summary() == "1 failed, 2 skipped, 2 passed, 1 not applicable"


def test_json_holds_everything(report: Report) -> None:
    document = json.loads(json.dumps(report.as_json()))
    again = record.from_json(document)
    assert sorted(map(repr, again.results)) == sorted(map(repr, report.results))
    assert (again.broker, again.command, again.seconds, again.versions) == (
        "a broker",
        "ottla compat",
        7,
        report.versions,
    )
    (failed,) = [cell for cell in document["cells"] if cell["outcome"] == "fail"]
    assert (failed["client"], failed["capability"], failed["reasons"]) == ("java", "consume", ["assert 1 == 2"])
    assert failed["tests"][0]["trace"] == "the\ntrace"
