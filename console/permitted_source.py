"""A ``ViewSource`` filtered by the visitor's rights: lists leave out what the handlers would leave out.

Which right stands for what is the line of the API that shows the same (``VisitorRights``): of a topic Metadata, DescribeConfigs,
DescribeProducers and Fetch, of groups ListGroups and DescribeGroups, of all else DescribeCluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ..base.seams import Workers
from ..handlers.rights import CLUSTER, GROUP, TOPIC
from ..view.connect_view import ConnectView
from ..view.findings import Place, Subject
from ..view.history import History
from ..view.own.broker_view import BrokerView
from ..view.pace import Pace
from ..view.quorum_rows import QuorumDetail
from ..view.record_log import RecordLog
from ..view.rows import ClusterRow, GroupDetail, GroupRow, Outage, TopicDetail, TopicRow
from ..view.source import Administration, ViewSource
from ..wire.api_keys import ApiKey
from .visitor_rights import VisitorRights


class PermittedSource:
    """A ``ViewSource`` as the visitor of the request at hand may see it."""

    def __init__(self, source: ViewSource, rights: VisitorRights) -> None:
        self._source = source
        self._rights = rights

    @property
    def bootstrap_servers(self) -> str:
        return self._source.bootstrap_servers

    @property
    def history(self) -> History:
        """Raises KafkaError."""
        self._rights.check(ApiKey.DESCRIBE_CLUSTER)
        return self._source.history

    @property
    def inside(self) -> BrokerView | None:
        """None for a visitor who may not describe the cluster."""
        return self._source.inside if self._describes_cluster() else None

    @property
    def administration(self) -> Administration:
        """Its pages say what they need (``application``), and leave out transactions that may not be described."""
        return self._source.administration

    @property
    def consoles(self) -> Mapping[int, str]:
        return self._source.consoles

    @property
    def has_quorum(self) -> bool:
        return self._source.has_quorum

    @property
    def connect(self) -> ConnectView | None:
        """Raises KafkaError."""
        self._rights.check(ApiKey.DESCRIBE_CLUSTER)
        return self._source.connect

    @property
    def workers(self) -> Workers:
        return self._source.workers

    def pace(self) -> Pace:
        return self._source.pace()

    def elapsed(self) -> float:
        return self._source.elapsed()

    def outage(self) -> Outage | None:
        return self._source.outage()

    def sees_cluster(self) -> bool:
        return self._describes_cluster()

    async def cluster(self) -> ClusterRow:
        """Findings count topics that may not be described, and do not name them."""
        self._rights.check(ApiKey.DESCRIBE_CLUSTER)
        row = await self._source.cluster()
        if self._rights.authorizer is None:
            return row
        return dataclasses.replace(row, findings=tuple(each.seen_by(self._sees_subject) for each in row.findings))

    def _sees_subject(self, subject: Subject) -> bool:
        return subject.place is not Place.TOPIC or self._rights.may(ApiKey.METADATA, TOPIC, subject.key)

    async def quorum(self) -> QuorumDetail | None:
        self._rights.check(ApiKey.DESCRIBE_CLUSTER)
        return await self._source.quorum()

    async def topics(self) -> Sequence[TopicRow]:
        rows = await self._source.topics()
        if self._rights.authorizer is None:
            return rows
        found, pace = [], self.pace()
        for row in rows:
            if self._rights.may(ApiKey.METADATA, TOPIC, row.name):
                found.append(self._without_others_lag(row))
            if pace.is_due():
                await pace.rest()
        return found

    async def topic(self, name: str) -> TopicDetail:
        self._rights.check(ApiKey.METADATA, name)
        detail = await self._source.topic(name)
        if self._rights.authorizer is None:
            return detail
        may_read = self._rights.may(ApiKey.DESCRIBE_PRODUCERS, TOPIC, name)
        return dataclasses.replace(
            detail,
            row=self._without_others_lag(detail.row),
            configs=detail.configs if self._rights.may(ApiKey.DESCRIBE_CONFIGS, TOPIC, name) else (),
            producers=detail.producers if may_read else (),
            producer_count=detail.producer_count if may_read else 0,
            readers=[each for each in detail.readers if self._sees_group(each.group_id)],
        )

    def _without_others_lag(self, row: TopicRow) -> TopicRow:
        """The largest lag may be that of any group."""
        return row if self._describes_cluster() else dataclasses.replace(row, max_lag=None)

    async def groups(self) -> Sequence[GroupRow]:
        rows = await self._source.groups()
        if self._lists_all_groups():
            return rows
        found, pace = [], self.pace()
        for row in rows:
            if self._rights.may(ApiKey.LIST_GROUPS, GROUP, row.group_id):
                found.append(row)
            if pace.is_due():
                await pace.rest()
        return found

    async def group(self, group_id: str) -> GroupDetail:
        self._rights.check(ApiKey.DESCRIBE_GROUPS, group_id)
        detail = await self._source.group(group_id)
        if self._rights.authorizer is None:
            return detail
        seen = {name for name in detail.topics() if self._rights.may(ApiKey.OFFSET_FETCH, TOPIC, name)}
        return detail.of_topics(seen)

    async def group_lags(self, group_id: str) -> Sequence[tuple[int, float]]:
        self._rights.check(ApiKey.DESCRIBE_GROUPS, group_id)
        return await self._source.group_lags(group_id)

    async def logs(self, topic: str) -> Sequence[RecordLog]:
        self._rights.check(ApiKey.FETCH, topic)
        return await self._source.logs(topic)

    async def log(self, topic: str, number: int) -> RecordLog:
        self._rights.check(ApiKey.FETCH, topic)
        return await self._source.log(topic, number)

    def _sees_group(self, group_id: str) -> bool:
        return self._lists_all_groups() or self._rights.may(ApiKey.LIST_GROUPS, GROUP, group_id)

    def _lists_all_groups(self) -> bool:
        return self._rights.may(ApiKey.LIST_GROUPS, CLUSTER)

    def _describes_cluster(self) -> bool:
        return self._rights.may(ApiKey.DESCRIBE_CLUSTER, CLUSTER)
