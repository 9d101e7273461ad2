"""The rows of the benchmark: failovers, elections, starts, many partitions, memory.

Each row gives figures of one cluster.

A failover is measured under three probes that write to partitions which the three brokers lead. The time is from the fault to the
next acknowledgement of the partition that the victim led, and, where the victim was the active controller, to the first topic
that is created by way of another broker.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from typing import NamedTuple

from ottla.compat_tests.wire_client import Connection, connect

from ..usage import resident_mib
from .clusters import APART, COMBINED, NODES, MeasuredQuorum
from .probes import Acknowledged, AckProbe, CreateProbe, LeaderWatch, lost, working
from .wire import ANSWER_S, create_topic, metadata, partitions_by, send_produce

KILL, FREEZE, CUT = "kill", "freeze", "cut"
ASSIGNMENT = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
_WARM_UP_S = 1.0
_MANY, _MOST = 1_000, 10_000
_SETTLE_S = 3.0
_topics = itertools.count(1)


class Figure(NamedTuple):
    """A figure of a row, in ``unit``; one that is no comparison has no ``unit``."""

    what: str
    value: float
    unit: str = "s"


class Faulted(NamedTuple):
    """What a fault took, in seconds: to the acknowledgement, to the created topic."""

    acknowledged: float | None
    created: float | None


class FailoverTopic:
    """A topic whose partitions the three brokers lead, and what was acknowledged in it."""

    def __init__(self, quorum: MeasuredQuorum) -> None:
        self._quorum = quorum
        self.name = f"written-{next(_topics)}"
        self._acknowledged: list[Acknowledged] = []
        error = create_topic(quorum.addresses()[0], self.name, assignment=ASSIGNMENT)
        assert error == "NONE", error
        quorum.make_whole(self.name, len(ASSIGNMENT))

    def suffer(self, fault: str, victim: int, *, is_controller: bool) -> Faulted:
        """Do a fault to a node, and undo it when it has been overcome."""
        quorum = self._quorum
        survivors = quorum.addresses(but=victim)
        watches = [LeaderWatch(address, self.name) for address in survivors]
        probes = [AckProbe(self.name, partition, watches) for partition in range(len(ASSIGNMENT))]
        creators = [CreateProbe(address) for address in survivors] if is_controller else []
        led = [probe for probe in probes if ASSIGNMENT[probe.partition][0] == victim]
        with working([*watches, *probes]):
            began = time.monotonic()
            quorum.until(lambda: all(probe.first_after(began) for probe in probes), "every leader acknowledges")
            time.sleep(_WARM_UP_S)
            _begin(quorum, fault, victim)
            fallen = time.monotonic()  # the rules that cut off a node take a moment
            try:
                with working(creators):
                    # What was on its way may still come back.
                    quorum.until(lambda: all(probe.first_after(fallen + 0.1) for probe in led), "another leads")
                    quorum.until(lambda: not creators or any(each.done for each in creators), "a topic is created")
            finally:
                quorum.revive(victim)
            quorum.make_whole(self.name, len(ASSIGNMENT))
            quorum.until(quorum.all_vote, "all controllers vote")
        self._acknowledged += [each for probe in probes for each in probe.acknowledged]
        acknowledged = [moment for probe in led if (moment := probe.first_after(fallen + 0.1))]
        created = [each.done for each in creators if each.done]
        return Faulted(max(acknowledged) - fallen if acknowledged else None, min(created) - fallen if created else None)

    def lost(self) -> list[str]:
        """The acknowledged records that are gone."""
        return lost(self._quorum.bootstrap, self.name, len(ASSIGNMENT), self._acknowledged)

    @property
    def acknowledged(self) -> int:
        """How many records were acknowledged."""
        return len(self._acknowledged)


def _begin(quorum: MeasuredQuorum, fault: str, victim: int) -> None:
    if fault == KILL:
        quorum.cluster.node(victim).kill()
    elif fault == FREEZE:
        quorum.cluster.node(victim).pause()
    else:
        quorum.cut_off(victim)


class Failover(NamedTuple):
    """A row of failovers: ``fault`` is ``KILL``, ``FREEZE`` or ``CUT``."""

    name: str
    shape: str
    fault: str
    is_controller: bool

    def measure(self, quorum: MeasuredQuorum, topic: FailoverTopic) -> Iterator[Figure]:
        """One fault."""
        active = quorum.controller()
        victim = active if self.is_controller else next(each for each in range(1, NODES + 1) if each != active)
        took = topic.suffer(self.fault, victim, is_controller=self.is_controller)
        if took.acknowledged is not None:
            yield Figure(f"{self.name}: next acknowledgement", took.acknowledged)
        if took.created is not None:
            yield Figure(f"{self.name}: first CreateTopics", took.created)


FAILOVERS = (
    Failover("combined, kill of a broker", COMBINED, KILL, False),
    Failover("combined, kill of the active controller", COMBINED, KILL, True),
    Failover("combined, freeze of a broker", COMBINED, FREEZE, False),
    Failover("combined, freeze of the active controller", COMBINED, FREEZE, True),
    Failover("combined, cut of a broker", COMBINED, CUT, False),
    Failover("combined, cut of the active controller", COMBINED, CUT, True),
    Failover("apart, kill of the active controller", APART, KILL, True),
)


def election(quorum: MeasuredQuorum) -> Iterator[Figure]:
    """A kill of the active controller, which comes back as soon as a topic was created."""
    quorum.until(quorum.all_vote, "all controllers vote")
    victim = quorum.controller()
    creators = [CreateProbe(address) for address in quorum.addresses(but=victim)]
    quorum.cluster.node(victim).kill()
    fallen = time.monotonic()
    with working(creators):
        quorum.until(lambda: any(each.done for each in creators), "a topic is created")
    yield Figure("election: first CreateTopics", min(each.done for each in creators if each.done) - fallen)
    quorum.revive(victim)
    quorum.cluster.wait_joined()


def start(quorum: MeasuredQuorum) -> Iterator[Figure]:
    """From the exec of three processes on formatted folders to the first acknowledged record."""
    quorum.prepare()
    began = time.monotonic()
    for node in quorum.cluster.nodes:
        node.launch()
    creators = [CreateProbe(address) for address in quorum.addresses()]
    topic = "first"
    error = ""

    def is_created() -> bool:
        nonlocal error
        error = create_topic(quorum.addresses()[0], topic, assignment=[ASSIGNMENT[0]])
        return error in ("NONE", "TOPIC_ALREADY_EXISTS")

    with working(creators):
        quorum.until(lambda: any(each.done for each in creators), f"a topic is created, not {error}")
        yield Figure("start: first CreateTopics", min(each.done for each in creators if each.done) - began)
    quorum.until(is_created, "a topic with three replicas is created")
    watches = [LeaderWatch(quorum.addresses()[0], topic)]
    probe = AckProbe(topic, 0, watches)
    with working([*watches, probe]):
        quorum.until(lambda: bool(probe.acknowledged), "a record is acknowledged")
        yield Figure("start: first acknowledged record", probe.acknowledged[0].time - began)
    quorum.cluster.wait_joined()
    yield Figure("start: every broker knows all", time.monotonic() - began)
    time.sleep(_SETTLE_S)
    yield from _memory(quorum, "memory after the start")


def many(quorum: MeasuredQuorum, partitions: int = _MANY) -> Iterator[Figure]:
    """Partitions with three replicas: created, led as every broker tells, and a record acknowledged in each."""
    row = f"{partitions:,} partitions"
    names = [f"many-{next(_topics)}" for _ in range(max(1, partitions // _MANY))]
    each = partitions // len(names)
    began = time.monotonic()
    for name in names:
        error = create_topic(quorum.addresses()[0], name, each, limit_s=300.0)
        assert error == "NONE", error
    yield Figure(f"{row}: answered", time.monotonic() - began)
    left = [(address, name) for name in names for address in quorum.addresses()]
    while left:
        address, name = left[0]
        states = partitions_by(address, name)
        if len(states) == each and all(state.leader_id > 0 for state in states):
            left.pop(0)
    yield Figure(f"{row}: led", time.monotonic() - began)
    for name in names:
        _write_each(quorum, name, each)
    yield Figure(f"{row}: a record acknowledged in each", time.monotonic() - began)
    time.sleep(_SETTLE_S)
    yield from _memory(quorum, f"memory with {row}")


def most(quorum: MeasuredQuorum) -> Iterator[Figure]:
    """Ten topics of 1,000 partitions."""
    yield from many(quorum, _MOST)


def _write_each(quorum: MeasuredQuorum, topic: str, partitions: int) -> None:
    """A record to each partition, until each is acknowledged."""
    left = set(range(partitions))
    with contextlib.ExitStack() as stack:
        connections: dict[str, Connection] = {}
        while left:
            with connect(quorum.addresses()[0], ANSWER_S) as asked:
                told = metadata(asked, topic)
            addresses = {broker.node_id: f"{broker.host}:{broker.port}" for broker in told.brokers}
            wanted: dict[str, list[int]] = {}
            for state in told.topics[0].partitions:
                if state.partition_index in left and state.leader_id in addresses:
                    wanted.setdefault(addresses[state.leader_id], []).append(state.partition_index)
            for address, numbers in wanted.items():
                if address not in connections:
                    connections[address] = stack.enter_context(connect(address, 60.0))
                send_produce(connections[address], topic, [(number, 1) for number in numbers])
            for address in wanted:
                for answer in connections[address].receive().responses[0].partition_responses:
                    if not answer.error_code:
                        left.discard(answer.index)


def _memory(quorum: MeasuredQuorum, what: str) -> Iterator[Figure]:
    sizes = [resident_mib(node.pid) for node in quorum.cluster.nodes]
    yield Figure(f"{what}, the largest node", max(sizes), "MiB")
