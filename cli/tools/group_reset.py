"""``ottla groups reset-offsets``: where a group's committed offsets would go, and on demand the move itself.

An offset outside of the log becomes the nearest one inside, as kafka-consumer-groups has it; so does a time behind the
last record, whose offset is the end.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import kafka.errors
from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.structs import OffsetAndMetadata

from ...base.wording import counted
from .client import Admin, Connection
from .cluster_view import chosen_partitions, find_topics
from .groups import find_group
from .output import Column, print_rows
from .running import ToolError, UsageError, refusal
from .times import parse_time_ms

COLUMNS = (
    Column("group"),
    Column("topic"),
    Column("partition", is_number=True),
    Column("current_offset", is_number=True),
    Column("new_offset", is_number=True),
)


@dataclasses.dataclass(frozen=True)
class Target:
    """Where to: just one of these."""

    to_earliest: bool = False
    to_latest: bool = False
    to_datetime: str | None = None
    shift_by: int | None = None
    to_offset: int | None = None
    from_file: Path | None = None

    def check(self) -> None:
        """Raises UsageError unless just one is given."""
        given = [name for name, value in vars(self).items() if value is not None and value is not False]
        if len(given) != 1:
            raise UsageError(
                "say where to, once: --to-earliest, --to-latest, --to-datetime, --shift-by, --to-offset or --from-file"
            )


def reset_offsets(
    connection: Connection,
    group: str,
    target: Target,
    *,
    topics: Sequence[str] | None,
    all_topics: bool,
    execute: bool,
    dry_run: bool,
    export: bool,
    as_json: bool,
) -> None:
    """Show the new offsets, and commit them if told to. Raises ToolError."""
    target.check()
    if execute and dry_run:
        raise UsageError("--execute and --dry-run exclude each other")
    if target.from_file is None and bool(topics) == all_topics:
        raise UsageError("say of which topics: --topic NAME[:0,1,…] or --all-topics")
    with closing(connection.admin()) as admin:
        if target.from_file is not None:
            wanted = read_offsets(target.from_file, group)
            current = _current(admin, group)
        elif all_topics:
            current = _current(admin, group)
            wanted = dict.fromkeys(current, 0)
        else:
            current = _current(admin, group)
            chosen = chosen_partitions(admin, topics or ())
            wanted = dict.fromkeys((TopicPartition(topic.name, p.number) for topic, p in chosen), 0)
        if not wanted:
            raise ToolError(f"{group} has committed no offsets; name topics with --topic")
        new = _new_offsets(admin, target, wanted, current)
        if execute:
            _commit(admin, group, new)
    rows = [(group, w.topic, w.partition, current.get(w), new[w]) for w in sorted(new)]
    if export:
        for _, topic, partition, _, offset in rows:
            print(f"{topic},{partition},{offset}")
    else:
        print_rows(COLUMNS, rows, as_json=as_json)


def read_offsets(path: Path, group: str) -> dict[TopicPartition, int]:
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
            if len(fields) != 3 or not fields[1].isdigit() or not fields[2].isdigit():
                raise ToolError(f"{path}, line {number}: expected topic,partition,offset")
            offsets[TopicPartition(fields[0], int(fields[1]))] = int(fields[2])
    if not offsets:
        raise ToolError(f"{path} has no offsets for {group}")
    return offsets


def _current(admin: Admin, group: str) -> dict[TopicPartition, int]:
    """Committed offsets; none for a group that is not there yet, which a reset makes."""
    try:
        found = find_group(admin, group)
    except ToolError:
        return {}
    if found.members:
        raise ToolError(f"{group} has {counted(len(found.members), 'member')}; stop its consumers first")
    return found.offsets


def _new_offsets(
    admin: Admin, target: Target, wanted: Mapping[TopicPartition, int], current: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    find_topics(admin, sorted({where.topic for where in wanted}))
    earliest = _list_offsets(admin, wanted, OffsetSpec.EARLIEST)
    latest = _list_offsets(admin, wanted, OffsetSpec.LATEST)
    if target.to_earliest:
        goals = earliest
    elif target.to_latest:
        goals = latest
    elif target.to_datetime is not None:
        found = _list_offsets(admin, wanted, parse_time_ms(target.to_datetime))
        goals = {where: offset if offset >= 0 else latest[where] for where, offset in found.items()}
    elif target.shift_by is not None:
        unknown = sorted(where for where in wanted if where not in current)
        if unknown:
            raise ToolError(
                f"nothing is committed for {unknown[0].topic}-{unknown[0].partition}, so it cannot be shifted"
            )
        goals = {where: current[where] + target.shift_by for where in wanted}
    elif target.to_offset is not None:
        goals = dict.fromkeys(wanted, target.to_offset)
    else:
        goals = dict(wanted)
    return {where: min(max(goal, earliest[where]), latest[where]) for where, goal in goals.items()}


def _list_offsets(admin: Admin, wanted: Mapping[TopicPartition, int], spec: int) -> dict[TopicPartition, int]:
    found = admin.list_partition_offsets(dict.fromkeys(wanted, spec))
    return {where: int(at.offset) for where, at in found.items()}


def _commit(admin: Admin, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    wanted = {where: OffsetAndMetadata(offset, "", -1) for where, offset in offsets.items()}
    for where, error in admin.alter_group_offsets(group, wanted).items():
        if error is not kafka.errors.NoError:
            raise ToolError(
                f"{where.topic}-{where.partition}: {refusal(error.errno, None)}; are its consumers stopped?"
            )
