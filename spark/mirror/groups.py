"""Consumer groups of the source: their offsets are translated and committed at the target.

This is repeated, so that a group can be moved at any time: stop its consumers at the source, let the mirror run once more,
start them at the target. Offsets only move forward, and not while the group has members at the target: the brokers refuse
other clients' commits then. So a group that has been moved is not changed any more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .offsets import MirrorOffsetMap
from .topics import GROUP_PREFIX, LAG_PREFIX

if TYPE_CHECKING:
    from kafka import KafkaAdminClient, TopicPartition
    from kafka.structs import OffsetAndMetadata

Maps = Mapping["TopicPartition", MirrorOffsetMap]


@dataclass(frozen=True)
class Carried:
    """The groups whose offsets are at the target, and those that are in use there."""

    groups: tuple[str, ...] = ()
    in_use: tuple[str, ...] = ()


def read_maps(target: KafkaAdminClient, group_id: str) -> dict[TopicPartition, MirrorOffsetMap]:
    """The maps of offsets that the mirror's group stores, by the target's partitions."""
    committed = target.list_group_offsets([group_id])[group_id]
    return {where: MirrorOffsetMap.parse(at.metadata) for where, at in committed.items() if at.offset >= 0}


def carry_over(
    source: KafkaAdminClient, target: KafkaAdminClient, pattern: str, group_id: str, prefix: str = ""
) -> Carried:
    """Commit at the target the translated offsets in mirrored topics of groups whose whole name matches."""
    from kafka.errors import NoError

    groups = _matching(source, pattern)
    if not groups:
        return Carried()
    maps = read_maps(target, group_id)
    at_source = source.list_group_offsets(groups)
    at_target = target.list_group_offsets(groups)
    carried, in_use = [], []
    for group in groups:
        wanted = _translated(target, at_source[group], maps, prefix)
        ahead = {
            where: at
            for where, at in wanted.items()
            if where not in at_target[group] or at_target[group][where].offset < at.offset
        }
        if set(target.alter_group_offsets(group, ahead).values()) - {NoError}:
            in_use.append(group)
        elif wanted:
            carried.append(group)
    return Carried(tuple(carried), tuple(in_use))


def _matching(source: KafkaAdminClient, pattern: str) -> list[str]:
    """The groups of consumers that match; groups without members, and so without a protocol, are included."""
    return sorted(
        group["group_id"]
        for group in source.list_groups()
        if group["protocol_type"] in ("consumer", "")
        and re.fullmatch(pattern, group["group_id"])
        and not group["group_id"].startswith((GROUP_PREFIX, LAG_PREFIX))
    )


def _translated(
    target: KafkaAdminClient, committed: Mapping[TopicPartition, OffsetAndMetadata], maps: Maps, prefix: str
) -> dict[TopicPartition, OffsetAndMetadata]:
    from kafka import TopicPartition
    from kafka.admin import OffsetSpec
    from kafka.structs import OffsetAndMetadata

    mirrored = {where.topic for where in maps}
    wanted, forgotten = {}, {}
    for where, at in committed.items():
        place = TopicPartition(prefix + where.topic, where.partition)
        if place.topic not in mirrored or at.offset < 0:
            continue
        offset = maps[place].translate(at.offset) if place in maps else None
        if offset is None:
            forgotten[place] = at.metadata
        else:
            wanted[place] = OffsetAndMetadata(offset, at.metadata, -1)
    if forgotten:
        starts = target.list_partition_offsets(dict.fromkeys(forgotten, OffsetSpec.EARLIEST))
        for place, metadata in forgotten.items():
            wanted[place] = OffsetAndMetadata(starts[place].offset, metadata, -1)
    return wanted
