"""Requests about groups: ListGroups, DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe, OffsetFetch, FindCoordinator.

Of all groups a coordinator is asked in parts of ``_AT_ONCE`` groups a request, never for one group after the other (but where it
is older than KIP-709, which brought that).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...base.errors import ErrorCode, KafkaError, known_code
from ...base.partitions import TopicPartition
from ...wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ...wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ...wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ...wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ...wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from ...wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from ..assignments import assigned
from ..consumer_members import consumer_progress, in_order
from ..pace import Pace
from ..rows import ExpressionRow, MemberRow
from .cluster_client import BrokerClients, of_each
from .topic_requests import Failed

_AT_ONCE = 100
_MANY_GROUPS = 8
"""The version of OffsetFetch that takes several groups."""
_NEWEST_WITH_NAMES = 9
_KEYS = 4
"""The version of FindCoordinator that takes several keys."""
_CLASSIC, _CONSUMER, _SHARE = "classic", "consumer", "share"
_CLASSIC_MEMBER = 0
"""Type of a member with the classic protocol, as ConsumerGroupDescribe tells it (KIP-1099)."""


class OffsetWithMetadata(NamedTuple):
    offset: int
    metadata: str


class GroupListing(NamedTuple):
    """A group as its coordinator lists it."""

    group_id: str
    coordinator: int
    protocol_type: str
    state: str
    kind: str
    """The group's type; empty if the broker is older than types."""

    @property
    def is_consumer(self) -> bool:
        """Whether it is of the protocol of KIP-848."""
        return self.kind.lower() == _CONSUMER

    @property
    def is_share(self) -> bool:
        """Whether it is of the protocol of KIP-932."""
        return self.kind.lower() == _SHARE


class DescribeGroupResult(NamedTuple):
    """A group as its coordinator describes it."""

    state: str
    protocol: str
    epoch: int | None
    """Of a consumer or a share group; brokers do not tell the generation of a classic one."""
    members: Sequence[Any] | None
    """As in the response (``member_rows`` reads them); None if groups of this kind are not described."""
    assignment_epoch: int | None = None
    """Of a consumer or a share group: the epoch of its target assignment."""


class GroupSeen(NamedTuple):
    listed: GroupListing
    described: DescribeGroupResult
    committed: Mapping[TopicPartition, OffsetWithMetadata]


async def groups(client: BrokerClients, failed: Failed) -> dict[str, GroupSeen]:
    """Every group, with what it has committed."""
    lists = await of_each(client.nodes, lambda broker: _listed(client, broker), failed)

    async def see(broker: int) -> list[GroupSeen]:
        found = []
        for start in range(0, len(lists[broker]), _AT_ONCE):
            part = lists[broker][start : start + _AT_ONCE]
            described = await describe(client, broker, part)
            committed = await _committed(client, broker, [each.group_id for each in part])
            found += [
                GroupSeen(
                    each,
                    described.get(each.group_id, DescribeGroupResult(each.state, "", None, None)),
                    committed.get(each.group_id, {}),
                )
                for each in part
            ]
        return found

    seen = await of_each(lists, see, failed)
    return {each.listed.group_id: each for found in seen.values() for each in found}


async def _listed(client: BrokerClients, broker: int) -> list[GroupListing]:
    """The groups that a broker coordinates. Raises OSError, KafkaError."""
    response: ListGroupsResponse = await client.ask(broker, ListGroupsRequest())
    if response.error_code:
        raise KafkaError(known_code(response.error_code))
    return [
        GroupListing(each.group_id, broker, each.protocol_type, each.group_state, each.group_type)
        for each in response.groups
    ]


async def group(client: BrokerClients, group_id: str, broker: int) -> GroupSeen | None:
    """One group of the broker that coordinates it; None where there is none of this id. Raises OSError, KafkaError."""
    listed = [each for each in await _listed(client, broker) if each.group_id == group_id]
    if not listed:
        return None
    described = await describe(client, broker, listed)
    committed = await _committed(client, broker, [group_id])
    unknown = DescribeGroupResult(listed[0].state, "", None, None)
    return GroupSeen(listed[0], described.get(group_id, unknown), committed.get(group_id, {}))


async def coordinator(client: BrokerClients, group_id: str) -> int:
    """The broker that coordinates a group. Raises OSError, KafkaError."""
    try:
        response: FindCoordinatorResponse = await client.ask_any(
            FindCoordinatorRequest(coordinator_keys=[group_id]), lowest=_KEYS
        )
        found = response.coordinators[0]
        code, node_id = found.error_code, found.node_id
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        response = await client.ask_any(FindCoordinatorRequest(key=group_id), highest=_KEYS - 1)
        code, node_id = response.error_code, response.node_id
    if code:
        raise KafkaError(known_code(code))
    return node_id


async def describe(
    client: BrokerClients, broker: int, listed: Sequence[GroupListing]
) -> dict[str, DescribeGroupResult]:
    """Groups of one coordinator; those of newer kinds are left out. Raises OSError, KafkaError."""
    found: dict[str, DescribeGroupResult] = {}
    classic = [each.group_id for each in listed if each.kind.lower() in ("", _CLASSIC)]
    if classic:
        response: DescribeGroupsResponse = await client.ask(broker, DescribeGroupsRequest(groups=classic))
        for each in response.groups:
            if not each.error_code:
                found[each.group_id] = DescribeGroupResult(each.group_state, each.protocol_data, None, each.members)
    newer = [each.group_id for each in listed if each.is_consumer]
    if newer:
        request = ConsumerGroupDescribeRequest(group_ids=newer)
        answer: ConsumerGroupDescribeResponse = await client.ask(broker, request)
        for one in answer.groups:
            if not one.error_code:
                found[one.group_id] = DescribeGroupResult(
                    one.group_state, one.assignor_name, one.group_epoch, one.members, one.assignment_epoch
                )
    shared = [each.group_id for each in listed if each.is_share]
    if shared:
        told: ShareGroupDescribeResponse = await client.ask(broker, ShareGroupDescribeRequest(group_ids=shared))
        for group in told.groups:
            if not group.error_code:
                found[group.group_id] = DescribeGroupResult(
                    group.group_state, group.assignor_name, group.group_epoch, group.members, group.assignment_epoch
                )
    return found


async def member_rows(seen: GroupSeen, pace: Pace) -> list[MemberRow]:
    """The members of a group, with what they were given."""
    rows = []
    for each in seen.described.members or ():
        if seen.listed.is_consumer:
            row = _consumer_row(each, seen.described.assignment_epoch or 0)
        elif seen.listed.is_share:
            held = {topic.topic_name: set(topic.partitions) for topic in each.assignment.topic_partitions}
            row = MemberRow(each.member_id, None, each.client_id, each.client_host, None, in_order(held))
        else:
            given = assigned(bytes(each.member_assignment))
            row = MemberRow(each.member_id, each.group_instance_id, each.client_id, each.client_host, None, given)
        rows.append(row)
        if pace.is_due(5 + sum(len(numbers) for _, numbers in row.assigned or ()) // 5):
            await pace.rest()
    return rows


def _consumer_row(member: Any, assignment_epoch: int) -> MemberRow:
    held, target = (
        {topic.topic_name: set(topic.partitions) for topic in part.topic_partitions}
        for part in (member.assignment, member.target_assignment)
    )
    return MemberRow(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        None,
        in_order(held),
        consumer_progress(
            member.member_epoch,
            assignment_epoch,
            held,
            target,
            member.subscribed_topic_names,
            member.subscribed_topic_regex or "",
            is_classic=member.member_type == _CLASSIC_MEMBER,
        ),
    )


def expression_rows(members: Sequence[MemberRow]) -> list[ExpressionRow]:
    """The regular expressions of members. Only the coordinator knows which topics they stand for."""
    used = Counter(each.consumer.expression for each in members if each.consumer is not None)
    return [ExpressionRow(expression, count, None, None) for expression, count in sorted(used.items()) if expression]


async def _committed(
    client: BrokerClients, broker: int, group_ids: Sequence[str]
) -> dict[str, dict[TopicPartition, OffsetWithMetadata]]:
    """What groups of one coordinator have committed. Raises OSError, KafkaError."""
    version = await client.version(broker, OffsetFetchRequest, _NEWEST_WITH_NAMES)
    if version >= _MANY_GROUPS:
        asked = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids]
        response: OffsetFetchResponse = await client.ask(
            broker, OffsetFetchRequest(groups=asked), highest=_NEWEST_WITH_NAMES
        )
        return {each.group_id: _offsets(each.topics) for each in response.groups if not each.error_code}
    found = {}
    for group_id in group_ids:
        response = await client.ask(
            broker, OffsetFetchRequest(group_id=group_id, topics=None), highest=_MANY_GROUPS - 1
        )
        if not response.error_code:
            found[group_id] = _offsets(response.topics)
    return found


def _offsets(topics: Any) -> dict[TopicPartition, OffsetWithMetadata]:
    return {
        TopicPartition(topic.name, each.partition_index): OffsetWithMetadata(each.committed_offset, each.metadata or "")
        for topic in topics
        for each in topic.partitions
        if not each.error_code and each.committed_offset >= 0
    }
