"""``ClusterView``: the ``ViewSource`` of a console that is a client of any Kafka.

``run`` reads what lists of topics and groups need, again and again while pages ask for it (``Refreshed``): the cluster with the
ends of its partitions every 5 seconds, and every 15 while no page asks, for rates and the charts; groups every 10 seconds, and
every minute while no page asks, for lag that grows; sizes and settings less often, and only while pages ask. So a page costs the
cluster nothing, however many look at it. What a page of one topic or group shows beyond that is asked for then, once for all who
look at about the same time.

While no broker answers, pages show what was seen last, and say since when (``outage``). The history has nothing for a time when
nothing was read.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import trio

from ...base.errors import KafkaError
from ...base.partitions import TopicPartition
from ...base.seams import Clock, Workers
from ...base.wording import counted
from ...replication.broker_client import PeerUnavailableError
from ...wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from .. import checks
from ..cached import Cached
from ..checks import GroupChecks, PartitionChecks
from ..connect_view import ConnectView
from ..consoles import find_consoles
from ..disk_space import DiskTrends
from ..errors import NotFoundError
from ..findings import HealthReport
from ..held_partitions import HeldPartitions
from ..history import NOT_KNOWN, History
from ..lag_history import LagHistory
from ..pace import Pace
from ..quorum_rows import FeatureRow, QuorumDetail, QuorumRow
from ..record_log import RecordLog
from ..rows import (
    MOST_PRODUCERS,
    ClusterRow,
    GroupDetail,
    GroupRow,
    GroupRows,
    Outage,
    TopicDetail,
    TopicRow,
    TrafficRates,
)
from . import group_requests, rows, topic_requests
from .administration import ClusterAdministration
from .cluster_client import ClusterClient
from .controller import controller_of, described_quorum, features
from .group_requests import GroupSeen
from .lag_times import lag_times
from .record_log import fetched_logs
from .refreshed import Refreshed
from .rows import PartitionOffsets
from .topic_requests import EARLIEST, LARGEST_TIMESTAMP, LATEST, ClusterState, DataFolders, RetentionConfig
from .unresponsive_brokers import SECONDS as SILENT_SECONDS
from .unresponsive_brokers import SilentBrokers

logger = logging.getLogger(__name__)

SERIES = ("messages_in", "lag")
_ENDS_EVERY, _ENDS_WHILE_IDLE = 5.0, 15.0
_GROUPS_EVERY, _GROUPS_WHILE_IDLE = 10.0, 60.0
_STABLE_EVERY = 30.0
_SIZES_EVERY = 30.0
_SETTINGS_EVERY = 60.0
_STARTS_EVERY = 30.0
_MOST_NEWEST = 2000
"""Of so many partitions the newest timestamp is asked for at a time: the broker may have to read a file for each."""
_MOST_REMEMBERED = 100

T = TypeVar("T")


class ClusterSnapshot(NamedTuple):
    """The cluster, its quorum and the ends of its partitions, as read at one time."""

    state: ClusterState = ClusterState()
    ends: Mapping[TopicPartition, PartitionOffsets] = {}
    rates: Mapping[str, float] = {}
    """Records per second by topic, since the snapshot before."""
    quorum: QuorumRow | None = None


class ClusterView:
    """The ``ViewSource`` of one cluster that is asked by requests."""

    def __init__(
        self,
        client: ClusterClient,
        bootstrap_servers: str,
        clock: Clock,
        workers: Workers,
        connect: ConnectView | None = None,
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        """For the commands that pages show."""
        self.workers = workers
        self.connect = connect
        self.history = History(SERIES)
        self._silent = SilentBrokers()
        self.administration = ClusterAdministration(client, clock, self._silent.note)
        self._client = client
        self._clock = clock
        self._outage: Outage | None = None
        self._seen_ms: int | None = None
        self._starts_at = -float("inf")
        self._seen: Refreshed[ClusterSnapshot] = Refreshed(
            self._see, _ENDS_EVERY, ClusterSnapshot(), idle_period=_ENDS_WHILE_IDLE
        )
        self._groups: Refreshed[Mapping[str, GroupSeen]] = Refreshed(
            self._see_groups, _GROUPS_EVERY, {}, idle_period=_GROUPS_WHILE_IDLE
        )
        self._sizes: Refreshed[DataFolders] = Refreshed(self._see_sizes, _SIZES_EVERY, DataFolders())
        self._stable: Refreshed[bool] = Refreshed(self._see_stable, _STABLE_EVERY, False)
        self._held, self._disks, self._lags = HeldPartitions(), DiskTrends(), LagHistory()
        self._noted_at: float | None = None
        """When the groups were read that are the last ones in ``_lags``."""
        self._kept: Refreshed[Mapping[str, RetentionConfig]] = Refreshed(self._see_kept, _SETTINGS_EVERY, {})
        self._consoles: Refreshed[Mapping[int, str]] = Refreshed(self._see_consoles, _SETTINGS_EVERY, {})
        self._features: Refreshed[tuple[FeatureRow, ...]] = Refreshed(self._see_features, _SETTINGS_EVERY, ())
        self._group_rows = Cached(self._make_group_rows)
        self._topic_rows = Cached(self._make_topic_rows)
        self._cluster = Cached(self._make_cluster)
        self._topics: OrderedDict[str, Cached[TopicDetail]] = OrderedDict()
        self._details: OrderedDict[str, Cached[GroupDetail]] = OrderedDict()

    @property
    def inside(self) -> None:
        """Nothing is known here but what brokers answer."""
        return None

    @property
    def consoles(self) -> Mapping[int, str]:
        return self._consoles.value

    @property
    def has_quorum(self) -> bool:
        return self._seen.value.quorum is not None

    def pace(self) -> Pace:
        return Pace(self._clock.elapsed)

    def elapsed(self) -> float:
        return self._clock.elapsed()

    def outage(self) -> Outage | None:
        return self._outage

    # --- reading, again and again -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read, and note the history, until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._seen.run)
                if self.connect is not None:
                    nursery.start_soon(self.connect.run)
                await self._seen.get()  # where the brokers are
                for part in self._parts()[1:]:
                    nursery.start_soon(part.run)
                due = trio.current_time()
                while True:
                    due = max(due + 1.0, trio.current_time())
                    await trio.sleep_until(due)
                    if self._groups.is_current:
                        await self._group_rows.get()
                    self.note()
        finally:
            self._client.close()

    def _parts(self) -> Sequence[Refreshed[Any]]:
        """All that is read again and again; the first tells where the brokers are."""
        return (
            self._seen,
            self._groups,
            self._sizes,
            self._stable,
            self._kept,
            self._consoles,
            self._features,
        )

    async def renew(self) -> None:
        """See everything anew, whatever its age: after something was changed."""
        for part in self._parts():
            await part.renew()
        self._group_rows.forget()
        self._topic_rows.forget()
        self._cluster.forget()
        self._topics.clear()
        self._details.clear()
        self.administration.forget()

    def note(self) -> None:
        """Note what the last second was like, as far as it was looked at."""
        came, lag = NOT_KNOWN, NOT_KNOWN
        if self._seen.is_current:
            came = sum(self._seen.value.rates.values())
            if self._groups.is_current and self._group_rows.newest is not None:
                lag = sum(row.lag or 0 for row in self._group_rows.newest.rows)
        self.history.note(self._clock.now_ms(), {"messages_in": came, "lag": lag})

    async def _see(self) -> ClusterSnapshot | None:
        """The cluster; whether any broker answers at all is found out here."""
        try:
            state = await topic_requests.cluster_state(self._client)
            quorum = await described_quorum(self._client)
            state = state._replace(controller_id=controller_of(quorum, state.controller_id))
            seen = (await self._see_ends(state))._replace(quorum=quorum)
        except (OSError, KafkaError) as error:
            if self._outage is None:
                logger.warning("no broker answers: %s", error)
                self._outage = Outage(self._clock.now_ms(), str(error), self._seen_ms)
            return None
        if self._outage is not None:
            logger.warning("a broker answers again")
        self._outage = None
        self._seen_ms = self._clock.now_ms()
        return seen

    async def _see_ends(self, state: ClusterState) -> ClusterSnapshot:
        """Ends of all partitions; starts now and then; the newest time of those that have grown."""
        now, before = trio.current_time(), self._seen
        known = before.value.ends
        keys = [TopicPartition(topic.name, number) for topic in state.topics.values() for number in topic.partitions]
        ends = await topic_requests.offsets(self._client, state.leaders(keys), LATEST, self._silent.note)
        grown = [
            key
            for key, end in ends.items()
            if end.offset and (end.offset != known.get(key, rows.NO_ENDS).end or known[key].newest_ms is None)
        ][:_MOST_NEWEST]
        newest = await topic_requests.offsets(self._client, state.leaders(grown), LARGEST_TIMESTAMP, self._silent.note)
        asked = keys if now - self._starts_at >= _STARTS_EVERY else [key for key in keys if key not in known]
        starts = await topic_requests.offsets(self._client, state.leaders(asked), EARLIEST, self._silent.note)
        if asked is keys:
            self._starts_at = now
        found = {}
        for key in keys:
            old = known.get(key, rows.NO_ENDS)
            end = ends[key].offset if key in ends else old.end
            start = starts[key].offset if key in starts else old.start
            time = newest[key].time_ms if key in newest else old.newest_ms
            if end is not None:
                found[key] = PartitionOffsets(start, end, time)
        seconds = None if before.read_at is None else now - before.read_at
        return ClusterSnapshot(state, found, rows.rates(known, found, seconds) if seconds else {})

    async def _see_groups(self) -> Mapping[str, GroupSeen] | None:
        return await self._tried(group_requests.groups(self._client, self._silent.note))

    async def _see_sizes(self) -> DataFolders | None:
        asked = topic_requests.log_directories(self._client, self._seen.value.state, self._silent.note)
        found = await self._tried(asked)
        return None if found is None else found._replace(disks=self._disks.note(self._clock.now_ms(), found.disks))

    async def _see_stable(self) -> bool | None:
        """Whether last stable offsets could be read."""
        seen = self._seen.value
        leaders = seen.state.leaders(seen.ends)
        asked = topic_requests.offsets(self._client, leaders, LATEST, self._silent.note, is_committed=True)
        stable = await self._tried(asked)
        if stable is None:
            return None
        held, pace = {}, self.pace()
        for key, found in stable.items():
            # The ends were read before, so that what was written between the two readings holds nothing.
            end = seen.ends.get(key, rows.NO_ENDS).end
            if end is not None and found.offset < end:
                held[key] = found.offset
            if pace.is_due():
                await pace.rest()
        self._held.note(self._clock.now_ms(), held)
        return True

    async def _see_kept(self) -> Mapping[str, RetentionConfig] | None:
        return await self._tried(topic_requests.kept(self._client, self._seen.value.state.topics))

    async def _see_features(self) -> tuple[FeatureRow, ...] | None:
        return await self._tried(features(self._client))

    async def _see_consoles(self) -> Mapping[int, str] | None:
        async def ask(broker_id: int, request: DescribeConfigsRequest) -> tuple[DescribeConfigsResponse, str]:
            return await self._client.ask(broker_id, request), self._client.nodes[broker_id][0]

        return await self._tried(find_consoles(self._client.nodes, ask))

    async def _tried(self, asked: Awaitable[T]) -> T | None:
        """None where it fails, or while nothing answers."""
        try:
            found = await asked
        except (OSError, KafkaError) as error:
            logger.debug("not answered: %s", error)
            return None
        return None if self._outage is not None else found

    # --- what several pages show --------------------------------------------------------------------------------------

    async def _make_group_rows(self) -> GroupRows:
        read_at, groups = self._groups.read_at, self._groups.value
        found = await rows.group_rows(groups.values(), self._seen.value.ends, self.pace())
        if read_at != self._noted_at:
            # Once for each reading: between two of them ends go on, and what groups have committed does not.
            self._noted_at = read_at
            await self._lags.note(self._clock.now_ms(), found.rows, self.pace())
        return found

    async def _fresh(self) -> None:
        """Have all that lists show be read, and wait for what is old, for a few seconds in all."""
        async with trio.open_nursery() as nursery:
            for part in (self._seen, self._groups, self._sizes, self._kept, self._consoles):
                nursery.start_soon(part.get)

    async def groups(self) -> Sequence[GroupRow]:
        await self._fresh()
        return (await self._group_rows.get()).rows

    async def _make_topic_rows(self) -> list[TopicRow]:
        seen, groups = self._seen.value, await self._group_rows.get()
        pace = self.pace()
        found = []
        for topic in seen.state.topics.values():
            found.append(self._topic_row(topic.name, seen, groups.max_lags.get(topic.name)))
            if pace.is_due(len(topic.partitions)):
                await pace.rest()
        return found

    def _topic_row(self, name: str, seen: ClusterSnapshot, max_lag: int | None) -> TopicRow:
        return rows.topic_row(
            seen.state.topics[name],
            seen.ends,
            self._sizes.value.sizes,
            self._kept.value.get(name),
            TrafficRates(seen.rates.get(name, 0.0), None, None),
            max_lag,
        )

    async def topics(self) -> Sequence[TopicRow]:
        await self._fresh()
        return await self._topic_rows.get()

    async def quorum(self) -> QuorumDetail | None:
        seen = await self._seen.get()
        return None if seen.quorum is None else QuorumDetail(seen.quorum, await self._features.get(), None)

    def sees_cluster(self) -> bool:
        return True

    async def cluster(self) -> ClusterRow:
        return await self._cluster.get()

    async def _make_cluster(self) -> ClusterRow:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._fresh)
            nursery.start_soon(self._stable.get)
        topics, groups = await self.topics(), await self.groups()
        seen, pace = self._seen.value, self.pace()
        of_partitions, of_groups = PartitionChecks(), GroupChecks(self._lags, self._clock.now_ms())
        for row in topics:
            of_partitions.add(row)
            if pace.is_due():
                await pace.rest()
        for group in groups:
            of_groups.add(group)
            if pace.is_due():
                await pace.rest()
        outage = self._outage
        report = HealthReport([] if outage is None else [checks.nothing_answers(outage.why, outage.since_ms)])
        await self._check(report, of_partitions, of_groups)
        return ClusterRow(
            seen.state.cluster_id,
            seen.state.controller_id,
            tuple(sorted(seen.state.brokers)),
            self.bootstrap_servers,
            len(topics),
            of_partitions.partitions,
            of_partitions.under_replicated,
            of_partitions.offline,
            len(groups),
            TrafficRates(sum(seen.rates.values()), None, None),
            report.findings,
            report.checks,
        )

    async def _check(self, report: HealthReport, partitions: PartitionChecks, groups: GroupChecks) -> None:
        """What any Kafka tells. While no broker answers, nothing is looked at."""
        nothing = "" if self._outage is None else "no broker answers"
        if self._seen.read_at is None:
            nothing = nothing or "no broker has answered yet"
        report.add(*partitions.outcome(nothing))
        unread = "" if self._groups.read_at is not None else "groups were not read yet"
        for outcome in groups.outcomes(nothing or unread):
            report.add(*outcome)
        now_ms = self._clock.now_ms()
        why_not = nothing or self._held.why_unknown(now_ms)
        report.add(
            *checks.held_back(self._held.at(now_ms), now_ms, counted(partitions.partitions, "partition"), why_not)
        )
        folders = self._sizes.value
        unread = "" if self._sizes.read_at is not None else "data folders were not read yet"
        report.add(*checks.disks(folders.disks, "", nothing or unread or folders.refused))
        brokers = self._client.nodes
        answers, silent = checks.answers(len(brokers), self._silent.silent(brokers), SILENT_SECONDS)
        report.add(dataclasses.replace(answers, why_not=nothing), silent)
        if self._seen.value.quorum is not None:
            quorum, troubles = checks.quorum(self._seen.value.quorum)
            report.add(dataclasses.replace(quorum, why_not=nothing or quorum.why_not), troubles)
        if self.connect is not None:
            report.add(*checks.connect(await self.connect.connectors(), await self.connect.workers()))
        report.add(checks.KNOWN_TO_BROKERS)

    async def group_lags(self, group_id: str) -> Sequence[tuple[int, float]]:
        if group_id not in await self._groups.get():
            raise NotFoundError(f"There is no group {group_id}.")
        return self._lags.of(group_id, self._clock.now_ms())

    # --- one thing ----------------------------------------------------------------------------------------------------

    async def _topic_state(self, name: str) -> ClusterState:
        """The cluster with this topic, which may just have been made. Raises NotFoundError, KafkaError, OSError."""
        state = (await self._seen.get()).state
        self._check_there()
        if name not in state.topics:
            state = await topic_requests.cluster_state(self._client, [name])
        if name not in state.topics:
            raise NotFoundError(f"There is no topic {name}.")
        return state

    def _check_there(self) -> None:
        """Raises OSError while nothing answers: what would have to be asked for is not waited for."""
        if self._outage is not None:
            raise PeerUnavailableError(self._outage.why)

    async def topic(self, name: str) -> TopicDetail:
        await self._topic_state(name)
        return await remembered(self._topics, name, lambda: self._read_topic(name)).get()

    async def _read_topic(self, name: str) -> TopicDetail:
        await self._fresh()
        seen = self._seen.value._replace(state=await self._topic_state(name))
        topic = seen.state.topics[name]
        logs = await fetched_logs(self._client, self.workers, seen.state, name, topic.partitions)
        settings = await topic_requests.settings(self._client, name)
        leaders = seen.state.leaders([TopicPartition(name, number) for number in topic.partitions])
        producers = await topic_requests.producers(self._client, leaders, self._silent.note)
        producers.sort(key=lambda row: (row.transaction_start is not None, row.last_ms), reverse=True)
        readers, largest = await rows.reader_rows(self._groups.value.values(), name, seen.ends, self.pace())
        return TopicDetail(
            self._topic_row(name, seen, largest),
            topic.topic_id,
            rows.partition_rows(
                topic, {log.number: log for log in logs}, seen.ends, self._sizes.value.sizes, producers
            ),
            settings,
            producers[:MOST_PRODUCERS],
            len(producers),
            readers,
        )

    async def group(self, group_id: str) -> GroupDetail:
        return await remembered(self._details, group_id, lambda: self._read_group(group_id)).get()

    async def _read_group(self, group_id: str) -> GroupDetail:
        await self._seen.get()
        self._check_there()
        coordinator = await group_requests.coordinator(self._client, group_id)
        seen = await group_requests.group(self._client, group_id, coordinator)
        if seen is None:
            raise NotFoundError(f"There is no group {group_id}.")
        members = await group_requests.member_rows(seen, self.pace())
        given = [
            TopicPartition(topic, number)
            for member in members
            for topic, numbers in member.assigned or ()
            for number in numbers
        ]
        leaders = self._seen.value.state.leaders({*seen.committed, *given})
        starts = await topic_requests.offsets(self._client, leaders, EARLIEST, self._silent.note)
        ends = await topic_requests.offsets(self._client, leaders, LATEST, self._silent.note)
        now_ends = {
            key: PartitionOffsets(starts[key].offset if key in starts else None, end.offset, None)
            for key, end in ends.items()
        }
        found = rows.group_partition_rows(seen, members, now_ends)
        timed = await lag_times(self._client, self.workers, leaders, found, self._clock.now_ms(), self._silent.note)
        row = (await rows.group_rows([seen], now_ends, self.pace())).rows[0]
        return GroupDetail(row, members, timed, group_requests.expression_rows(members))

    # --- records ------------------------------------------------------------------------------------------------------

    async def logs(self, topic: str) -> Sequence[RecordLog]:
        state = await self._topic_state(topic)
        return await fetched_logs(self._client, self.workers, state, topic, state.topics[topic].partitions)

    async def log(self, topic: str, number: int) -> RecordLog:
        state = await self._topic_state(topic)
        if number not in state.topics[topic].partitions:
            raise NotFoundError(f"There is no partition {topic}-{number}.")
        logs = await fetched_logs(self._client, self.workers, state, topic, [number])
        if not logs:
            raise NotFoundError(f"The partition {topic}-{number} has no leader.")
        return logs[0]


def remembered(known: OrderedDict[str, Cached[T]], name: str, read: Callable[[], Awaitable[T]]) -> Cached[T]:
    """The one for a name; those that were not asked for for long are forgotten."""
    found = known.get(name)
    if found is None:
        found = known[name] = Cached(read)
        if len(known) > _MOST_REMEMBERED:
            known.popitem(last=False)
    known.move_to_end(name)
    return found
