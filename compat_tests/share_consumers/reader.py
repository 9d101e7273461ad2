"""A share consumer in a process of its own, which does one thing at a time: Java's KafkaShareConsumer, or one of franz-go or
confluent-kafka.

The programs have the same commands, see ``ShareReader.java``; the others are ``clients/go/share_reader.go`` and
``confluent_reader.py``.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import SHORT_LIVED
from ottla.compat_tests.session import eventually

JARS = "kafka-clients-4.4.0"
POLL_MS = 500


class Delivered(NamedTuple):
    """A record that a poll gave."""

    topic: str
    partition: int
    offset: int
    delivery_count: int
    value: str


class ShareReaderFailed(Exception):
    """The class and the message of what the consumer has thrown."""


@functools.cache
def classes() -> Path:
    """The folder with the compiled program, for the length of the run."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-compat-share-"))
    toolchains.compile_java([Path(__file__).with_name("ShareReader.java")], toolchains.jars(JARS), folder)
    return folder


def java_command() -> list[str]:
    """The program of kafka-clients, without its arguments."""
    path = os.pathsep.join([str(classes()), f"{toolchains.jars(JARS)}/*"])
    return [str(toolchains.java()), *SHORT_LIVED, "-cp", path, "ShareReader"]


def franz_command() -> list[str]:
    """The program of franz-go, without its arguments."""
    return [str(toolchains.built_clients("go") / "driver"), "share-reader"]


def confluent_command() -> list[str]:
    """The program of confluent-kafka, without its arguments."""
    return [sys.executable, "-m", "ottla.compat_tests.share_consumers.confluent_reader"]


COMMANDS = {"java": java_command, "franz-go": franz_command, "confluent-kafka": confluent_command}
"""By the names that the clients have in the table."""
NO_SHARE_CONSUMER = {
    **dict.fromkeys(
        ("kafka-python", "kafka-python-2", "aiokafka", "kafkajs", "platformatic", "sarama", "kafka-go"),
        "no share consumer",
    ),
    "java-3.9": "its share consumer is of the early access, whose versions no broker since Kafka 4.1 serves",
    "rdkafka": "the crate 0.39 is built on librdkafka 2.12, which has no share consumer",
    "rskafka": "it has no groups",
}
"""Why the other clients are not in these tests."""


class ShareReader:
    """One consumer, by the name of its client, with ``settings`` beside those it needs."""

    def __init__(self, client: str, bootstrap: str, group_id: str, log: Path, **settings: object) -> None:
        given = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*COMMANDS[client](), bootstrap, group_id, *given],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def _run(self, *words: object) -> list[list[str]]:
        """One command: the words of each line that it has printed. Raises ShareReaderFailed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        lines: list[list[str]] = []
        while (line := self._process.stdout.readline().rstrip("\n")) != "done":
            assert line, f"the consumer has ended: {self._process.poll()}"
            if line.startswith("failed "):
                raise ShareReaderFailed(line.removeprefix("failed "))
            lines.append(line.split(" "))
        return lines

    def subscribe(self, topic: str) -> None:
        """To one topic."""
        self._run("subscribe", topic)

    def poll(self, wait_ms: int = POLL_MS) -> list[Delivered]:
        """What is there."""
        return [
            Delivered(topic, int(partition), int(offset), int(count), value)
            for topic, partition, offset, count, value in self._run("poll", wait_ms)
        ]

    def take(self, count: int) -> list[Delivered]:
        """The records of one poll after another, until there are so many; the consumer accepts those of the polls before."""
        found: list[Delivered] = []

        def is_enough() -> bool:
            found.extend(self.poll())
            return len(found) >= count

        eventually(is_enough)
        return found

    def first(self) -> list[Delivered]:
        """The records of the first poll that has some."""
        return eventually(self.poll)

    def acknowledge(self, record: Delivered, kind: str) -> None:
        """``accept``, ``release``, ``reject`` or ``renew`` a record."""
        self._run("acknowledge", record.topic, record.partition, record.offset, kind)

    def commit(self) -> dict[tuple[str, int], str]:
        """Send acknowledgements; the class of the error of each partition, or ``-``."""
        return {(topic, int(partition)): error for topic, partition, error in self._run("commit")}

    def lock_ms(self) -> int:
        """How long records are its own, as the broker has said."""
        ((milliseconds,),) = self._run("lock")
        return int(milliseconds)

    def close(self) -> None:
        """Leave the group, and end."""
        if self._process.poll() is None:
            self._run("close")
            self._process.wait(timeout=30)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()
