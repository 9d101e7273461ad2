"""The ZooKeeper servers that tests use: they serve, pause, die and come back, and an ensemble goes on without its leader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.session import eventually
from ottla.compat_tests.zookeeper import ZooKeeperEnsemble, ZooKeeperProcess

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperProcess]:
    made = ZooKeeperProcess(tmp_path, tick_time=700)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[ZooKeeperEnsemble]:
    made = ZooKeeperEnsemble(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_serves_until_it_is_stopped_and_again_on_the_same_port(server: ZooKeeperProcess) -> None:
    assert server.mode() == "standalone"
    assert "tickTime=700" in server.ask("conf")
    address = server.address
    server.pause()
    server.resume()
    server.kill()
    assert not server.is_running and server.mode() is None
    server.start()
    assert server.mode() == "standalone" and server.address == address
    server.stop()
    assert server.mode() is None


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    server = ZooKeeperProcess(tmp_path, properties={"tickTime": "soon"})
    with pytest.raises(RuntimeError, match="soon"):
        server.start()
    server.close()


def test_each_test_has_a_root_of_its_own(zookeeper_server, zookeeper_chroot, zookeeper) -> None:
    others = {zookeeper_chroot("same"), zookeeper_chroot("same")}
    assert len(others | {zookeeper}) == 3
    assert all(address.startswith(f"{zookeeper_server.address}/") for address in others | {zookeeper})


def test_an_ensemble_goes_on_without_its_leader(ensemble: ZooKeeperEnsemble) -> None:
    assert sorted(server.mode() or "" for server in ensemble.servers) == ["follower", "follower", "leader"]
    killed = ensemble.leader()
    assert killed is not None
    killed.kill()
    eventually(lambda: ensemble.leader() is not None, timeout_s=60)
    killed.start()
    assert killed.mode() == "follower"
