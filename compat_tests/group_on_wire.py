"""A group as its coordinator tells of it, and requests on behalf of its members: what no client shows, or does of itself."""

from __future__ import annotations

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import connect
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.schema import Message

GROUP_KEY = 0


class GroupOnWire:
    """One group, of a broker or a cluster."""

    def __init__(self, bootstrap: str, group_id: str) -> None:
        self._bootstrap = bootstrap
        self._group_id = group_id

    def _ask(self, request: Message, version: int) -> Any:
        """The coordinator's response."""
        with connect(eventually(self._coordinator)) as connection:
            return connection.call(request, version)

    def _coordinator(self) -> str:
        """Its address; empty while there is none."""
        request = FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=[self._group_id])
        with connect(self._bootstrap) as connection:
            (found,) = connection.call(request, 4).coordinators
        return f"{found.host}:{found.port}" if found.error_code == ErrorCode.NONE else ""

    def type(self) -> str | None:
        """``classic`` or ``consumer``; None when there is no such group."""
        listed = {group.group_id: group.group_type for group in self._ask(ListGroupsRequest(), 5).groups}
        return listed.get(self._group_id)

    def described(self) -> Any:
        """The group of ConsumerGroupDescribe, which must be one of the consumer protocol."""
        (group,) = self._ask(ConsumerGroupDescribeRequest(group_ids=[self._group_id]), 1).groups
        assert group.error_code == ErrorCode.NONE, (ErrorCode(group.error_code), group.error_message)
        return group

    def member(self) -> Any:
        """Its only member, as described."""
        (member,) = self.described().members
        return member

    def remove(self, member_id: str) -> None:
        """Have a member leave, as administrators do."""
        request = LeaveGroupRequest(group_id=self._group_id, members=[MemberIdentity(member_id=member_id)])
        response = self._ask(request, 5)
        assert [response.error_code, *(each.error_code for each in response.members)] == [ErrorCode.NONE] * 2

    def join_as(self, member_id: str, topics: list[str]) -> int:
        """Join in the name of a member; its epoch."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=member_id,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=topics,
            topic_partitions=[],
        )
        response = self._ask(request, 1)
        assert response.error_code == ErrorCode.NONE, (ErrorCode(response.error_code), response.error_message)
        return int(response.member_epoch)
