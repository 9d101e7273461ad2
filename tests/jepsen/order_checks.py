"""Checks that the records that one process sent to, or read from, a partition are in the order of offsets, without gaps.

*Internal* is within one transaction or one poll, external is from one to the next of the same process. After an assignment a
consumer continues from the group's committed offset, so its reads are compared only with those since the assignment. Only
acknowledged sends are compared: one with unknown outcome may be executed at any time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from .history import READ_COMMITTED, Act, Partition, Type
from .operations import Operations, Poll, Send
from .violations import Kind, Violation


def unordered_polls(known: Operations) -> Iterator[Violation]:
    """Polls that went back, read an offset again, or skipped records that others with the same isolation level have read."""
    visible = _Visible(known)
    polls = {poll.index: poll for poll in known.polls}
    last: dict[tuple[str, Partition], int] = {}
    for index, event in enumerate(known.events):
        if event.act is Act.ASSIGN:
            for key in [key for key in last if key[0] == event.process]:
                del last[key]
        elif index in polls and polls[index].reads:
            yield from _in_order(polls[index], last.get((event.process, polls[index].partition)), visible)
            last[event.process, polls[index].partition] = polls[index].reads[-1].offset


def _in_order(poll: Poll, before: int | None, visible: _Visible) -> Iterator[Violation]:
    """``before`` is the last offset that this process has read, None for its first poll after an assignment."""
    is_internal = False
    for read in poll.reads:
        if before is not None:
            which = f"{poll.process} read {read.offset} of {poll.partition} after {before}"
            if read.offset <= before:
                yield Violation(Kind.INTERNAL_NONMONOTONIC_POLL if is_internal else Kind.NONMONOTONIC_POLL, which)
            skipped = visible.between(poll.partition, poll.isolation, before, read.offset)
            if skipped:
                kind = Kind.INTERNAL_POLL_SKIP if is_internal else Kind.POLL_SKIP
                yield Violation(kind, f"{which}, and not what is at {skipped}")
        before = read.offset
        is_internal = True


class _Visible:
    """The offsets at which readers of an isolation level must find records: others did, or they are acknowledged."""

    def __init__(self, known: Operations) -> None:
        self._known = known
        self._offsets: dict[tuple[Partition, str], list[int]] = {}

    def between(self, partition: Partition, isolation: str, first: int, last: int) -> list[int]:
        """The offsets above ``first`` and below ``last``."""
        key = partition, isolation
        if key not in self._offsets:
            self._offsets[key] = sorted(self._find(partition, isolation))
        offsets = self._offsets[key]
        return offsets[bisect_right(offsets, first) : bisect_left(offsets, last)]

    def _find(self, partition: Partition, isolation: str) -> Iterator[int]:
        known = self._known
        for offset, values in known.offsets[partition].items():
            if any(self._is_visible(value, isolation) for value in values):
                yield offset

    def _is_visible(self, value: int, isolation: str) -> bool:
        known = self._known
        send = known.sends.get(value)
        if isolation == READ_COMMITTED:
            return READ_COMMITTED in known.seen[value] or (send is not None and known.is_acknowledged(send))
        return bool(known.seen[value]) or (send is not None and send.outcome is Type.OK)


def nonmonotonic_sends(known: Operations) -> Iterator[Violation]:
    """Acknowledged sends of one process to one partition with descending offsets."""
    last: dict[tuple[str, Partition], Send] = {}
    for send in sorted(known.sends.values(), key=lambda send: send.order):
        if send.outcome is not Type.OK or send.offset is None:
            continue
        before = last.get((send.process, send.partition))
        if before is not None and before.offset is not None and send.offset <= before.offset:
            is_internal = send.transaction is not None and send.transaction == before.transaction
            yield Violation(
                Kind.INTERNAL_NONMONOTONIC_SEND if is_internal else Kind.NONMONOTONIC_SEND,
                f"{send.process} sent {before.value} and then {send.value} to {send.partition}, "
                f"which are at {before.offset} and {send.offset}",
            )
        last[send.process, send.partition] = send
