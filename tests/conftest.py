"""Runs ``async def test_...`` functions with trio, one trio run per test; ``--no-skips``, which CI uses; hypothesis' profile."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import settings

from ottla.compat_tests.spark import jvm
from ottla.compat_tests.zookeeper_fixtures import (  # fixtures, for pytest to find here
    zookeeper,
    zookeeper_chroot,
    zookeeper_server,
)
from ottla.tests import lanes

__all__ = ["zookeeper", "zookeeper_chroot", "zookeeper_server"]

# By default an example that takes longer than 200 ms fails its test, which can happen on any busy machine.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test fails the run")
    parser.addoption("--on-demand", action="store_true", help="also run the tests marked on_demand, which take long")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "on_demand: takes minutes of processor time, and runs with --on-demand only")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Python's collector leaves alone what is made here: a million objects, nearly all of which live to the end.

    To look through them again and again takes a sixth of the tests' processor time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Deselect tests that take long, and put the others into lanes, before pytest-xdist groups them."""
    if not config.getoption("--on-demand"):
        left_out = [item for item in items if item.get_closest_marker("on_demand")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("on_demand")]
    root = Path(__file__).parent
    # By identity: the hash of an item is that of its name, which pytest-xdist changes.
    files = {id(item): item.path.relative_to(root) for item in items if root in item.path.parents}
    is_in_lanes = config.getoption("loadgroup", False)  # in a process of pytest-xdist
    if is_in_lanes:
        for item in items:
            if id(item) in files and (lane := lanes.lane(files[id(item)])) is not None:
                item.add_marker(pytest.mark.xdist_group(lane))
    yield
    if is_in_lanes:
        lane_of = [(item.nodeid, lanes.lane(files[id(item)])) for item in items if id(item) in files]
        assert all(lane is None or name.endswith(f"@{lane}") for name, lane in lane_of), "pytest-xdist sees no lanes"
        items.sort(key=lambda item: lanes.order(files[id(item)]) if id(item) in files else -1)
    # Small tests last, so that the processes end at the same time.
    items.sort(key=lambda item: item.get_closest_marker("computes") is not None)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--no-skips") and reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line("--no-skips: tests were skipped, so this run fails", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session", autouse=True)
def short_lived_jvms() -> Generator[None, None, None]:
    """Sparks that commands start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(jvm.VARIABLE, jvm.options())
        yield


@pytest.fixture(scope="module", autouse=True)
def no_loop_left() -> Generator[None, None, None]:
    """A loop of asyncio that the tests of a file leave running would make ``asyncio.run`` fail in the next file."""
    yield
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    pytest.fail(f"{loop} still runs")


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """The clock of the test's run, if it uses this fixture: time jumps to the next deadline when every task waits."""
    return trio.testing.MockClock(autojump_threshold=0)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    function = pyfuncitem.obj
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        def run(**arguments: Any) -> None:
            trio.run(functools.partial(function, **arguments), clock=arguments.get("autojump_clock"))

        pyfuncitem.obj = run
    try:
        return (yield)
    finally:
        pyfuncitem.obj = function
