"""Nodes of a cluster of KRaft stop, die and freeze under load: nothing is lost, doubled or reordered."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Sequence

import pytest

from ottla.bench.failover.loads import ProducerLoad
from ottla.bench.failover.outages import is_back
from ottla.compat_tests.session import eventually

from ..mixed.helpers.mixed import PATIENCE_S
from ..mixed.test_mixed_controllers import (
    Loads,
    led_by_either,
    load,
    test_a_leader_of_each_kind_is_killed,
    test_each_broker_is_restarted,
)
from .helpers.on_quorum import QuorumMixed

__all__ = ["test_a_leader_of_each_kind_is_killed", "test_each_broker_is_restarted"]

pytestmark = pytest.mark.slow

FROZEN_S = 20.0
GAP_S = 5.0
"""The longest time without an acknowledgement by brokers of Ottla that work: the machine may be busy."""


def longest_gap(load: ProducerLoad, since: float) -> float:
    """The longest time without an acknowledgement from then on."""
    times = [since, *sorted(ack.time for ack in load.acks if ack.time > since), time.time()]
    return max(later - earlier for earlier, later in itertools.pairwise(times))


@contextlib.contextmanager
def both_loads(mixed: QuorumMixed, topic: str) -> Iterator[tuple[Loads, ProducerLoad]]:
    """Loads on partitions of all brokers, and the producer of one whose replicas are Ottla's only."""
    ours = mixed.quorum.of_kind("ottla")
    with load(mixed, topic, *led_by_either(mixed)) as of_all, load(mixed, f"{topic}-own", ours, ours[::-1]) as own:
        yield of_all, own.producers[0]


def wait_another_active(mixed: QuorumMixed, former: Sequence[int]) -> None:
    eventually(lambda: mixed.active() not in former, PATIENCE_S)


def wait_acknowledged(producer: ProducerLoad) -> None:
    """Return when records are acknowledged on each partition that were sent from now on."""
    now = time.time()
    eventually(lambda: is_back(producer, now), PATIENCE_S)


def test_the_active_controller_is_killed(mixed: QuorumMixed, topic: str) -> None:
    with both_loads(mixed, topic) as (loads, own):
        active = mixed.active()
        began = time.time()
        mixed.cluster.broker(active).kill()
        wait_another_active(mixed, [active])
        wait_acknowledged(own)
        mixed.cluster.start_broker(active)
        loads.settle()
        assert longest_gap(own, began) < GAP_S


def test_the_active_controller_freezes(mixed: QuorumMixed, topic: str) -> None:
    with both_loads(mixed, topic) as (loads, own):
        active = mixed.active()
        began = time.time()
        mixed.cluster.broker(active).pause()
        try:
            wait_another_active(mixed, [active])
            others = [each for each in mixed.ids if each != active]
            for producer in loads.producers:
                eventually(
                    lambda producer=producer: all(mixed.isr(producer.topic, each) == others for each in others),
                    PATIENCE_S,
                )
            eventually(lambda: time.time() > began + FROZEN_S, PATIENCE_S)
            wait_acknowledged(own)
        finally:
            mixed.cluster.broker(active).resume()
        loads.settle()
        assert longest_gap(own, began) < GAP_S
        assert mixed.active() != active


def test_brokers_serve_what_they_lead_while_there_is_no_quorum(mixed: QuorumMixed, topic: str) -> None:
    with both_loads(mixed, topic) as (loads, own):
        active = mixed.active()
        standby = mixed.one("kafka", but=[active])
        began = time.time()
        for each in (active, standby):
            mixed.cluster.broker(each).kill()
        for _ in range(3):
            wait_acknowledged(own)
        for each in (active, standby):
            mixed.cluster.broker(each).launch()
        mixed.quorum.wait_joined()
        loads.settle()
        assert longest_gap(own, began) < GAP_S
        assert mixed.active()
