"""A producer and members of a share group on partition 0 of a topic, each in a thread, while brokers come and go.

They ask for the leader again after an error, as clients do, and write down what they saw as a share history. A member says of a
record what a seed chooses by offset and delivery count: accept, reject, release, or nothing, so that its lock ends.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, produce
from ottla.compat_tests.raw.share_groups.wire_share import (
    ACCEPT,
    REJECT,
    RELEASE,
    Ack,
    Fetched,
    ShareConsumer,
    ShareGroup,
)
from ottla.compat_tests.wire_client import Connection, connect, describe

from .share_history import Answer, DeliveredRecords, Said, SaidOfRecords, ShareEvent, WrittenRecords

ANSWER_S = 15.0
BACKOFF_S = 0.05
"""Between two questions who leads, as clients have it."""
RECORDS_AT_ONCE = 20
BATCH = 5
AHEAD = 200
"""How many records the producer is before the members at most."""
WAIT_MS = 200
_SILENCE = -1
_CHOICES = (ACCEPT, REJECT, RELEASE, _SILENCE)
_WEIGHTS = (60, 8, 22, 10)
_REFUSED = (
    ErrorCode.INVALID_RECORD_STATE,
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
)
_ELSEWHERE = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    ErrorCode.UNKNOWN_SERVER_ERROR,  # of a state that may be stored or not: a share coordinator that was not reached in time
)
"""Errors after which one asks for the leader again; others fail the test."""


class AskAgainError(Exception):
    """The leader is to be found again."""


class ShareLog:
    """A share history that grows, and what can be awaited of it."""

    def __init__(self) -> None:
        self.events: list[ShareEvent] = []
        self.written_to = 0
        """The end of what was written."""
        self.delivered_to = 0
        """The end of what was delivered."""
        self.finished = 0
        """How many records were accepted or rejected."""
        self._changed = threading.Condition()

    def add(self, event: ShareEvent) -> None:
        with self._changed:
            self.events.append(event)
            match event:
                case WrittenRecords(_, last):
                    self.written_to = max(self.written_to, last + 1)
                case DeliveredRecords(_, last, _, _):
                    self.delivered_to = max(self.delivered_to, last + 1)
                case SaidOfRecords(said, Answer.DONE):
                    self.finished += sum(each.type in (ACCEPT, REJECT) for each in said)
            self._changed.notify_all()

    def wake(self) -> None:
        """Have those who wait look again."""
        with self._changed:
            self._changed.notify_all()

    def wait_until(self, is_so: Callable[[], bool], timeout_s: float) -> bool:
        """Whether it came to be."""
        with self._changed:
            return self._changed.wait_for(is_so, timeout_s)


class ShareLoad:
    """``members`` members and one producer; ``running`` has them run for a block."""

    def __init__(self, bootstrap: str, group: ShareGroup, topic: str, seed: int, members: int = 3) -> None:
        self.log = ShareLog()
        self._bootstrap = bootstrap
        self._group = group
        self._topic = topic
        self._seed = seed
        self._members = members
        self._writing_is_over = threading.Event()
        self._is_over = threading.Event()
        self._failed: list[BaseException] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Raises what failed in a thread."""
        with ThreadPoolExecutor(self._members + 1) as pool:
            tasks = [pool.submit(self._write_all)]
            tasks += [pool.submit(self._read_all, f"member-{number}") for number in range(self._members)]
            for task in tasks:
                task.add_done_callback(self._ended)
            try:
                yield
            finally:
                self._stop()
        for failure in self._failed:
            raise failure

    def end_writing(self) -> None:
        """From now on nothing is written, and members accept whatever they get."""
        self._writing_is_over.set()
        self.log.wake()

    def wait_progress(self, records: int, timeout_s: float) -> None:
        """Return once so many more records are finished. Raises AssertionError, or what failed in a thread."""
        wanted = self.log.finished + records
        came = self.log.wait_until(lambda: bool(self._failed) or self.log.finished >= wanted, timeout_s)
        for failure in self._failed:
            raise failure
        assert came, f"{self.log.finished} records of {wanted} are finished after {timeout_s} s"

    def _ended(self, task: Future[None]) -> None:
        failure = task.exception()
        if failure is not None:
            self._failed.append(failure)
            self._stop()

    def _stop(self) -> None:
        self._is_over.set()
        self.end_writing()

    def _at_leader(self, act: Callable[[Connection], None], is_over: threading.Event) -> None:
        """Have ``act`` run with connections to the leader, until it is over."""
        while not is_over.is_set():
            with contextlib.suppress(OSError, EOFError, AskAgainError), connect(self._leader(), ANSWER_S) as connection:
                act(connection)
            is_over.wait(BACKOFF_S)

    def _leader(self) -> str:
        with connect(self._bootstrap, ANSWER_S) as connection:
            described = describe(connection, self._topic)
        for broker in described.brokers:
            if [broker.node_id] == [each.leader_id for each in described.topics[0].partitions]:
                return f"{broker.host}:{broker.port}"
        raise AskAgainError

    # The producer

    def _write_all(self) -> None:
        self._at_leader(self._write, self._writing_is_over)

    def _write(self, connection: Connection) -> None:
        while not self._writing_is_over.is_set():
            answer = produce(connection, self._topic, batch(*(b"%d" % number for number in range(BATCH))))
            ask_again_after(ErrorCode(answer.error_code))
            self.log.add(WrittenRecords(answer.base_offset, answer.base_offset + BATCH - 1))
            self.log.wait_until(self._may_write, ANSWER_S)

    def _may_write(self) -> bool:
        return self._writing_is_over.is_set() or self.log.written_to < self.log.delivered_to + AHEAD

    # The members

    def _read_all(self, member_id: str) -> None:
        self._at_leader(lambda connection: self._read(member_id, connection), self._is_over)

    def _read(self, member_id: str, connection: Connection) -> None:
        """A session with the leader. What is said of every second response is in the next fetch."""
        consumer = ShareConsumer(self._group, member_id, self._topic, connection)
        in_fetch: list[Said] = []
        while not self._is_over.is_set():
            said = [
                Said(offset, self._choice(offset, count), count)
                for first, last, count in self._fetch(consumer, in_fetch)
                for offset in range(first, last + 1)
            ]
            said = [each for each in said if each.type != _SILENCE]
            in_fetch = said if consumer.epoch % 2 else []
            if said and not in_fetch:
                self._acknowledge(consumer, said)

    def _choice(self, offset: int, count: int) -> int:
        if self._writing_is_over.is_set():
            return ACCEPT
        (chosen,) = random.Random(f"{self._seed} {offset} {count}").choices(_CHOICES, _WEIGHTS)
        return chosen

    def _fetch(self, consumer: ShareConsumer, said: Sequence[Said]) -> list[tuple[int, int, int]]:
        since = len(self.log.events)
        answer = Answer.UNKNOWN
        found: Fetched | ErrorCode = ErrorCode.NONE
        try:
            found = consumer.fetch(*batches(said), max_records=RECORDS_AT_ONCE, max_wait_ms=WAIT_MS)
            answer = answer_of(found if isinstance(found, ErrorCode) else found.acknowledged)
        finally:
            if said:
                self.log.add(SaidOfRecords(said, answer))
        if isinstance(found, ErrorCode):
            raise AskAgainError
        for first, last, count in found.acquired:
            self.log.add(DeliveredRecords(first, last, count, since))
        ask_again_after(found.error)
        return found.acquired

    def _acknowledge(self, consumer: ShareConsumer, said: Sequence[Said]) -> None:
        answer = Answer.UNKNOWN
        try:
            error = consumer.acknowledge(*batches(said))
            answer = answer_of(error)
        finally:
            self.log.add(SaidOfRecords(said, answer))
        if error != ErrorCode.INVALID_RECORD_STATE:
            ask_again_after(error)


def answer_of(error: ErrorCode) -> Answer:
    """Of an acknowledgement. Raises AssertionError for an error that is none of a failover."""
    if error == ErrorCode.NONE:
        return Answer.DONE
    assert error in (*_REFUSED, *_ELSEWHERE), error.name
    return Answer.REFUSED if error in _REFUSED else Answer.UNKNOWN


def ask_again_after(error: ErrorCode) -> None:
    """Raises AskAgainError for an error of a failover, AssertionError for another."""
    if error != ErrorCode.NONE:
        assert error in _ELSEWHERE, error.name
        raise AskAgainError


def batches(said: Sequence[Said]) -> list[Ack]:
    """Acknowledgement batches, one for each run of offsets, with a type for each."""
    runs: list[list[Said]] = []
    for each in sorted(said):
        if runs and runs[-1][-1].offset == each.offset - 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [Ack(run[0].offset, run[-1].offset, [each.type for each in run]) for run in runs]
