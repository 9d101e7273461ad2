"""Faults of ZooKeeper: it is killed, and paused."""

from __future__ import annotations

from ottla.compat_tests.zookeeper import ZooKeeperProcess

from .fault import SHORT_S, Fault
from .system import System
from .zookeeper_coordination import ZooKeeperCoordination


class ZooKeeperFault(Fault):
    """A fault of a system that has ZooKeeper."""

    @classmethod
    def is_possible(cls, system: System) -> bool:
        return isinstance(system.coordination, ZooKeeperCoordination)

    @property
    def zookeeper(self) -> ZooKeeperProcess:
        assert isinstance(self.coordination, ZooKeeperCoordination)
        return self.coordination.zookeeper


class KillZooKeeper(ZooKeeperFault):
    name = "kill-zookeeper"
    lasts_s = SHORT_S

    def begin(self) -> str:
        self.zookeeper.kill()
        return "kill -9 of ZooKeeper"

    def end(self) -> None:
        self.zookeeper.start()


class PauseZooKeeper(ZooKeeperFault):
    name = "pause-zookeeper"

    def begin(self) -> str:
        self.zookeeper.pause()
        return "SIGSTOP to ZooKeeper"

    def end(self) -> None:
        self.zookeeper.resume()
