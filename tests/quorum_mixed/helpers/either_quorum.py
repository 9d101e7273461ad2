"""A cluster of KRaft each of whose nodes is run by Apache Kafka or by Ottla, and may change over at any start.

A node has the file of properties and the log directories that either of them takes, and keeps its ports. What Ottla lacks is
turned off when the directories are formatted.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, java_command
from ottla.compat_tests.kraft_cluster import CLUSTER_ID, TURNED_OFF
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import cluster_view, connect
from ottla.testing.held_port import HeldPort
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.wire.schema import uuid_to_text

PATIENCE_S = 90.0
KAFKA, OTTLA = "kafka", "ottla"
OTHER = {KAFKA: OTTLA, OTTLA: KAFKA}
COMMON = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
}
_JVM = ("-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class EitherNode(BrokerProcess):
    """A node with ``roles``, as ``process.roles`` has them; ``program`` runs it, ``kafka`` or ``ottla``."""

    def __init__(self, folder: Path, node_id: int, roles: str, program: str) -> None:
        folder.mkdir(parents=True)
        super().__init__(folder)
        self.node_id = node_id
        self.roles = roles
        self.file = folder / "server.properties"
        self._held_controller_port = HeldPort()
        self.run_by(program)

    def run_by(self, program: str) -> None:
        """From the next start on."""
        self.program = program
        self.clean_exit = 128 + signal.SIGTERM if program == KAFKA else 0

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def controller_address(self) -> str:
        """host:port of the controllers' listener, where it is a controller."""
        return f"{self.host}:{self._held_controller_port.number}"

    @property
    def directory_id(self) -> str:
        """What the initial voters have for it."""
        return uuid_to_text(bytes(15) + bytes([200 + self.node_id]))

    def is_ready(self) -> bool:
        """A broker is where it serves clients; a controller where it accepts connections."""
        if self.is_broker:
            return super().is_ready()
        with contextlib.suppress(OSError), connect(self.controller_address):
            return True
        return False

    def command(self) -> list[str]:
        if self.program == KAFKA:
            return [*java_command(self.folder, *_JVM), "kafka.Kafka", str(self.file)]
        return [sys.executable, "-m", "ottla", "serve", "--config", str(self.file)]

    def close(self) -> None:
        super().close()
        self._held_controller_port.close()


class EitherQuorum:
    """``roles`` by node id; ``programs`` says who runs a node at first, or all of them. ``node_kind`` makes the nodes.

    ``voters``: ``standalone``, ``initial`` and ``static`` as kafka-storage has them. ``properties`` are Kafka's, for all nodes.
    """

    node_kind: ClassVar[type[EitherNode]] = EitherNode

    def __init__(
        self,
        folder: Path,
        roles: Mapping[int, str],
        programs: Mapping[int, str] | str,
        *,
        voters: str = "initial",
        properties: Mapping[str, str] | None = None,
        features: Iterable[str] = tuple(f"{name}=0" for name in TURNED_OFF),
        format_by: str = KAFKA,
        format_options: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.voters = voters
        self.format_by = format_by
        self._features = tuple(features)
        self._format_options = tuple(format_options)
        program = (lambda _: programs) if isinstance(programs, str) else programs.__getitem__
        self.nodes = {
            node_id: self.node_kind(folder / f"node-{node_id}", node_id, role, program(node_id))
            for node_id, role in roles.items()
        }
        self._properties = {**COMMON, **(properties or {})}
        replicas = str(min(3, len(self.brokers)) or 1)
        for name in ("offsets.topic", "transaction.state.log"):
            self._properties.setdefault(f"{name}.replication.factor", replicas)
        for node in self.nodes.values():
            self.configure(node)

    @property
    def controllers(self) -> list[EitherNode]:
        return [node for node in self.nodes.values() if node.is_controller]

    @property
    def brokers(self) -> list[EitherNode]:
        return [node for node in self.nodes.values() if node.is_broker]

    @property
    def bootstrap(self) -> str:
        """host:port of every broker, with commas between."""
        return ",".join(node.address for node in self.brokers)

    @property
    def bootstrap_controllers(self) -> str:
        """host:port of every controller, with commas between."""
        return ",".join(node.controller_address for node in self.controllers)

    def configure(self, node: EitherNode, **changed: str) -> None:
        """Write a node's file of properties; ``changed`` has underscores in place of dots."""
        listeners = [f"PLAINTEXT://{node.address}"] * node.is_broker
        listeners += [f"CONTROLLER://{node.controller_address}"] * node.is_controller
        properties = {
            "process.roles": node.roles,
            "node.id": str(node.node_id),
            "listeners": ",".join(listeners),
            "log.dirs": node.log_dirs,
            **self._properties,
            **{name.replace("_", "."): value for name, value in changed.items()},
        }
        if self.voters == "static":
            voters = (f"{each.node_id}@{each.controller_address}" for each in self.controllers)
            properties["controller.quorum.voters"] = ",".join(voters)
        else:
            properties["controller.quorum.bootstrap.servers"] = self.bootstrap_controllers
        node.file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def format(self, node: EitherNode, *options: str) -> None:
        """Format a node's directories by kafka-storage or ottla format; ``options`` in place of those about voters."""
        command = ["format", "-c", str(node.file), "-t", CLUSTER_ID, *(options or self._voter_options(node))]
        for feature in self._features:
            command += ["--feature", feature]
        program = [sys.executable, "-m", "ottla"]
        if self.format_by == KAFKA:
            program = [*java_command(node.folder, *SHORT_LIVED), MAIN_CLASSES["storage"]]
        subprocess.run([*program, *command, *self._format_options], check=True, capture_output=True)

    def _voter_options(self, node: EitherNode) -> list[str]:
        if self.voters == "static":
            return []
        if not node.is_controller:
            return ["--no-initial-controllers"]
        if self.voters == "standalone":
            return ["--standalone"]
        voters = (f"{each.node_id}@{each.controller_address}:{each.directory_id}" for each in self.controllers)
        return ["--initial-controllers", ",".join(voters)]

    def start(self) -> None:
        """Format what is not formatted, start what does not run, controllers first; return when every broker knows all."""
        begun = sorted((node for node in self.nodes.values() if not node.is_running), key=lambda node: node.is_broker)
        for node in begun:
            if not node.data_folders[0].exists():
                self.format(node)
            node.launch()
        for node in begun:
            node.wait_ready()
        self.wait_joined()

    def stop(self) -> None:
        """As SIGTERM does, brokers first, and of several controllers all at once: the last ones find no majority."""
        for node in self.nodes.values():
            if node.is_running and not node.is_controller:
                node.stop()
        running = [node for node in self.nodes.values() if node.is_running]
        for node in running:
            node.ask_to_stop()
        for node in running:
            node.wait_stopped()

    def kill(self) -> None:
        """SIGKILL, all of them."""
        for node in self.nodes.values():
            node.kill()

    def wait_joined(self) -> None:
        """Wait until every broker that runs tells clients of all that do, and there is a leader of the quorum."""
        running = {node.node_id for node in self.brokers if node.is_running}
        eventually(lambda: all(self._knows(number, running) for number in running), timeout_s=PATIENCE_S)
        self.active()

    def _knows(self, node_id: int, others: set[int]) -> bool:
        view = cluster_view(self.nodes[node_id].address)
        return view is not None and set(view.brokers) == others

    def described(self) -> Any:
        """The quorum as the active controller describes it; None while there is none."""
        topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
        for node in self.controllers:
            if node.is_running:
                with contextlib.suppress(OSError, EOFError), connect(node.controller_address) as connection:
                    response = connection.call(DescribeQuorumRequest(topics=[topic]), 2)
                    if not response.error_code and not response.topics[0].partitions[0].error_code:
                        return response.topics[0].partitions[0]
        return None

    def active(self) -> EitherNode:
        """The active controller, once there is one that has committed something in its epoch."""
        found: list[int] = []

        def is_led() -> bool:
            quorum = self.described()
            found[:] = [quorum.leader_id] if quorum is not None and quorum.high_watermark > 0 else []
            return bool(found)

        eventually(is_led, PATIENCE_S)
        return self.nodes[found[0]]

    def close(self) -> None:
        """End everything at once, and let go of the ports."""
        for node in self.nodes.values():
            node.close()
