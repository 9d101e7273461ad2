"""Fixtures for the ZooKeeper server that the tests of a process share.

Both conftests, that of ``tests`` and that of this suite, import these fixtures.

A test that kills, pauses or overloads its ZooKeeper makes a ``ZooKeeperProcess`` of its own instead.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import pytest

from ottla.compat_tests.zookeeper import ZooKeeperProcess


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """A server that runs for as long as the session; each test leaves it running."""
    server = ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper"))
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def zookeeper_chroot(zookeeper_server: ZooKeeperProcess) -> Callable[[str], str]:
    """``zookeeper_chroot(name)``: an address at the shared server under a root of its own, which does not exist yet."""
    numbers = itertools.count(1)

    def address(name: str) -> str:
        root = re.sub("[^A-Za-z0-9-]+", "-", name)[:80]
        return f"{zookeeper_server.address}/{next(numbers)}-{root}"

    return address


@pytest.fixture
def zookeeper(zookeeper_chroot: Callable[[str], str], request: pytest.FixtureRequest) -> str:
    """``host:port/root`` for this test's ``zookeeper.connect``; no other test writes there, and the root does not exist yet."""
    return zookeeper_chroot(request.node.name)
