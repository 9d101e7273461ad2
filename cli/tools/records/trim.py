"""``ottla topics trim``: deletes the oldest records of partitions (DeleteRecords), up to an offset or a time.

What goes is shown first, and deleted with ``--execute``. A place that is below a partition's start changes nothing there.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import kafka.errors
from kafka import TopicPartition

from ..client import Admin, ClusterConnection
from ..cluster_view import chosen_partitions
from ..output import OutputColumn, print_rows, tell_of_execute
from ..running import ToolError, UsageError, explain
from .offset_expressions import OffsetExpression, OffsetOrigin, parse_place, resolve
from .partition_offsets import AdminOffsets

COLUMNS = (
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("start_offset", is_number=True),
    OutputColumn("new_start_offset", is_number=True),
    OutputColumn("end_offset", is_number=True),
)


@dataclasses.dataclass(frozen=True)
class TrimOptions:
    """The options of the command: an offset for topics, or a file."""

    topics: tuple[str, ...]
    """``NAME`` or ``NAME:0,1``."""
    partitions: tuple[int, ...]
    offset: str | None
    from_file: Path | None

    def check(self) -> None:
        """Raises UsageError for options that make no sense together."""
        if self.from_file is not None:
            if self.topics or self.partitions or self.offset is not None:
                raise UsageError("--from-file says of which topics and up to where: nothing else goes with it")
        elif not self.topics or self.offset is None:
            raise UsageError("say of which topics and up to where: TOPIC… and --offset, or --from-file")


def trim(connection: ClusterConnection, cut: TrimOptions, *, execute: bool, as_json: bool) -> None:
    """Show where partitions would begin, and have them begin there if told to. Raises ToolError."""
    cut.check()
    with closing(connection.admin()) as admin:
        offsets = AdminOffsets(admin)
        goals = _goals(admin, cut, offsets)
        starts, ends = offsets.starts(goals), offsets.ends(goals)
        for where, goal in goals.items():
            if goal > ends[where]:
                raise ToolError(
                    f"{where.topic}-{where.partition} ends at offset {ends[where]}, below {goal} (OFFSET_OUT_OF_RANGE)"
                )
        new = {where: max(goal, starts[where]) for where, goal in goals.items()}
        refused = (
            _delete(admin, {where: goal for where, goal in new.items() if goal > starts[where]}) if execute else []
        )
    print_rows(COLUMNS, [(*w, starts[w], new[w], ends[w]) for w in sorted(new)], as_json=as_json)
    if not execute:
        tell_of_execute()
    if refused:
        raise ToolError("; ".join(refused))


def _goals(admin: Admin, cut: TrimOptions, offsets: AdminOffsets) -> dict[TopicPartition, int]:
    if cut.from_file is not None:
        return read_offsets(cut.from_file)
    assert cut.offset is not None
    place = parse_place(cut.offset)
    texts = cut.topics
    if cut.partitions:
        texts = tuple(f"{topic}:{','.join(map(str, cut.partitions))}" for topic in cut.topics)
    wanted = [TopicPartition(topic.name, p.number) for topic, p in chosen_partitions(admin, texts)]
    return _exactly(place, wanted) or resolve(place, wanted, offsets)


def _exactly(place: OffsetExpression, wanted: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """An offset that was named, even where it is none: that is refused rather than taken for the end."""
    return dict.fromkeys(wanted, place.number) if place.kind is OffsetOrigin.OFFSET else {}


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """A file of kafka-delete-records: ``{"partitions": [{"topic", "partition", "offset"}, …]}``. Raises ToolError."""
    try:
        rows = json.loads(path.read_text())["partitions"]
        goals = {TopicPartition(str(row["topic"]), int(row["partition"])): int(row["offset"]) for row in rows}
    except (KeyError, TypeError, ValueError):
        raise ToolError(
            f'{path} is not {{"partitions": [{{"topic": "orders", "partition": 0, "offset": 47}}, …]}}'
        ) from None
    if not goals:
        raise ToolError(f"{path} names no partition")
    return goals


def _delete(admin: Admin, goals: Mapping[TopicPartition, int]) -> list[str]:
    """Why partitions were not trimmed, each asked on its own, so that one that is refused does not keep the others."""
    refused = []
    for where, goal in goals.items():
        try:
            admin.delete_records({where: goal})
        except kafka.errors.KafkaError as error:
            refused.append(f"{where.topic}-{where.partition}: {explain(error)}")
    return refused
