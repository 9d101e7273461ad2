"""``BrokerView``: the state of a running broker, now and in the last hour.

``run`` takes a sample once a second; everything else is read when it is asked for. Before the broker has started there are no
rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import trio

from ...base.partitions import TopicPartition
from ...base.seams import Clock, Workers
from ...broker.assembly import Assembly
from ...broker.listeners.connection import ClientConnection
from ...broker.listeners.monitor import Monitor
from ...broker.metrics.loop_lag import LoopLag
from ...controller.quorum.cluster import QuorumCluster
from ...handlers.connection_context import ConnectionContext
from ...handlers.services import Services
from ...replication.broker_client import PeerUnavailableError
from ...replication.partition import Partition
from ...replication.peers import Peers
from ...wire.messages.describe_inside import DescribeInsideRequest, DescribeInsideResponse
from ...wire.schema import Message
from .. import checks
from ..cached import BackgroundCache, Cached
from ..checks import GroupChecks, PartitionChecks
from ..consoles import asked_by, find_consoles
from ..errors import NotFoundError as NotFoundError
from ..findings import HealthReport
from ..held_partitions import HeldPartitions
from ..history import History
from ..lag_history import LagHistory
from ..layout import asked_by as asked_by_peers
from ..pace import Pace
from ..quorum_rows import QuorumDetail
from ..record_log import RecordLog
from ..rows import (
    NO_RATES,
    BrokerRow,
    ConnectionRow,
    ErrorRow,
    GroupDetail,
    GroupPartitionRow,
    GroupRow,
    GroupRows,
    Outage,
    RequestRow,
    SegmentRow,
    TopicDetail,
    TopicRow,
    id_text,
)
from .administration import BrokerAdministration
from .all_brokers import AllBrokers
from .connections import connection_rows
from .details import BrokerDetails
from .disks import OwnDisks
from .groups import expression_rows, group_partition_rows, group_row, member_rows, read_groups, reader_rows
from .lag_times import LagTimes
from .own_quorum import controller_of, quorum_detail
from .replica_log import ReplicaLog
from .requests import RequestsSeen
from .told_access import ToldAccess
from .told_rows import tell
from .topics import (
    ReplicasHere,
    config_rows,
    partition_rows,
    producer_rows,
    segment_rows,
    topic_row,
)
from .traffic import Traffic

SERIES = ("bytes_in", "bytes_out", "messages_in", "requests", "errors", "connections", "loop_lag_ms")
MOST_TIMED = 200
"""Of how many partitions of a group the lag in time is looked up: of as many as its page shows."""
_TIMED_AT_ONCE = 10
_UNTIL_STARTED = 0.25
_CONSOLES_EVERY = 15.0
_TRANSACTIONS_EVERY = 15.0
"""Seconds."""
_SHARE_OF_LOOKING = 50
"""What came of all partitions is looked at for one part in so many of the time; where they are many, not every second."""


class ViewedBroker(Protocol):
    """The part of a ``BrokerServer`` that the view reads."""

    @property
    def monitor(self) -> Monitor: ...
    @property
    def assembly(self) -> Assembly | None: ...
    @property
    def bootstrap_servers(self) -> str: ...
    def readiness(self) -> Mapping[str, bool]: ...
    def connections(self) -> Iterable[ClientConnection]: ...


class BrokerView:
    """The view of one broker, from inside its process."""

    def __init__(self, broker: ViewedBroker, clock: Clock, workers: Workers) -> None:
        self._broker = broker
        self._clock = clock
        self.workers = workers
        self.requests = RequestsSeen(clock.elapsed, clock.now_ms)
        """The observer to give to the broker's connections."""
        self.history = History(SERIES)
        self.traffic = Traffic()
        self.loop_lag = LoopLag()
        self.lag_times = LagTimes(workers)
        self.lags = LagHistory()
        """The last hour of each group that has lag, as long as this broker is alone."""
        self.consoles: Mapping[int, str] = {}
        """The addresses of the other brokers' consoles, by broker id."""
        self._began = trio.current_time()
        self._sampled = (0.0, 0, 0)
        self._looked_at = self._look_at = self._began
        self._groups = BackgroundCache(self._read_groups, lambda read: len(read.rows) + len(read.max_lags))
        self._topics = BackgroundCache(self._read_topics, len, [self._groups])
        self._connections = Cached(self._read_connections)
        services, pace = (lambda: self.services), (lambda: self.pace())
        self._held = HeldPartitions()
        self.disks = OwnDisks(services, clock, workers)
        self.details = BrokerDetails(services, broker.connections, self.requests, clock, workers, pace)
        self.all_brokers = AllBrokers(self)
        """What the other brokers tell, beside what this one knows."""
        self.access: ToldAccess | None = None
        """None before the broker has started."""
        self.administration = BrokerAdministration(services, self._ask, clock, pace)

    def pace(self) -> Pace:
        return Pace(self._clock.elapsed)

    def elapsed(self) -> float:
        return self._clock.elapsed()

    def now_ms(self) -> int:
        return self._clock.now_ms()

    @property
    def services(self) -> Services | None:
        """None before the broker has started."""
        assembly = self._broker.assembly
        return assembly.services if assembly is not None and assembly.is_started else None

    @property
    def node_id(self) -> int:
        """-1 before the broker has started."""
        return -1 if self.services is None else self.services.node_id

    @property
    def peers(self) -> Peers | None:
        """The ways to the other brokers; None before the broker has started."""
        assembly = self._broker.assembly
        return None if assembly is None or not assembly.is_started else assembly.peers

    async def _tell(self, connection: ConnectionContext, asked: DescribeInsideRequest) -> DescribeInsideResponse:
        """What the console of another broker asks for. Raises KafkaError."""
        assert self.access is not None, "it was made before this could be called"
        return self.access.refusal(connection, asked.proof) or await tell(self, asked)

    @property
    def bootstrap_servers(self) -> str:
        return self._broker.bootstrap_servers

    @property
    def inside(self) -> BrokerView:
        """What only the broker itself knows, which is this view."""
        return self

    async def _ask(self, broker_id: int, request: Message) -> Any:
        """What another broker answers, or this one. Raises OSError, KafkaError."""
        assembly = self._broker.assembly
        if assembly is None:
            raise PeerUnavailableError("the broker has not started yet")
        return await asked_by_peers(assembly.peers)(broker_id, request)

    def outage(self) -> Outage | None:
        """None: what is in this process always answers."""
        return None

    # --- the last hour ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take a sample every second, and measure the loop, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.loop_lag.run)
            nursery.start_soon(self._look_for_consoles)
            nursery.start_soon(self.disks.run)
            nursery.start_soon(self._look_for_transactions)
            nursery.start_soon(self._keep)
            due = trio.current_time()
            self._sampled = (due, self.requests.count, self.requests.failed)
            while True:
                due = max(due + 1.0, trio.current_time())  # seconds that were missed are not made up for
                await trio.sleep_until(due)
                await self.sample()

    async def _keep(self) -> None:
        """What lists show is at hand once the broker has started."""
        while self.services is None:
            await trio.sleep(_UNTIL_STARTED)
        services = self.services
        has_authorizer = services.authorizer is not None
        self.access = await self.workers.run(
            lambda: ToldAccess(services.config, services.node_id, has_authorizer=has_authorizer)
        )
        services.inside = self._tell
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._groups.run)
            nursery.start_soon(self._topics.run)

    async def _look_for_transactions(self) -> None:
        """Note what holds back consumers, again and again."""
        while self.services is None:
            await trio.sleep(_UNTIL_STARTED)
        while True:
            holders = await self.details.holders()
            held = {
                TopicPartition(row.topic, row.partition): row.last_stable
                for row in holders
                if row.is_first and row.held
            }
            self._held.note(self._clock.now_ms(), held)
            await trio.sleep(_TRANSACTIONS_EVERY)

    async def _look_for_consoles(self) -> None:
        while True:
            await trio.sleep(_CONSOLES_EVERY)
            await self.find_consoles()

    async def find_consoles(self) -> None:
        """Ask the other brokers where their consoles are."""
        assembly, services = self._broker.assembly, self.services
        if assembly is not None and services is not None:
            others = [broker_id for broker_id in services.metadata.broker_ids() if broker_id != services.node_id]
            self.consoles = await find_consoles(others, asked_by(assembly.peers))

    async def sample(self) -> None:
        """Note what the last second was like."""
        now = trio.current_time()
        before, count, failed = self._sampled
        seconds = now - before
        self._sampled = (now, self.requests.count, self.requests.failed)
        services = self.services
        if services is not None and now >= self._look_at:
            minute = self._clock.now_ms() // 60_000
            await self.traffic.look(services.replicas.partitions(), now - self._looked_at, self.pace(), minute)
            self._looked_at = now
            self._look_at = now + _SHARE_OF_LOOKING * (trio.current_time() - now)
        total = self.traffic.total
        self.history.note(
            self._clock.now_ms(),
            {
                "bytes_in": total.bytes_in or 0.0,
                "bytes_out": total.bytes_out or 0.0,
                "messages_in": total.messages_in,
                "requests": (self.requests.count - count) / seconds if seconds > 0 else 0.0,
                "errors": (self.requests.failed - failed) / seconds if seconds > 0 else 0.0,
                "connections": float(self._open_connections()),
                "loop_lag_ms": self.loop_lag.latest * 1000,
            },
        )

    def topic_hour(self, topic: str) -> list[tuple[int, float, float, float]]:
        """By minute: when it ended (ms), and records in, bytes in and bytes out in a second of it."""
        return self.traffic.hours.of(topic, self._clock.now_ms() // 60_000)

    def _open_connections(self) -> int:
        monitor = self._broker.monitor
        return monitor.opened.total() - monitor.closed.total()

    # --- what several pages show --------------------------------------------------------------------------------------

    async def _read_groups(self) -> GroupRows:
        services = self.services
        if services is None:
            return GroupRows([], {})
        groups = services.groups
        found = await read_groups([*groups.groups()], ReplicasHere(services), groups.assignor_of, self.pace())
        if len([*services.metadata.broker_ids()]) <= 1:  # else no broker alone knows the lag of all groups
            await self.lags.note(self._clock.now_ms(), found.rows, self.pace())
        return found

    async def groups(self) -> list[GroupRow]:
        """The groups whose coordinator this broker is."""
        return (await self._groups.get()).rows

    async def _read_topics(self) -> list[TopicRow]:
        services = self.services
        if services is None:
            return []
        max_lags = (await self._groups.get()).max_lags
        replicas, pace = ReplicasHere(services), self.pace()
        topics = [*services.metadata.topics.values()]
        return [await topic_row(topic, replicas, self.traffic, max_lags, pace) for topic in topics]

    async def topics(self) -> list[TopicRow]:
        """The topics of the cluster."""
        return await self._topics.get()

    async def _read_connections(self) -> list[ConnectionRow]:
        return await connection_rows(list(self._broker.connections()), self.pace())

    async def connections(self) -> list[ConnectionRow]:
        """The open connections of clients that a handshake let in, oldest first."""
        return await self._connections.get()

    def disconnect(self, peer: str) -> bool:
        """End the connection of a client, which is ``HOST:PORT``; whether there is one."""
        found = [connection for connection in self._broker.connections() if connection.peer == peer]
        for connection in found:
            connection.disconnect()
        return bool(found)

    def errors(self) -> list[ErrorRow]:
        """The errors sent to clients in the last hour."""
        return self.requests.errors()

    def last_requests(self) -> list[RequestRow]:
        """The newest first."""
        return [*reversed(self.requests.last)]

    # --- one thing ----------------------------------------------------------------------------------------------------

    async def topic(self, name: str) -> TopicDetail:
        """Raises NotFoundError."""
        services = self.services
        topic = None if services is None else services.metadata.topic(name)
        if services is None or topic is None:
            raise NotFoundError(f"There is no topic {name}.")
        replicas, pace = ReplicasHere(services), self.pace()
        readers, largest = await reader_rows([*services.groups.groups()], name, replicas, pace)
        max_lags = {} if largest is None else {name: largest}
        producers, producer_count = await producer_rows(topic, replicas, pace)
        return TopicDetail(
            await topic_row(topic, replicas, self.traffic, max_lags, pace),
            id_text(topic.topic_id),
            await partition_rows(topic, replicas, pace),
            config_rows(services, name),
            producers,
            producer_count,
            readers,
        )

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition of a topic, NO_LEADER where there is none."""
        found = None if self.services is None else self.services.metadata.topic(topic)
        return {} if found is None else {number: state.leader for number, state in found.partitions.items()}

    def replicas(self, topic: str, number: int) -> list[int]:
        """The brokers that have a replica of a partition. Raises NotFoundError."""
        found = None if self.services is None else self.services.metadata.partition(topic, number)
        if found is None:
            raise NotFoundError(f"There is no {topic}-{number}.")
        return [*found.replicas]

    def partition(self, name: str, number: int) -> Partition:
        """A replica on this broker. Raises NotFoundError."""
        services = self.services
        partition = None if services is None else services.replicas.find(name, number)
        if partition is None:
            raise NotFoundError(f"This broker has no replica of {name}-{number}.")
        return partition

    def partitions(self, name: str) -> list[Partition]:
        """The replicas of a topic on this broker, by number. Raises NotFoundError where there is no such topic."""
        services = self.services
        if services is None or services.metadata.topic(name) is None:
            raise NotFoundError(f"There is no topic {name}.")
        return sorted(services.replicas.of_topic(name), key=lambda partition: partition.log.partition)

    async def logs(self, topic: str) -> list[RecordLog]:
        """What can be read here of a topic, by number. Raises NotFoundError where there is no such topic."""
        return [ReplicaLog(partition, self.workers) for partition in self.partitions(topic)]

    async def log(self, topic: str, number: int) -> RecordLog:
        """Raises NotFoundError."""
        return ReplicaLog(self.partition(topic, number), self.workers)

    async def segments(self, name: str, number: int) -> list[SegmentRow]:
        """Raises NotFoundError."""
        return await segment_rows(self.partition(name, number), self.pace())

    async def group(self, group_id: str) -> GroupDetail:
        """Raises NotFoundError."""
        services = self.services
        found = None if services is None else services.groups.find(group_id)
        if services is None or found is None:
            raise NotFoundError(f"This broker is the coordinator of no group {group_id}.")
        replicas, pace = ReplicasHere(services), self.pace()
        row = await group_row(found, replicas, {}, services.groups.assignor_of, pace)
        members = await member_rows(found.group, services.metadata.topic_name, pace)
        partitions: list[GroupPartitionRow] = []
        behind: list[tuple[int, Partition]] = []
        for each, partition in group_partition_rows(found.offsets, replicas, members):
            if partition is not None and each.lag and len(behind) < MOST_TIMED:
                behind.append((len(partitions), partition))
            partitions.append(each)
            if pace.is_due(2):
                await pace.rest()
        await self.add_lag_times(partitions, behind)
        partitions.sort(key=lambda each: (each.topic, each.number))
        return GroupDetail(row, members, partitions, await expression_rows(found.group, pace))

    def group_lags(self, group_id: str) -> list[tuple[int, float]]:
        """The last hour of a group, by minute: when it ended (ms), and the mean lag. Raises NotFoundError."""
        services = self.services
        if services is None or services.groups.find(group_id) is None:
            raise NotFoundError(f"This broker is the coordinator of no group {group_id}.")
        return self.lags.of(group_id, self._clock.now_ms())

    async def add_lag_times(self, rows: list[GroupPartitionRow], behind: Sequence[tuple[int, Partition]]) -> None:
        """Look up since when the next record of some partitions has been there; ``behind`` has their places in ``rows``."""
        pace = self.pace()
        for start in range(0, len(behind), _TIMED_AT_ONCE):
            some = behind[start : start + _TIMED_AT_ONCE]
            found = await self.lag_times.of([(partition, rows[place].committed or 0) for place, partition in some])
            for (place, _), since in zip(some, found, strict=True):
                if since is not None:
                    rows[place] = dataclasses.replace(rows[place], lag_ms=max(self._clock.now_ms() - since, 0))
            if pace.is_due(20 * len(some)):
                await pace.rest()

    # --- the quorum ---------------------------------------------------------------------------------------------------

    @property
    def quorum_cluster(self) -> QuorumCluster | None:
        """None before the start, and where there is no quorum."""
        services = self.services
        return services.cluster if services is not None and isinstance(services.cluster, QuorumCluster) else None

    async def quorum(self) -> QuorumDetail | None:
        """The quorum as its leader tells now, and this broker's place in it; None where there is none."""
        services, cluster = self.services, self.quorum_cluster
        if services is None or cluster is None:
            return None
        return await quorum_detail(services, cluster, self.workers)

    # --- the broker ---------------------------------------------------------------------------------------------------

    async def cluster(self) -> BrokerRow:
        """The cluster as this broker sees it."""
        return await self.broker(await self.groups(), self.lags)

    async def broker(self, groups: Sequence[GroupRow], lags: LagHistory) -> BrokerRow:
        """The broker as a whole, with these groups and their lag of the last minutes."""
        topics = await self.topics()
        pace, services, now_ms = self.pace(), self.services, self._clock.now_ms()
        of_partitions, of_groups = checks.PartitionChecks(), checks.GroupChecks(lags, now_ms)
        for row in topics:
            of_partitions.add(row)
            if pace.is_due():
                await pace.rest()
        for group in groups:
            of_groups.add(group)
            if pace.is_due():
                await pace.rest()
        report = HealthReport()
        if services is not None:
            await self._check(report, of_partitions, of_groups)
        newest = self.history.seconds.newest
        return BrokerRow(
            "" if services is None else services.cluster_id,
            -1 if services is None else controller_of(services),
            () if services is None else tuple(services.metadata.broker_ids()),
            self._broker.bootstrap_servers,
            len(topics),
            of_partitions.partitions,
            of_partitions.under_replicated,
            of_partitions.offline,
            len(groups),
            self.traffic.total if services is not None else NO_RATES,
            report.findings,
            report.checks,
            self.node_id,
            int((trio.current_time() - self._began) * 1000),
            of_partitions.led,
            self._open_connections(),
            newest("requests"),
            newest("errors"),
            newest("loop_lag_ms"),
        )

    async def _check(self, report: HealthReport, partitions: PartitionChecks, groups: GroupChecks) -> None:
        """All that this broker knows by itself."""
        report.add(*checks.readiness(self._broker.readiness()))
        report.add(*partitions.outcome())
        for outcome in groups.outcomes():
            report.add(*outcome)
        now_ms, led = self._clock.now_ms(), partitions.led
        which = "partition" if led == 1 else f"{led} partitions"
        of_leader = f"the {which} that this broker leads"
        report.add(*checks.held_back(self._held.at(now_ms), now_ms, of_leader, self._held.why_unknown(now_ms)))
        report.add(*checks.refused_producers(self.errors(), now_ms))
        folders, why_not = self.disks.rows()
        report.add(*checks.disks(folders, " of this broker", why_not))
        report.add(*checks.event_loop(self.loop_lag.worst))
