"""A cluster of Ottla's and Apache Kafka 3.9's brokers on ZooKeeper, any of which may be the controller."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from ottla.compat_tests.clusters import KINDS, MixedCluster
from ottla.compat_tests.zookeeper import ZooKeeperProcess

from .mixed import Mixed

PROPERTIES = {
    "zookeeper.session.timeout.ms": "9000",
    "replica.lag.time.max.ms": "2000",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


class ZooKeeperMixed(Mixed):
    """One kind of ``KINDS``."""

    def __init__(self, cluster: MixedCluster) -> None:
        super().__init__(cluster)
        self._cluster = cluster

    def led_by(self, kind: str) -> int:
        """Make a broker of this kind the controller; returns its id."""
        return self._cluster.have_controller(self._cluster.of_kind(kind))

    def sessions(self) -> set[str]:
        """The registered brokers with their sessions at ZooKeeper, as text."""
        assert isinstance(self._cluster.zookeeper, ZooKeeperProcess)
        sessions = re.findall(r"^0x\w+:\n(?:\t.*\n)*", self._cluster.zookeeper.ask("dump"), re.MULTILINE)
        return {each for each in sessions if f"\t{self._cluster.root}/brokers/ids/" in each}


@contextlib.contextmanager
def running(
    kind: str, folder: Path, zookeeper: ZooKeeperProcess | None = None, root: str = "", **properties: str
) -> Iterator[ZooKeeperMixed]:
    """A context with a started cluster of one of the ``KINDS``. ``properties`` have _ for the dots."""
    own = {name.replace("_", "."): value for name, value in properties.items()}
    cluster = KINDS[kind](folder, zookeeper=zookeeper, root=root, properties={**PROPERTIES, **own})
    assert isinstance(cluster, MixedCluster)
    try:
        cluster.start()
        yield ZooKeeperMixed(cluster)
    finally:
        cluster.close()
