"""``WholeCluster``: the ``ViewSource`` of a broker's own console, with every group of its cluster and the lag of each.

What the broker knows itself is read from its ``BrokerView``. The other brokers are asked for the groups that they coordinate and
for the ends of the partitions that they lead, as far as a group has committed there: every 10 seconds while pages look, and
every minute else (``Refreshed``); and for the page of one group when it is asked for. A broker alone asks nothing. It asks by
its own rights; what a visitor may see of it is looked at above (``PermittedSource``).
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import trio

from ..base.partitions import TopicPartition
from ..base.seams import Workers
from ..broker.consumer_lag import commits
from ..group_coordinator.consumer_group import ConsumerGroup
from ..group_coordinator.shard import GroupAndOffsets
from ..group_coordinator.share_group import ShareGroup
from ..handlers.services import Services
from ..replication.partition import Partition
from . import checks
from .cached import Cached
from .connect_view import ConnectView
from .findings import HealthReport
from .group_lag import with_ends, with_sums
from .history import History
from .lag_history import LagHistory
from .own.broker_view import MOST_TIMED, BrokerView, NotFoundError, ViewedBroker
from .pace import Pace
from .quorum_rows import QuorumDetail
from .record_log import RecordLog
from .remote import group_requests, rows, topic_requests
from .remote.cluster_view import remembered
from .remote.group_requests import DescribeGroupResult, GroupListing, GroupSeen, OffsetWithMetadata
from .remote.lag_times import lag_times
from .remote.peers_client import PeersClient
from .remote.refreshed import Refreshed
from .remote.rows import PartitionOffsets
from .remote.topic_requests import EARLIEST, LATEST
from .remote.unresponsive_brokers import SECONDS as SILENT_SECONDS
from .remote.unresponsive_brokers import SilentBrokers
from .rows import (
    BrokerRow,
    ClusterRow,
    GroupDetail,
    GroupRow,
    GroupRows,
    Outage,
    TopicDetail,
    TopicRow,
)
from .source import Administration

logger = logging.getLogger(__name__)

_EVERY, _WHILE_IDLE = 10.0, 60.0
_NOTED_EVERY = 1.0
_QUORUM_EVERY = 2.0
_UNTIL_STARTED = 0.25


class PeerReports(NamedTuple):
    """What other brokers have told: the groups that they coordinate, and where partitions that they lead end."""

    groups: Mapping[str, GroupSeen] = {}
    ends: Mapping[TopicPartition, PartitionOffsets] = {}


class AllEnds(Mapping[TopicPartition, PartitionOffsets]):
    """Of the partitions led here as they are now, of others as they were told."""

    def __init__(self, services: Services, told: Mapping[TopicPartition, PartitionOffsets]) -> None:
        self._services = services
        self._told = told

    def __getitem__(self, key: TopicPartition) -> PartitionOffsets:
        partition = _led_here(self._services, key)
        if partition is None:
            return self._told[key]
        return PartitionOffsets(partition.log.log_start_offset, partition.log.high_watermark, None)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._told)

    def __len__(self) -> int:
        return len(self._told)


class WholeCluster:
    """The ``ViewSource`` of a broker for the whole cluster: ``view`` is its own, and ``run`` asks the other brokers."""

    def __init__(self, broker: ViewedBroker, view: BrokerView, connect: ConnectView | None = None) -> None:
        self._view = view
        self.connect = connect
        self._client = PeersClient(broker)
        self._silent = SilentBrokers()
        self._others: Refreshed[PeerReports] = Refreshed(
            self._see_others, _EVERY, PeerReports(), idle_period=_WHILE_IDLE
        )
        self._quorum: Refreshed[QuorumDetail | None] = Refreshed(self._see_quorum, _QUORUM_EVERY, None)
        self._group_rows = Cached(self._make_group_rows)
        self._cluster = Cached(self._make_cluster)
        self._all_lags = LagHistory()
        self._noted_at: float | None = None
        """When the reading was made that is the last one in ``_all_lags``."""
        self._details: OrderedDict[str, Cached[GroupDetail]] = OrderedDict()

    # --- what only the broker itself knows ----------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        return self._view.bootstrap_servers

    @property
    def history(self) -> History:
        return self._view.history

    @property
    def inside(self) -> BrokerView | None:
        return self._view

    @property
    def administration(self) -> Administration:
        return self._view.administration

    @property
    def consoles(self) -> Mapping[int, str]:
        return self._view.consoles

    @property
    def has_quorum(self) -> bool:
        return self._view.quorum_cluster is not None

    @property
    def workers(self) -> Workers:
        return self._view.workers

    def pace(self) -> Pace:
        return self._view.pace()

    def elapsed(self) -> float:
        return self._view.elapsed()

    def outage(self) -> Outage | None:
        return self._view.outage()

    async def logs(self, topic: str) -> Sequence[RecordLog]:
        return await self._view.logs(topic)

    async def log(self, topic: str, number: int) -> RecordLog:
        return await self._view.log(topic, number)

    # --- asking the others --------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Ask, while pages look, until cancelled."""
        while self._view.services is None:
            await trio.sleep(_UNTIL_STARTED)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._others.run)
            nursery.start_soon(self._note_lags)
            if self.connect is not None:
                nursery.start_soon(self.connect.run)
            if self.has_quorum:
                nursery.start_soon(self._quorum.run)

    async def renew(self) -> None:
        """Ask anew, whatever is known."""
        await self._others.renew()
        if self.has_quorum:
            await self._quorum.renew()
        self._group_rows.forget()
        self._cluster.forget()
        self._details.clear()

    async def _see_others(self) -> PeerReports | None:
        services = self._view.services
        if services is None:
            return None
        try:
            return await self._ask_others(services)
        except Exception:  # an answer that is not understood is no reason to stop serving clients
            logger.exception("what other brokers have could not be read for the console")
            return None

    async def _see_quorum(self) -> QuorumDetail | None:
        try:
            return await self._view.quorum()
        except Exception:
            logger.exception("the quorum could not be read for the console")
            return None

    async def quorum(self) -> QuorumDetail | None:
        return await self._quorum.get() if self.has_quorum else None

    async def _ask_others(self, services: Services) -> PeerReports:
        if not self._client.nodes:
            return PeerReports()
        groups = await group_requests.groups(self._client, self._silent.note)
        pace = self.pace()
        wanted = {key for seen in groups.values() for key in seen.committed}
        for _, offsets in [*services.groups.groups()]:
            for topic, number, _ in commits(offsets):
                wanted.add(TopicPartition(topic, number))
                if pace.is_due():
                    await pace.rest()
        return PeerReports(groups, await self._ends(services, wanted))

    async def _ends(self, services: Services, keys: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionOffsets]:
        """Those of partitions that others lead, as far as these answer."""
        leaders = _other_leaders(services, keys)
        starts = await topic_requests.offsets(self._client, leaders, EARLIEST, self._silent.note)
        ends = await topic_requests.offsets(self._client, leaders, LATEST, self._silent.note)
        return {
            key: PartitionOffsets(starts[key].offset if key in starts else None, end.offset, None)
            for key, end in ends.items()
        }

    # --- lists --------------------------------------------------------------------------------------------------------

    async def _make_group_rows(self) -> GroupRows:
        """Of a group whose partitions are all led here the row is the view's own."""
        services, own = self._view.services, await self._view.groups()
        others = self._others.value
        if services is None:
            return GroupRows(own, {})
        found = {row.group_id: row for row in own}
        partly = [group_id for group_id, row in found.items() if row.unknown]
        away = (seen for group_id, seen in others.groups.items() if group_id not in found)
        seen = itertools.chain(_seen_here(services, partly), away)
        more = await rows.group_rows(seen, AllEnds(services, others.ends), self.pace())
        found |= {row.group_id: row for row in more.rows}
        if self._others.read_at != self._noted_at:
            # Once for each reading: between two of them ends go on, and what others have committed does not.
            self._noted_at = self._others.read_at
            await self._all_lags.note(self._view.now_ms(), [*found.values()], self.pace())
        return GroupRows([*found.values()], more.max_lags)

    async def _rows(self) -> GroupRows:
        if not self._client.nodes:
            return GroupRows(await self._view.groups(), {})
        await self._others.get()
        return await self._group_rows.get()

    async def groups(self) -> Sequence[GroupRow]:
        return (await self._rows()).rows

    async def topics(self) -> Sequence[TopicRow]:
        known, max_lags = await self._view.topics(), (await self._rows()).max_lags
        if not max_lags:
            return known
        found, pace = [], self.pace()
        for row in known:
            lag = max_lags.get(row.name)
            is_larger = lag is not None and lag > (-1 if row.max_lag is None else row.max_lag)
            found.append(dataclasses.replace(row, max_lag=lag) if is_larger else row)
            if pace.is_due():
                await pace.rest()
        return found

    def sees_cluster(self) -> bool:
        return True

    async def cluster(self) -> ClusterRow:
        return await self._cluster.get()

    async def _make_cluster(self) -> BrokerRow:
        groups = await self.groups()
        row, quorum = await self._view.broker(groups, self._lags), await self.quorum()
        report = HealthReport(row.findings, row.checks)
        brokers = self._client.nodes
        if brokers:
            report.add(*checks.answers(len(brokers), self._silent.silent(brokers), SILENT_SECONDS))
        if quorum is not None:
            report.add(*checks.quorum(quorum.quorum))
        if self.connect is not None:
            report.add(*checks.connect(await self.connect.connectors(), await self.connect.workers()))
        return dataclasses.replace(row, findings=report.findings, checks=report.checks)

    # --- the lag of groups --------------------------------------------------------------------------------------------

    @property
    def _lags(self) -> LagHistory:
        return self._all_lags if self._client.nodes else self._view.lags

    async def group_lags(self, group_id: str) -> Sequence[tuple[int, float]]:
        if not self._client.nodes:
            return self._view.group_lags(group_id)
        services = self._view.services
        is_here = services is not None and services.groups.find(group_id) is not None
        if not is_here and group_id not in (await self._others.get()).groups:
            raise NotFoundError(f"There is no group {group_id}.")
        return self._all_lags.of(group_id, self._view.now_ms())

    async def _note_lags(self) -> None:
        """Note what was read of other brokers, whether a page has asked for it or not."""
        while True:
            if self._client.nodes and self._others.read_at != self._noted_at:
                await self._group_rows.get()
            await trio.sleep(_NOTED_EVERY)

    # --- one thing ----------------------------------------------------------------------------------------------------

    async def topic(self, name: str) -> TopicDetail:
        """Raises NotFoundError."""
        detail, services = await self._view.topic(name), self._view.services
        if services is None or not self._client.nodes:
            return detail
        others = await self._others.get()
        here = [group.group_id for group, offsets in services.groups.groups() if name in offsets]
        away = (each for group_id, each in others.groups.items() if group_id not in here)
        seen = itertools.chain(_seen_here(services, here, name), away)
        readers, largest = await rows.reader_rows(seen, name, AllEnds(services, others.ends), self.pace())
        readers.sort(key=lambda each: each.group_id)
        return dataclasses.replace(detail, readers=readers, row=dataclasses.replace(detail.row, max_lag=largest))

    async def group(self, group_id: str) -> GroupDetail:
        """Raises NotFoundError, KafkaError, OSError."""
        services = self._view.services
        if services is None or not self._client.nodes:
            return await self._view.group(group_id)
        return await remembered(self._details, group_id, lambda: self._read_group(services, group_id)).get()

    async def _read_group(self, services: Services, group_id: str) -> GroupDetail:
        if services.groups.find(group_id) is not None:
            return await self._completed(services, await self._view.group(group_id))
        coordinator = await group_requests.coordinator(self._client, group_id)
        seen = None
        if coordinator != services.node_id:
            seen = await group_requests.group(self._client, group_id, coordinator)
        if seen is None:
            raise NotFoundError(f"There is no group {group_id}.")
        members = await group_requests.member_rows(seen, self.pace())
        partitions = rows.group_partition_rows(seen, members, AllEnds(services, {}))
        (row,) = (await rows.group_rows([seen], AllEnds(services, {}), self.pace())).rows
        detail = GroupDetail(row, members, partitions, group_requests.expression_rows(members))
        behind = [
            (place, partition)
            for place, each in enumerate(partitions)
            if each.lag and (partition := _led_here(services, TopicPartition(each.topic, each.number))) is not None
        ]
        await self._view.add_lag_times(partitions, behind[:MOST_TIMED])
        return await self._completed(services, detail)

    async def _completed(self, services: Services, detail: GroupDetail) -> GroupDetail:
        """With the ends of partitions that others lead, which are asked for now."""
        keys = [TopicPartition(each.topic, each.number) for each in detail.partitions if each.end is None]
        told = await self._ends(services, keys)
        if not told:
            return detail
        partitions = [
            each
            if (ends := told.get(TopicPartition(each.topic, each.number))) is None
            else with_ends(each, ends.start, ends.end)
            for each in detail.partitions
        ]
        leaders = _other_leaders(services, told)
        asked = [each for each in partitions if TopicPartition(each.topic, each.number) in told]
        now_ms = self._view.now_ms()
        timed = await lag_times(self._client, self.workers, leaders, asked, now_ms, self._silent.note)
        found = {(each.topic, each.number): each for each in timed}
        partitions = [found.get((each.topic, each.number), each) for each in partitions]
        return dataclasses.replace(detail, row=with_sums(detail.row, partitions), partitions=partitions)


def _led_here(services: Services, key: TopicPartition) -> Partition | None:
    partition = services.replicas.find(*key)
    return partition if partition is not None and partition.is_leader else None


def _other_leaders(services: Services, keys: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Those of the partitions that another broker leads, by it."""
    found: dict[int, list[TopicPartition]] = {}
    for key in keys:
        state = services.metadata.partition(*key)
        if state is not None and state.leader >= 0 and state.leader != services.node_id:
            found.setdefault(state.leader, []).append(key)
    return found


def _seen_here(services: Services, group_ids: Iterable[str], topic: str | None = None) -> Iterator[GroupSeen]:
    """Groups that this broker coordinates as another broker would tell of them, with the commits of one topic or of all."""
    for group_id in group_ids:
        found = services.groups.find(group_id)
        if found is not None:
            yield _seen(services, found, topic)


def _seen(services: Services, found: GroupAndOffsets, topic: str | None) -> GroupSeen:
    group, offsets = found
    return GroupSeen(
        GroupListing(group.group_id, services.node_id, group.protocol_type, group.state_name, group.type_name),
        DescribeGroupResult(
            group.state_name,
            services.groups.assignor_of(group),
            group.epoch,
            range(group.member_count),
            group.target.epoch if isinstance(group, ConsumerGroup | ShareGroup) else None,
        ),
        {
            TopicPartition(name, number): OffsetWithMetadata(committed.value.offset, committed.value.metadata)
            for name, number, committed in commits(offsets)
            if topic is None or name == topic
        },
    )
