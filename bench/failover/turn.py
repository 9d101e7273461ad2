"""One turn of one cluster: all loads at once, kills and restarts one after the other, and a check of what was written.

Broker 1 leads partition 0 of each topic, broker 2 partition 1, so broker 3 can be a controller that leads none of
them. All three replicas must be in sync again before the next event.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import kazoo.client
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.compat_tests.clusters import STOCK_JVM, BrokerCluster, KafkaZooKeeperCluster, OttlaCluster
from ottla.compat_tests.zookeeper import ZooKeeperProcess

from .checks import has_read, read_all, wrong_in_group, wrong_in_log
from .loads import (
    ConfluentGroup,
    ConfluentProducer,
    ConfluentTransactions,
    GroupLoad,
    JavaGroup,
    JavaProducer,
    KafkaPythonGroup,
    KafkaPythonProducer,
    Load,
    ProducerLoad,
)
from .outages import is_back, outage, session_end
from .report import Report

LEADER, CONTROLLER, BOTH = "leader", "controller", "both"
KILLS = (LEADER, CONTROLLER, BOTH)
_WORDS = {LEADER: "a leader", CONTROLLER: "the controller", BOTH: "a leader that is the controller"}
_JAVA = "java"
_PYTHON_LOADS: Mapping[str, tuple[Callable[[str, str, str], ProducerLoad], Callable[[str, str, str], GroupLoad]]] = {
    "confluent": (ConfluentProducer, ConfluentGroup),
    "transactions": (ConfluentTransactions, ConfluentGroup),
    "kafka-python": (KafkaPythonProducer, KafkaPythonGroup),
}
LOADS = (*_PYTHON_LOADS, _JAVA)
_LEADERS = (1, 2)
_IDLE = 3
_ASSIGNMENT = [[1, 2, 3], [2, 1, 3]]
_PATIENCE_S = 120.0
_ELECTION_S = 10.0
_LOOK_S = 0.05
_SETTLE_S = 1.0

PROPERTIES = {
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "min.insync.replicas": "2",
}


class _StockKafka(KafkaZooKeeperCluster):
    options = STOCK_JVM


def _ottla(folder: Path) -> BrokerCluster:
    return OttlaCluster(folder, properties=PROPERTIES)


def _kafka(folder: Path) -> BrokerCluster:
    return _StockKafka(folder, properties=PROPERTIES)


SYSTEMS: Mapping[str, Callable[[Path], BrokerCluster]] = {"ottla": _ottla, "kafka": _kafka}


class Turn:
    """``loads`` are names of LOADS; results go to ``report``."""

    def __init__(self, system: str, cluster: BrokerCluster, folder: Path, loads: Sequence[str], report: Report) -> None:
        self._system = system
        self._cluster = cluster
        self._report = report
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        self._producers: list[ProducerLoad] = []
        self._groups: list[GroupLoad] = []
        self._topics: list[str] = []
        for name in loads:
            self._add(name, f"{name}-{folder.name}", folder)

    def _add(self, name: str, topic: str, folder: Path) -> None:
        bootstrap = self._cluster.bootstrap
        self._topics.append(topic)
        if name == _JAVA:
            self._producers.append(JavaProducer(name, topic, bootstrap, folder / "producer"))
            self._groups.append(JavaGroup(name, topic, bootstrap, folder / "consumer"))
        else:
            producer, group = _PYTHON_LOADS[name]
            self._producers.append(producer(name, topic, bootstrap))
            self._groups.append(group(name, topic, bootstrap))

    @property
    def _loads(self) -> list[Load]:
        return [*self._producers, *self._groups]

    def run(self, kills: Sequence[str], *, restarts: bool) -> None:
        """Run the whole turn. Raises TimeoutError."""
        self._until(self._has_topics, "the topics are created")
        try:
            for load in self._loads:
                load.start()
            self._settle(time.time())
            for group in self._groups:
                self._until(lambda group=group: bool(group.read), f"the group of {group.name} has read something")  # type: ignore[misc]
            for kind in kills:
                with self._event(f"kill of {_WORDS[kind]}") as event:
                    self._kill(event, kind)
            for broker_id in range(1, 4) if restarts else ():
                with self._event("clean restart") as event:
                    self._restart(event, broker_id)
            self._check()
        finally:
            for load in self._loads:
                load.end()
            for load in self._loads:
                load.stop()

    def _has_topics(self) -> bool:
        """Create the topics. Returns whether they exist; false while the client asks the controller of the previous turn."""
        new = [NewTopic(topic, len(_ASSIGNMENT), replica_assignment=_ASSIGNMENT) for topic in self._topics]
        for made in self._admin.create_topics(new).values():
            try:
                made.result(_PATIENCE_S)
            except KafkaException as failure:
                if failure.args[0].code() == KafkaError.NOT_CONTROLLER:
                    return False
                if failure.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
        return True

    @contextlib.contextmanager
    def _event(self, event: str) -> Iterator[str]:
        """A context; errors that clients report meanwhile belong to this event."""
        before = {load: len(load.errors) for load in self._loads}
        yield event
        for load, known in before.items():
            self._report.errors[self._system, event] += [f"{load.name}: {each}" for each in load.errors[known:]]

    # --- what happens to brokers --------------------------------------------------------------------------------------

    def _kill(self, event: str, kind: str) -> None:
        victim = self._victim(kind)
        began = time.time()
        self._cluster.broker(victim).kill()
        zookeeper = self._cluster.zookeeper
        assert isinstance(zookeeper, ZooKeeperProcess)
        log = zookeeper.log_file
        self._until(lambda: session_end(log, began) is not None, "the session has ended")
        ended = session_end(log, began)
        assert ended is not None
        self._settle(ended)
        outages = [outage(event, producer, began, time.time(), ended) for producer in self._producers]
        self._report.add(self._system, outages)
        self._cluster.start_broker(victim)
        self._make_whole()

    def _victim(self, kind: str) -> int:
        if kind == CONTROLLER:
            self._have_controller((_IDLE,))
            return _IDLE
        if kind == BOTH:
            return self._have_controller(_LEADERS)
        controller = self._cluster.controller()
        return next(broker for broker in _LEADERS if broker != controller)

    def _have_controller(self, wanted: Sequence[int]) -> int:
        """Make one of these brokers the controller, by removing the controller's node until one of them is elected."""
        client = kazoo.client.KazooClient(self._cluster.zookeeper.address)
        client.start()
        try:
            while True:
                controller = int(client.get("/controller")[0].split(b'"brokerid":')[1].split(b",")[0])
                if controller in wanted:
                    break
                client.delete("/controller")
                self._until(lambda: client.exists("/controller") is not None, "there is a controller")
        finally:
            client.stop()
            client.close()
        self._until(lambda: self._cluster.controller() == controller, "the controller is known")
        self._make_whole()
        return controller

    def _restart(self, event: str, broker_id: int) -> None:
        began = time.time()
        self._cluster.restart_broker(broker_id)
        self._make_whole()
        outages = [outage(event, producer, began, time.time(), None) for producer in self._producers]
        self._report.add(self._system, outages)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def _make_whole(self) -> None:
        """Return when all replicas are in sync, preferred replicas lead, and producers get acknowledgements."""
        self._until(self._all_in_sync, "all replicas are in sync")
        partitions = [TopicPartition(topic, number) for topic in self._topics for number in range(len(_ASSIGNMENT))]

        def elected() -> bool:
            # A new client, because an old one may still ask an earlier controller.
            admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap, "log_level": 0})
            try:
                admin.elect_leaders(ElectionType.PREFERRED, partitions).result(_ELECTION_S)
            except (KafkaException, concurrent.futures.TimeoutError):
                return False
            return self._all_in_sync(preferred=True)

        self._until(elected, "the preferred replicas lead")
        self._settle(time.time())

    def _all_in_sync(self, *, preferred: bool = False) -> bool:
        topics = self._admin.list_topics(timeout=_PATIENCE_S).topics
        wanted = [topic for name, topic in topics.items() if name in self._topics or name.startswith("__")]
        return all(
            len(partition.isrs) == 3
            and (not preferred or topic.topic.startswith("__") or partition.leader == _ASSIGNMENT[number][0])
            for topic in wanted
            for number, partition in topic.partitions.items()
        )

    def _settle(self, since: float) -> None:
        """Return shortly after every producer got an acknowledgement in every partition since then."""
        self._until(lambda: all(is_back(producer, since) for producer in self._producers), "producers are acknowledged")
        time.sleep(_SETTLE_S)

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                errors = {load.name: load.errors for load in self._loads if load.errors}
                raise TimeoutError(f"{self._system}: timed out until {what}; errors of clients: {errors}")
            time.sleep(_LOOK_S)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        for producer in self._producers:
            producer.end()
        for producer in self._producers:
            producer.stop()
        for producer, group in zip(self._producers, self._groups, strict=True):
            logs = read_all(self._cluster.bootstrap, producer.topic)
            self._until(partial(has_read, group, logs), f"{group.name} has read all")
            wrong = [*wrong_in_log(producer, logs), *wrong_in_group(group, logs)]
            self._report.wrong += [f"{self._system}: {each}" for each in wrong]
            self._report.say(
                f"{self._system}: {producer.topic}: {len(producer.acks)} acknowledged, {wrong or 'all right'}"
            )
