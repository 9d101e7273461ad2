"""``ottla groups reset-offsets``: shows the new committed offsets of groups, and commits them with ``--execute``.

The forms and the rules are those of kafka-consumer-groups (ConsumerGroupCommand): a group with members is refused, an
offset outside of the log becomes the nearest one inside, a time behind the last record is the end, and so is the present
offset where nothing is committed.

Of a share group (KIP-932) the start offsets are moved, by AlterShareGroupOffsets. All of its topics are those whose states were
begun, whether somebody has read there yet or not.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import kafka.errors
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from ...wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from .client import Admin, ClusterConnection
from .cluster_view import chosen_partitions, find_topics
from .groups import SHARE, find_group
from .nearest import tell_of_like_group
from .output import OutputColumn, print_rows, tell_of_execute
from .records.offset_expressions import END, START, OffsetExpression, OffsetOrigin, resolve
from .records.partition_offsets import AdminOffsets
from .records.times import parse_duration_ms, parse_time_ms
from .running import ToolError, UsageError, refusal
from .wire_request import WireRequest

COLUMNS = (
    OutputColumn("group"),
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("current_offset", is_number=True),
    OutputColumn("new_offset", is_number=True),
)
Offsets = Mapping[TopicPartition, int]
_INACTIVE = ("Empty", "Dead", "Unknown")
"""Unknown is what a broker says that doesn't tell the states of the groups it lists (Kafka before 2.6)."""


@dataclasses.dataclass(frozen=True)
class Target:
    """Where to: just one of these, or none for an export of what is committed."""

    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    to_datetime: str | None = None
    by_duration: str | None = None
    shift_by: int | None = None
    to_offset: int | None = None
    from_file: Path | None = None

    @property
    def count(self) -> int:
        """How many are given."""
        return sum(value is not None and value is not False for value in vars(self).values())

    def place(self) -> OffsetExpression | None:
        """The place that is the same for all groups; None where it depends on what is committed. Raises UsageError."""
        if self.to_earliest:
            return START
        if self.to_latest:
            return END
        if self.to_datetime is not None:
            return OffsetExpression(OffsetOrigin.TIME, parse_time_ms(self.to_datetime))
        if self.by_duration is not None:
            return OffsetExpression(OffsetOrigin.TIME, round(time.time() * 1000) - parse_duration_ms(self.by_duration))
        if self.to_offset is not None:
            return OffsetExpression(OffsetOrigin.OFFSET, self.to_offset)
        return None


@dataclasses.dataclass(frozen=True)
class Scope:
    """The groups and topics to reset, and what to do with the result."""

    groups: tuple[str, ...] = ()
    all_groups: bool = False
    topics: tuple[str, ...] = ()
    """``NAME`` or ``NAME:0,1``."""
    all_topics: bool = False
    execute: bool = False
    dry_run: bool = False
    export: bool = False

    def check(self, target: Target) -> None:
        """Raises UsageError for what makes no sense."""
        if target.count > 1 or (target.count == 0 and not self.export):
            raise UsageError(
                "say where to, once: --to-earliest, --to-latest, --to-current, --to-datetime, --by-duration, --shift-by, "
                "--to-offset or --from-file"
            )
        if self.execute and self.dry_run:
            raise UsageError("--execute and --dry-run exclude each other")
        if bool(self.groups) == self.all_groups:
            raise UsageError("say of which groups: GROUP… or --all-groups")
        if target.from_file is None and bool(self.topics) == self.all_topics:
            raise UsageError("say of which topics: --topic NAME[:0,1,…] or --all-topics")


@dataclasses.dataclass(frozen=True)
class OffsetReset:
    """A partition's offset of one group: what is committed, None for nothing, and what is to be."""

    group: str
    where: TopicPartition
    current: int | None
    new: int
    is_share: bool = False
    """Whether they are start offsets of a share group."""


class GroupPositions(NamedTuple):
    """How far a group is."""

    offsets: Offsets
    partitions: tuple[TopicPartition, ...]
    """All that it reads; some may have no offset."""
    is_share: bool


def reset_offsets(connection: ClusterConnection, scope: Scope, target: Target, *, as_json: bool) -> None:
    """Show the new offsets, and commit them if told to. Raises ToolError, after the others, for groups in use."""
    scope.check(target)
    place = target.place()
    moves: list[OffsetReset] = []
    refused = []
    with closing(connection.admin()) as admin:
        groups = sorted({found["group_id"] for found in admin.list_groups()}) if scope.all_groups else scope.groups
        for group in dict.fromkeys(groups):
            try:
                moves += _moves(admin, group, scope, target, place)
            except GroupInUse as error:
                refused.append(str(error))
        if scope.execute:
            _commit(admin, moves)
    if scope.export:
        _export(moves, with_groups=len(groups) > 1)
    elif moves or not refused:
        print_rows(COLUMNS, [(m.group, *m.where, m.current, m.new) for m in moves], as_json=as_json)
        if moves and not scope.execute and not scope.dry_run:
            tell_of_execute()
    if refused:
        raise ToolError(" ".join(refused))


class GroupInUse(ToolError):
    """A group has members, whose positions a reset would not move."""


def _moves(admin: Admin, group: str, scope: Scope, target: Target, place: OffsetExpression | None) -> list[OffsetReset]:
    found = _positions(admin, group)
    current = found.offsets
    wanted, goals = _wanted(admin, group, scope, target, found.partitions)
    if not wanted:
        if scope.all_groups:
            return []
        raise ToolError(f"{group} has committed no offsets; name topics with --topic")
    find_topics(admin, sorted({where.topic for where in wanted}))
    offsets = AdminOffsets(admin)
    if place is not None:
        new = resolve(place, wanted, offsets)
    else:
        new = _within(goals if target.from_file is not None else _by_current(wanted, current, target), wanted, offsets)
    return [OffsetReset(group, where, current.get(where), new[where], found.is_share) for where in sorted(new)]


def _wanted(
    admin: Admin, group: str, scope: Scope, target: Target, there: Sequence[TopicPartition]
) -> tuple[list[TopicPartition], Offsets]:
    """The partitions, and what a file says of them."""
    if target.from_file is not None:
        goals = read_offsets(target.from_file, group, is_only=len(scope.groups) == 1)
        return list(goals), goals
    if scope.all_topics:
        return list(there), {}
    return [TopicPartition(topic.name, p.number) for topic, p in chosen_partitions(admin, scope.topics)], {}


def _by_current(wanted: Sequence[TopicPartition], current: Offsets, target: Target) -> Offsets:
    """What is committed, shifted or as it is; nothing for a partition without."""
    if target.shift_by is None:
        return {where: current[where] for where in wanted if where in current}
    unknown = sorted(where for where in wanted if where not in current)
    if unknown:
        raise ToolError(
            f"Cannot shift offset for partition {unknown[0].topic}-{unknown[0].partition} "
            "since there is no current committed offset"
        )
    return {where: current[where] + target.shift_by for where in wanted}


def _within(goals: Offsets, wanted: Sequence[TopicPartition], offsets: AdminOffsets) -> dict[TopicPartition, int]:
    starts, ends = offsets.starts(wanted), offsets.ends(wanted)
    return {where: min(max(goals.get(where, ends[where]), starts[where]), ends[where]) for where in wanted}


def read_offsets(path: Path, group: str, *, is_only: bool) -> dict[TopicPartition, int]:
    """A CSV file of topic,partition,offset; or of group,topic,partition,offset, of which this group's count."""
    offsets = {}
    with path.open(newline="") as file:
        for number, row in enumerate(csv.reader(file), 1):
            if not row:
                continue
            fields = [field.strip() for field in row]
            if len(fields) == 4:
                if fields[0] != group:
                    continue
                fields = fields[1:]
            elif not is_only:
                raise ToolError(f"{path}, line {number}: of several groups, expected group,topic,partition,offset")
            if len(fields) != 3 or not fields[1].isdigit() or not fields[2].isdigit():
                raise ToolError(f"{path}, line {number}: expected topic,partition,offset")
            offsets[TopicPartition(fields[0], int(fields[1]))] = int(fields[2])
    if not offsets and is_only:
        raise ToolError(f"{path} has no offsets for {group}")
    return offsets


def _export(moves: Iterable[OffsetReset], *, with_groups: bool) -> None:
    """CSV as kafka-consumer-groups has it, which ``--from-file`` reads: with the group where there are several."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for move in moves:
        writer.writerow([*([move.group] if with_groups else []), *move.where, move.new])
    sys.stdout.write(text.getvalue())


def _positions(admin: Admin, group: str) -> GroupPositions:
    """How far a group is; nowhere if it is not there yet, as a reset makes it. Raises GroupInUse."""
    found = find_group(admin, group, may_be_absent=True)
    if found.state == "Dead":
        tell_of_like_group(admin, group)
    if found.state not in _INACTIVE:
        raise GroupInUse(
            f"Assignments can only be reset if the group '{group}' is inactive, but the current state is {found.state}."
        )
    if found.group_type == SHARE:
        starts = {where: start.offset for where, start in found.starts.items() if start.offset is not None}
        return GroupPositions(starts, tuple(found.starts), is_share=True)
    return GroupPositions(found.offsets, tuple(found.offsets), is_share=False)


def _commit(admin: Admin, moves: Sequence[OffsetReset]) -> None:
    by_group: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
    shared: dict[str, dict[TopicPartition, int]] = {}
    for move in moves:
        if move.is_share:
            shared.setdefault(move.group, {})[move.where] = move.new
        else:
            by_group.setdefault(move.group, {})[move.where] = OffsetAndMetadata(move.new, "", -1)
    for group, starts in shared.items():
        _alter_starts(admin, group, starts)
    for group, wanted in by_group.items():
        for where, error in admin.alter_group_offsets(group, wanted).items():
            if error is not kafka.errors.NoError:
                raise ToolError(
                    f"{group}, {where.topic}-{where.partition}: {refusal(error.errno, None)}; are its consumers stopped?"
                )


def _alter_starts(admin: Admin, group: str, starts: Offsets) -> None:
    """Have a share group begin at these offsets. Raises ToolError."""
    topics: dict[str, AlterShareGroupOffsetsRequestTopic] = {}
    for where, offset in starts.items():
        topic = topics.setdefault(where.topic, AlterShareGroupOffsetsRequestTopic(topic_name=where.topic))
        topic.partitions.append(
            AlterShareGroupOffsetsRequestPartition(partition_index=where.partition, start_offset=offset)
        )
    request = AlterShareGroupOffsetsRequest(group_id=group, topics=list(topics.values()))
    response: AlterShareGroupOffsetsResponse = admin.ask(WireRequest(request, 0, 0), admin.coordinator(group))
    if response.error_code:
        raise ToolError(f"{group}: {refusal(response.error_code, response.error_message)}; are its members stopped?")
    for changed in response.responses:
        for at in changed.partitions:
            if at.error_code:
                where = f"{changed.topic_name}-{at.partition_index}"
                raise ToolError(f"{group}, {where}: {refusal(at.error_code, at.error_message)}")
