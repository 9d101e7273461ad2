"""Kafka Streams' word count in its own process, with a producer of its input and a reader of its counts."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from ottla.compat_tests import toolchains
from ottla.compat_tests.java.program import Program
from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.wire_client import Operator

JARS = "kafka-streams-4.3.1"
PARTITIONS = 2
LINES_AT_ONCE = 20
TIMEOUT_S = 120.0


def compile_word_count(folder: Path) -> None:
    """Put the class files of WordCount into ``folder``."""
    toolchains.compile_java([Path(__file__).with_name("WordCount.java")], toolchains.jars(JARS), folder)


class WordCount(Program):
    """The process. ``state`` is the folder of its store; what it says goes to a file in ``folder``."""

    def __init__(self, classes: Path, folder: Path, bootstrap: str, application_id: str) -> None:
        super().__init__(os.pathsep.join([str(classes), f"{toolchains.jars(JARS)}/*"]), folder / "word-count.log")
        self.bootstrap = bootstrap
        self._application_id = application_id

    def start(self, state: Path, source: str, target: str) -> None:
        """Count the words of ``source`` into ``target``."""
        self.launch("WordCount", self.bootstrap, self._application_id, str(state), source, target)


class Feed:
    """Writes lines into the source and reads the committed counts, in turns, from one thread."""

    def __init__(self, client: ClientSession, words: WordCount, source: str, target: str) -> None:
        self._client = client
        self._words = words
        self._source = source
        self._target = target
        self._producer = client.producer(idempotent=True, delivery_timeout_ms=120_000)
        self._reader = client.consumer(read_committed=True)
        self._reader.assign({(target, partition): "beginning" for partition in range(PARTITIONS)})
        self._lines = 0
        self.written: Counter[str] = Counter()
        self.counts: dict[str, list[int]] = {}
        self._ends: set[int] = set()

    def seen(self) -> int:
        """How many counts have been read."""
        return sum(map(len, self.counts.values()))

    def write(self) -> None:
        """Some more lines, acknowledged."""
        for _ in range(LINES_AT_ONCE):
            number = self._lines = self._lines + 1
            words = ["every", f"word-{number % 10}", f"word-{number % 7}", f"rare-{number % 100}"]
            self.written.update(words)
            self._producer.send(self._source, " ".join(words).encode(), partition=number % PARTITIONS)
        self._producer.flush()

    def read(self) -> None:
        """What has arrived by now."""
        for message in self._reader.poll(0.1):
            assert message.value is not None
            if message.key is None:
                self._ends.add(message.partition)
            else:
                self.counts.setdefault(message.key.decode(), []).append(int(message.value))

    def write_until_seen(self, total: int) -> None:
        """Keep the process busy until ``total`` counts have been read."""

        def is_seen() -> bool:
            self._words.check()
            self.write()
            self.read()
            return self.seen() >= total

        eventually(is_seen, TIMEOUT_S)

    def is_open(self) -> bool:
        """Whether counts have been put out in a transaction that has no end yet."""
        return Operator(self._words.bootstrap).has_open_transaction(self._target, PARTITIONS)

    def write_until_open(self) -> None:
        """Keep the process busy until it is in the middle of a transaction."""

        def is_busy() -> bool:
            self._words.check()
            self.write()
            return self.is_open()

        eventually(is_busy, TIMEOUT_S)

    def read_all(self) -> None:
        """Read the counts of everything written; then end the process, and read what else there is."""

        def is_counted() -> bool:
            self._words.check()
            self.read()
            return self.seen() >= self.written.total()

        def is_at_the_end() -> bool:
            self.read()
            return len(self._ends) == PARTITIONS

        eventually(is_counted, TIMEOUT_S)
        self._words.stop()
        for partition in range(PARTITIONS):
            self._client.produce(self._target, [b"end"], partition=partition)
        eventually(is_at_the_end, TIMEOUT_S)
