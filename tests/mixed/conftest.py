"""The mixed clusters that tests on demand share: one cluster at a time, on the session's ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.compat_tests.zookeeper import ZooKeeperProcess

from .mixed import BOTH, Mixed, running


@pytest.fixture(scope="session", params=["mixed", "mixed-kafka"])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeperProcess
) -> Iterator[Mixed]:
    with running(request.param, tmp_path_factory.mktemp(request.param), zookeeper_server, f"/{request.param}") as mixed:
        yield mixed


@pytest.fixture
def mixed(shared: Mixed) -> Iterator[Mixed]:
    """A mixed cluster. All brokers run before and after the test, and none of them has logged an error."""
    yield shared
    shared.cluster.start()
    assert shared.troubles() == []


@pytest.fixture(params=BOTH)
def controller(mixed: Mixed, request: pytest.FixtureRequest) -> int:
    """The id of the controller, a broker of either kind."""
    return mixed.led_by(request.param)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test has."""
    return "".join(each if each.isalnum() else "-" for each in request.node.name)[:200]
