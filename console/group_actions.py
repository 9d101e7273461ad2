"""Actions on a group without members: reset its offsets, after a preview, or delete it.

The rules are those of kafka-consumer-groups (ConsumerGroupCommand): an offset outside of the log becomes the nearest one inside,
a time behind the last record is the end. What was shown is what is committed; of a share group (KIP-932) the start offsets are
moved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..base.wording import counted
from ..wire.api_keys import ApiKey
from ..wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ..wire.messages.delete_groups import DeleteGroupsRequest
from ..wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from . import action_commands
from .actions import ActionPlan, ActionResult, FormField, Given, KafkaAction, check_typed, number
from .group_positions import DEAD, FoundGroup, committed, group_state, share_starts
from .kafka_requests import GroupCoordinatorTarget, check
from .offsets import Bounds, at_time, bounds
from .questions import WrongQuestionError, moment_ms
from .topic_actions import described

_MOST_PARTITIONS = 2000
_LATEST_MS = 253_402_300_800_000  # the year 10000
_INACTIVE = ("Empty", DEAD)
WAYS = (
    ("earliest", "to the earliest"),
    ("latest", "to the latest"),
    ("offset", "to the offset"),
    ("shift", "by the number"),
    ("time", "to the time"),
)


class OffsetChange(NamedTuple):
    """A partition's committed offset, or start offset of a share group, None for none, and what it is to be."""

    key: TopicPartition
    current: int | None
    found: Bounds
    new: int


@dataclasses.dataclass(frozen=True)
class Reset:
    """A reset of offsets as a form asks for it."""

    group: str
    topics: tuple[str, ...]
    """``NAME`` or ``NAME:0,1``; none for all that the group has committed."""
    way: str
    at: int


def read_reset(given: Given) -> Reset:
    """Raises WrongQuestionError."""
    way, text = given.get("to", ""), given.get("at", "").strip()
    at = 0
    if way == "time":
        at = moment_ms(text, "at")
        if not 0 <= at < _LATEST_MS:
            raise WrongQuestionError(f"{text} is not a time that a record may have.", "at")
    elif way in ("offset", "shift"):
        least = -(1 << 63) if way == "shift" else 0
        value = number(given, "at", "a number of offsets" if way == "shift" else "an offset", least)
        if value is None:
            raise WrongQuestionError("Where to was not said.", "at")
        at = value
    elif way not in dict(WAYS):
        raise WrongQuestionError(f"Offsets go {', '.join(text for _, text in WAYS)}, not {way}.", "to")
    return Reset(given.get("id", ""), tuple(given.get("topics", "").split()), way, at)


class ResetOffsets(KafkaAction):
    """Other offsets for a group."""

    title, here = "Reset offsets", "Groups"
    api = ApiKey.OFFSET_COMMIT

    def fields(self, given: Given) -> Sequence[FormField]:
        return (
            FormField("id", "Group", given.get("id", "")),
            FormField("topics", "Topics", given.get("topics", ""), hint="all, or NAME NAME:0,1"),
            FormField("to", "Where to", given.get("to", "earliest"), "choice", WAYS),
            FormField("at", "Offset, number or time", given.get("at", ""), hint="2026-01-31T12:00Z"),
        )

    async def plan(self, given: Given) -> ActionPlan | None:
        group = given.get("id", "")
        found = await self._inactive(group) if group else None
        if found is None or "to" not in given:
            return None
        reset = read_reset(given)
        moves = await self._moves(reset, await self._positions(group, found))
        return ActionPlan(
            f"The group {group} continues at another offset in {counted(len(moves), 'partition')}.",
            "Reset offsets",
            action_commands.reset_offsets(
                self._server(), group, reset.topics, reset.way, reset.at, is_share=found.is_share
            ),
            columns=("Partition", "Current", "Start", "End", "New"),
            rows=[(m.key, m.current, *m.found, m.new) for m in moves],
            hidden={
                "offsets": "\n".join(f"{topic}:{partition}:{m.new}" for m in moves for topic, partition in [m.key])
            },
        )

    async def carry_out(self, given: Given) -> ActionResult:
        group = given.get("id", "")
        found = await self._inactive(group)
        wanted = _shown(given.get("offsets", ""))
        before = await self._positions(group, found)
        await (self._alter_starts if found.is_share else self._commit)(group, wanted)
        return ActionResult(
            (
                f"The group {group} continues at another offset in {counted(len(wanted), 'partition')}: "
                f"{_moved(wanted, before)}."
            ),
            f"/group?id={quote(group, safe='')}",
            group,
            columns=("Partition", "Was", "Is"),
            rows=[(key, before.get(key), offset) for key, offset in wanted.items()],
        )

    async def _commit(self, group: str, wanted: Mapping[TopicPartition, int]) -> None:
        """Raises KafkaError."""
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in wanted.items():
            wish = OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=""
            )
            topics.setdefault(topic, []).append(wish)
        request = OffsetCommitRequest(
            group_id=group,
            topics=[OffsetCommitRequestTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        )
        response = await self._kafka.ask(request, GroupCoordinatorTarget(group))
        for answered in response.topics:
            for result in answered.partitions:
                check(result.error_code, f"{answered.name}-{result.partition_index} was not reset.")

    async def _alter_starts(self, group: str, wanted: Mapping[TopicPartition, int]) -> None:
        """Raises KafkaError."""
        topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
        for (topic, partition), offset in wanted.items():
            wish = AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
            topics.setdefault(topic, []).append(wish)
        asked = [AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=each) for name, each in topics.items()]
        request = AlterShareGroupOffsetsRequest(group_id=group, topics=asked)
        response = await self._kafka.ask(request, GroupCoordinatorTarget(group))
        check(response.error_code, response.error_message)
        for answered in response.responses:
            for result in answered.partitions:
                check(result.error_code, f"{answered.topic_name}-{result.partition_index} was not reset.")

    async def _positions(self, group: str, found: FoundGroup) -> dict[TopicPartition, int | None]:
        """How far the group is in each partition that it reads; None where a share group has not begun. Raises KafkaError."""
        return await (share_starts if found.is_share else committed)(self._kafka, group)

    async def _inactive(self, group: str) -> FoundGroup:
        """A group without members, or none. Raises WrongQuestionError, KafkaError."""
        found = await group_state(self._kafka, group)
        if found.state not in _INACTIVE:
            raise WrongQuestionError(
                f"Assignments can only be reset if the group '{group}' is inactive, but the current state is {found.state}.",
                "id",
            )
        return found

    async def _moves(self, reset: Reset, there: Mapping[TopicPartition, int | None]) -> list[OffsetChange]:
        current = {key: offset for key, offset in there.items() if offset is not None}
        keys = await self._chosen(reset.topics) if reset.topics else sorted(there)
        if not keys:
            raise WrongQuestionError(f"{reset.group} has committed no offsets: name topics.", "topics")
        if len(keys) > _MOST_PARTITIONS:
            raise WrongQuestionError(
                f"These are {len(keys)} partitions, and {_MOST_PARTITIONS} at most go: name topics.", "topics"
            )
        found = await bounds(self._kafka, keys)
        goals = await self._goals(reset, keys, current, found)
        return [
            OffsetChange(key, current.get(key), at, min(max(goals[key], at.start), at.end)) for key, at in found.items()
        ]

    async def _goals(
        self,
        reset: Reset,
        keys: Sequence[TopicPartition],
        current: Mapping[TopicPartition, int],
        found: Mapping[TopicPartition, Bounds],
    ) -> Mapping[TopicPartition, int]:
        match reset.way:
            case "earliest":
                return {key: at.start for key, at in found.items()}
            case "latest":
                return {key: at.end for key, at in found.items()}
            case "offset":
                return dict.fromkeys(keys, reset.at)
            case "time":
                offsets = await at_time(self._kafka, keys, reset.at)
                return {key: found[key].end if offset < 0 else offset for key, offset in offsets.items()}
            case _:
                for key in keys:
                    if key not in current:
                        raise WrongQuestionError(
                            f"Cannot shift offset for partition {key} since there is no current committed offset.",
                            "to",
                        )
                return {key: current[key] + reset.at for key in keys}

    async def _chosen(self, topics: Sequence[str]) -> list[TopicPartition]:
        """Raises NotFoundError, WrongQuestionError."""
        keys = []
        for text in topics:
            name, colon, numbers = text.partition(":")
            there = sorted(partition.partition_index for partition in (await described(self._kafka, name)).partitions)
            chosen = _numbers(text, numbers) if colon else there
            missing = sorted({*chosen} - {*there})
            if missing:
                raise WrongQuestionError(f"There is no {name}-{missing[0]}.", "topics")
            keys += [TopicPartition(name, number) for number in chosen]
        return sorted({*keys})


def _moved(wanted: Mapping[TopicPartition, int], before: Mapping[TopicPartition, int | None]) -> str:
    """What a reset means for those who read, in numbers."""
    moved = [offset - was for key, offset in wanted.items() if (was := before.get(key)) is not None]
    again, skipped = -sum(min(each, 0) for each in moved), sum(max(each, 0) for each in moved)
    new = len(wanted) - len(moved)
    said = [
        *([f"{counted(again, 'offset')} {'is' if again == 1 else 'are'} read again"] if again else []),
        *([f"{counted(skipped, 'offset')} {'is' if skipped == 1 else 'are'} skipped"] if skipped else []),
        *([f"{counted(new, 'partition')} had no offset"] if new else []),
    ]
    return ", ".join(said) or "all are where they were"


def _numbers(text: str, numbers: str) -> list[int]:
    parts = numbers.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) <= 9 for part in parts):
        raise WrongQuestionError(f"{text} is not a topic with partitions, such as NAME:0,1.", "topics")
    return [int(part) for part in parts]


def _shown(text: str) -> dict[TopicPartition, int]:
    """The offsets that a plan had. Raises WrongQuestionError."""
    found: dict[TopicPartition, int] = {}
    for line in text.splitlines():
        topic, _, rest = line.partition(":")
        partition, _, offset = rest.partition(":")
        numbers = partition, offset
        if not topic or not all(part.isascii() and part.isdigit() and len(part) <= 19 for part in numbers):
            raise WrongQuestionError("Nothing was done: the offsets that were shown did not come along.")
        found[TopicPartition(topic, int(partition))] = int(offset)
    if not 0 < len(found) <= _MOST_PARTITIONS:
        raise WrongQuestionError("Nothing was done: the offsets that were shown did not come along.")
    return found


class DeleteGroup(KafkaAction):
    """A group, with the offsets that it has committed."""

    title, here = "Delete a group", "Groups"
    api = ApiKey.DELETE_GROUPS

    async def plan(self, given: Given) -> ActionPlan | None:
        group = given.get("id", "")
        state, is_share = await group_state(self._kafka, group)
        if state == DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {group}.")
        if state != "Empty":
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"The group {group} is {state}.")
        what, reset = ("the states of its records", "share.") if is_share else ("the offsets that it has committed", "")
        return ActionPlan(
            f"The group {group} is deleted, with {what}.",
            "Delete group",
            action_commands.delete_group(self._server(), group, is_share=is_share),
            warnings=(f"Deletion is permanent: its consumers begin where {reset}auto.offset.reset says.",),
            typed=group,
        )

    async def carry_out(self, given: Given) -> ActionResult:
        group = given.get("id", "")
        check_typed(given, group)
        found = await group_state(self._kafka, group)
        count = len(await (share_starts if found.is_share else committed)(self._kafka, group))
        response = await self._kafka.ask(DeleteGroupsRequest(groups_names=[group]), GroupCoordinatorTarget(group))
        for result in response.results:
            check(result.error_code, result.error_message)
        lost = "its start offsets" if found.is_share else "its committed offsets"
        what = f"The group {group} was deleted, with {lost} in {counted(count, 'partition')}."
        return ActionResult(what, "/groups", "Groups")
