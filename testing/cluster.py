"""Several brokers in one thread, which replicate and fail over, with faults in the brokers and in the network between them.

They share one clock, and a controller, which is a separate node that no fault reaches. Each broker keeps its port and its
directory when it is killed and started again. Calls are like those of ``Broker``: they run in the brokers' loop, while the
calling thread waits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ..base.errors import ErrorCode, KafkaError
from ..base.settings import SettingError
from ..group_coordinator.rebalance_holds import RebalanceHolds
from ..group_coordinator.settings import TOPIC as OFFSETS_TOPIC
from ..handlers.services import Services
from ..share_partitions.led_partition import DeliveryEnd
from . import administration
from .checked_options import TOPIC_CONFIGS, check_type, checked_properties, named_options, written
from .clock import AdjustableClock, BrokerClock
from .expected_records import Expected
from .faults import Faults
from .loop_thread import LoopThread
from .rebalance_hold import RebalanceHold
from .record_differences import check_records
from .records import KafkaRecord, wait_for_records
from .requests import Requests
from .restartable_broker import ClusterEnvironment, RestartableBroker
from .running_cluster import RunningCluster

Start = Callable[[int], Awaitable[None]]

_MOST_REPLICAS = 3
_ADMIN_SECONDS = 30.0

__tracebackhide__ = True  # a failure points at the caller's line

SESSION_TIMEOUT = "broker.session.timeout.ms"
"""The property with the session timeout, in ms: the controller fences a broker after this time without a heartbeat."""
_OF_ZOOKEEPER = "zookeeper.session.timeout.ms"

QUICK = {
    SESSION_TIMEOUT: "1000",
    "broker.heartbeat.interval.ms": "200",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.backoff.ms": "50",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}
"""Values instead of Kafka's defaults: tests don't wait for long, and leaders stay where a test has put them."""


def replicas_by_default(brokers: int) -> dict[str, str]:
    """Properties that give each topic, also those of the coordinators, three replicas, or one on each of fewer brokers."""
    factor = str(min(brokers, _MOST_REPLICAS))
    return {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "share.coordinator.state.topic.replication.factor": factor,
    }


def refuse_unusable(properties: Mapping[str, str]) -> None:
    """Raises SettingError for a property that means something else in a cluster of KRaft."""
    if _OF_ZOOKEEPER in properties:
        why = f"it has no effect without a ZooKeeper: the session timeout of a cluster is {SESSION_TIMEOUT}"
        raise SettingError(_OF_ZOOKEEPER, properties[_OF_ZOOKEEPER], why)


def _checked(option: str, given: object, defaults: Mapping[str, str]) -> dict[str, str]:
    texts = checked_properties(option, given, defaults)
    refuse_unusable(texts)
    return texts


def _checked_by_broker(given: Any, brokers: int, common: Mapping[str, str]) -> dict[int, dict[str, str]]:
    """The properties of single brokers. Raises TypeError, SettingError, and ValueError for a broker that does not exist."""
    option = "broker_properties"
    check_type(option, given, (Mapping, type(None)), "a dict of broker ids and dicts of Kafka's broker properties")
    checked = {}
    for broker_id, own in (given or {}).items():
        if broker_id not in range(1, brokers + 1):
            raise ValueError(f"{option} has the broker {broker_id!r}; the ids of the brokers are 1 to {brokers}")
        checked[broker_id] = _checked(f"{option}[{broker_id}]", own, common)
    return checked


class ClusterBroker:
    """One broker of a cluster: its address, directory, faults and recorded requests, which it keeps when it is started again."""

    def __init__(
        self, member: RestartableBroker, call: Callable[[Callable[[], Awaitable[None]]], None], start: Start
    ) -> None:
        self.broker_id: int = member.broker_id
        self.bootstrap_servers: str = member.address
        self.data_dir: Path = member.data_dir
        self.faults: Faults = member.interception.faults
        self.requests: Requests = member.interception.requests
        self._member = member
        self._call = call
        self._start = start

    @property
    def is_running(self) -> bool:
        """Whether it runs, paused or not."""
        return self._member.services is not None

    def start(self) -> None:
        """Start it again; returns when it is part of the cluster. Raises StartError, TimeoutError."""
        self._call(lambda: self._start(self.broker_id))

    def stop(self) -> None:
        """Stop it as SIGTERM does: its leaderships go to other brokers, and everything is flushed. A paused broker is resumed."""
        self._call(self._member.stop)

    def kill(self) -> None:
        """End it as SIGKILL does: no clean mark, and its session at the controller is left to time out."""
        self._call(self._member.kill)

    def restart(self) -> None:
        """Start it again, on its port and directory; if it runs, it is stopped first, as SIGTERM does.

        Returns when it is part of the cluster; after ``kill`` that is not before the session it left has timed out. Raises
        StartError, TimeoutError.
        """
        self.stop()
        self.start()


class Cluster:
    """A cluster of ``brokers`` in a separate thread, for ``with``; or ``start`` and ``stop``. Broker ids begin at 1.

    ``properties`` are Kafka's broker properties by name, for all brokers, over those of ``QUICK``. By default topics
    have as many replicas as there are brokers, at most 3. ``broker_properties`` are those of single brokers, by id,
    such as their racks. Raises TypeError and ValueError for a wrong option, SettingError for a property that does not exist
    or has a wrong value.

    The attribute ``brokers`` has the single brokers by id; ``clock`` is the time of all of them.
    """

    bootstrap_servers: str
    brokers: Mapping[int, ClusterBroker]

    @named_options
    def __init__(
        self,
        brokers: int = 3,
        *,
        properties: Mapping[str, str | int | float | bool] | None = None,
        broker_properties: Mapping[int, Mapping[str, str | int | float | bool]] | None = None,
    ) -> None:
        check_type("brokers", brokers, int, "a number of 1 or more (int)")
        if brokers < 1:
            raise ValueError(f"brokers is {brokers}; a cluster has one broker or more")
        common = {**QUICK, **replicas_by_default(brokers)}
        common |= _checked("properties", properties, common)
        self._own_properties = _checked_by_broker(broker_properties, brokers, common)
        time = AdjustableClock()
        self._loop = LoopThread("cluster", time)
        self._around = ClusterEnvironment(time, brokers, common)
        self._running = RunningCluster(self._around)
        self.clock = BrokerClock(time, self._loop.call, self._do_upkeep)

    def start(self) -> Cluster:
        """Start; returns when clients can connect, and all brokers know each other. Raises StartError, SettingError."""
        self._loop.start(self._serve)
        members = self._running.members
        self.brokers = {
            broker_id: ClusterBroker(member, self._loop.call, self._running.start)
            for broker_id, member in members.items()
        }
        self.bootstrap_servers = ",".join(member.address for member in members.values())
        return self

    def stop(self) -> None:
        """Stop all brokers at once and remove their directories. Raises the error of a broker that ended by itself."""
        for member in self._running.members.values():
            member.interception.faults.clear()
        self._loop.stop()

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Topics

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = -1,
        configs: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        """Create a topic; returns when every broker that can be reached knows its leaders.

        ``replication_factor`` -1: as many replicas as there are brokers, at most 3. ``configs`` are Kafka's topic configs
        by name. Raises KafkaError, TimeoutError.
        """

        texts = written("configs", configs, TOPIC_CONFIGS)

        async def create() -> None:
            await self._running.controller.commands.create_topic(name, partitions, texts, replication_factor)
            await self._running.wait_known(name, _ADMIN_SECONDS)

        self._loop.call(create)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records; a replica on a broker that is down is deleted when that broker is back.

        Raises KafkaError, TimeoutError.
        """

        async def delete() -> None:
            await self._running.controller.commands.delete_topic(name)
            await self._running.wait_gone(name, _ADMIN_SECONDS)

        self._loop.call(delete)

    def delete_group(self, group: str) -> None:
        """Delete a consumer group; see ``Broker.delete_group``. Raises KafkaError."""
        coordinator = self.coordinator_of(group)

        async def delete() -> None:
            await administration.delete_group(self._coordinator(group, coordinator), group)

        self._loop.call(delete)

    def records(self, topic: str, count: int = 0, timeout: float = 10.0) -> list[KafkaRecord]:
        """The records that a read_committed consumer would get from the beginning, in the order of partitions and offsets.

        Waits, at most ``timeout`` seconds, until there are at least ``count``, and every partition has a leader. Raises
        TimeoutError; KafkaError for a topic that does not exist, with the names of those that do.
        """
        return self._loop.call(lambda: wait_for_records(lambda: self._running.leading(topic), topic, count, timeout))

    def leader_of(self, topic: str, partition: int = 0) -> int | None:
        """The broker that leads a partition, or None. Raises KafkaError."""

        async def find() -> int | None:
            leader = self._running.state(topic, partition).leader
            return None if leader < 0 else leader

        return self._loop.call(find)

    def isr_of(self, topic: str, partition: int = 0) -> set[int]:
        """The in-sync replicas of a partition. Raises KafkaError."""

        async def find() -> set[int]:
            return set(self._running.state(topic, partition).isr)

        return self._loop.call(find)

    def move_leader(self, topic: str, partition: int = 0, to: int | None = None) -> int:
        """Make another in-sync replica the leader of a partition, ``to`` or any. Returns the leader once every broker knows it.

        Raises KafkaError, TimeoutError.
        """

        async def move() -> int:
            state = self._running.state(topic, partition)
            others = [replica for replica in state.isr if replica != state.leader]
            if to is None and not others:
                raise KafkaError(
                    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"{topic}-{partition} has no other in-sync replica"
                )
            leader = others[0] if to is None else to
            await self._running.controller.commands.lead(topic, partition, leader)
            await self._running.wait_known(topic, _ADMIN_SECONDS)
            return leader

        return self._loop.call(move)

    def wait_in_sync(self, topic: str, timeout: float = 30.0) -> None:
        """Wait until a topic is as healthy as it can be, at most ``timeout`` seconds.

        That is: each partition has a leader, all its replicas on brokers that are neither down nor paused nor isolated
        are in sync, and these brokers know it. Raises TimeoutError, KafkaError.
        """
        self._loop.call(lambda: self._running.wait_in_sync(topic, timeout))

    # Roles

    def controller(self) -> int | None:
        """The broker that responses name as the controller, None while no broker is alive.

        Requests to it, or to any other broker, are forwarded to the controller itself. Once it is not alive any more,
        responses name another broker.
        """

        async def find() -> int | None:
            return self._running.controller.notified_broker

        return self._loop.call(find)

    def coordinator_of(self, group: str) -> int | None:
        """The broker that coordinates a consumer group, or None. Raises KafkaError."""

        async def find() -> int | None:
            leader = self._running.state(OFFSETS_TOPIC, self._any_services().groups.partition_for(group)).leader
            return None if leader < 0 else leader

        return self._loop.call(find)

    def assert_topic(
        self, topic: str, expected: Sequence[Expected], *, in_order: bool | None = None, timeout: float = 10.0
    ) -> None:
        """Check the records of a topic; see ``Broker.assert_topic``. Raises AssertionError, KafkaError."""
        check_records(lambda count: self.records(topic, count, timeout), topic, expected, in_order)

    def expire_session(self, group: str, member: str | None = None) -> list[str]:
        """End the session of a member; see ``Broker.expire_session``. Raises KafkaError."""
        coordinator = self.coordinator_of(group)

        async def expire() -> list[str]:
            return await administration.expire_session(self._coordinator(group, coordinator), group, member)

        return self._loop.call(expire)

    def hold_rebalance(self, group: str) -> RebalanceHold:
        """Keep rebalances of a group from ending, at every broker that runs; see ``Broker.hold_rebalance``."""

        def at_each(change: Callable[[RebalanceHolds], None]) -> None:
            for member in self._running.members.values():
                if member.services is not None:
                    change(member.services.groups.holds)

        async def begin() -> None:
            at_each(lambda holds: holds.hold(group, hold.reached.set))

        async def release() -> None:
            at_each(lambda holds: holds.release(group))

        hold = RebalanceHold(lambda: self._loop.call(release))
        self._loop.call(begin)
        return hold

    def redeliver(self, group: str, topic: str, partition: int = 0, offset: int | None = None) -> list[int]:
        """Have a member of a share group lose records; see ``Broker.redeliver``. Raises KafkaError."""
        return self._end_deliveries(DeliveryEnd.RELEASED, group, topic, partition, offset)

    def expire_locks(self, group: str, topic: str, partition: int = 0, offset: int | None = None) -> list[int]:
        """End the acquisition locks of records; see ``Broker.expire_locks``. Raises KafkaError."""
        return self._end_deliveries(DeliveryEnd.LOCK_EXPIRED, group, topic, partition, offset)

    def archive(self, group: str, topic: str, partition: int = 0, offset: int | None = None) -> list[int]:
        """Have a share group give up records; see ``Broker.archive``. Raises KafkaError."""
        return self._end_deliveries(DeliveryEnd.ARCHIVED, group, topic, partition, offset)

    def _end_deliveries(
        self, how: DeliveryEnd, group: str, topic: str, partition: int, offset: int | None
    ) -> list[int]:
        async def end() -> list[int]:
            leader = self._running.members.get(self._running.state(topic, partition).leader)
            if leader is None or leader.services is None:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader now")
            return await administration.end_deliveries(leader.services, how, group, topic, partition, offset)

        return self._loop.call(end)

    def _coordinator(self, group: str, broker: int | None) -> Services:
        services = None if broker is None else self._running.members[broker].services
        if services is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{group} has no coordinator now")
        return services

    # Faults

    def kill(self, broker: int) -> None:
        """Kill a broker as SIGKILL does: no clean shutdown, and its session at the controller has to time out."""
        self.brokers[broker].kill()

    def restart(self, broker: int) -> None:
        """Start a broker again, on its port and directory; one that runs is stopped first, as SIGTERM does.

        Returns when it is part of the cluster; after ``kill`` that is not before the session it left has timed out.
        ``wait_in_sync`` waits until it has caught up. Raises StartError, TimeoutError.
        """
        self.brokers[broker].restart()

    def pause(self, broker: int) -> None:
        """Stop a broker from reading and writing, as SIGSTOP does: its session at the controller times out.

        Clients and other brokers can connect to it, and get no answer.
        """
        self._at_network(lambda: self._running.members[broker].pause())

    def resume(self, broker: int) -> None:
        """End ``pause``."""
        self._at_network(lambda: self._running.members[broker].resume())

    def cut(self, one: int, other: int) -> None:
        """Drop everything between two brokers. Both still reach the controller, the other brokers and the clients."""
        self._at_network(lambda: self._around.network.cut(one, other))

    def isolate(self, broker: int) -> None:
        """Drop everything between a broker and the other brokers and the controller. Clients still reach it."""
        self._at_network(lambda: self._around.network.isolate(broker))

    def heal(self) -> None:
        """End every ``cut`` and ``isolate``: data that was sent arrives."""
        self._at_network(self._around.network.heal)

    def _at_network(self, change: Callable[[], None]) -> None:
        async def run() -> None:
            change()
            self._running.tell_of_controller()

        self._loop.call(run)

    # The loop

    async def _serve(self) -> None:
        with tempfile.TemporaryDirectory(prefix="ottla-cluster-") as folder:
            for number in range(1, self._around.count + 1):
                properties = {**self._around.properties, **self._own_properties.get(number, {})}
                self._running.add_member(Path(folder, f"broker-{number}"), properties, self._loop.run_soon)
            await self._running.serve(Path(folder), self._loop.wait_stop)

    def _any_services(self) -> Services:
        for _, services in self._running.in_reach():
            return services
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "no broker of the cluster is running")

    async def _do_upkeep(self) -> None:
        for _, services in self._running.in_reach():
            await administration.do_upkeep(services)
