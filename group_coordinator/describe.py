"""The contents of DescribeGroups and ListGroups responses.

A group of a newer protocol is in the list with its type. DescribeGroups does not know it, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..base.errors import ErrorCode
from ..wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ..wire.messages.list_groups import ListedGroup
from .live_group import GroupState
from .shard import GroupCoordinatorShard

GROUP_TYPE = "classic"
GROUP_ID_NOT_FOUND_FROM = 6
"""Version of DescribeGroups that says so; before, an unknown group is a Dead one without an error."""


def describe(shard: GroupCoordinatorShard, group_id: str, version: int) -> DescribedGroup:
    """The group with its members; their metadata and assignments only while it is Stable, because otherwise they change."""
    group, modern = shard.groups.get(group_id), shard.modern.get(group_id)
    if group is None or modern is not None:
        response = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= GROUP_ID_NOT_FOUND_FROM:
            response.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            response.error_message = f"Group {group_id} {'not found' if modern is None else 'is not a classic group'}."
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
    for listed in _all_groups(shard):
        if (not wanted_states or listed.group_state.lower() in wanted_states) and (
            not wanted_types or listed.group_type in wanted_types
        ):
            yield listed


def _all_groups(shard: GroupCoordinatorShard) -> Iterator[ListedGroup]:
    for group in shard.groups.values():
        if group.group_id not in shard.modern:
            yield ListedGroup(
                group_id=group.group_id,
                protocol_type=group.live.protocol_type or "",
                group_state=group.live.state.value,
                group_type=GROUP_TYPE,
            )
    for modern in shard.modern.values():
        kind = modern.kind.value
        yield ListedGroup(group_id=modern.group_id, protocol_type=kind, group_state=modern.state_name, group_type=kind)
