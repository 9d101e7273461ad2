"""What members of a share group and a producer saw of one partition, in order, and the rules that hold for it (KIP-932).

A history is a list of events, each at its place. An event is there once its response has come. A fetch may be on its way while
another member's acknowledgement is answered, so a delivery tells how long the history was when its fetch was sent: only what was
answered before that binds it.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.compat_tests.raw.share_groups.wire_share import ACCEPT, REJECT, RELEASE

FINAL = (ACCEPT, REJECT)


class Answer(enum.Enum):
    """What is known of an acknowledgement."""

    DONE = "done"
    REFUSED = "refused"
    """Nothing was changed by it."""
    UNKNOWN = "unknown"
    """The connection ended, or there was an error after which it may be stored."""


class WrittenRecords(NamedTuple):
    """Records whose writing was answered without an error; both offsets are of them."""

    first: int
    last: int


class DeliveredRecords(NamedTuple):
    """Records that a response to a fetch gave to a member; ``since`` is how long the history was when the fetch was sent."""

    first: int
    last: int
    delivery_count: int
    since: int


class Said(NamedTuple):
    """An acknowledgement of one record, with the delivery count that it had then."""

    offset: int
    type: int
    delivery_count: int


class SaidOfRecords(NamedTuple):
    """Acknowledgements in one request, and what is known of them."""

    said: Sequence[Said]
    answer: Answer


ShareEvent = WrittenRecords | DeliveredRecords | SaidOfRecords


def violations(history: Sequence[ShareEvent], limit: int) -> list[str]:
    """Every breach, in words, of the rules for a group with this limit of deliveries that has nothing more to deliver."""
    return [*_of_deliveries(history, limit), *_lost(history, limit)]


def _of_deliveries(history: Sequence[ShareEvent], limit: int) -> Iterator[str]:
    """No record comes again after its end, or more often than the limit, or with a count that a release has reached."""
    final_at: dict[int, tuple[int, str]] = {}
    releases: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for at, event in enumerate(history):
        if isinstance(event, SaidOfRecords) and event.answer is Answer.DONE:
            for said in event.said:
                if said.type in FINAL:
                    final_at.setdefault(said.offset, (at, "accepted" if said.type == ACCEPT else "rejected"))
                elif said.type == RELEASE:
                    releases[said.offset].append((at, said.delivery_count))
        elif isinstance(event, DeliveredRecords):
            for offset in range(event.first, event.last + 1):
                where = f"{offset} (event {at}, delivery {event.delivery_count})"
                if event.delivery_count > limit:
                    yield f"{where}: more deliveries than {limit}"
                end = final_at.get(offset)
                if end is not None and end[0] < event.since:
                    yield f"{where}: {end[1]} at event {end[0]}, delivered again"
                highest = max((count for told, count in releases[offset] if told < event.since), default=0)
                if event.delivery_count <= highest:
                    yield f"{where}: released at delivery {highest}, its count fell"


def _lost(history: Sequence[ShareEvent], limit: int) -> Iterator[str]:
    """Every written record was accepted or rejected, if only by a request with an unknown end, or came as often as the limit."""
    written: set[int] = set()
    ended: set[int] = set()
    for event in history:
        match event:
            case WrittenRecords(first, last):
                written.update(range(first, last + 1))
            case DeliveredRecords(first, last, count, _) if count >= limit:
                ended.update(range(first, last + 1))
            case SaidOfRecords(said, answer) if answer is not Answer.REFUSED:
                ended.update(each.offset for each in said if each.type in FINAL)
    for offset in sorted(written - ended):
        yield f"{offset}: written, and lost"
