"""Transactions, ACLs, users, quotas and brokers as rows, as far as this broker knows them."""

from __future__ import annotations

from collections.abc import Callable

from ...base.partitions import NO_LEADER
from ...base.seams import Clock
from ...handlers.services import Services
from ...security.acl import AclEntry, AclFilter, PatternType, ResourcePattern, ResourceType
from ...security.quota_entities import named_entity
from ...security.scram import ScramCredential, UnusableCredential
from ..admin_rows import MOST_MOVES, AclRow, ClusterDetail, MoveRow, QuotaRow, TransactionRow, UserRow
from ..cached import Cached
from ..cluster_sums import ClusterSums
from ..errors import NotFoundError
from ..layout import Ask, ReplicaLayout, broker_layout, known_moves
from ..pace import Pace
from .own_quorum import controller_of
from .transactions import transaction_row, transaction_rows


class BrokerAdministration:
    """The ``Administration`` of one broker.

    ``services`` returns None before the broker has started. ``ask`` is for what only other brokers know: the moves of replicas,
    and their bytes.
    """

    def __init__(
        self, services: Callable[[], Services | None], ask: Ask, clock: Clock, pace: Callable[[], Pace]
    ) -> None:
        self._find_services = services
        self._ask = ask
        self._pace = pace
        self._clock = clock
        self._transactions = Cached(self._read_transactions)
        self._acls = Cached(self._read_acls)
        self._users = Cached(self._read_users)
        self._quotas = Cached(self._read_quotas)
        self._cluster = Cached(self._read_cluster)

    def _services(self) -> Services:
        services = self._find_services()
        if services is None:
            raise NotFoundError("The broker has not started yet.")
        return services

    async def _read_transactions(self) -> list[TransactionRow]:
        return await transaction_rows(self._services(), self._clock.now_ms(), self._pace())

    async def transactions(self) -> list[TransactionRow]:
        """The transactional ids that are known. Raises NotFoundError, as all of these do before the broker has started."""
        return await self._transactions.get()

    async def transaction(self, transactional_id: str) -> TransactionRow:
        """Raises NotFoundError."""
        row = await transaction_row(self._services(), transactional_id, self._clock.now_ms(), self._pace())
        if row is not None:
            return row
        raise NotFoundError(f"This broker is the coordinator of no transactional id {transactional_id}.")

    async def _read_acls(self) -> tuple[list[AclRow] | None]:
        return (await acl_rows(self._services(), None, self._pace()),)

    async def acls(self) -> list[AclRow] | None:
        """Every access rule; None where there is no authorizer."""
        (rows,) = await self._acls.get()
        return rows

    async def acls_of_topic(self, topic: str) -> list[AclRow] | None:
        """The rules that are about a topic: by its name, by how it begins, and those of all topics."""
        about = AclFilter(ResourceType.TOPIC, topic, PatternType.MATCH)
        return await acl_rows(self._services(), about, self._pace())

    async def _read_users(self) -> list[UserRow]:
        return await user_rows(self._services(), self._pace())

    async def users(self) -> list[UserRow]:
        """The users with SCRAM credentials."""
        return await self._users.get()

    async def _read_quotas(self) -> list[QuotaRow]:
        return await quota_rows(self._services(), self._pace())

    async def quotas(self) -> list[QuotaRow]:
        """The quotas that are set."""
        return await self._quotas.get()

    async def _read_cluster(self) -> ClusterDetail:
        services = self._services()
        moves = await known_moves(services, self._ask)
        return await cluster_detail(services, moves and moves[:MOST_MOVES], self._pace())

    async def cluster(self) -> ClusterDetail:
        """The brokers, and the partitions in trouble or being moved."""
        return await self._cluster.get()

    async def layout(self, most: int) -> ReplicaLayout | None:
        """Where all replicas are to be, with their bytes; None where there are more than so many partitions."""
        services = self._services()
        if sum(len(topic.partitions) for topic in services.metadata.topics.values()) > most:
            return None
        return await broker_layout(services, self._ask, self._pace())


async def acl_rows(services: Services, about: AclFilter | None, pace: Pace) -> list[AclRow] | None:
    """The access rules that a filter's pattern matches, or all; None where the broker has no authorizer."""
    if services.authorizer is None:
        return None
    rows = []
    for pattern, entries in services.metadata.image.acls.items():
        if about is None or about.matches_pattern(pattern):
            for entry in entries:
                rows.append(_acl_row(pattern, entry))
                if pace.is_due():
                    await pace.rest()
        if pace.is_due():
            await pace.rest()
    return rows


def _acl_row(pattern: ResourcePattern, entry: AclEntry) -> AclRow:
    kind, name, pattern_type = pattern
    return AclRow(
        kind.name,
        name,
        pattern_type.name,
        entry.principal,
        entry.host,
        entry.operation.name,
        entry.permission.name,
    )


async def user_rows(services: Services, pace: Pace) -> list[UserRow]:
    """The users that have SCRAM credentials. Salts and keys are not told."""
    rows = []
    for user, stored in services.metadata.image.scram.items():
        credentials = tuple((mechanism.sasl_name, _iterations(each)) for mechanism, each in stored.items())
        rows.append(UserRow(user, credentials))
        if pace.is_due(5):
            await pace.rest()
    return rows


def _iterations(credential: ScramCredential | UnusableCredential) -> int:
    """0 where the credential cannot be read."""
    return 0 if isinstance(credential, UnusableCredential) else credential.iterations


async def quota_rows(services: Services, pace: Pace) -> list[QuotaRow]:
    """The quotas that are set."""
    rows = []
    for entity, limits in services.metadata.image.quotas.items():
        rows.append(QuotaRow(tuple(named_entity(entity).items()), tuple(limits.items())))
        if pace.is_due(5):
            await pace.rest()
    return rows


async def cluster_detail(services: Services, moves: tuple[MoveRow, ...] | None, pace: Pace) -> ClusterDetail:
    """The brokers, with what each has, and the partitions that are in trouble or being moved."""
    metadata, controller_id = services.metadata, controller_of(services)
    sums = ClusterSums()
    for topic in list(metadata.topics.values()):
        for number, state in topic.partitions.items():
            leader = None if state.leader == NO_LEADER else state.leader
            sums.add(topic.name, number, leader, state.replicas, state.isr)
            if pace.is_due():
                await pace.rest()
    nodes = [
        sums.node(
            broker.broker_id,
            broker.rack,
            tuple((each.listener, each.host, each.port) for each in broker.endpoints),
            controller_id,
        )
        for broker in metadata.brokers()
    ]
    return sums.detail(metadata.cluster_id, controller_id, services.node_id, nodes, moves)
