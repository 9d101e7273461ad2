"""What DescribeGroups and ListGroups tell of a group."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..base.errors import ErrorCode
from ..wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ..wire.messages.list_groups import ListedGroup
from .group import Group, GroupState
from .shard import Shard

GROUP_TYPE = "classic"
GROUP_ID_NOT_FOUND_FROM = 6
"""Version of DescribeGroups that says so; before, an unknown group is a Dead one without an error."""


def describe(shard: Shard, group_id: str, version: int) -> DescribedGroup:
    """The group with its members; their metadata and assignments only while it is Stable, because otherwise they change."""
    group = shard.groups.get(group_id)
    if group is None:
        response = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= GROUP_ID_NOT_FOUND_FROM:
            response.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            response.error_message = f"Group {group_id} not found."
        return response
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment if is_stable else b"",
            )
            for member in group.members.values()
        ],
    )


def list_groups(shard: Shard, states: Collection[str], types: Collection[str]) -> Iterator[ListedGroup]:
    """The groups in one of ``states`` and of one of ``types``, whatever their case; empty means any."""
    wanted_states = {state.strip().lower() for state in states}
    if types and GROUP_TYPE not in {group_type.lower() for group_type in types}:
        return
    for group in shard.groups.values():
        if not wanted_states or group.state.value.lower() in wanted_states:
            yield _listed(group)


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=GROUP_TYPE,
    )
