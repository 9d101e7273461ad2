"""``ottla dev-cluster`` as a process: clients go through a kill that is typed, and a next start has what was written."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from .helpers.command import LIMIT_S, Command

pytestmark = pytest.mark.slow


class Running:
    """A cluster that has said that it is ready."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ottla", "dev-cluster", "--port", "0", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()
        self.bootstrap = self.process.stdout.readline().strip().removeprefix("bootstrap.servers=")

    def say(self, command: str) -> str:
        """Type a command; the line that it answers with."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def stop(self) -> tuple[int, str]:
        """Ctrl-C: the exit status, and what it said on standard error in all its life."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, errors


@contextlib.contextmanager
def running(*options: str) -> Iterator[Running]:
    cluster = Running(*options)
    try:
        yield cluster
    finally:
        cluster.process.kill()
        cluster.process.communicate()


def send(bootstrap: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(LIMIT_S) == 0


def read(bootstrap: str, count: int) -> list[bytes]:
    """As a group does, so that its coordinator's topic is there too."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    try:
        return [message.value() for message in consumer.consume(count, timeout=LIMIT_S)]
    finally:
        consumer.close()


def leader(bootstrap: str) -> tuple[int, list[int]]:
    """The leader of the topic's only partition, and its replicas."""
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics("orders", timeout=LIMIT_S)
    partition = metadata.topics["orders"].partitions[0]
    return partition.leader, sorted(partition.replicas)


def test_a_leader_is_killed_and_started_again() -> None:
    with running() as cluster:
        assert re.match(r"Ottla \S+: 3 brokers are ready, data in /", cluster.ready)
        assert len(cluster.bootstrap.split(",")) == 3
        send(cluster.bootstrap, "before")
        killed, replicas = leader(cluster.bootstrap)
        assert replicas == [1, 2, 3]
        assert read(cluster.bootstrap, 1) == [
            b"before"
        ]  # with this the group's topic, for which it takes three brokers
        assert cluster.say(f"kill {killed}") == f"broker {killed} is down"
        send(cluster.bootstrap, "after")
        assert leader(cluster.bootstrap)[0] != killed
        assert read(cluster.bootstrap, 1) == [b"after"]
        assert cluster.say(f"start {killed}") == f"broker {killed} runs"
        other = killed % 3 + 1
        assert cluster.say(f"stop {other}") == f"broker {other} is down"
        send(cluster.bootstrap, "at the end")
        status, errors = cluster.stop()
        assert status == 0 and "Traceback" not in errors, errors


def test_what_was_written_is_there_at_the_next_start(tmp_path: Path) -> None:
    options = ("--brokers", "2", "--data-dir", str(tmp_path / "kept"), "--override", "num.partitions=1")
    with running(*options) as cluster:
        assert cluster.ready.strip().endswith(f"data in {tmp_path / 'kept'}")
        send(cluster.bootstrap, "one", "two")
        status, errors = cluster.stop()
        assert status == 0 and "Traceback" not in errors, errors
    with running(*options) as cluster:
        send(cluster.bootstrap, "three")
        assert leader(cluster.bootstrap)[1] == [1, 2]
        assert read(cluster.bootstrap, 3) == [b"one", b"two", b"three"]


def test_a_command_that_is_none_is_explained() -> None:
    with running("--brokers", "1") as cluster:
        assert cluster.say("explode 1\n\nkill 2\nkill 1") == "broker 1 is down"
        assert cluster.say("kill 1") == "broker 1 is down"
        status, errors = cluster.stop()
        assert status == 0
        line = "ottla: kill N, stop N and start N act on broker N here; the brokers are 1\n"
        assert errors == line * 2


def test_it_runs_where_nothing_can_be_typed(command: Command) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "ottla", "dev-cluster", "--port", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.stdout.readline().startswith("bootstrap.servers=")
        process.terminate()
        assert process.wait(LIMIT_S) == 0


def test_what_it_refuses(command: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = command.refused("dev-cluster", "--port", str(port), code=2)
        assert refused == f"cannot listen on 127.0.0.1:{port}: the port is in use; choose others with --port"
    assert command.refused("dev-cluster", "--port", "65534", code=2).startswith("there are no 3 ports from 65534 on")
    assert "no such property" in command.refused("dev-cluster", "--override", "no.such=1", code=2)
    with running("--brokers", "1", "--data-dir", str(tmp_path)):
        refused = command.refused("dev-cluster", "--port", "0", "--data-dir", str(tmp_path), code=2)
        assert refused == f"{tmp_path} belongs to a cluster that is running"
    refused = command.refused("dev-cluster", "--override", "zookeeper.session.timeout.ms=1000", code=2)
    assert "broker.session.timeout.ms" in refused


def test_the_data_of_an_earlier_version_is_left_alone(command: Command, tmp_path: Path) -> None:
    state = tmp_path / "cluster-state"
    state.mkdir()
    (state / "journal").write_bytes(b"kept")
    refused = command.refused("dev-cluster", "--port", "0", "--data-dir", str(tmp_path), code=2)
    assert refused.startswith(f"{tmp_path} has the cluster of an earlier version") and "cluster-state" in refused
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "cluster-state"}
    assert (state / "journal").read_bytes() == b"kept"


def test_a_cluster_that_was_killed_goes_on(tmp_path: Path) -> None:
    """All of it, at once: brokers are back when the sessions that they left have ended."""
    options = ("--data-dir", str(tmp_path), "--override", "num.partitions=1")
    with running(*options) as cluster:
        send(cluster.bootstrap, "one")
    with running(*options) as cluster:
        send(cluster.bootstrap, "two")
        assert read(cluster.bootstrap, 2) == [b"one", b"two"]
        status, errors = cluster.stop()
        assert status == 0 and "Traceback" not in errors, errors
