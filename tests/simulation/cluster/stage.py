"""A cluster for a scripted scenario: faults do not happen by chance, but when the script says so.

There are three brokers, or four, and one topic with one partition, which broker 1 leads and brokers 2 and 3 follow. The results
are checked as in a run of seeds: by ``Inspector`` all the time, by ``Checker`` and ``Inspector`` at the end, when everything is
healed.

``Stage`` is the same whoever keeps the metadata. ``store_stage`` has the cluster whose brokers share a store, and
``quorum.stage`` the one with a quorum of controllers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

import trio

from ottla.base.errors import ErrorCode
from ottla.base.partitions import NO_LEADER
from ottla.replication.coordinator_log import partition_of
from ottla.replication.isr import PendingExpand
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest

from ..checkers import Checker
from ..clients import Actor
from ..history import History, Outcome, Transaction
from ..machine import Machine
from ..outcome import Result, play
from ..producers import IdempotentProducer, TransactionalProducer
from ..readers import Reader
from .client import ClusterClient
from .inspector import Inspector
from .machines import PORT, SimulatedCluster

TOPIC = "plain"
PARTITION = (TOPIC, 0)
SESSION_TIMEOUT_MS = 6000
"""Sessions expire when a script says so (``Stage.forget``): no script takes this long."""

NOTHING = (-1, -1)
"""An end that no log has."""

_PATIENCE_SECONDS = 60.0
_SETTLED_SECONDS = 20.0
_LOOK_SECONDS = 0.0001
"""Shorter than anything takes on the network."""
RESTART_SECONDS = (0.05,)
PROPERTIES = {
    "auto.leader.rebalance.enable": "false",
    "replica.fetch.wait.max.ms": "1000",  # a follower fetches again at once after records, and then waits for more
}

Ways = Iterable[tuple[int, int]]


def apart(ones: Iterable[int], others: Collection[int]) -> list[tuple[int, int]]:
    """The paths between these nodes and those, in both directions."""
    return [way for one in ones for other in others for way in ((one, other), (other, one))]


class Writer(IdempotentProducer):
    """A producer whose batches have one record each, and a size that does not depend on its name."""

    codecs = (0,)

    async def write(self, count: int = 1) -> None:
        """Write records until they are acknowledged."""
        for _ in range(count):
            record = self.history.record(self.name, PARTITION, self.world.clock.now_ms(), padding=100)
            await self.produce(PARTITION, [record])


class Transactor(TransactionalProducer):
    """Transactions of the classic protocol with one record each, step by step."""

    codecs = (0,)

    def know(self, *hosts: str) -> None:
        """Use only these brokers to look up coordinators and leaders from now on."""
        rng = self.world.random_for(f"{self.name} {hosts}")
        self.client = ClusterClient(self.world.network, self.name, dict.fromkeys(hosts, PORT), rng)  # type: ignore[assignment,arg-type]

    async def begin(self) -> Transaction:
        transaction = Transaction(f"{self.name} transaction {len(self.history.transactions)}")
        self.history.transactions.append(transaction)
        await self._add(PARTITION)
        now_ms = self.world.clock.now_ms()
        await self.produce(PARTITION, [self.history.record(self.name, PARTITION, now_ms, transaction=transaction)])
        return transaction

    async def commit(self, transaction: Transaction) -> None:
        """Send EndTxn until there is a response. A refusal is a violation."""
        transaction.outcome = Outcome.UNKNOWN
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=True
        )
        answer = await self.insist(request, 4, lambda answer: [answer.error_code])
        if answer.error_code:
            self.world.violate(f"{transaction.name} is not committed: {ErrorCode(answer.error_code).name}")
        else:
            transaction.outcome = Outcome.COMMITTED


class Stage:
    """See the module. Machines are identified by the ids of their nodes."""

    def __init__(self, world: SimulatedCluster, nursery: trio.Nursery) -> None:
        self.world = world
        self.nursery = nursery
        self.history = History()
        self.inspector = Inspector(world)
        self.admin = Actor(world, self.history, "admin")
        self.readers = [
            Reader(world, self.history, "uncommitted", committed=False),
            Reader(world, self.history, "committed", committed=True),
        ]

    async def open(self) -> None:
        """Start the cluster, and create the topic."""
        await self.world.open(self.nursery)
        await self._start_brokers()
        await self.create_topic()
        self.nursery.start_soon(self.inspector.run)

    async def _start_brokers(self) -> None:
        for machine in self.world.machines.values():
            self.nursery.start_soon(machine.keep_running)
        for machine in self.world.machines.values():
            await machine.wait_ready()

    async def create_topic(self) -> None:
        topic = CreatableTopic(
            name=TOPIC,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2, 3])],
            configs=[CreatableTopicConfig(name=name, value=v) for name, v in self.world.topic_configs.items()],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
        answer = await self.admin.insist(request, 7, lambda a: [topic.error_code for topic in a.topics])
        assert answer.topics[0].error_code == 0, answer

    async def delete_topic(self) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=5000)
        answer = await self.admin.insist(request, 6, lambda a: [topic.error_code for topic in a.responses])
        assert answer.responses[0].error_code == 0, answer

    async def writer(self, name: str) -> Writer:
        """A producer that is ready to write."""
        writer = Writer(self.world, self.history, name, 0.1)
        await writer.init()
        return writer

    async def transactor(self) -> Transactor:
        """A transactional producer that is ready, whose coordinator is not the controller."""
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])
        await self.admin.insist(request, 4, lambda answer: [answer.coordinators[0].error_code])
        name = next(
            n for n in map(str, range(100)) if self.coordinator_of(n) not in (self.world.controller(), NO_LEADER)
        )
        transactor = Transactor(self.world, self.history, name, 0.1, is_v2=False)
        await transactor.init()
        return transactor

    def coordinator_of(self, transactional_id: str) -> int:
        """Whom the metadata names."""
        count = len(self.world.assignment("__transaction_state"))
        return self.world.states()["__transaction_state", partition_of(transactional_id, count)].leader

    def takes_for_coordinator(self, broker_id: int, transactional_id: str) -> int | None:
        """Whom a running broker names, by what it has been told."""
        server = self.world.machines[broker_id].server
        assert server is not None and server.assembly is not None
        count = len(self.world.assignment("__transaction_state"))
        number = partition_of(transactional_id, count)
        partition = server.assembly.services.metadata.partition("__transaction_state", number)
        return None if partition is None else partition.leader

    def know_only(self, broker_id: int) -> None:
        """The administrator uses only this broker to look up the cluster."""
        hosts = {self.world.places[broker_id].host: PORT}
        self.admin.client = ClusterClient(self.world.network, "admin", hosts, self.world.random_for("administrator"))  # type: ignore[assignment]

    # --- what the cluster is like -------------------------------------------------------------------------------------

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition. Raises trio.TooSlowError."""
        with trio.fail_after(_PATIENCE_SECONDS):
            while not holds():
                await trio.sleep(_LOOK_SECONDS)

    @property
    def leader(self) -> int:
        """Whom the metadata names."""
        return self.world.states()[PARTITION].leader

    @property
    def isr(self) -> set[int]:
        return set(self.world.states()[PARTITION].isr)

    def end_of(self, broker_id: int) -> tuple[int, int]:
        """The newest leader epoch in a broker's log of the partition, and where that ends."""
        for partition in self.inspector.partitions(broker_id):
            if (partition.topic, partition.log.partition) == PARTITION:
                return partition.log.latest_epoch, partition.log.log_end_offset
        return NOTHING

    def is_expanding(self, broker_id: int) -> bool:
        """Whether a broker, as leader, has requested to add a replica to the ISR."""
        for partition in self.inspector.partitions(broker_id):
            if (partition.topic, partition.log.partition) == PARTITION and partition.leader is not None:
                return isinstance(partition.leader.isr, PendingExpand)
        return False

    # --- what a script has happen -------------------------------------------------------------------------------------

    def ways(self, *, cut: Ways = (), choked: Ways = ()) -> None:
        """Cut or choke these paths between nodes from now on, and no others."""
        network = self.world.network
        network.heal()
        network.cut(self._hosts(cut))
        network.choke(self._hosts(choked))

    def _hosts(self, ways: Ways) -> list[tuple[str, str]]:
        return [(self.machine(source).name, self.machine(target).name) for source, target in ways]

    def kill(self, node_id: int, *, power_lost: bool = False) -> None:
        """Kill a node's process, or its machine; it stays away, and a broker's session stays."""
        machine = self.machine(node_id)
        machine.is_held = True
        machine.crash(power_lost=power_lost)
        assert machine.power_lost == power_lost

    async def start(self, node_id: int) -> None:
        """Start a node that was killed."""
        machine = self.machine(node_id)
        machine.is_held = False
        await machine.wait_ready()

    @abstractmethod
    async def forget(self, broker_id: int) -> None:
        """End a broker's session, as if it had not been heard of for so long. It joins again if it is alive and not cut off."""

    @abstractmethod
    async def bounce(self, broker_id: int) -> None:
        """A broker's machine loses power, and is back at once."""

    def machine(self, node_id: int) -> Machine:
        return self.world.machines[node_id]

    # --- judgement ----------------------------------------------------------------------------------------------------

    async def heal(self) -> None:
        """Remove all faults, and wait until nothing is left to do."""
        world = self.world
        world.network.heal()
        for place in world.places.values():
            place.heal()
        for broker_id in world.machines:
            await self.start(broker_id)
        with trio.move_on_after(_SETTLED_SECONDS) as scope:
            while self.inspector.unsettled() is not None:
                await trio.sleep(0.05)
        if scope.cancelled_caught:
            world.violate(f"after {_SETTLED_SECONDS} s without faults {self.inspector.unsettled()}")

    async def judge(self) -> None:
        """Heal everything, and check it."""
        await self.heal()
        world = self.world
        self.inspector.look()
        self.inspector.check_equal()
        self.inspector.check_strays()
        if not self.history.sent:
            return
        if PARTITION not in world.states():
            world.violate(f"{TOPIC} is gone, and what was written to it")
        elif not world.violations:
            await self._check_contents()

    async def _check_contents(self) -> None:
        checker = Checker(self.world, self.history, self.readers)  # type: ignore[arg-type]
        _, visible = await checker.check_records(PARTITION)
        there = {stored.sent.name for stored in visible if stored.sent is not None}
        for transaction in self.history.transactions:
            is_there = [record.name in there for record in transaction.records]
            if transaction.outcome is Outcome.COMMITTED and not all(is_there):
                self.world.violate(f"{transaction.name} was committed, and is not there")
            if transaction.outcome is Outcome.ABORTED and any(is_there):
                self.world.violate(f"{transaction.name} was aborted, and is there")


W = TypeVar("W", bound=SimulatedCluster)
S = TypeVar("S", bound=Stage)
Script = Callable[[S], Awaitable[None]]
"""A script for any cluster takes a ``Stage``, and one for a certain cluster the type of its stage."""


def perform_on(
    new_stage: Callable[[W, trio.Nursery], S],
    new_world: Callable[[], W],
    script: Script[S],
    *,
    seed: int,
    acks: int,
    topic_configs: Mapping[str, str],
) -> Result:
    """Run a script on a new stage, and return the result.

    ``acks`` are those of producers; ``topic_configs`` those of the topic in addition to ``min.insync.replicas=2``.
    """

    async def story(world: W) -> None:
        async with trio.open_nursery() as nursery:
            stage = new_stage(world, nursery)
            await stage.open()
            await script(stage)
            await stage.judge()
            nursery.cancel_scope.cancel()

    def prepared() -> W:
        world = new_world()
        world.topic_configs = {**world.topic_configs, **topic_configs}
        world.acks = (acks,)
        return world

    return play(seed, prepared, story)


NO_CONFIGS: Mapping[str, str] = MappingProxyType({})
