"""The mixed clusters that tests on demand share: one cluster at a time, on the session's ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.compat_tests.zookeeper import ZooKeeperProcess

from .helpers.fixtures import topic  # for pytest to find here
from .helpers.mixed import BOTH
from .helpers.on_zookeeper import ZooKeeperMixed, running

__all__ = ["topic"]


@pytest.fixture(scope="session", params=["mixed", "mixed-kafka"])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeperProcess
) -> Iterator[ZooKeeperMixed]:
    with running(request.param, tmp_path_factory.mktemp(request.param), zookeeper_server, f"/{request.param}") as mixed:
        yield mixed


@pytest.fixture
def mixed(shared: ZooKeeperMixed) -> Iterator[ZooKeeperMixed]:
    """A mixed cluster. All brokers run before and after the test, and none of them has logged an error."""
    yield shared
    shared.cluster.start()
    assert shared.troubles() == []


@pytest.fixture(params=BOTH)
def controller(mixed: ZooKeeperMixed, request: pytest.FixtureRequest) -> int:
    """The id of the controller, a broker of either kind."""
    return mixed.led_by(request.param)
