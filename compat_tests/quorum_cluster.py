"""A cluster of KRaft whose nodes are Apache Kafka's, and of whose brokers some are Ottla's, in processes of their own.

The nodes 1 to ``kafkas`` are brokers and controllers of Apache Kafka, those after them brokers of Ottla. What Ottla does not have
yet is turned off when the cluster is formatted. Each node keeps its ports, its folder and its log over all of its starts. Its
properties are written, and its folders formatted, before its first start.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.clients.security import Security
from ottla.compat_tests.java.tools import SHORT_LIVED, java_command
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import cluster_view
from ottla.testing.cluster import replicas_by_default
from ottla.testing.held_port import HeldPort

CLUSTER_ID = "3Db5QLSqSZieL3rJBUUegA"
TURNED_OFF = ("group.version", "share.version", "streams.version")
"""The features that brokers of Ottla do not have."""
JOIN_TIMEOUT_S = 120.0

_OPTIONS = ("-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class KafkaNode(BrokerProcess):
    """A node of Apache Kafka that is broker and controller."""

    clean_exit = 128 + signal.SIGTERM

    def __init__(self, folder: Path, properties: Mapping[str, str]) -> None:
        super().__init__(folder, properties=properties)
        self.held_controller_port = HeldPort()
        self.file = folder / "server.properties"

    @property
    def controller_address(self) -> str:
        """host:port of its other listener, on which it is controller."""
        return f"{self.host}:{self.held_controller_port.number}"

    def command(self) -> list[str]:
        return [*java_command(self.folder, *_OPTIONS), "kafka.Kafka", str(self.file)]

    def close(self) -> None:
        super().close()
        self.held_controller_port.close()


class OttlaNode(BrokerProcess):
    """A broker of Ottla, started by the same file of properties as one of Apache Kafka."""

    def __init__(self, folder: Path, properties: Mapping[str, str]) -> None:
        super().__init__(folder, properties=properties)
        self.file = folder / "server.properties"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "ottla", "serve", "--config", str(self.file)]


class QuorumCluster:
    """``nodes[0]`` is node 1. ``properties`` are Kafka's, for all nodes; ``release`` is what the cluster is formatted for.

    ``controller_protocol``: the security protocol of the controllers' listener, whose name is CONTROLLER.
    """

    def __init__(
        self,
        folder: Path,
        kafkas: int = 3,
        ottlas: int = 2,
        *,
        properties: Mapping[str, str] | None = None,
        release: str | None = None,
        turned_off: Sequence[str] = TURNED_OFF,
        format_by: str = "ottla",
        controller_protocol: str = "PLAINTEXT",
    ) -> None:
        self.kafkas, self.ottlas = kafkas, ottlas
        self.security: Security | None = None
        """How brokers are asked what they know of each other; None: without a password and encryption."""
        self.nodes: list[KafkaNode | OttlaNode] = []
        self._release = release
        self._turned_off = turned_off
        self._format_by = format_by
        self._controller_protocol = controller_protocol
        self.count = count = kafkas + ottlas
        common = {
            "group.initial.rebalance.delay.ms": "0",
            **replicas_by_default(min(count, 3)),
            "transaction.state.log.min.isr": str(min(count, 2)),
            **(properties or {}),
        }
        for number in range(1, count + 1):
            own = folder / f"node-{number}"
            own.mkdir(parents=True)
            kind = KafkaNode if number <= kafkas else OttlaNode
            self.nodes.append(kind(own, common))

    @property
    def controllers(self) -> Mapping[int, KafkaNode]:
        """The nodes that are controllers, by id."""
        return {number: node for number, node in enumerate(self.nodes, 1) if isinstance(node, KafkaNode)}

    def prepare(self, node: KafkaNode | OttlaNode) -> None:
        """Write a node's properties and format its folders, where that has not been done, or the folders are gone."""
        if not node.file.exists():
            self._configure(node)
        if not all(folder.exists() for folder in node.data_folders):
            self._format(node)

    def _configure(self, node: KafkaNode | OttlaNode) -> None:
        is_kafka = isinstance(node, KafkaNode)
        listeners = [f"PLAINTEXT://{node.address}"]
        if isinstance(node, KafkaNode):
            listeners.append(f"CONTROLLER://{node.controller_address}")
        voters = [f"{number}@{each.controller_address}" for number, each in self.controllers.items()]
        given = {
            "process.roles": "broker,controller" if is_kafka else "broker",
            "node.id": str(self.nodes.index(node) + 1),
            "controller.quorum.voters": ",".join(voters),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:{self._controller_protocol}",
            "listeners": ",".join(listeners),
            "advertised.listeners": f"PLAINTEXT://{node.address}",
            "log.dirs": node.log_dirs,
            **node.properties,
        }
        node.file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))

    def _format(self, node: KafkaNode | OttlaNode) -> None:
        options = ["-t", CLUSTER_ID, "-c", str(node.file)]
        for feature in self._turned_off:
            options += ["-f", f"{feature}=0"]
        if self._release is not None:
            options += ["-r", self._release]
        by_kafka = [*java_command(node.folder, *SHORT_LIVED), "kafka.tools.StorageTool", "format"]
        by_ottla = [sys.executable, "-m", "ottla", "format"]
        command = by_ottla if self._format_by == "ottla" else by_kafka
        subprocess.run([*command, *options], check=True, capture_output=True)

    @property
    def bootstrap(self) -> str:
        """host:port of every broker, with commas between."""
        return ",".join(node.address for node in self.nodes)

    @property
    def ids(self) -> list[int]:
        return list(range(1, self.count + 1))

    @property
    def brokers(self) -> Sequence[KafkaNode | OttlaNode]:
        """The nodes: each is a broker."""
        return self.nodes

    def kind(self, node_id: int) -> str:
        """``kafka`` or ``ottla``."""
        return "kafka" if node_id <= self.kafkas else "ottla"

    def of_kind(self, kind: str) -> list[int]:
        """The ids of the nodes of one kind, ``kafka`` or ``ottla``."""
        return self.ids[: self.kafkas] if kind == "kafka" else self.ids[self.kafkas :]

    def node(self, node_id: int) -> KafkaNode | OttlaNode:
        """The node of an id."""
        return self.nodes[node_id - 1]

    broker = node

    def kafka(self, node_id: int) -> KafkaNode:
        """The node of Apache Kafka with an id."""
        node = self.node(node_id)
        assert isinstance(node, KafkaNode), f"node {node_id} is Ottla's"
        return node

    def start(self) -> None:
        """Start what does not run, all at once; returns when each broker knows all of them.

        Raises RuntimeError, AssertionError.
        """
        begun = [node for node in self.nodes if not node.is_running]
        for node in begun:
            self.prepare(node)
            node.launch()
        for node in begun:
            node.wait_ready()
        self.wait_joined()

    def start_broker(self, node_id: int) -> None:
        """Start one that was stopped or killed; returns when the brokers that run know it. As ``start`` raises."""
        self.node(node_id).start()
        self.wait_joined()

    def restart_broker(self, node_id: int) -> None:
        """Stop one as SIGTERM does, and start it again. As ``start`` raises."""
        self.node(node_id).stop()
        self.start_broker(node_id)

    def wait_joined(self) -> None:
        """Wait until every broker that runs tells clients of all that do. Raises AssertionError."""
        running = {number for number in self.ids if self.node(number).is_running}
        eventually(lambda: all(self._knows(number, running) for number in running), timeout_s=JOIN_TIMEOUT_S)

    def _knows(self, node_id: int, others: set[int]) -> bool:
        view = cluster_view(self.node(node_id).address, security=self.security)
        return view is not None and set(view.brokers) == others

    def close(self) -> None:
        """End everything at once, and let go of the ports."""
        for node in self.nodes:
            node.close()
