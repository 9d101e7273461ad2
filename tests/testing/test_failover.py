"""Stock clients on ``ottla.Cluster(3)`` while its brokers are killed and restarted.

For each client four loads run at once: a producer with acks=all, an idempotent one, a transactional one, and a consumer
group. Whatever happens, nothing that was acknowledged is lost, doubled or reordered (a producer that is not idempotent may
double what it was not answered), the loads go on, and no client reports an error, because its time-outs are longer than a
failover.

kafka-python 3.0.12 gets stuck on a busy machine by bugs of its own, which its driver (``compat_tests.clients.kafka_python``)
works around: it forgets to end a transaction (``within_limit``), and that it joins its group again (``_rejoin_if_stuck``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import ottla
from ottla.compat_tests.clients import aio, confluent, kafka_python, model
from ottla.compat_tests.session import ClientSession
from ottla.testing.cluster import Cluster

from .helpers.workloads import PARTITIONS, Reader, Workload, Writer, check_group, check_log, check_transactions, written

ROUNDS = 10
PATIENT_MS = 60_000
GIVEN_UP_MS = 8_000
FORGETFUL = ("kafka-python",)
"""kafka-python 3.0.12: when the connection for a transactional request cannot be made, its sender forgets the request."""

CLIENTS: dict[str, Any] = {"confluent-kafka": confluent, "aiokafka": aio, "kafka-python": kafka_python}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("client", CLIENTS),
]


class Loads:
    """The four of one client, and the topics they are on."""

    TOPICS = ("plain", "idempotent", "transactional")

    def __init__(self, cluster: Cluster, session: ClientSession) -> None:
        self._cluster = cluster
        self._forgets = session.name in FORGETFUL
        for topic in self.TOPICS:
            cluster.create_topic(topic, PARTITIONS)

        def transactional() -> model.Producer:
            patience = GIVEN_UP_MS if self._forgets else PATIENT_MS
            return session.producer(transactional_id="t", delivery_timeout_ms=patience)

        self.plain = Writer("plain", session.producer, is_transactional=False)
        self.idempotent = Writer("idempotent", lambda: session.producer(idempotent=True), is_transactional=False)
        self.transactional = Writer("transactional", transactional, is_transactional=True)
        self.group = Reader("idempotent", session.consumer(group_id="g", read_committed=True))
        self.all: list[Workload] = [self.plain, self.idempotent, self.transactional, self.group]

    def wait_rounds(self, *, without_transactions: bool = False) -> None:
        for each in self.all:
            if not (without_transactions and each is self.transactional):
                each.wait_rounds(ROUNDS)

    def wait_in_sync(self) -> None:
        for topic in (*self.TOPICS, "__consumer_offsets", "__transaction_state"):
            self._cluster.wait_in_sync(topic)

    def check(self, *, may_read_again: bool) -> None:
        """End all loads, and look at what is there."""
        writers = (self.plain, self.idempotent, self.transactional)
        for writer in writers:
            writer.stop()
        logs = {writer.topic: written(self._cluster, writer) for writer in writers}
        self.group.wait_read(logs["idempotent"])
        self.group.stop()
        for writer in writers:
            check_log(writer, logs[writer.topic], may_repeat=writer is self.plain)
        check_transactions(self.transactional, logs["transactional"])
        check_group(self.group, logs["idempotent"], may_repeat=may_read_again)
        failures = {each.name: each.failures for each in self.all if each.failures}
        if self._forgets:
            failures.pop(self.transactional.name, None)
        assert not failures


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a client that forgets that it was to end a transaction."""
    monkeypatch.setattr(kafka_python, "END_TRANSACTION_S", GIVEN_UP_MS / 1000)


@contextlib.contextmanager
def running(client: str) -> Iterator[tuple[Cluster, Loads]]:
    """A cluster with the loads, which have got going."""
    with ottla.Cluster() as cluster:
        driver: model.Client = CLIENTS[client].Client(cluster.bootstrap_servers)
        with contextlib.ExitStack() as stack:
            stack.callback(driver.close)
            session = ClientSession(client, driver)
            stack.callback(session.close)
            loads = Loads(cluster, session)
            for load in loads.all:
                stack.callback(load.give_up)
                load.start()
            loads.wait_rounds()
            yield cluster, loads


def leader_and_controller(cluster: Cluster) -> tuple[int, int]:
    """The leader of a partition, and another broker that is the controller."""
    controller = cluster.controller()
    assert controller is not None
    leader = cluster.leader_of("idempotent")
    if leader == controller:
        leader = cluster.move_leader("idempotent")
    assert leader is not None
    return leader, controller


@pytest.mark.parametrize("victims", ["leader", "controller", "leader and controller"])
def test_brokers_are_killed_and_come_back(client: str, victims: str) -> None:
    with running(client) as (cluster, loads):
        leader, controller = leader_and_controller(cluster)
        killed = [broker for name, broker in (("leader", leader), ("controller", controller)) if name in victims]
        for broker in killed:
            cluster.kill(broker)
        # The log of transactions takes two replicas in sync (transaction.state.log.min.isr).
        loads.wait_rounds(without_transactions=len(killed) == 2)
        loads.wait_in_sync()
        assert cluster.controller() not in killed
        for broker in killed:
            cluster.restart(broker)
        loads.wait_in_sync()
        loads.wait_rounds()
        loads.check(may_read_again=True)


def test_a_rolling_restart_is_noticed_by_no_client(client: str) -> None:
    with running(client) as (cluster, loads):
        for broker in cluster.brokers:
            cluster.restart(broker)
            loads.wait_in_sync()
            loads.wait_rounds()
        loads.check(may_read_again=False)
