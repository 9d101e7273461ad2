"""Brokers of either kind stop, die and hand the controller over, under load: nothing is lost, doubled or reordered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

import pytest

from ottla.bench.failover.checks import has_read, read_all, wrong_in_group, wrong_in_log
from ottla.bench.failover.loads import ConfluentGroup, ConfluentProducer, ConfluentTransactions, GroupLoad, ProducerLoad
from ottla.bench.failover.outages import is_back
from ottla.compat_tests.session import eventually

from .helpers.mixed import BOTH, KAFKA, OTTLA, PATIENCE_S, Mixed
from .helpers.on_zookeeper import ZooKeeperMixed

pytestmark = pytest.mark.slow


class Loads:
    """Producers, plain and transactional, each with a topic of two partitions and a group that reads it."""

    def __init__(self, mixed: Mixed, name: str, *replicas: Sequence[int]) -> None:
        self._mixed = mixed
        self._replicas = replicas
        self.producers: list[ProducerLoad] = []
        self._groups: list[GroupLoad] = []
        for kind in (ConfluentProducer, ConfluentTransactions):
            topic = f"{name}-{kind.__name__}"
            mixed.create(topic, *replicas, min_insync_replicas="2")
            self.producers.append(kind(kind.__name__, topic, mixed.bootstrap))
            self._groups.append(ConfluentGroup("group", topic, mixed.bootstrap))

    def start(self) -> None:
        for load in (*self.producers, *self._groups):
            load.start()
        self.settle()

    def settle(self) -> None:
        """Return when every producer has been acknowledged on each partition from now on, and all replicas are in sync."""
        now = time.time()
        eventually(lambda: all(is_back(producer, now) for producer in self.producers), PATIENCE_S)
        for producer in self.producers:
            for partition, replicas in enumerate(self._replicas):
                self._mixed.wait_isr(producer.topic, replicas, partition)

    def end(self) -> None:
        for load in (*self.producers, *self._groups):
            load.end()

    def check(self) -> None:
        """Nothing acknowledged is lost, nothing is there twice, and the groups have read everything in its order."""
        for producer in self.producers:
            producer.stop()
        wrong = []
        for producer, group in zip(self.producers, self._groups, strict=True):
            logs = read_all(self._mixed.bootstrap, producer.topic)
            eventually(lambda group=group, logs=logs: has_read(group, logs), PATIENCE_S)
            group.stop()
            wrong += [*wrong_in_log(producer, logs), *wrong_in_group(group, logs), *producer.errors]
            assert producer.acks
        assert wrong == []


@contextlib.contextmanager
def load(mixed: Mixed, name: str, *replicas: Sequence[int]) -> Iterator[Loads]:
    """Loads at work for the length of a block, after which what they wrote is checked."""
    loads = Loads(mixed, name, *replicas)
    try:
        loads.start()
        yield loads
        loads.check()
    finally:
        loads.end()


def led_by_either(mixed: Mixed) -> tuple[list[int], list[int]]:
    """All brokers as replicas of two partitions, of which each kind leads one."""
    return mixed.replicas_from(mixed.one(OTTLA)), mixed.replicas_from(mixed.one(KAFKA))


def test_the_controller_moves_from_one_kind_to_the_other_and_back(mixed: ZooKeeperMixed, topic: str) -> None:
    with load(mixed, topic, *led_by_either(mixed)) as loads:
        for controlling in (*BOTH, *BOTH):
            mixed.led_by(controlling)
            loads.settle()


def test_each_broker_is_restarted(mixed: Mixed, controller: int, topic: str) -> None:
    with load(mixed, topic, *led_by_either(mixed)) as loads:
        for broker_id in mixed.ids:
            mixed.cluster.broker(broker_id).stop()
            leaders = mixed.leaders(f"{topic}-ConfluentProducer", mixed.running()[0])
            assert broker_id not in leaders.values(), "it has handed over what it led, before it stopped"
            mixed.cluster.start_broker(broker_id)
            loads.settle()


def test_a_leader_of_each_kind_is_killed(mixed: Mixed, controller: int, topic: str) -> None:
    with load(mixed, topic, *led_by_either(mixed)) as loads:
        for kind in BOTH:
            victim = mixed.one(kind)
            mixed.cluster.broker(victim).kill()
            mixed.cluster.start_broker(victim)
            loads.settle()
