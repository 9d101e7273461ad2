"""Runs ``async def test_...`` functions with trio, one trio run per test; groups for pytest-xdist; hypothesis' profile."""

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
from ottla.tests import xdist_groups

__all__ = ["zookeeper", "zookeeper_chroot", "zookeeper_server"]

# By default an example that takes longer than 200 ms fails its test, which can happen on any busy machine.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Python's collector leaves alone what is made here: a million objects, nearly all of which live to the end.

    To look through them again and again takes a sixth of the tests' processor time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        if hasattr(gc, "freeze"):  # PyPy has none
            gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Put the tests into groups, before pytest-xdist looks."""
    root = Path(__file__).parent
    # By identity: the hash of an item is that of its name, which pytest-xdist changes.
    files = {id(item): item.path.relative_to(root) for item in items if root in item.path.parents}
    is_in_groups = config.getoption("loadgroup", False)  # in a process of pytest-xdist
    if is_in_groups:
        for item in items:
            if id(item) in files and (group := xdist_groups.group(files[id(item)])) is not None:
                item.add_marker(pytest.mark.xdist_group(group))
    yield
    if is_in_groups:
        groups = [(item.nodeid, xdist_groups.group(files[id(item)])) for item in items if id(item) in files]
        assert all(group is None or name.endswith(f"@{group}") for name, group in groups), "pytest-xdist sees no groups"
        items.sort(key=lambda item: xdist_groups.order(files[id(item)]) if id(item) in files else -1)
    # What only computes comes last, so that the processes end at the same time.
    items.sort(key=lambda item: item.get_closest_marker("computes") is not None)


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
