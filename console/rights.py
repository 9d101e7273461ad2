"""What a visitor may see: asked of the broker's authorizer as its handlers ask, with the visitor's principal and address.

Each address of the console says what it needs (``Need``), and is refused without; lists leave out what the visitor may not
see, which is what ``SeenSource`` is for. Which right stands for what is decided by the handler of the API that shows the same:

* topics, their partitions and offsets: DESCRIBE on the topic (Metadata, ListOffsets); their settings DESCRIBE_CONFIGS;
  records and producers READ (Fetch, DescribeProducers);
* groups: DESCRIBE on the group, or on the cluster in a list (DescribeGroups, ListGroups), and what they have committed of a
  topic DESCRIBE on that (OffsetFetch);
* everything that is the broker's or the cluster's, and what only a broker can know: DESCRIBE on the cluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.requests import Request

from ..base.seams import Workers
from ..broker.view.history import History
from ..broker.view.pace import Pace
from ..broker.view.record_log import RecordLog
from ..broker.view.rows import ClusterRow, GroupDetail, GroupRow, Outage, TopicDetail, TopicRow
from ..broker.view.view import BrokerView, ViewedBroker
from ..handlers.rights import CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID, refusal
from ..security.acl import CLUSTER_NAME, Operation, ResourceType
from .source import Administration, Source
from .visitor import current

REQUEST = "Console"
"""What the audit log says was asked for."""


class Rights:
    """Of the visitor of the request at hand. Without an authorizer everything is allowed, as to a client."""

    def __init__(self, broker: ViewedBroker) -> None:
        self._broker = broker

    @property
    def are_free(self) -> bool:
        """Whether there is no authorizer, so that rows need not be looked at one by one."""
        assembly = self._broker.assembly
        return assembly is None or not assembly.is_started or assembly.services.authorizer is None

    def may(
        self,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        log_if_denied: bool = False,
    ) -> bool:
        """See ``Authorizer.allows``."""
        visitor = current()
        assembly = self._broker.assembly
        authorizer = None if assembly is None or not assembly.is_started else assembly.services.authorizer
        if authorizer is None:  # also before the start: there is nothing to be seen then
            return True
        return authorizer.allows(visitor.connection, operation, resource_type, name, log_if_denied, REQUEST)

    def check(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> None:
        """Raises KafkaError, a handler's refusal."""
        if not self.may(operation, resource_type, name, log_if_denied=True):
            raise refusal(resource_type)


class Need(NamedTuple):
    """A right that an address needs. The topic is in its path; the group, or the transactional id, in its query."""

    operation: Operation
    resource_type: ResourceType

    def check(self, rights: Rights, request: Request) -> None:
        """Raises KafkaError."""
        name = CLUSTER_NAME
        if self.resource_type is TOPIC:
            name = request.path_params["topic"]
        elif self.resource_type in (GROUP, TRANSACTIONAL_ID):
            name = request.query_params.get("id", "")
        rights.check(self.operation, self.resource_type, name)


DESCRIBE_TOPIC = Need(Operation.DESCRIBE, TOPIC)
READ_TOPIC = Need(Operation.READ, TOPIC)
DESCRIBE_GROUP = Need(Operation.DESCRIBE, GROUP)
DESCRIBE_CLUSTER = Need(Operation.DESCRIBE, CLUSTER)
DESCRIBE_TRANSACTION = Need(Operation.DESCRIBE, TRANSACTIONAL_ID)
CLUSTER_CONFIGS = Need(Operation.DESCRIBE_CONFIGS, CLUSTER)
ALTER_CLUSTER = Need(Operation.ALTER, CLUSTER)
LEFT_OUT: Sequence[Need] = ()
"""Of a list, in which what may not be seen is left out (``SeenSource``)."""


class SeenSource:
    """A ``Source`` as the visitor of the request at hand may see it."""

    def __init__(self, source: Source, rights: Rights) -> None:
        self._source = source
        self._rights = rights

    @property
    def bootstrap_servers(self) -> str:
        return self._source.bootstrap_servers

    @property
    def history(self) -> History:
        return self._source.history

    @property
    def inside(self) -> BrokerView | None:
        """None for a visitor who may not describe the cluster."""
        return self._source.inside if self._rights.may(Operation.DESCRIBE, CLUSTER) else None

    @property
    def administration(self) -> Administration:
        """Its pages say what they need (``application``), and leave out transactions that may not be described."""
        return self._source.administration

    @property
    def consoles(self) -> Mapping[int, str]:
        return self._source.consoles

    @property
    def workers(self) -> Workers:
        return self._source.workers

    def pace(self) -> Pace:
        return self._source.pace()

    def elapsed(self) -> float:
        return self._source.elapsed()

    def outage(self) -> Outage | None:
        return self._source.outage()

    async def cluster(self) -> ClusterRow:
        self._rights.check(Operation.DESCRIBE, CLUSTER)
        return await self._source.cluster()

    async def topics(self) -> Sequence[TopicRow]:
        rows = await self._source.topics()
        if self._rights.are_free:
            return rows
        found, pace = [], self.pace()
        for row in rows:
            if self._rights.may(Operation.DESCRIBE, TOPIC, row.name):
                found.append(self._without_others_lag(row))
            if pace.is_due():
                await pace.rest()
        return found

    async def topic(self, name: str) -> TopicDetail:
        self._rights.check(Operation.DESCRIBE, TOPIC, name)
        detail = await self._source.topic(name)
        if self._rights.are_free:
            return detail
        may_read = self._rights.may(Operation.READ, TOPIC, name)
        return dataclasses.replace(
            detail,
            row=self._without_others_lag(detail.row),
            configs=detail.configs if self._rights.may(Operation.DESCRIBE_CONFIGS, TOPIC, name) else (),
            producers=detail.producers if may_read else (),
            producer_count=detail.producer_count if may_read else 0,
            readers=[each for each in detail.readers if self._sees_group(each.group_id)],
        )

    def _without_others_lag(self, row: TopicRow) -> TopicRow:
        """The largest lag may be that of any group."""
        return row if self._rights.may(Operation.DESCRIBE, CLUSTER) else dataclasses.replace(row, max_lag=None)

    async def groups(self) -> Sequence[GroupRow]:
        rows = await self._source.groups()
        if self._rights.may(Operation.DESCRIBE, CLUSTER):
            return rows
        found, pace = [], self.pace()
        for row in rows:
            if self._rights.may(Operation.DESCRIBE, GROUP, row.group_id):
                found.append(row)
            if pace.is_due():
                await pace.rest()
        return found

    async def group(self, group_id: str) -> GroupDetail:
        self._rights.check(Operation.DESCRIBE, GROUP, group_id)
        detail = await self._source.group(group_id)
        seen = {row.topic for row in detail.partitions}
        seen = {name for name in seen if self._rights.may(Operation.DESCRIBE, TOPIC, name)}
        return dataclasses.replace(detail, partitions=[row for row in detail.partitions if row.topic in seen])

    async def logs(self, topic: str) -> Sequence[RecordLog]:
        self._rights.check(Operation.READ, TOPIC, topic)
        return await self._source.logs(topic)

    async def log(self, topic: str, number: int) -> RecordLog:
        self._rights.check(Operation.READ, TOPIC, topic)
        return await self._source.log(topic, number)

    def _sees_group(self, group_id: str) -> bool:
        return self._rights.may(Operation.DESCRIBE, CLUSTER) or self._rights.may(Operation.DESCRIBE, GROUP, group_id)
