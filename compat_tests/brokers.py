"""Brokers under test: one that is already running, Ottla in this process, or Ottla or Apache Kafka in its own process.

Only a broker in a process of its own can be killed and restarted, on the same port and the same folder.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import SHORT_LIVED, java_command
from ottla.compat_tests.server_process import ServerProcess
from ottla.testing.held_port import HeldPort

KAFKA_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
inter.broker.listener.name=PLAINTEXT
log.dirs={log_dirs}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""
QUICK_CONSUMER_GROUPS = {
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.session.timeout.ms": "10000",
}
"""The times of members by the consumer protocol, who get them from the broker: those that members by the classic one are told."""


class Restartable(Protocol):
    """What a test kills, stops and starts, without asking how many brokers it is."""

    bootstrap: str

    def kill(self) -> None:
        """SIGKILL."""
        ...

    def stop(self) -> None:
        """SIGTERM, and wait for a clean end."""
        ...

    def start(self) -> None:
        """Start again; returns when clients are served."""
        ...


class BrokerProcess(ServerProcess):
    """A broker that tests may stop, kill and start again, with ``properties`` beside those that every test needs."""

    def __init__(
        self, folder: Path, data_folders: int = 1, properties: Mapping[str, str] | None = None, port: int = 0
    ) -> None:
        super().__init__(folder, "broker.log", port)
        self.bootstrap = self.address
        """host:port, as clients are given it."""
        self.data_folders = [folder / name for name in ("data", "data-2", "data-3")[:data_folders]]
        self.properties = dict(properties or {})

    @property
    def log_dirs(self) -> str:
        """The log directories as a property."""
        return ",".join(map(str, self.data_folders))


class OttlaProcess(BrokerProcess):
    """``python -m ottla serve``."""

    python = sys.executable
    """The interpreter, in a virtualenv with Ottla."""

    def command(self) -> list[str]:
        serve = [self.python, "-m", "ottla", "serve"]
        if "listeners" not in self.properties:
            serve += ["--listen", self.bootstrap]
        properties = {"log.dirs": self.log_dirs, **self.properties}
        return [*serve, *(word for item in properties.items() for word in ("--override", "=".join(item)))]


class KafkaProcess(BrokerProcess):
    """Apache Kafka: one KRaft node that is broker and controller. Its ``properties`` are as they were at the first start."""

    clean_exit = 128 + signal.SIGTERM
    system_properties: Mapping[str, str] = {}
    """Those of its JVM."""

    def __init__(self, folder: Path, data_folders: int = 1, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, data_folders, properties)
        self._properties = folder / "server.properties"
        self._held_controller_port = HeldPort()

    @property
    def controller_port(self) -> int:
        """That of its other listener, on which it is controller."""
        return self._held_controller_port.number

    def launch(self) -> None:
        if not self._properties.exists():
            self._format()
        super().launch()

    def _format(self) -> None:
        ports = {"port": self.port, "controller_port": self.controller_port}
        text = KAFKA_PROPERTIES.format(**ports, log_dirs=self.log_dirs)
        self._properties.write_text(text + "".join(f"{name}={value}\n" for name, value in self.properties.items()))
        storage = [*java_command(self.folder, *SHORT_LIVED), "kafka.tools.StorageTool", "format"]
        storage += ["-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(self._properties)]
        subprocess.run(storage, check=True, capture_output=True)

    def command(self) -> list[str]:
        system = [f"-D{name}={value}" for name, value in self.system_properties.items()]
        return [*java_command(self.folder, *SHORT_LIVED, "-Xmx768m", *system), "kafka.Kafka", str(self._properties)]

    def close(self) -> None:
        super().close()
        self._held_controller_port.close()


@contextlib.contextmanager
def process(
    kind: str, folder: Path, data_folders: int = 1, properties: Mapping[str, str] | None = None
) -> Iterator[BrokerProcess]:
    """A started broker, ``ottla`` or ``kafka``, with its data under ``folder``."""
    broker = (OttlaProcess if kind == "ottla" else KafkaProcess)(folder, data_folders, properties)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


@contextlib.contextmanager
def shared(kind: str, folder: Path) -> Iterator[str]:
    """The bootstrap address of the broker that the whole run shares."""
    if kind == "ottla":
        import ottla

        with ottla.Broker(properties=QUICK_CONSUMER_GROUPS) as broker:
            yield broker.bootstrap_servers
    else:
        with process(kind, folder, properties=QUICK_CONSUMER_GROUPS) as running:
            yield running.bootstrap


def kafka_version() -> str:
    """Apache Kafka and the version in its jars' names."""
    (jar,) = toolchains.kafka_jars().glob("kafka-clients-*.jar")
    return f"Apache Kafka {jar.stem.removeprefix('kafka-clients-')}"


def ottla_version() -> str:
    """Ottla and its version."""
    import ottla

    return f"Ottla {ottla.__version__}"


VERSIONS = {"kafka": kafka_version, "ottla": ottla_version}
