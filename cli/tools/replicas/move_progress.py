"""Progress of replica moves: the bytes copied and the time left, from the sizes that brokers report.

A partition on its way has as many bytes to go as its leader has, for each replica that is added. One that has arrived
counts with what was known of it last. A broker that does not answer is no failure: its bytes stay as they were.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import kafka.errors
from kafka import TopicPartition

from ....base.wording import counted
from ..client import Admin
from ..cluster_view import Key, TopicPartitionInfo, find_topics, sizes_on
from ..output import size_text
from ..running import ToolError
from .moves import PartitionReassignment, under_way

_LOOK_EACH_S = 1.0
_FIRST_PAUSE_S = 0.1
_LINE_EACH_S = 10.0
_PATIENCE_S = 60.0

Show = Callable[["MoveProgress", float], None]


class MoveProgress:
    """The progress of moves: bytes ``done`` of ``total``."""

    def __init__(self) -> None:
        self._bytes: dict[Key, tuple[int, int]] = {}
        self._first: tuple[float, int] | None = None
        self.left = 0
        """The number of partitions that are still on their way."""

    @property
    def done(self) -> int:
        return sum(done for done, _ in self._bytes.values())

    @property
    def total(self) -> int:
        return sum(total for _, total in self._bytes.values())

    def look(self, moving: Mapping[Key, tuple[int, Collection[int]]], now: float) -> None:
        """``moving`` are a leader's bytes, and those of each replica that is added, by partition; ``now`` in seconds."""
        for key, (_, total) in self._bytes.items():
            if key not in moving:
                self._bytes[key] = (total, total)
        for key, (size, there) in moving.items():
            self._bytes[key] = (sum(min(each, size) for each in there), size * len(there))
        self.left = len(moving)
        if self._first is None:
            self._first = (now, self.done)

    def seconds_left(self, now: float) -> float | None:
        """About how long the rest takes, by how fast it went so far; None while that cannot be said."""
        if self._first is None or self.done <= self._first[1]:
            return None
        began, before = self._first
        return (self.total - self.done) * (now - began) / (self.done - before)

    def text(self, now: float) -> str:
        """For people."""
        seconds = self.seconds_left(now)
        rest = "" if seconds is None else f", about {_duration(seconds)} left"
        return f"{size_text(self.done)} of {size_text(self.total)} moved, {counted(self.left, 'partition')} to go{rest}"


def wait(admin: Admin, keys: Collection[Key], timeout_s: float) -> Mapping[Key, PartitionReassignment]:
    """Return when none of these partitions is on its way any more, or the time has ended: those that still are.

    On the standard error stands how far it is. Raises ToolError, KafkaError, when the controller has not answered for a minute.
    """
    began = answered = time.monotonic()
    moves: Mapping[Key, PartitionReassignment] = dict.fromkeys(keys, PartitionReassignment((), (), ()))
    progress = MoveProgress()
    with _shown() as show:
        while True:
            now = time.monotonic()
            try:
                moves = {key: move for key, move in under_way(admin).items() if key in keys}
                answered = now
                progress.look(_sizes(admin, moves), now)
                show(progress, now)
            except (ToolError, kafka.errors.KafkaError):  # another broker becomes the controller soon
                if now - answered >= _PATIENCE_S:
                    raise
            if not moves or now - began >= timeout_s:
                return moves
            time.sleep(min(_FIRST_PAUSE_S + (now - began) / 5, _LOOK_EACH_S, max(began + timeout_s - now, 0)))


def _sizes(admin: Admin, moves: Mapping[Key, PartitionReassignment]) -> dict[Key, tuple[int, Collection[int]]]:
    try:
        topics = find_topics(admin, sorted({topic for topic, _ in moves}))
    except ToolError:
        return {}  # one of them was deleted just now
    partitions: dict[Key, TopicPartitionInfo] = {
        (topic.name, p.number): p for topic in topics for p in topic.partitions
    }
    asked: dict[int, list[TopicPartition]] = {}
    for key, move in moves.items():
        leader = partitions[key].leader if key in partitions else None
        for broker in {*move.adding, *(() if leader is None else (leader,))}:
            asked.setdefault(broker, []).append(TopicPartition(*key))
    told: dict[int, Mapping[Key, int]] = {}
    for broker, wanted in asked.items():
        try:
            told[broker] = sizes_on(admin, broker, wanted)
        except kafka.errors.KafkaError:
            continue
    found: dict[Key, tuple[int, Collection[int]]] = {}
    for key, move in moves.items():
        leader = partitions[key].leader if key in partitions else None
        size = 0 if leader is None else told.get(leader, {}).get(key, 0)
        found[key] = (size, [told.get(broker, {}).get(key, 0) for broker in move.adding])
    return found


@contextmanager
def _shown() -> Iterator[Show]:
    """A bar on the standard error where that is a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _ProgressLines().show
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    with Bar(BarColumn(), TextColumn("{task.description}"), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        yield lambda progress, now: bar.update(
            task, total=max(progress.total, 1), completed=progress.done, description=progress.text(now)
        )


class _ProgressLines:
    """A line each ten seconds."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _LINE_EACH_S

    def show(self, progress: MoveProgress, now: float) -> None:
        if now >= self._next:
            self._next = now + _LINE_EACH_S
            print(progress.text(now), file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    if minutes <= 1:
        return f"{math.ceil(seconds)} s"
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
