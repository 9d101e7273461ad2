"""Outages of producers: the gaps between the times of their acknowledgements."""

from __future__ import annotations

import itertools
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from .loads import PARTITIONS, Ack, ProducerLoad

_BEFORE_S = 30.0
"""For how long before an event acknowledgements count: the last one begins the gap."""
_EXPIRED = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] INFO Expiring session", re.MULTILINE)


class Outage(NamedTuple):
    """What one producer saw of one event, in the worst of its partitions; in seconds.

    ``after_session``: from the end of the dead broker's session to the next acknowledgement; None for a clean stop, which does
    not wait for the end of a session. ``gap``: the longest time between two acknowledgements, which began at ``gap_began``.
    """

    event: str
    producer: str
    after_session: float | None
    gap: float
    gap_began: float


def session_end(zookeeper_log: Path, since: float) -> float | None:
    """When ZooKeeper ended a session after ``since``, from its log; None if it has not yet."""
    for text, millis in _EXPIRED.findall(zookeeper_log.read_text(errors="replace")):
        moment = datetime.strptime(text, "%Y-%m-%d %H:%M:%S").timestamp() + int(millis) / 1000
        if moment >= since:
            return moment
    return None


def is_back(producer: ProducerLoad, since: float) -> bool:
    """Whether every partition has had an acknowledgement since then."""
    return {ack.partition for ack in _recent(producer.acks, since)} == set(range(PARTITIONS))


def outage(event: str, producer: ProducerLoad, began: float, ended: float, session_ended: float | None) -> Outage:
    """What a producer saw between two times, at both of which it got acknowledgements in all partitions."""
    after, gaps = [], []
    acks = _recent(producer.acks, began - _BEFORE_S)
    for partition in range(PARTITIONS):
        times = sorted(ack.time for ack in acks if ack.partition == partition and ack.time <= ended)
        gaps += [(other - one, one) for one, other in itertools.pairwise(times) if other > began]
        if session_ended is not None:
            after.append(next(time - session_ended for time in times if time >= session_ended))
    return Outage(event, producer.name, max(after, default=None), *max(gaps))


def _recent(acks: list[Ack], since: float) -> list[Ack]:
    """The newest acknowledgements; ``acks`` are in the order of their times."""
    return list(itertools.takewhile(lambda ack: ack.time >= since, reversed(acks[:])))
