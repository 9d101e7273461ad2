"""Brokers of either kind stop, die and hand the controller over, under load: nothing is lost, doubled or reordered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from ottla.bench.failover.checks import has_read, read_all, wrong_in_group, wrong_in_log
from ottla.bench.failover.loads import ConfluentGroup, ConfluentProducer, ConfluentTransactions, GroupLoad, ProducerLoad
from ottla.bench.failover.outages import is_back
from ottla.compat_tests.session import eventually

from .mixed import BOTH, KAFKA, OTTLA, PATIENCE_S, Mixed

pytestmark = pytest.mark.slow


class Loads:
    """Producers, plain and transactional, each with a topic of two partitions and a group that reads it."""

    def __init__(self, mixed: Mixed, name: str, leaders: tuple[int, int]) -> None:
        self._mixed = mixed
        self._producers: list[ProducerLoad] = []
        self._groups: list[GroupLoad] = []
        for kind in (ConfluentProducer, ConfluentTransactions):
            topic = f"{name}-{kind.__name__}"
            mixed.create(topic, *(mixed.replicas_from(each) for each in leaders), min_insync_replicas="2")
            self._producers.append(kind(kind.__name__, topic, mixed.bootstrap))
            self._groups.append(ConfluentGroup("group", topic, mixed.bootstrap))

    def start(self) -> None:
        for load in (*self._producers, *self._groups):
            load.start()
        self.settle()

    def settle(self) -> None:
        """Return when every producer has been acknowledged on each partition from now on, and all replicas are in sync."""
        now = time.time()
        eventually(lambda: all(is_back(producer, now) for producer in self._producers), PATIENCE_S)
        for producer in self._producers:
            for partition in (0, 1):
                self._mixed.wait_isr(producer.topic, self._mixed.ids, partition)

    def end(self) -> None:
        for load in (*self._producers, *self._groups):
            load.end()

    def check(self) -> None:
        """Nothing acknowledged is lost, nothing is there twice, and the groups have read everything in its order."""
        for producer in self._producers:
            producer.stop()
        wrong = []
        for producer, group in zip(self._producers, self._groups, strict=True):
            logs = read_all(self._mixed.bootstrap, producer.topic)
            eventually(lambda group=group, logs=logs: has_read(group, logs), PATIENCE_S)
            group.stop()
            wrong += [*wrong_in_log(producer, logs), *wrong_in_group(group, logs), *producer.errors]
            assert producer.acks
        assert wrong == []


@contextlib.contextmanager
def load(mixed: Mixed, name: str, leaders: tuple[int, int]) -> Iterator[Loads]:
    """Loads at work for the length of a block, after which what they wrote is checked."""
    loads = Loads(mixed, name, leaders)
    try:
        loads.start()
        yield loads
        loads.check()
    finally:
        loads.end()


def test_the_controller_moves_from_one_kind_to_the_other_and_back(mixed: Mixed, topic: str) -> None:
    with load(mixed, topic, (mixed.one(OTTLA), mixed.one(KAFKA))) as loads:
        for controlling in (*BOTH, *BOTH):
            mixed.led_by(controlling)
            loads.settle()


def test_each_broker_is_restarted(mixed: Mixed, controller: int, topic: str) -> None:
    with load(mixed, topic, (mixed.one(OTTLA), mixed.one(KAFKA))) as loads:
        for broker_id in mixed.ids:
            mixed.cluster.broker(broker_id).stop()
            leaders = mixed.leaders(f"{topic}-ConfluentProducer", mixed.running()[0])
            assert broker_id not in leaders.values(), "it has handed over what it led, before it stopped"
            mixed.cluster.start_broker(broker_id)
            loads.settle()


def test_a_leader_of_each_kind_is_killed(mixed: Mixed, controller: int, topic: str) -> None:
    with load(mixed, topic, (mixed.one(OTTLA), mixed.one(KAFKA))) as loads:
        for kind in BOTH:
            victim = mixed.one(kind)
            mixed.cluster.broker(victim).kill()
            mixed.cluster.start_broker(victim)
            loads.settle()
