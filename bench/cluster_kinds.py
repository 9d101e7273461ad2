"""The two clusters under load, each of three nodes that are broker and controller, and requests to them.

Apache Kafka 4.3.1 runs as its start script runs it (1 GiB heap, G1).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from confluent_kafka.admin import AdminClient, NewTopic

from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.clusters import STOCK_JVM
from ottla.compat_tests.kraft_cluster import KAFKA, OTTLA, KafkaNode, KRaftCluster, OttlaNode, Seat
from ottla.compat_tests.wire_client import Operator, connect
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

from .usage import Span, resident_mib

PROPERTIES = {"log.segment.delete.delay.ms": "1000", "auto.leader.rebalance.enable": "false"}
"""For every broker of a cluster. Leaders stay as they were created; otherwise runs would differ."""

LIMIT_S = 300.0
_PAUSE_S = 0.01


class StockKafkaNode(KafkaNode):
    """As its start script runs it."""

    options = (*STOCK_JVM, "-server", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true")


class MeasuredOttlaNode(OttlaNode):
    python: ClassVar[str] = sys.executable
    """The interpreter, in a virtualenv with Ottla."""

    def command(self) -> list[str]:
        return [self.python, *super().command()[1:]]


class _ProfiledOttlaNode(MeasuredOttlaNode):
    """Ottla under ``profiled_broker``, which writes its samples to ``profile.json``."""

    def command(self) -> list[str]:
        return [self.python, "-m", "bench.profiled_broker", str(self.profile), "serve", "--config", str(self.file)]

    @property
    def profile(self) -> Path:
        return self.folder / "profile.json"


class CombinedNodes(KRaftCluster):
    """Three combined nodes of ``program``."""

    program: ClassVar[str]
    kinds: ClassVar[Mapping[str, type[KafkaNode | OttlaNode]]] = {KAFKA: StockKafkaNode, OTTLA: MeasuredOttlaNode}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, [Seat(self.program)] * 3, properties=PROPERTIES)


class OttlaQuorum(CombinedNodes):
    program = OTTLA


class KafkaQuorum(CombinedNodes):
    program = KAFKA


class ProfiledOttlaQuorum(OttlaQuorum):
    kinds: ClassVar[Mapping[str, type[KafkaNode | OttlaNode]]] = {OTTLA: _ProfiledOttlaNode}


KINDS: Mapping[str, type[CombinedNodes]] = {"Ottla": OttlaQuorum, "Apache Kafka 4.3.1": KafkaQuorum}
PROFILED: Mapping[str, type[CombinedNodes]] = {"Ottla": ProfiledOttlaQuorum}


class MeasuredCluster:
    """``with MeasuredCluster(name, kind, folder) as measured:``; ``cluster`` is the running cluster."""

    def __init__(self, name: str, kind: type[CombinedNodes], folder: Path) -> None:
        self.name = name
        self._kind, self._folder = kind, folder
        self.profiles: dict[str, Counter[str]] = {}
        """row -> part of the broker -> samples, over all brokers; filled if they are profiled."""

    def __enter__(self) -> MeasuredCluster:
        self._folder.mkdir(parents=True)
        self.cluster = self._kind(self._folder)
        try:
            self.cluster.start()
        except BaseException:
            self.cluster.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    @property
    def running(self) -> Sequence[BrokerProcess]:
        return [broker for broker in self.cluster.brokers if broker.is_running]

    def memory_mib(self) -> float:
        """Resident memory of all running brokers, in MiB."""
        return sum(resident_mib(broker.pid) for broker in self.running)

    @contextlib.contextmanager
    def measured(self, row: str, clients: Sequence[int] = ()) -> Iterator[Span]:
        """What the block costs all brokers: ``with cluster.measured(row) as span: ...``, then the fields of ``span``.

        ``clients`` are the pids of those that go on running afterwards.
        """
        profiled = [broker for broker in self.running if isinstance(broker, _ProfiledOttlaNode)]
        for broker in profiled:
            os.kill(broker.pid, signal.SIGUSR1)
        with Span([broker.pid for broker in self.running], clients) as span:
            yield span
        for broker in profiled:
            broker.profile.unlink(missing_ok=True)
            os.kill(broker.pid, signal.SIGUSR2)
            wait_for(broker.profile.exists)
            self.profiles.setdefault(row, Counter()).update(json.loads(broker.profile.read_text()))

    # --- topics -------------------------------------------------------------------------------------------------------

    def create_topic(self, topic: str, partitions: int, leader: int | None = None) -> None:
        """Create a topic with three replicas; returns when all brokers report that all are in sync.

        With ``leader``, the id of a broker, that one leads all partitions.
        """
        Operator(self.bootstrap, leader).create_topic(topic, partitions, {})
        wait_for(lambda: self.in_sync(3) >= partitions)

    def begin_topics(self, topics: Sequence[str], partitions: int) -> None:
        """Create topics with three replicas, in one request; returns when the controller has answered."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "socket.timeout.ms": int(LIMIT_S * 1000)})
        new = [NewTopic(topic, partitions, 3) for topic in topics]
        for future in admin.create_topics(new, request_timeout=LIMIT_S, operation_timeout=LIMIT_S).values():
            future.result(LIMIT_S)

    def delete_topic(self, topic: str) -> None:
        Operator(self.bootstrap).delete_topic(topic)

    def in_sync(self, replicas: int) -> int:
        """How many partitions have this many replicas in sync: the lowest number that any broker reports."""
        return self._fewest(lambda answer: [len(part.isr_nodes) >= replicas for part in _partitions(answer)])

    def led(self, brokers: Sequence[int]) -> int:
        """How many partitions are led by one of these brokers: the lowest number that any broker reports."""
        return self._fewest(lambda answer: [part.leader_id in brokers for part in _partitions(answer)])

    def _fewest(self, judge: Callable[[MetadataResponse], list[bool]]) -> int:
        return min(sum(judge(metadata(broker.address))) for broker in self.running)

    def is_alive(self, broker_id: int) -> bool:
        """Whether any broker that runs tells clients of this one: its session has not ended there."""
        return any(broker_id == told.node_id for broker in self.running for told in metadata(broker.address).brokers)


def _partitions(answer: MetadataResponse) -> list[Any]:
    return [part for topic in answer.topics for part in topic.partitions]


def metadata(address: str) -> MetadataResponse:
    """The metadata of all topics from one broker."""
    with connect(address, LIMIT_S) as connection:
        answer: MetadataResponse = connection.call(MetadataRequest(topics=None), 12)
        return answer


def wait_for(condition: Callable[[], bool]) -> None:
    """Raises RuntimeError when it takes too long."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"it took longer than {LIMIT_S:g} s")
        time.sleep(_PAUSE_S)
