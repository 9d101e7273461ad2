"""Transactions, ACLs, users, quotas and brokers of a remote cluster, requested when a page needs them.

Each is asked for once for all who look at about the same time; what the console's user may not see, or an older broker does not
know, raises KafkaError, which its page says.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...balance.answers import ReportedPartition
from ...base.errors import ErrorCode, KafkaError, known_code
from ...base.seams import Clock
from ...security.acl import Operation, PatternType, Permission, ResourceType
from ...security.scram import ScramMechanism
from ...wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ...wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from ...wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ...wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from ...wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ..admin_rows import (
    MOST_MOVES,
    AclRow,
    ClusterDetail,
    MoveRow,
    QuotaRow,
    TransactionRow,
    UserRow,
)
from ..cached import Cached
from ..cluster_sums import ClusterSums
from ..errors import NotFoundError
from ..layout import ReplicaLayout, layout_of, moves_under_way, target_of
from ..pace import Pace
from .cluster_client import ClusterClient, of_each
from .controller import controller_of, described_quorum
from .topic_requests import ClusterState, Failed, cluster_state, min_isrs

_AT_ONCE = 100
_REASSIGNMENT_MS = 5000
_ENDED = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")


class ClusterAdministration:
    """The ``Administration`` of a cluster elsewhere. ``failed`` is called for each broker that does not respond."""

    def __init__(self, client: ClusterClient, clock: Clock, failed: Failed) -> None:
        self._client = client
        self._clock = clock
        self._failed = failed
        self._transactions = Cached(self._read_transactions)
        self._acls = Cached(self._read_acls)
        self._users = Cached(self._read_users)
        self._quotas = Cached(self._read_quotas)
        self._cluster = Cached(self._read_cluster)

    def forget(self) -> None:
        """Have everything asked for again."""
        for each in (self._transactions, self._acls, self._users, self._quotas, self._cluster):
            each.forget()

    # --- transactions -------------------------------------------------------------------------------------------------

    async def _read_transactions(self) -> list[TransactionRow]:
        """Of each coordinator, in parts of a hundred ids a request (KIP-664)."""

        async def ask(broker: int) -> list[TransactionRow]:
            listed: ListTransactionsResponse = await self._client.ask(broker, ListTransactionsRequest())
            if listed.error_code:
                raise KafkaError(known_code(listed.error_code))
            ids = [each.transactional_id for each in listed.transaction_states]
            rows = []
            for start in range(0, len(ids), _AT_ONCE):
                request = DescribeTransactionsRequest(transactional_ids=ids[start : start + _AT_ONCE])
                response: DescribeTransactionsResponse = await self._client.ask(broker, request)
                rows += [self._transaction(broker, each) for each in response.transaction_states if not each.error_code]
            return rows

        found = await of_each(self._client.nodes, ask, self._failed)
        return [row for rows in found.values() for row in rows]

    def _transaction(self, broker: int, state: TransactionState) -> TransactionRow:
        started = state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None
        is_open = started is not None and state.transaction_state not in _ENDED
        return TransactionRow(
            state.transactional_id,
            state.producer_id,
            state.producer_epoch,
            state.transaction_state,
            state.transaction_timeout_ms,
            started,
            max(self._clock.now_ms() - started, 0) if is_open and started is not None else None,
            sum(len(topic.partitions) for topic in state.topics),
            tuple(sorted((topic.topic, number) for topic in state.topics for number in topic.partitions)),
            broker,
        )

    async def transactions(self) -> list[TransactionRow]:
        return await self._transactions.get()

    async def transaction(self, transactional_id: str) -> TransactionRow:
        for row in await self.transactions():
            if row.transactional_id == transactional_id:
                return row
        raise NotFoundError(f"There is no transactional id {transactional_id}.")

    # --- rights -------------------------------------------------------------------------------------------------------

    async def _read_acls(self) -> tuple[list[AclRow] | None]:
        return (await self._asked_acls(ResourceType.ANY, None, PatternType.ANY),)

    async def _asked_acls(self, kind: ResourceType, name: str | None, pattern: PatternType) -> list[AclRow] | None:
        request = DescribeAclsRequest(
            resource_type_filter=kind,
            resource_name_filter=name,
            pattern_type_filter=pattern,
            principal_filter=None,
            host_filter=None,
            operation=Operation.ANY,
            permission_type=Permission.ANY,
        )
        response: DescribeAclsResponse = await self._client.ask_any(request)
        if response.error_code == ErrorCode.SECURITY_DISABLED:
            return None
        _check(response.error_code, response.error_message)
        return [_acl(resource, each) for resource in response.resources for each in resource.acls]

    async def acls(self) -> list[AclRow] | None:
        (rows,) = await self._acls.get()
        return rows

    async def acls_of_topic(self, topic: str) -> list[AclRow] | None:
        return await self._asked_acls(ResourceType.TOPIC, topic, PatternType.MATCH)

    async def _read_users(self) -> list[UserRow]:
        response: DescribeUserScramCredentialsResponse = await self._client.ask_any(
            DescribeUserScramCredentialsRequest(users=None)
        )
        _check(response.error_code, response.error_message)
        return [UserRow(each.user, _credentials(each.credential_infos)) for each in response.results]

    async def users(self) -> list[UserRow]:
        return await self._users.get()

    async def _read_quotas(self) -> list[QuotaRow]:
        response: DescribeClientQuotasResponse = await self._client.ask_any(
            DescribeClientQuotasRequest(components=[], strict=False)
        )
        _check(response.error_code, response.error_message)
        return [
            QuotaRow(
                tuple((each.entity_type, each.entity_name) for each in entry.entity),
                tuple((each.key, each.value) for each in entry.values),
            )
            for entry in response.entries or ()
        ]

    async def quotas(self) -> list[QuotaRow]:
        return await self._quotas.get()

    # --- the cluster --------------------------------------------------------------------------------------------------

    async def _read_cluster(self) -> ClusterDetail:
        state = await cluster_state(self._client)
        moves = await moves_under_way(self._client.ask, state.controller_id)
        quorum = await described_quorum(self._client)
        state = state._replace(controller_id=controller_of(quorum, state.controller_id))
        return await cluster_detail(state, moves and moves[:MOST_MOVES], Pace(self._clock.elapsed))

    async def cluster(self) -> ClusterDetail:
        return await self._cluster.get()

    async def layout(self, most: int) -> ReplicaLayout | None:
        """Where all replicas are to be, with their bytes; None where there are more than so many partitions."""
        state = await cluster_state(self._client)
        if sum(len(topic.partitions) for topic in state.topics.values()) > most:
            return None
        moves = await moves_under_way(self._client.ask, state.controller_id) or ()
        targets = {(move.topic, move.number): target_of(move) for move in moves}
        min_isr = await min_isrs(self._client, state.topics)
        partitions = {
            (topic.name, number): ReportedPartition(
                targets.get((topic.name, number), each.replicas),
                each.replicas,
                each.leader,
                each.isr,
                min_isr.get(topic.name, 1),
            )
            for topic in state.topics.values()
            for number, each in topic.partitions.items()
        }
        return await layout_of(self._client.ask, {each: node.rack for each, node in state.brokers.items()}, partitions)


def _check(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(known_code(code), message)


def _acl(resource: DescribeAclsResource, entry: AclDescription) -> AclRow:
    return AclRow(
        _name(ResourceType, resource.resource_type),
        resource.resource_name,
        _name(PatternType, resource.pattern_type),
        entry.principal,
        entry.host,
        _name(Operation, entry.operation),
        _name(Permission, entry.permission_type),
    )


def _name(kind: type[ResourceType | PatternType | Operation | Permission], number: int) -> str:
    """In Kafka's words; the number of one that is newer."""
    try:
        return kind(number).name
    except ValueError:
        return str(number)


def _credentials(infos: Iterable[CredentialInfo]) -> tuple[tuple[str, int], ...]:
    found = []
    for each in infos:
        try:
            found.append((ScramMechanism(each.mechanism).sasl_name, each.iterations))
        except ValueError:  # one that is newer
            continue
    return tuple(found)


async def cluster_detail(state: ClusterState, moves: tuple[MoveRow, ...] | None, pace: Pace) -> ClusterDetail:
    """The brokers, with what each has, and the partitions that are in trouble."""
    sums = ClusterSums()
    for topic in state.topics.values():
        for number, each in topic.partitions.items():
            sums.add(topic.name, number, each.leader, each.replicas, each.isr)
            if pace.is_due():
                await pace.rest()
    nodes = [
        sums.node(broker_id, node.rack, (("", node.host, node.port),), state.controller_id)
        for broker_id, node in sorted(state.brokers.items())
    ]
    return sums.detail(state.cluster_id, state.controller_id, None, nodes, moves)
