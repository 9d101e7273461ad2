"""A cluster of three brokers that leaves its ZooKeeper: of Apache Kafka 3.9 or Ottla first, then nodes of a quorum of either."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ottla.compat_tests.clusters import zookeeper_mode_command
from ottla.compat_tests.session import eventually
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.security.authorizer_settings import ACL_AUTHORIZER, STANDARD_AUTHORIZER

from ...quorum_mixed.helpers.either_quorum import KAFKA, OTTLA, PATIENCE_S, EitherNode, EitherQuorum

OF_BOTH = {
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
}


class MigratingNode(EitherNode):
    """A broker on ZooKeeper of ``program``, until ``is_migrated``."""

    is_migrated = False

    @property
    def old_file(self) -> Path:
        return self.folder / "zookeeper.properties"

    def command(self) -> list[str]:
        if self.is_migrated:
            return super().command()
        if self.program == OTTLA:
            return [sys.executable, "-m", "ottla", "serve", "--config", str(self.old_file)]
        return zookeeper_mode_command(self.old_file)


class MigratingCluster(EitherQuorum):
    """Nodes 1 to 3, each of which becomes a broker and a controller. ``before`` is who runs them on the ZooKeeper."""

    node_kind = MigratingNode

    def __init__(self, folder: Path, zookeeper: ZooKeeperProcess, root: str, before: str) -> None:
        after = {
            **OF_BOTH,
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "controller.quorum.auto.join.enable": "true",
        }
        super().__init__(
            folder, dict.fromkeys((1, 2, 3), "broker,controller"), before, voters="standalone", properties=after
        )
        self.zookeeper = zookeeper.address + root
        for node in self.nodes.values():
            self._configure_old(node)

    def _configure_old(self, node: EitherNode) -> None:
        assert isinstance(node, MigratingNode)
        properties: Mapping[str, str] = {
            "broker.id": str(node.node_id),
            "listeners": f"PLAINTEXT://{node.address}",
            "log.dirs": node.log_dirs,
            "zookeeper.connect": self.zookeeper,
            "zookeeper.connection.timeout.ms": "60000",
            "zookeeper.session.timeout.ms": "6000",
            "authorizer.class.name": ACL_AUTHORIZER,
            **OF_BOTH,
        }
        node.old_file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def start_old(self) -> None:
        """Start all on the ZooKeeper; returns when every broker knows all."""
        for node in self.nodes.values():
            node.launch()
        for node in self.nodes.values():
            node.wait_ready()
        everyone = {*self.nodes}
        eventually(lambda: all(self._knows(each, everyone) for each in everyone), PATIENCE_S)

    def migrate(self, node_id: int, *options: str) -> subprocess.CompletedProcess[str]:
        """``ottla migrate`` on a node."""
        node = self.nodes[node_id]
        assert isinstance(node, MigratingNode)
        command = [sys.executable, "-m", "ottla", "migrate", "--from", str(node.old_file), "--to", str(node.file)]
        return subprocess.run([*command, *options], capture_output=True, text=True, timeout=PATIENCE_S)

    def migrate_all(self) -> Iterator[str]:
        """Every node, the first one first; what is printed."""
        for node_id, node in self.nodes.items():
            assert isinstance(node, MigratingNode)
            done = self.migrate(node_id)
            assert done.returncode == 0, done.stdout + done.stderr
            node.is_migrated = True
            yield done.stdout

    def voter_ids(self) -> set[int]:
        """As the active controller describes them."""
        quorum = self.described()
        return set() if quorum is None else {each.replica_id for each in quorum.current_voters}


__all__ = ["KAFKA", "OF_BOTH", "OTTLA", "MigratingCluster", "MigratingNode"]
