"""The two brokers under load: started on a free port of loopback with an empty folder, stopped, and deleted.

Apache Kafka runs as its start script runs it (1 GiB heap, G1), as a KRaft node that is both broker and controller,
on a folder formatted beforehand, so its start-up time is without formatting.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol

from confluent_kafka.admin import AdminClient, NewTopic

from ottla.compat_tests.wire_client import Operator

from .java import java_command, run_tool
from .raw_client import answers_metadata
from .usage import Span

_ROOT = Path(__file__).resolve().parent.parent
_START_LIMIT_S = 600
_STOP_LIMIT_S = 300
# The topic of each run is deleted after it; with the default delay of a minute, they would fill a small disk.
_DELETE_AT_ONCE = "log.segment.delete.delay.ms=1000"


class Kind(Protocol):
    """How one kind of broker is started."""

    name: str
    ports: int
    """How many it needs, one after the other."""

    def prepare(self, folder: Path, port: int) -> list[str]:
        """Prepare ``folder`` and return the command that runs the broker."""
        ...


class Ottla:
    name = "Ottla"
    ports = 1

    def __init__(self, python: Path = Path(sys.executable)) -> None:
        self._python = python.absolute()

    def prepare(self, folder: Path, port: int) -> list[str]:
        program = self._python.parent / "ottla"
        address = f"127.0.0.1:{port}"
        return [
            str(program),
            "serve",
            "--listen",
            address,
            "--data-dir",
            str(folder / "data"),
            "--override",
            _DELETE_AT_ONCE,
        ]


class ProfiledOttla(Ottla):
    """Ottla under ``profiled_broker``, which writes its samples to ``profile.json``."""

    def prepare(self, folder: Path, port: int) -> list[str]:
        _, *arguments = super().prepare(folder, port)
        return [str(self._python), "-m", "bench.profiled_broker", str(folder / "profile.json"), *arguments]


class ApacheKafka:
    name = "Apache Kafka 4.3.1"
    ports = 1

    def prepare(self, folder: Path, port: int) -> list[str]:
        controller_port = free_port()
        properties = folder / "server.properties"
        properties.write_text(
            "\n".join(
                [
                    "process.roles=broker,controller",
                    "node.id=1",
                    f"controller.quorum.voters=1@127.0.0.1:{controller_port}",
                    "controller.listener.names=CONTROLLER",
                    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                    f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
                    f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
                    f"log.dirs={folder / 'data'}",
                    "offsets.topic.replication.factor=1",
                    "transaction.state.log.replication.factor=1",
                    "transaction.state.log.min.isr=1",
                    "share.coordinator.state.topic.replication.factor=1",
                    "share.coordinator.state.topic.min.isr=1",
                    "group.initial.rebalance.delay.ms=0",
                    _DELETE_AT_ONCE,
                ]
            )
        )
        cluster_id = run_tool(java_command("kafka.tools.StorageTool", "random-uuid")).split()[-1]
        run_tool(java_command("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)))
        return java_command("kafka.Kafka", str(properties), heap="1G")


def free_port(count: int = 1) -> int:
    """The first of so many ports of loopback that nobody has at the moment, one after the other."""
    while True:
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            first = 0
            for number in range(count):
                probe = probes.enter_context(socket.socket())
                probe.bind(("127.0.0.1", first + number if first else 0))
                first = first or int(probe.getsockname()[1])
            return first


class RunningBroker:
    """``with RunningBroker(kind, folder) as broker:``; ``startup_s`` is from exec to the first Metadata response."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.name = kind.name
        self._kind = kind
        self._folder = folder
        self._log: IO[bytes] | None = None
        self.port = 0
        self.startup_s = 0.0
        self.profiles: dict[str, Counter[str]] = {}
        """row -> part of the broker -> samples; filled by a ProfiledOttla."""

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def folder(self) -> Path:
        """Its own, which is deleted when it ends."""
        return self._folder

    @property
    def data_folder(self) -> Path:
        return self._folder / "data"

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> RunningBroker:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self.port = free_port(self._kind.ports)
        self._command = self._kind.prepare(self._folder, self.port)
        self._log = (self._folder / "broker.log").open("wb")
        self.start()
        return self

    def start(self) -> None:
        """Start with the data in the folder, and return with the first Metadata response."""
        started = time.monotonic()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=_ROOT,
        )
        try:
            while not answers_metadata(self.port):
                if self._process.poll() is not None or time.monotonic() - started > _START_LIMIT_S:
                    raise RuntimeError(f"{self.name} did not start: {self._last_lines()}")
                time.sleep(0.005)
        except BaseException:
            self._end()
            raise
        self.startup_s = time.monotonic() - started

    def kill(self) -> None:
        """Kill it, as in a crash; ``start`` starts it again."""
        self._process.kill()
        self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def __exit__(self, *_: object) -> None:
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self) -> None:
        self.stop()
        if self._log is not None:
            self._log.close()

    def stop(self) -> None:
        """Stop it cleanly; ``start`` starts it again."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def _last_lines(self) -> str:
        return (self._folder / "broker.log").read_text(errors="replace")[-2000:]

    @contextlib.contextmanager
    def measured(self, row: str, clients: Sequence[int] = ()) -> Iterator[Span]:
        """What the block costs: ``with broker.measured(row) as span: ...``, then the fields of ``span``.

        ``clients`` are the pids of those that go on running afterwards.
        """
        profiling = isinstance(self._kind, ProfiledOttla)
        if profiling:
            self._process.send_signal(signal.SIGUSR1)
        with Span([self.pid], clients) as span:
            yield span
        if profiling:
            file = self._folder / "profile.json"
            file.unlink(missing_ok=True)
            self._process.send_signal(signal.SIGUSR2)
            while not file.exists():
                time.sleep(0.01)
            self.profiles.setdefault(row, Counter()).update(json.loads(file.read_text()))

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create ``topic`` and wait until the leader of each of its partitions serves it: raw clients don't try again."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result(60)
        Operator(self.bootstrap).wait_until_ready(topic, partitions)

    def delete_topic(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.delete_topics([topic]).values():
            future.result(60)
