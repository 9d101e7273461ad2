"""What pytest prints of a test that fails by what the plugin says, checked against docs/testing.md; and when it says nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "testing.md").read_text()
# By its module, whether or not this environment has the entry point: pytest refuses to be told of a plugin twice.
PLUGIN = ("-p", "no:ottla", "-p", "ottla.testing.plugin", "-p", "no:cacheprovider")

ADDED_IN_VARIOUS_WAYS = """
import pytest

import ottla


@pytest.fixture
def flaky(ottla_broker):
    ottla_broker.faults.add(api="Produce", drop=True)


@pytest.fixture(scope="module")
def cluster():
    with ottla.Cluster(1) as running:
        yield running


def test_by_a_fixture(flaky):
    pass


def test_nothing_is_left_of_it(ottla_broker):
    pass


def test_at_a_cluster(cluster):
    cluster.brokers[1].faults.add(
        api="Fetch", topic="t", client_id="me", nth=2, count=None, throttle_time_ms=5
    ).remove()
    cluster.brokers[1].faults.add(delay=1)


def test_at_a_broker_of_its_own():
    with ottla.Broker() as broker, broker.faults.add(drop=True):
        pass


def test_not_required(kafka_faults):
    kafka_faults.add(api="Produce", drop=True, required=False)


def test_that_fails_by_itself(kafka_faults):
    kafka_faults.add(api="Produce", drop=True)
    assert False, "this is what is told"


def test_skipped(kafka_faults):
    kafka_faults.add(api="Produce", drop=True)
    pytest.skip()
"""


def test_failures_are_printed_as_the_page_shows_them(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.search(r"<!-- failing example: (\S+) -->\n```python\n(.*?)```.*?```text\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    name, code, shown = found.groups()
    (pytester.path / name).write_text(code)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    for variable in ("CI", "BUILD_NUMBER"):  # with which pytest cuts no line
        monkeypatch.delenv(variable, raising=False)
    printed = pytester.runpytest_subprocess(*PLUGIN, "-q", "--tb=short", "--show-capture=no", name).stdout.str()
    assert printed[printed.index("====") : printed.rindex(" in ")] == shown.rstrip()


def test_a_fault_counts_wherever_it_was_added(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    (pytester.path / "test_it.py").write_text(ADDED_IN_VARIOUS_WAYS)
    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    result = pytester.runpytest_subprocess(*PLUGIN, "-q", "--tb=short", "test_it.py")
    result.assert_outcomes(passed=2, failed=4, skipped=1)
    fetch = "faults.add(api='Fetch', topic='t', client_id='me', nth=2, count=None, throttle_time_ms=5)"
    result.stdout.fnmatch_lines_random(
        [
            "never struck: faults.add(api='Produce', drop=True) in test_it.py:9 (no request matched)",
            f"never struck: {fetch} in test_it.py:2? (no request matched)",
            "never struck: faults.add(delay=1) in test_it.py:3? (no request matched)",
            "never struck: faults.add(drop=True) in test_it.py:3? (no request matched)",
            "E   AssertionError: this is what is told",
        ]
    )
