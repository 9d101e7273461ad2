"""The contents of DescribeGroups and ListGroups responses.

A group of a newer protocol is in the list with its type. DescribeGroups does not know it, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..base.errors import ErrorCode
from ..wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ..wire.messages.list_groups import ListedGroup
from .classic_group import ClassicGroup
from .live_group import GroupState
from .shard import GroupCoordinatorShard

GROUP_ID_NOT_FOUND_FROM = 6
"""Version of DescribeGroups that says so; before, an unknown group is a Dead one without an error."""


def describe(shard: GroupCoordinatorShard, group_id: str, version: int) -> DescribedGroup:
    """The group with its members; their metadata and assignments only while it is Stable, because otherwise they change."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        response = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= GROUP_ID_NOT_FOUND_FROM:
            response.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            response.error_message = f"Group {group_id} {'not found' if group is None else 'is not a classic group'}."
        return response
    live, protocol_name = group.live, group.live.generation.protocol_name
    is_stable = live.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=live.state.value,
        protocol_type=live.protocol_type or "",
        protocol_data=(protocol_name or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol_name) if is_stable else b"",
                member_assignment=group.assignment_of(member.member_id) if is_stable else b"",
            )
            for member in live.members.values()
        ],
    )


def list_groups(shard: GroupCoordinatorShard, states: Collection[str], types: Collection[str]) -> Iterator[ListedGroup]:
    """The groups in one of ``states`` and of one of ``types``, whatever their case; empty means any."""
    wanted_states = {state.strip().lower() for state in states}
    wanted_types = {group_type.lower() for group_type in types}
    for group in shard.groups.values():
        is_wanted = not wanted_types or group.type_name in wanted_types
        if is_wanted and (not wanted_states or group.state_name.lower() in wanted_states):
            yield ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state_name,
                group_type=group.type_name,
            )
