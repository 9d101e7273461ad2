"""ZooKeeper servers, each in its own process, from the jars of Apache Kafka 3.9: one, or an ensemble of three.

They live for a test or a session of tests, so their JVMs start fast and stay small, and nothing waits for the disk unless a
server ``is_durable``: what it was told survives its ``kill``, but not a loss of power. A server's ``address`` is for
``zookeeper.connect``; with ``/name`` behind it, the client sees only what is under that node, which is how tests share a server.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.compat_tests import toolchains
from ottla.compat_tests.server_process import ServerProcess
from ottla.testing.held_port import HeldPort

JARS = "kafka-3.9.2"
TICK_TIME_MS = 500
_SIGTERM_EXIT = 143
_ANSWER_S = 5.0

# The compiler that is fast to start, one thread for the garbage, and no files of 64 MiB for a log of a few kilobytes.
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx128M", "-Dzookeeper.preAllocSize=512")
_NOT_SYNCED = ("-Dzookeeper.forceSync=no",)

_CONFIG = """\
tickTime={tick_time}
maxSessionTimeout=60000
initLimit=120
syncLimit=20
dataDir={data}
clientPort={port}
clientPortAddress={host}
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
"""

# When sessions begin and expire is told by these; everything else only when something is wrong.
_LOG4J = """\
log4j.rootLogger=WARN, OUT
log4j.logger.org.apache.zookeeper.server.ZooKeeperServer=INFO
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class ZooKeeperProcess(ServerProcess):
    """One ZooKeeper server, with its data in ``folder``.

    ``tick_time`` in milliseconds is how exact it is about the end of sessions; their time-outs can be 2 ticks to a minute.
    ``properties`` go to the end of its zoo.cfg, ``options`` to the JVM. It is ready when it answers as a server that serves.
    """

    clean_exit = _SIGTERM_EXIT

    def __init__(
        self,
        folder: Path,
        *,
        tick_time: int = TICK_TIME_MS,
        properties: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        port: int = 0,
        is_durable: bool = False,
    ) -> None:
        super().__init__(folder, "zookeeper.log", port)
        self.tick_time = tick_time
        self.properties = dict(properties or {})
        self.data = folder / "zookeeper-data"
        self._options = [*options, *(() if is_durable else _NOT_SYNCED)]
        self._jars = toolchains.jars(JARS)

    def command(self) -> list[str]:
        jvm = [str(toolchains.java()), *_JVM, *self._options]
        jvm += [f"-Dlog4j.configuration=file:{self.folder / 'zookeeper-log4j.properties'}", "-cp", f"{self._jars}/*"]
        return [*jvm, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.folder / "zoo.cfg")]

    def launch(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        text = _CONFIG.format(tick_time=self.tick_time, data=self.data, host=self.host, port=self.port)
        text += "".join(f"{name}={value}\n" for name, value in self.properties.items())
        (self.folder / "zoo.cfg").write_text(text)
        (self.folder / "zookeeper-log4j.properties").write_text(_LOG4J)
        super().launch()

    def is_ready(self) -> bool:
        return self.mode() is not None

    def mode(self) -> str | None:
        """``standalone``, ``leader`` or ``follower``; None where it serves no client now."""
        for line in self.ask("srvr").splitlines():
            name, _, value = line.partition(": ")
            if name == "Mode":
                return value
        return None

    def ask(self, command: str) -> str:
        """The answer to one of ZooKeeper's commands of four letters (``srvr``, ``cons``, ``dump``); empty if there is none."""
        try:
            with socket.create_connection((self.host, self.port), timeout=_ANSWER_S) as connection:
                connection.sendall(command.encode())
                with connection.makefile("r", errors="replace") as answer:
                    return answer.read()
        except OSError:
            return ""


class ZooKeeperEnsemble:
    """``count`` servers that elect a leader among themselves; they serve while most of them run.

    Each takes what ``ZooKeeperProcess`` takes. ``address`` names all of them.
    """

    def __init__(
        self,
        folder: Path,
        count: int = 3,
        *,
        tick_time: int = TICK_TIME_MS,
        properties: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self._held_ports = [(HeldPort(), HeldPort()) for _ in range(count)]
        members = {
            f"server.{number}": f"127.0.0.1:{quorum.number}:{election.number}"
            for number, (quorum, election) in enumerate(self._held_ports, 1)
        }
        self.servers: list[ZooKeeperProcess] = []
        for number in range(1, count + 1):
            own = folder / f"zookeeper-{number}"
            own.mkdir(parents=True)
            server = ZooKeeperProcess(
                own, tick_time=tick_time, properties={**members, **(properties or {})}, options=options
            )
            server.data.mkdir()
            (server.data / "myid").write_text(str(number))
            self.servers.append(server)

    @property
    def address(self) -> str:
        """host:port of each, with commas between."""
        return ",".join(server.address for server in self.servers)

    def start(self) -> None:
        """Start all; returns when each serves. Raises RuntimeError."""
        for server in self.servers:
            server.launch()
        for server in self.servers:
            server.wait_ready()

    def leader(self) -> ZooKeeperProcess | None:
        """The server that leads now."""
        return next((server for server in self.servers if server.is_running and server.mode() == "leader"), None)

    def close(self) -> None:
        """End all that still run, and let go of their ports."""
        for server in self.servers:
            server.close()
        for held in self._held_ports:
            for port in held:
                port.close()
