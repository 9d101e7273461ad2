"""What pytest prints of a test that fails by what the plugin says, checked against docs/testing.md; and when it says nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "testing.md").read_text()
# By its module, whether or not this environment has the entry point: pytest refuses to be told of a plugin twice.
PLUGIN = ("-p", "no:ottla", "-p", "no:asyncio", "-p", "ottla.testing.plugin", "-p", "no:cacheprovider")

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
            "never hit a request: faults.add(api='Produce', drop=True) in test_it.py:9 (no request matched)",
            f"never hit a request: {fetch} in test_it.py:2? (no request matched)",
            "never hit a request: faults.add(delay=1) in test_it.py:3? (no request matched)",
            "never hit a request: faults.add(drop=True) in test_it.py:3? (no request matched)",
            "E   AssertionError: this is what is told",
        ]
    )


ASKS = """
def test_it(ottla_broker):
    pass
"""
OPTIONS = """
import pytest


@pytest.fixture(scope="session")
def ottla_broker_options():
    return {"properties": {"num.partitions": "3"}}
"""
FAILS_IN_SETUP = """

@pytest.fixture
def topic(ottla_broker):
    ottla_broker.create_topic("t", configs={"min.insync.replicas": "-1"})


def test_it(topic):
    pass
"""


def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, **modules: str) -> pytest.RunResult:
    """The modules in their order, in one session."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    for name, code in modules.items():
        (pytester.path / f"{name}.py").write_text(code)
    return pytester.runpytest_subprocess(*PLUGIN, "-q", *(f"{name}.py" for name in modules if name != "conftest"))


def test_options_of_a_module_are_not_ignored(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(pytester, monkeypatch, test_plain=ASKS, test_mine=OPTIONS + ASKS)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "ottla_broker was started for test_plain.py::test_it, with the options {}; here ottla_broker_options are {'prop*",
            "*conftest.py*ottla_broker_factory",
            "ERROR test_mine.py::test_it *",
        ]
    )


def test_options_of_a_module_do_not_leak(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(pytester, monkeypatch, test_mine=OPTIONS + ASKS, test_plain=ASKS)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "ottla_broker was started for test_mine.py::test_it, with the options {'properties': *",
            "ERROR test_plain.py*",
        ]
    )


def test_other_options_are_named_where_they_made_a_fixture_fail(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(pytester, monkeypatch, test_plain=ASKS, test_mine=OPTIONS + FAILS_IN_SETUP)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["ottla_broker was started for test_plain.py::test_it, *"])


def test_the_same_options_in_two_modules_are_one_broker(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(pytester, monkeypatch, test_one=OPTIONS + ASKS, test_other=OPTIONS + ASKS).assert_outcomes(passed=2)
    run(pytester, monkeypatch, conftest=OPTIONS, test_one=ASKS, test_other=ASKS).assert_outcomes(passed=2)


CLUSTER_OPTIONS = """
import pytest


@pytest.fixture(scope="session")
def ottla_cluster_options():
    return {"brokers": 1}


def test_it(ottla_cluster):
    assert len(ottla_cluster.brokers) == 1
"""
PLAIN_CLUSTER = """
def test_it(ottla_cluster):
    assert len(ottla_cluster.brokers) == 3
"""


def test_options_of_a_cluster_are_those_of_the_module(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(
        pytester, monkeypatch, test_before=PLAIN_CLUSTER, test_mine=CLUSTER_OPTIONS, test_after=PLAIN_CLUSTER
    ).assert_outcomes(passed=3)
