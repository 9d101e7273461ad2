"""Kafka Connect: a worker copies the lines of a file into a topic, and the topic into another file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ottla.compat_tests.java.connect import TIMEOUT_S, Worker, sink, source
from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.wire_client import Operator

pytestmark = pytest.mark.client("connect")
READ_BY = "kafka-python"
# The source counts its place in characters and goes there in bytes, so these have to be the same. It takes at most 2,000 lines at
# once (batch.size), and of those that it has read by then it hands on no more until the file grows: these have to be fewer.
LINES = [f"line {number}" for number in range(1_900)]
Start = Callable[..., Worker]


@pytest.fixture
def new_worker(bootstrap: str, tmp_path: Path) -> Iterator[Start]:
    """Makes a worker with these settings; it is ended with the test."""
    made: list[Worker] = []

    def make(settings: dict[str, str]) -> Worker:
        made.append(Worker(tmp_path, bootstrap, settings))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


class Copy:
    """The two files, and what is between them. The source reads to the last newline, so it is given whole lines."""

    def __init__(self, folder: Path, topic: str) -> None:
        self._source = folder / "source.txt"
        self._target = folder / "target.txt"
        self._target.touch()
        self.connectors = {
            f"{topic}-source": source(self._source, topic),
            f"{topic}-sink": sink(self._target, topic),
        }

    def write(self, lines: Sequence[str]) -> None:
        with self._source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def copied(self) -> list[str]:
        return self._target.read_text().splitlines()

    def wait(self, worker: Worker, lines: Sequence[str]) -> None:
        """Until the last of these has arrived."""

        def has_arrived() -> bool:
            worker.check()
            return lines[-1] in self.copied()[-1:]

        eventually(has_arrived, TIMEOUT_S)


@pytest.mark.capability("file source and sink")
def test_standalone(new_worker: Start, topic: str, tmp_path: Path, sessions: Callable[[str], ClientSession]) -> None:
    places = tmp_path / "places.offsets"
    worker = new_worker({"offset.storage.file.filename": str(places)})
    copy = Copy(tmp_path, topic)
    copy.write(LINES[:1000])
    worker.start_standalone(copy.connectors)
    copy.wait(worker, LINES[:1000])
    copy.write(LINES[1000:1500])
    copy.wait(worker, LINES[:1500])
    worker.stop()
    assert b'"position"' in places.read_bytes()
    copy.write(LINES[1500:])
    worker.start_standalone(copy.connectors)
    copy.wait(worker, LINES)
    worker.stop()
    assert copy.copied() == LINES
    messages = sessions(READ_BY).read(topic, len(LINES))
    assert [(message.value or b"").decode() for message in messages] == LINES


@pytest.mark.capability("file source and sink: kill -9 of the worker")
def test_standalone_worker_is_killed(new_worker: Start, topic: str, tmp_path: Path) -> None:
    worker = new_worker({"offset.storage.file.filename": str(tmp_path / "places.offsets")})
    copy = Copy(tmp_path, topic)
    copy.write(LINES[:1000])
    worker.start_standalone(copy.connectors)
    copy.wait(worker, LINES[:1000])
    worker.kill()
    copy.write(LINES[1000:])
    worker.start_standalone(copy.connectors)
    copy.wait(worker, LINES)
    # Once at least: what was copied after the last commit comes again.
    assert list(dict.fromkeys(copy.copied())) == LINES


@pytest.fixture
def cluster(fresh_name: Callable[[str], str], operator: Operator) -> Iterator[dict[str, str]]:
    """The settings of a distributed worker whose source writes in transactions; its topics are deleted again."""
    name = fresh_name("connect")
    topics = {f"{kind}.storage.topic": f"{name}-{kind}" for kind in ("config", "offset", "status")}
    yield {
        "group.id": name,
        **topics,
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "5",
        "exactly.once.source.support": "enabled",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "0",
    }
    for topic in set(topics.values()) & set(operator.topics()):
        operator.delete_topic(topic)


@pytest.mark.capability("file source and sink, distributed")
def test_distributed(
    new_worker: Start,
    cluster: dict[str, str],
    topic: str,
    tmp_path: Path,
    sessions: Callable[[str], ClientSession],
) -> None:
    worker = new_worker(cluster)
    worker.start_distributed()
    copy = Copy(tmp_path, topic)
    copy.write(LINES[:1000])
    for name, config in copy.connectors.items():
        worker.put(name, config)
    copy.wait(worker, LINES[:1000])
    worker.kill()
    copy.write(LINES[1000:])
    worker.start_distributed()
    copy.wait(worker, LINES)
    # They tell of their state by way of a topic, perhaps after they have begun.
    eventually(lambda: all(worker.is_running(name) for name in copy.connectors), TIMEOUT_S)
    worker.stop()
    client = sessions(READ_BY)
    messages = client.read(topic, len(LINES), read_committed=True)
    assert [(message.value or b"").decode() for message in messages] == LINES, "once, whatever was killed"
    for kind in ("config", "offset", "status"):
        configs = client.admin.describe_configs("topic", cluster[f"{kind}.storage.topic"])
        assert configs["cleanup.policy"].value == "compact"
