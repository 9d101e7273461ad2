"""The pages of transactions, access rules, users, quotas and the cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from ..handlers.rights import TOPIC, TRANSACTIONAL_ID
from ..security.acl import ResourceType
from ..view.admin_rows import AclRow, QuotaRow, TransactionRow
from ..view.source import ViewSource
from ..wire.api_keys import ApiKey
from . import commands, more_commands
from .render import Renderer
from .tables import TableColumn, TableQuery, none_last
from .visitor_rights import VisitorRights

T = TypeVar("T")

_MOST_HOLDERS = 100

TRANSACTION_COLUMNS = (
    TableColumn("id", "Transactional id", lambda row: row.transactional_id),
    TableColumn("state", "State", lambda row: row.state),
    TableColumn("age", "Open for", lambda row: none_last(row.age_ms), is_number=True),
    TableColumn("partitions", "Partitions", lambda row: row.partition_count, is_number=True),
    TableColumn("producer", "Producer id", lambda row: row.producer_id, is_number=True),
    TableColumn("epoch", "Epoch", lambda row: row.epoch, is_number=True),
    TableColumn("timeout", "Time-out", lambda row: row.timeout_ms, is_number=True),
    TableColumn("coordinator", "Coordinator", lambda row: row.coordinator, is_number=True),
)
ACL_COLUMNS = (
    TableColumn("resource", "Resource", lambda row: (row.resource_type, row.name)),
    TableColumn("pattern", "Pattern", lambda row: row.pattern_type),
    TableColumn("principal", "Principal", lambda row: row.principal),
    TableColumn("permission", "Permission", lambda row: row.permission),
    TableColumn("operation", "Operation", lambda row: row.operation),
    TableColumn("host", "From host", lambda row: row.host),
)
USER_COLUMNS = (TableColumn("name", "User", lambda row: row.name), TableColumn("credentials", "SCRAM credentials"))
QUOTA_COLUMNS = (
    TableColumn("entity", "Of", lambda row: [(kind, name or "") for kind, name in row.entity]),
    TableColumn("values", "At most"),
)


class AdminPages:
    """Each method is one page."""

    def __init__(self, source: ViewSource, renderer: Renderer, rights: VisitorRights | None) -> None:
        self._source = source
        self._renderer = renderer
        self._rights = rights

    def _may_describe(self, resource_type: ResourceType, name: str) -> bool:
        return self._rights is None or self._rights.may(ApiKey.DESCRIBE_TRANSACTIONS, resource_type, name)

    async def _table(
        self,
        template: str,
        choice: TableQuery,
        rows: Sequence[T],
        matches: Callable[[T], bool],
        command: commands.Command,
        **values: Any,
    ) -> Response:
        part = await choice.part(rows, matches, self._source.pace())
        return await self._renderer.page(template, choice=choice, part=part, command=command, **values)

    # --- transactions -------------------------------------------------------------------------------------------------

    async def transactions(self, request: Request) -> Response:
        """Those that are open first; and what holds back consumers."""
        inside = self._source.inside
        choice = TableQuery(request, TRANSACTION_COLUMNS, "age")
        wanted, only_open = choice.q.lower(), choice.has("open")

        def matches(row: TransactionRow) -> bool:
            return (
                wanted in row.transactional_id.lower()
                and (row.is_open or not only_open)
                and self._may_describe(TRANSACTIONAL_ID, row.transactional_id)
            )

        known = [] if inside is None else await inside.details.holders()
        holders = [each for each in known if self._may_describe(TOPIC, each.topic)]
        return await self._table(
            "transactions.html",
            choice,
            await self._source.administration.transactions(),
            matches,
            more_commands.transactions(self._source.bootstrap_servers),
            only_open=only_open,
            holders=holders[:_MOST_HOLDERS],
            holder_count=len(holders),
        )

    async def transaction(self, request: Request) -> Response:
        """The id is in the query: it may have any characters."""
        transactional_id = request.query_params.get("id", "")
        inside = self._source.inside
        row = await self._source.administration.transaction(transactional_id)
        partitions = tuple(each for each in row.partitions if self._may_describe(TOPIC, each[0]))
        row = dataclasses.replace(row, partitions=partitions)
        known = [] if inside is None else await inside.details.holders()
        holders = [each for each in known if each.producer_id == row.producer_id]
        return await self._renderer.page(
            "transaction.html",
            row=row,
            holders={(each.topic, each.partition): each for each in holders},
            command=more_commands.transaction(self._source.bootstrap_servers, transactional_id),
        )

    # --- rights -------------------------------------------------------------------------------------------------------

    async def acls(self, request: Request) -> Response:
        """Every rule; ``topic`` in the address: those that are about it."""
        administration, server = self._source.administration, self._source.bootstrap_servers
        topic = request.query_params.get("topic", "")
        rows = await administration.acls_of_topic(topic) if topic else await administration.acls()
        choice = TableQuery(request, ACL_COLUMNS, "resource")
        wanted = choice.q.lower()

        def matches(row: AclRow) -> bool:
            return wanted in f"{row.resource_type} {row.name} {row.principal} {row.operation} {row.host}".lower()

        command = more_commands.acls_of_topic(server, topic) if topic else more_commands.acls(server)
        return await self._table(
            "acls.html", choice, rows or [], matches, command, topic=topic, has_authorizer=rows is not None
        )

    async def users(self, request: Request) -> Response:
        choice = TableQuery(request, USER_COLUMNS, "name")
        wanted = choice.q.lower()
        rows = await self._source.administration.users()
        command = more_commands.users(self._source.bootstrap_servers)
        return await self._table("users.html", choice, rows, lambda row: wanted in row.name.lower(), command)

    async def quotas(self, request: Request) -> Response:
        choice = TableQuery(request, QUOTA_COLUMNS, "entity")
        wanted = choice.q.lower()

        def matches(row: QuotaRow) -> bool:
            return any(wanted in f"{kind} {name or 'default'}".lower() for kind, name in row.entity)

        command = more_commands.quotas(self._source.bootstrap_servers)
        rows = await self._source.administration.quotas()
        return await self._table("quotas.html", choice, rows, matches, command)

    # --- the cluster --------------------------------------------------------------------------------------------------

    async def cluster(self, request: Request) -> Response:
        cluster = await self._source.administration.cluster()
        command = more_commands.cluster(self._source.bootstrap_servers)
        return await self._renderer.page("cluster.html", cluster=cluster, command=command)
