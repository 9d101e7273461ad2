"""A KRaft cluster of Ottla and Apache Kafka nodes (brokers, controllers or both), each in its own process.

Node ids begin at 1. Each node keeps its ports, its folder and its log over all of its starts. Its properties are written, and its
folders formatted, before its first start; folders that are gone are formatted anew, and then as those of a node that is no first
voter. Without ``has_static_voters`` the voters can change (KIP-853): the first ones are written when they are formatted.
"""

from __future__ import annotations

import base64
import contextlib
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.clients.security import Security
from ottla.compat_tests.java.tools import SHORT_LIVED, java_command
from ottla.compat_tests.joined import wait_until_joined
from ottla.compat_tests.wire_client import connect
from ottla.testing.cluster import replicas_by_default
from ottla.testing.held_port import HeldPort
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)

CLUSTER_ID = "3Db5QLSqSZieL3rJBUUegA"
TURNED_OFF = ("streams.version",)
"""The features that brokers of Ottla do not have."""
BROKER, CONTROLLER = "broker", "controller"
COMBINED = (BROKER, CONTROLLER)
OTTLA, KAFKA = "ottla", "kafka"

_METADATA_TOPIC = "__cluster_metadata"
_OPTIONS = ("-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class QuorumNode(BrokerProcess):
    """A node with ``roles``. A controller that is no broker listens on ``port``, one that is a broker on another port as well."""

    kind: ClassVar[str]

    def __init__(self, folder: Path, properties: Mapping[str, str], roles: Sequence[str]) -> None:
        super().__init__(folder, properties=properties)
        self.roles = roles
        self.file = folder / "server.properties"
        self.held_controller_port = HeldPort() if self.is_broker and self.is_controller else None
        self.was_formatted = False
        """Whether the folders had a format once, so that others may know the node's votes."""

    @property
    def is_broker(self) -> bool:
        return BROKER in self.roles

    @property
    def is_controller(self) -> bool:
        return CONTROLLER in self.roles

    @property
    def controller_port(self) -> int:
        """The port on which it is controller."""
        assert self.is_controller, f"{self.folder} is no controller"
        return self.port if self.held_controller_port is None else self.held_controller_port.number

    @property
    def controller_address(self) -> str:
        """host:port of the listener on which it is controller."""
        return f"{self.host}:{self.controller_port}"

    def close(self) -> None:
        super().close()
        if self.held_controller_port is not None:
            self.held_controller_port.close()


class KafkaNode(QuorumNode):
    """A node of Apache Kafka, whose JVM has ``options``."""

    kind = KAFKA
    clean_exit = 128 + signal.SIGTERM
    options: Sequence[str] = _OPTIONS

    def __init__(self, folder: Path, properties: Mapping[str, str], roles: Sequence[str] = COMBINED) -> None:
        super().__init__(folder, properties, roles)

    def command(self) -> list[str]:
        return [*java_command(self.folder, *self.options), "kafka.Kafka", str(self.file)]


class OttlaNode(QuorumNode):
    """A node of Ottla, started by the same file of properties as one of Apache Kafka."""

    kind = OTTLA

    def __init__(self, folder: Path, properties: Mapping[str, str], roles: Sequence[str] = (BROKER,)) -> None:
        super().__init__(folder, properties, roles)

    def command(self) -> list[str]:
        return [sys.executable, "-m", "ottla", "serve", "--config", str(self.file)]


class Seat(NamedTuple):
    """A node as it is planned: its kind, ``KAFKA`` or ``OTTLA``, and its roles."""

    kind: str
    roles: Sequence[str] = COMBINED


class KRaftCluster:
    """``nodes[0]`` is node 1. ``properties`` are Kafka's, for all nodes; ``release`` is what the cluster is formatted for.

    ``controller_protocol``: the security protocol of the controllers' listener, whose name is CONTROLLER.
    """

    kinds: ClassVar[Mapping[str, type[KafkaNode | OttlaNode]]] = {KAFKA: KafkaNode, OTTLA: OttlaNode}

    def __init__(
        self,
        folder: Path,
        seats: Sequence[Seat],
        *,
        properties: Mapping[str, str] | None = None,
        release: str | None = None,
        turned_off: Sequence[str] = TURNED_OFF,
        format_by: str = OTTLA,
        controller_protocol: str = "PLAINTEXT",
        has_static_voters: bool = False,
    ) -> None:
        self.security: Security | None = None
        """How brokers are asked what they know of each other; None: without a password and encryption."""
        self.nodes: list[KafkaNode | OttlaNode] = []
        self._release = release
        self._turned_off = turned_off
        self._format_by = format_by
        self._controller_protocol = controller_protocol
        self._has_static_voters = has_static_voters
        self.count = len(seats)
        brokers = sum(BROKER in seat.roles for seat in seats)
        common = {
            "group.initial.rebalance.delay.ms": "0",
            **replicas_by_default(min(brokers, 3)),
            "transaction.state.log.min.isr": str(min(brokers, 2)),
            **(properties or {}),
        }
        for number, seat in enumerate(seats, 1):
            own = folder / f"node-{number}"
            own.mkdir(parents=True)
            self.nodes.append(self.kinds[seat.kind](own, common, seat.roles))

    # Formatting

    def prepare(self, node: KafkaNode | OttlaNode) -> None:
        """Write a node's properties and format its folders, where that has not been done, or the folders are gone."""
        if not node.file.exists():
            self._configure(node)
        if not all(folder.exists() for folder in node.data_folders):
            self._format(node)
            node.was_formatted = True

    def _configure(self, node: KafkaNode | OttlaNode) -> None:
        listeners = [f"PLAINTEXT://{node.address}"] if node.is_broker else []
        if node.is_controller:
            listeners.append(f"CONTROLLER://{node.controller_address}")
        if self._has_static_voters:
            voters = [f"{number}@{each.controller_address}" for number, each in self.controllers.items()]
            quorum = {"controller.quorum.voters": ",".join(voters)}
        else:
            servers = [each.controller_address for each in self.controllers.values()]
            quorum = {"controller.quorum.bootstrap.servers": ",".join(servers)}
        if node.is_broker:
            quorum["advertised.listeners"] = f"PLAINTEXT://{node.address}"
        given = {
            "process.roles": ",".join(node.roles),
            "node.id": str(self.nodes.index(node) + 1),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:{self._controller_protocol}",
            "listeners": ",".join(listeners),
            "log.dirs": node.log_dirs,
            **quorum,
            **node.properties,
        }
        node.file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))

    def _format(self, node: KafkaNode | OttlaNode) -> None:
        options = ["-t", CLUSTER_ID, "-c", str(node.file)]
        for feature in self._turned_off:
            options += ["-f", f"{feature}=0"]
        if self._release is not None:
            options += ["-r", self._release]
        if not self._has_static_voters:
            is_first_voter = node.is_controller and not node.was_formatted
            options += ["-I", self._initial_controllers()] if is_first_voter else ["-N"]
        if self._format_by == OTTLA:
            command = [sys.executable, "-m", "ottla", "format"]
        else:
            command = [*java_command(node.folder, *SHORT_LIVED), "kafka.tools.StorageTool", "format"]
        subprocess.run([*command, *options], check=True, capture_output=True)

    def _initial_controllers(self) -> str:
        return ",".join(
            f"{number}@{each.controller_address}:{_directory_id(number)}" for number, each in self.controllers.items()
        )

    # The nodes

    @property
    def controllers(self) -> Mapping[int, KafkaNode | OttlaNode]:
        """The nodes that are controllers, by id."""
        return {number: node for number, node in enumerate(self.nodes, 1) if node.is_controller}

    @property
    def brokers(self) -> Sequence[KafkaNode | OttlaNode]:
        """The nodes that are brokers."""
        return [node for node in self.nodes if node.is_broker]

    @property
    def ids(self) -> list[int]:
        return list(range(1, self.count + 1))

    @property
    def bootstrap(self) -> str:
        """host:port of every broker, with commas between."""
        return ",".join(node.address for node in self.brokers)

    def kind(self, node_id: int) -> str:
        """``KAFKA`` or ``OTTLA``."""
        return self.node(node_id).kind

    def of_kind(self, kind: str) -> list[int]:
        """The ids of the nodes of one kind."""
        return [number for number in self.ids if self.kind(number) == kind]

    def node(self, node_id: int) -> KafkaNode | OttlaNode:
        """The node of an id."""
        return self.nodes[node_id - 1]

    broker = node

    def kafka(self, node_id: int) -> KafkaNode:
        """The node of Apache Kafka with an id."""
        node = self.node(node_id)
        assert isinstance(node, KafkaNode), f"node {node_id} is Ottla's"
        return node

    def described_quorum(self, timeout_s: float = 2.0) -> ResponsePartitionData | None:
        """The quorum as its leader describes it: of those that say so, the one with the highest epoch; None without one."""
        told = [described_by(each, timeout_s) for each in self.controllers.values()]
        return max((each for each in told if each is not None), key=lambda each: each.leader_epoch, default=None)

    def controller(self) -> int | None:
        """The id of the active controller, from the controllers that can be reached; None while there is none."""
        quorum = self.described_quorum()
        return None if quorum is None else quorum.leader_id

    # Start and end

    def start(self) -> None:
        """Start what does not run, all at once; returns when each broker knows all of them.

        Raises RuntimeError, AssertionError.
        """
        begun = [node for node in self.nodes if not node.is_running]
        for node in begun:
            self.prepare(node)
        for node in begun:
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
        nodes = {number: self.node(number) for number in self.ids}
        running = {number: node for number, node in nodes.items() if node.is_broker and node.is_running}
        wait_until_joined(running, lambda view: view.brokers.keys() == running.keys(), self.security)

    def close(self) -> None:
        """End everything at once, and let go of the ports."""
        for node in self.nodes:
            node.close()


def described_by(node: QuorumNode, timeout_s: float) -> ResponsePartitionData | None:
    """The quorum as a controller describes it, if it is the leader; None from any other."""
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name=_METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])]
    )
    if not node.is_running:
        return None
    with contextlib.suppress(OSError, EOFError), connect(node.controller_address, timeout_s) as connection:
        response: Any = connection.call(request, 1)
        if not response.error_code:
            told: ResponsePartitionData = response.topics[0].partitions[0]
            return told if told.error_code == ErrorCode.NONE else None
    return None


def _directory_id(node_id: int) -> str:
    """The directory id of a first voter: any that is not reserved."""
    return base64.urlsafe_b64encode(bytes([0xD0]) * 15 + bytes([node_id])).decode().rstrip("=")
