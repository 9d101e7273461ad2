"""Stock clients that write and read while a test does something to the cluster, and what must hold at the end.

Each ``Workload`` is a loop in its own thread; the test waits until it has made progress, so nothing here depends on time. A
writer sends rounds of numbered records; the number determines the partition, so the numbers in each partition ascend.
``check_log`` says what must hold of the log, ``check_group`` of a group.
"""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Callable

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clients import model
from ottla.compat_tests.session import eventually
from ottla.testing.cluster import Cluster

PARTITIONS = 3
ROUND = 2 * PARTITIONS
PATIENCE_SECONDS = 60.0


class Workload:
    """Repeats ``work`` from ``start`` to ``stop``; ``failures`` are the errors that clients reported."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures: list[str] = []
        self._rounds = 0
        self._progress = threading.Condition()
        self._is_over = False
        self._death: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def work(self) -> None:
        """One round. Raises ClientFailure."""
        raise NotImplementedError

    def wait_rounds(self, count: int) -> None:
        """Return when ``count`` more rounds have succeeded."""
        with self._progress:
            target = self._rounds + count
            is_there = self._progress.wait_for(lambda: self._rounds >= target or self._death, PATIENCE_SECONDS)
        assert self._death is None, f"{self.name} died of {self._death!r}"
        assert is_there, f"{self.name} does not get on: {self.failures}"

    def give_up(self) -> None:
        """Stop it, whatever it is doing; no effect if it has stopped."""
        self._is_over = True

    def stop(self) -> None:
        self.give_up()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), f"{self.name} hangs"
        assert self._death is None, f"{self.name} died of {self._death!r}"

    def _run(self) -> None:
        try:
            while not self._is_over:
                try:
                    self.work()
                except model.ClientFailure as failure:
                    if not self._is_over:
                        self.failures.append(repr(failure))
                    continue
                with self._progress:
                    self._rounds += 1
                    self._progress.notify_all()
        except BaseException as death:
            with self._progress:
                self._death = death
                self._progress.notify_all()


class Writer(Workload):
    """Rounds of records to a topic of its own, each a transaction where the producers have a transactional id.

    After a failure the outcome of the round is unknown; the next round uses another producer.
    """

    def __init__(self, topic: str, new_producer: Callable[[], model.Producer], *, is_transactional: bool) -> None:
        super().__init__(f"writer of {topic}")
        self.topic = topic
        self.acknowledged: list[range] = []
        self._new_producer = new_producer
        self._producer: model.Producer | None = None
        self._is_transactional = is_transactional
        self._next = 0

    def work(self) -> None:
        numbers = range(self._next, self._next + ROUND)
        self._next += ROUND
        producer = self._producer or self._new_producer()
        self._producer = None
        if self._is_transactional:
            producer.begin()
        for number in numbers:
            producer.send(self.topic, b"%d" % number, partition=number % PARTITIONS)
        producer.flush()
        if self._is_transactional:
            producer.commit()
        self._producer = producer
        self.acknowledged.append(numbers)


class Reader(Workload):
    """A member of a group, which commits what it has read after each poll. A round is a poll that returned records."""

    def __init__(self, topic: str, consumer: model.Consumer) -> None:
        super().__init__(f"reader of {topic}")
        self.topic = topic
        self.read: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """Offset and number of each record, by partition, in the order in which they were read."""
        self._consumer = consumer
        consumer.subscribe([topic])

    def work(self) -> None:
        ends = {}
        while not ends and not self._is_over:
            # kafka-python 3.0.12 never joins the group when a poll ends at the moment of joining.
            for message in self._consumer.poll(0.5 if self.read else PATIENCE_SECONDS / 2):
                assert message.value is not None
                self.read[message.partition].append((message.offset, int(message.value)))
                ends[self.topic, message.partition] = model.Committed(message.offset + 1)
        if ends:
            eventually(lambda: self._commits(ends), PATIENCE_SECONDS)

    def _commits(self, ends: dict[tuple[str, int], model.Committed]) -> bool:
        """Commit; returns whether it succeeded.

        While the new coordinator loads the group, librdkafka tries three times within half a second (Apache Kafka returns the
        same error), and then leaves further attempts to its user.
        """
        try:
            self._consumer.commit(ends)
        except model.ClientFailure as failure:
            if failure.code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or self._is_over:
                raise
            return False
        return True

    def wait_read(self, written: dict[int, list[int]]) -> None:
        """Return when every record was read."""
        with self._progress:
            is_there = self._progress.wait_for(lambda: self._has_read(written) or self._death, PATIENCE_SECONDS)
        assert is_there, f"{self.name} has not read all: {self.failures}"

    def _has_read(self, written: dict[int, list[int]]) -> bool:
        return all(self.read[number] and self.read[number][-1][1] == values[-1] for number, values in written.items())


def written(cluster: Cluster, writer: Writer) -> dict[int, list[int]]:
    """The numbers in each partition's log, as a read_committed consumer gets them, once there are as many as were acknowledged.

    A commit is responded to when it is decided; consumers see what it has committed when its markers are written.
    """
    found: dict[int, list[int]] = defaultdict(list)
    for record in cluster.records(writer.topic, sum(map(len, writer.acknowledged))):
        assert record.value is not None
        found[record.partition].append(int(record.value))
    return found


def check_log(writer: Writer, logs: dict[int, list[int]], *, may_repeat: bool) -> None:
    """Nothing is lost, reordered or doubled; a transaction is there as a whole or not at all.

    ``may_repeat``: the producer is not idempotent, so a round whose response was lost may be there twice, and of records in
    flight together one may be refused by a leader that does not lead yet, while the next, which comes later, is written.
    """
    together = ROUND if may_repeat else 1
    for partition, numbers in logs.items():
        once = list(dict.fromkeys(numbers)) if may_repeat else numbers
        in_order = sorted(dict.fromkeys(once), key=lambda number: number // together)
        assert once == in_order, f"{writer.topic}-{partition}: {_disorder(once)}"
        assert all(number % PARTITIONS == partition for number in once)
    present = {number for numbers in logs.values() for number in numbers}
    lost = [number for numbers in writer.acknowledged for number in numbers if number not in present]
    assert not lost, f"{writer.topic} has lost {lost}, which were acknowledged"


def check_transactions(writer: Writer, logs: dict[int, list[int]]) -> None:
    """Each transaction is there as a whole, or not at all."""
    present = {number for numbers in logs.values() for number in numbers}
    for first in range(0, max(present, default=0), ROUND):
        there = present.intersection(range(first, first + ROUND))
        assert len(there) in (0, ROUND), f"{writer.topic}: of the transaction from {first} on there is {sorted(there)}"


def check_group(reader: Reader, logs: dict[int, list[int]], *, may_repeat: bool) -> None:
    """The group has read every record, in order. ``may_repeat``: it may have gone back to the last committed offset."""
    for partition, numbers in logs.items():
        read = [number for _, number in reader.read[partition]]
        once = list(dict.fromkeys(read)) if may_repeat else read
        assert once == numbers, f"{reader.topic}-{partition}: {_disorder(once)}, missing {set(numbers) - set(read)}"


def _disorder(numbers: list[int]) -> str:
    pairs = ((one, other) for one, other in itertools.pairwise(numbers) if one >= other)
    return "after each other came " + ", ".join(f"{one}, {other}" for one, other in pairs)
