"""Clusters on one ZooKeeper, each broker in its own process: Ottla, Apache Kafka 3.9 in ZooKeeper mode, or both.

All kinds have the same interface, so what one does can be compared with the other. Broker ids begin at 1. Each broker
keeps its port, its folder and its log over all of its starts. Topics have three replicas unless told otherwise, or as many as
there are brokers.
"""

from __future__ import annotations

import contextlib
import json
import signal
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import kazoo.client
import kazoo.exceptions

from ottla.compat_tests import toolchains
from ottla.compat_tests.brokers import BrokerProcess, OttlaProcess, ottla_version
from ottla.compat_tests.clients.security import Security
from ottla.compat_tests.joined import JOIN_TIMEOUT_S, wait_until_joined
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Operator, cluster_view
from ottla.compat_tests.zookeeper import JARS, ZooKeeperEnsemble, ZooKeeperProcess
from ottla.testing.cluster import replicas_by_default

SESSION_TIMEOUT_MS = 6_000
QUICK_TO_MISS = {"zookeeper.session.timeout.ms": "2000"}
"""For clusters whose brokers are killed: the others take over after so long, and a start waits for it."""
SMALL_JVM = ("-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""For tests that look at what Kafka does; to measure it, give a cluster the options of its start script."""
STOCK_JVM = ("-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")

_STARTS_IN_ALL = 3
_SESSION_EXPIRED = "SessionExpiredException"
_LOG4J = """\
log4j.rootLogger={level}, OUT
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def zookeeper_mode_command(file: Path, options: Sequence[str] = SMALL_JVM, log_level: str = "WARN") -> list[str]:
    """What runs a broker of Apache Kafka 3.9 with this file of properties; its log's configuration is written beside."""
    log4j = file.with_name("log4j.properties")
    log4j.write_text(_LOG4J.format(level=log_level))
    java = [str(toolchains.java()), *options, f"-Dlog4j.configuration=file:{log4j}"]
    return [*java, "-cp", f"{toolchains.jars(JARS)}/*", "kafka.Kafka", str(file)]


class KafkaZooKeeperProcess(BrokerProcess):
    """One broker of Apache Kafka 3.9, which has ``properties`` and a JVM with ``options``; its log begins at ``log_level``."""

    clean_exit = 128 + signal.SIGTERM

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str],
        options: Sequence[str] = SMALL_JVM,
        log_level: str = "WARN",
    ) -> None:
        super().__init__(folder, properties=properties)
        self._options = options
        self._log_level = log_level
        self._begins_at = 0
        """Where in the log the latest start begins."""

    def command(self) -> list[str]:
        return zookeeper_mode_command(self.folder / "server.properties", self._options, self._log_level)

    def launch(self) -> None:
        listener = f"PLAINTEXT://{self.address}"
        properties = {"listeners": listener, "log.dirs": self.log_dirs, **self.properties}
        lines = [f"{name}={value}\n" for name, value in properties.items()]
        (self.folder / "server.properties").write_text("".join(lines))
        self._begins_at = len(self.log()) if self.log_file.exists() else 0
        super().launch()

    def wait_ready(self) -> None:
        """As of any server; but a JVM that the machine had no time for, so that it ended with its session, starts once more.

        It does not take a new session while it starts, as it does later.
        """
        for _ in range(_STARTS_IN_ALL - 1):
            try:
                return super().wait_ready()
            except RuntimeError:
                if self.is_running or _SESSION_EXPIRED not in self.log()[self._begins_at :]:
                    raise
                self.launch()
        super().wait_ready()


class BrokerCluster(ABC):
    """``count`` brokers on ``zookeeper``, for which one server is started if none is given.

    ``properties`` are Kafka's, for all brokers, over those of every cluster; ``root`` is the node under which they keep
    everything. ``brokers[0]`` is broker 1. A ZooKeeper that was given is left running.
    """

    def __init__(
        self,
        folder: Path,
        count: int = 3,
        *,
        zookeeper: ZooKeeperProcess | ZooKeeperEnsemble | None = None,
        root: str = "",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.security: Security | None = None
        """How brokers are asked what they know of each other; None: without a password and encryption."""
        self._owns_zookeeper = zookeeper is None
        if zookeeper is None:
            own = folder / "zookeeper"
            own.mkdir(parents=True)
            zookeeper = ZooKeeperProcess(own)
        self.zookeeper = zookeeper
        self.root = root
        self.count = count
        common = {
            "zookeeper.connect": zookeeper.address + root,
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "zookeeper.connection.timeout.ms": "60000",
            "group.initial.rebalance.delay.ms": "0",
            **replicas_by_default(count),
            "transaction.state.log.min.isr": str(min(count, 2)),
            **(properties or {}),
        }
        self.brokers: list[BrokerProcess] = []
        for broker_id in range(1, count + 1):
            own = folder / f"broker-{broker_id}"
            own.mkdir(parents=True)
            self.brokers.append(self.make_broker(own, {"broker.id": str(broker_id), **common}))

    @abstractmethod
    def make_broker(self, folder: Path, properties: Mapping[str, str]) -> BrokerProcess:
        """A broker of this kind, not started."""

    def before_start(self, broker: BrokerProcess) -> None:
        """Wait until the registration that a killed broker of Kafka left behind is gone, since it does not start before."""
        if not isinstance(broker, KafkaZooKeeperProcess):
            return
        servers = self.zookeeper.servers if isinstance(self.zookeeper, ZooKeeperEnsemble) else [self.zookeeper]
        node = f"\t{self.root}/brokers/ids/{broker.properties['broker.id']}\n"
        eventually(
            lambda: not any(node in server.ask("dump") for server in servers if server.is_running),
            timeout_s=JOIN_TIMEOUT_S,
        )

    @property
    def bootstrap(self) -> str:
        """host:port of every broker, with commas between."""
        return ",".join(broker.address for broker in self.brokers)

    def broker(self, broker_id: int) -> BrokerProcess:
        """The broker of an id."""
        return self.brokers[broker_id - 1]

    # One or all of them

    def start(self) -> None:
        """Start what does not run, all at once; returns when each broker knows all of them, and the controller.

        Raises RuntimeError, with the end of a broker's log, and AssertionError when they don't come together.
        """
        if self._owns_zookeeper and not isinstance(self.zookeeper, ZooKeeperEnsemble) and not self.zookeeper.is_running:
            self.zookeeper.start()
        begun = [broker for broker in self.brokers if not broker.is_running]
        for broker in begun:
            self.before_start(broker)
            broker.launch()
        for broker in begun:
            broker.wait_ready()
        self.wait_joined()

    def start_broker(self, broker_id: int) -> None:
        """Start one that was stopped or killed; returns when the brokers that run know it, and it knows them.

        After a kill that is not before the session that it left has ended. Raises RuntimeError, AssertionError.
        """
        broker = self.broker(broker_id)
        self.before_start(broker)
        broker.start()
        self.wait_joined()

    def restart_broker(self, broker_id: int) -> None:
        """Stop one as SIGTERM does, and start it again. Raises as ``start_broker``."""
        self.broker(broker_id).stop()
        self.start_broker(broker_id)

    def wait_joined(self) -> None:
        """Wait until every broker that runs tells clients of all that do, and of a controller among them. AssertionError."""
        running = {number: broker for number, broker in enumerate(self.brokers, 1) if broker.is_running}
        wait_until_joined(
            running,
            lambda view: view.brokers.keys() == running.keys() and view.controller in running,
            self.security,
        )

    def controller(self) -> int | None:
        """The id of the controller, as a broker that runs tells it; None while it knows of none."""
        for broker in self.brokers:
            view = cluster_view(broker.address, security=self.security) if broker.is_running else None
            if view is not None and view.controller >= 0:
                return view.controller
        return None

    def have_controller(self, wanted: Collection[int]) -> int:
        """Have one of these brokers be the controller, and all know it; which one. AssertionError when that takes too long.

        A controller whose node is removed is voted out. The others are paused for that moment, so that one of these wins.
        """
        client = kazoo.client.KazooClient(self.zookeeper.address + self.root)
        client.start()
        others = [broker for number, broker in enumerate(self.brokers, 1) if broker.is_running and number not in wanted]

        def elected() -> int | None:
            with contextlib.suppress(kazoo.exceptions.NoNodeError):
                return int(json.loads(client.get("/controller")[0])["brokerid"])
            return None

        try:
            if elected() not in wanted:
                for broker in others:
                    broker.pause()
                with contextlib.suppress(kazoo.exceptions.NoNodeError):
                    client.delete("/controller")
                eventually(lambda: elected() in wanted)
            controller = elected()
        finally:
            for broker in others:
                broker.resume()
            client.stop()
            client.close()
        assert controller is not None
        eventually(lambda: self._all_know(controller), timeout_s=JOIN_TIMEOUT_S)
        return controller

    def _all_know(self, controller: int) -> bool:
        views = [cluster_view(broker.address, security=self.security) for broker in self.brokers if broker.is_running]
        return all(view is not None and view.controller == controller for view in views)

    def close(self) -> None:
        """End everything at once, and let go of the ports."""
        for broker in self.brokers:
            broker.close()
        if self._owns_zookeeper:
            self.zookeeper.close()


class OttlaCluster(BrokerCluster):
    """``ottla serve``, several times."""

    def make_broker(self, folder: Path, properties: Mapping[str, str]) -> BrokerProcess:
        return OttlaProcess(folder, properties=properties)


class KafkaZooKeeperCluster(BrokerCluster):
    """Apache Kafka 3.9 in ZooKeeper mode; a class of its own with other ``options`` gives the JVMs those."""

    options: Sequence[str] = SMALL_JVM
    log_level = "WARN"

    def make_broker(self, folder: Path, properties: Mapping[str, str]) -> BrokerProcess:
        return KafkaZooKeeperProcess(folder, properties, self.options, self.log_level)


class MixedCluster(BrokerCluster):
    """Brokers of both kinds: the last one is of the ``odd`` kind, the others are of the other."""

    odd: str

    def kind(self, broker_id: int) -> str:
        """``ottla`` or ``kafka``."""
        other = "kafka" if self.odd == "ottla" else "ottla"
        return self.odd if broker_id == self.count else other

    def of_kind(self, kind: str) -> list[int]:
        """The ids of the brokers of one kind."""
        return [broker_id for broker_id in range(1, self.count + 1) if self.kind(broker_id) == kind]

    def make_broker(self, folder: Path, properties: Mapping[str, str]) -> BrokerProcess:
        if self.kind(int(properties["broker.id"])) == "kafka":
            return KafkaZooKeeperProcess(folder, properties)
        return OttlaProcess(folder, properties=properties)


class OttlaWithOneKafka(MixedCluster):
    """Ottla, except for the last broker."""

    odd = "kafka"


class KafkaWithOneOttla(MixedCluster):
    """Apache Kafka, except for the last broker."""

    odd = "ottla"


class RestartableCluster:
    """A cluster as a test of one broker sees it: a kill is that of a leader, a stop and a start are of all brokers."""

    def __init__(self, cluster: BrokerCluster) -> None:
        self._cluster = cluster
        self.bootstrap = cluster.bootstrap

    def kill(self) -> None:
        """Kill the broker that leads the first partition of the first topic that a test has made, by name."""
        names = sorted(name for name in Operator(self.bootstrap).topics() if not name.startswith("__"))
        leader = Operator(self.bootstrap).leader(names[0])
        (broker,) = [broker for broker in self._cluster.brokers if broker.address == leader]
        broker.kill()

    def stop(self) -> None:
        """Stop all brokers, one after the other, as SIGTERM does."""
        for broker in self._cluster.brokers:
            broker.stop()

    def start(self) -> None:
        """Start what does not run; returns when the cluster is whole."""
        self._cluster.start()


KINDS: Mapping[str, type[BrokerCluster]] = {
    "ottla": OttlaCluster,
    "kafka": KafkaZooKeeperCluster,
    "mixed": OttlaWithOneKafka,
    "mixed-kafka": KafkaWithOneOttla,
}


def kafka_version() -> str:
    """Apache Kafka and the version of its last release for ZooKeeper."""
    return f"Apache Kafka {JARS.removeprefix('kafka-')}"


def _both_versions() -> str:
    return f"{ottla_version()} and {kafka_version()}"


VERSIONS = {"ottla": ottla_version, "kafka": kafka_version, "mixed": _both_versions, "mixed-kafka": _both_versions}


@contextlib.contextmanager
def cluster(
    kind: str,
    folder: Path,
    count: int = 3,
    *,
    zookeeper: ZooKeeperProcess | ZooKeeperEnsemble | None = None,
    root: str = "",
    properties: Mapping[str, str] | None = None,
) -> Iterator[BrokerCluster]:
    """A started cluster of one of ``KINDS``, for the length of a block."""
    made = KINDS[kind](folder, count, zookeeper=zookeeper, root=root, properties=properties)
    try:
        made.start()
        yield made
    finally:
        made.close()
