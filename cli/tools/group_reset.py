"""``ottla groups reset-offsets``: shows the new committed offsets of groups, and commits them with ``--execute``.

The forms and the rules are those of kafka-consumer-groups (ConsumerGroupCommand): a group with members is refused, an
offset outside of the log becomes the nearest one inside, a time behind the last record is the end, and so is the present
offset where nothing is committed.
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

import kafka.errors
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from .client import Admin, ClusterConnection
from .cluster_view import chosen_partitions, find_topics
from .groups import SHARE, find_group
from .output import OutputColumn, print_rows, tell_of_execute
from .records.offset_expressions import END, START, OffsetExpression, OffsetOrigin, resolve
from .records.partition_offsets import AdminOffsets
from .records.times import parse_duration_ms, parse_time_ms
from .running import ToolError, UsageError, refusal

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
    current = _current(admin, group)
    wanted, goals = _wanted(admin, group, scope, target, current)
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
    return [OffsetReset(group, where, current.get(where), new[where]) for where in sorted(new)]


def _wanted(
    admin: Admin, group: str, scope: Scope, target: Target, current: Offsets
) -> tuple[list[TopicPartition], Offsets]:
    """The partitions, and what a file says of them."""
    if target.from_file is not None:
        goals = read_offsets(target.from_file, group, is_only=len(scope.groups) == 1)
        return list(goals), goals
    if scope.all_topics:
        return list(current), {}
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


def _current(admin: Admin, group: str) -> Offsets:
    """Committed offsets; none for a group that is not there yet, which a reset makes. Raises GroupInUse."""
    found = find_group(admin, group, may_be_absent=True)
    if found.group_type == SHARE:
        raise ToolError(
            f"{group} is a share group, which commits no offsets; kafka-share-groups --reset-offsets moves it"
        )
    if found.state not in _INACTIVE:
        raise GroupInUse(
            f"Assignments can only be reset if the group '{group}' is inactive, but the current state is {found.state}."
        )
    return found.offsets


def _commit(admin: Admin, moves: Sequence[OffsetReset]) -> None:
    by_group: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
    for move in moves:
        by_group.setdefault(move.group, {})[move.where] = OffsetAndMetadata(move.new, "", -1)
    for group, wanted in by_group.items():
        for where, error in admin.alter_group_offsets(group, wanted).items():
            if error is not kafka.errors.NoError:
                raise ToolError(
                    f"{group}, {where.topic}-{where.partition}: {refusal(error.errno, None)}; are its consumers stopped?"
                )
