"""``ottla serve --brokers N``: several brokers under one supervisor, which are killed, restarted and stopped."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from ottla.cli.many_brokers import how_many, plan_machine, run
from ottla.compat_tests.server_process import ServerProcess
from ottla.compat_tests.session import eventually
from ottla.testing.held_port import HeldPort

PATIENCE_S = 60.0
LEADERS = "kafka_server_replicamanager_leadercount"


class Machine(ServerProcess):
    """The supervisor of ``count`` brokers. The ports behind its own are theirs."""

    def __init__(self, folder: Path, count: int) -> None:
        while True:
            super().__init__(folder, "machine.log")
            self._ports = contextlib.ExitStack()
            try:
                for number in range(self.port + 1, self.port + count + 2):
                    self._ports.callback(HeldPort(number).close)
                break
            except OSError:
                self._ports.close()
                super().close()
        self.count = count
        self.arguments: list[str] = []

    def command(self) -> list[str]:
        own = ["--brokers", str(self.count), "--listen", self.address, "--data-dir", str(self.folder / "data")]
        return [sys.executable, "-m", "ottla", "serve", *own, *self.arguments]

    def is_ready(self) -> bool:
        return self.log().count("is ready on") >= 1

    def brokers(self) -> dict[int, int]:
        """The process ids of the brokers that run, by broker id."""
        found = {}
        for line in subprocess.run(
            ["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True
        ).stdout.splitlines():
            if str(self.folder / "data") in line and (node := re.search(r"--node (\d+) ", line)):
                found[int(node[1])] = int(line.split()[0])
        return found

    def check_stopped_cleanly(self) -> None:
        """No broker has failed, and each has left its mark."""
        assert not re.search(r" ERROR |Traceback", self.log()), self.log()[-3000:]
        for folder in self.folder.glob("data*"):
            assert (folder / ".kafka_cleanshutdown").exists(), folder

    def close(self) -> None:
        running = self.brokers()
        super().close()
        for pid in {*running.values(), *self.brokers().values()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._ports.close()

    def leaders(self, topic: str) -> Counter[int]:
        """How many partitions each broker leads."""
        found = re.findall(r"Leader: (\d+)", self.told("topics", "describe", topic))
        return Counter(map(int, found))

    def told(self, *arguments: str, given: str = "") -> str:
        """What a command of ``ottla`` prints, which is to succeed."""
        command = [sys.executable, "-m", "ottla", *arguments, "-b", self.address]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Of two brokers, or as many as the parameter says."""
    with contextlib.closing(Machine(tmp_path, getattr(request, "param", 2))) as machine:
        yield machine


class Load:
    """Records of one topic with a replica on each broker; every one that was acknowledged is to be there."""

    def __init__(self, machine: Machine) -> None:
        machine.told("topics", "create", "orders", "-p", "8", "-r", "2", "--config", "min.insync.replicas=1")
        self._settings = {"bootstrap.servers": machine.address, "log_level": 0}
        self._producer = Producer({**self._settings, "acks": "all", "enable.idempotence": True, "linger.ms": 0})
        self._numbers = itertools.count()
        self.acknowledged: set[bytes] = set()

    def send(self, count: int) -> None:
        """All of them are acknowledged, sooner or later."""
        before = len(self.acknowledged)
        for number in itertools.islice(self._numbers, count):
            value = b"%d" % number
            self._producer.produce("orders", value, partition=number % 8, on_delivery=self._note)
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE_S) == 0
        assert len(self.acknowledged) == before + count

    def _note(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.acknowledged.add(message.value())

    def read(self) -> list[bytes]:
        consumer = Consumer({**self._settings, "group.id": "audit", "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition("orders", number, 0) for number in range(8)])
        found: list[bytes] = []
        with contextlib.closing(consumer):
            while len(found) < len(self.acknowledged):
                message = consumer.poll(PATIENCE_S)
                assert message is not None and message.error() is None
                found.append(message.value())
        return found


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "which"), [(2, 1), (2, 101), (4, 201)], indirect=["machine"])
def test_a_broker_that_is_killed_under_load_is_started_again(machine: Machine, which: int) -> None:
    machine.start()
    load = Load(machine)
    load.send(500)
    before = machine.brokers()
    assert len(before) == machine.count
    os.kill(before[which], signal.SIGKILL)
    load.send(500)
    eventually(
        lambda: machine.brokers().keys() == before.keys() and machine.brokers()[which] != before[which], PATIENCE_S
    )
    machine.told("cluster", "wait")
    assert f"broker {which} has ended (SIGKILL), and is started again" in machine.log()
    assert sorted(load.read()) == sorted(load.acknowledged)
    machine.stop()
    assert machine.brokers() == {}
    machine.check_stopped_cleanly()


@pytest.mark.slow
def test_brokers_stop_when_their_supervisor_is_killed(machine: Machine) -> None:
    machine.start()
    load = Load(machine)
    load.send(500)
    machine.kill()
    eventually(lambda: machine.brokers() == {}, PATIENCE_S)
    assert all((machine.folder / name / ".kafka_cleanshutdown").exists() for name in ("data", "data-101"))
    machine.log_file.unlink()
    machine.start()
    load.send(100)
    assert sorted(load.read()) == sorted(load.acknowledged)


def steps_of(machine: Machine) -> list[str]:
    """What a restart of all has come to, in order."""
    _, _, log = machine.log().partition("restarting the brokers")
    found = re.findall(
        r"broker-(\d+) INFO .*has unfenced this broker|(Every partition has all its replicas in sync)", log
    )
    return ["in sync" if is_in_sync else f"{broker} is back" for broker, is_in_sync in found]


IN_TURN = ["1 is back", "in sync", "101 is back", "in sync"]


@pytest.mark.slow
def test_a_restart_of_all_waits_for_each_where_no_replica_tells(machine: Machine) -> None:
    """Without topics everything is in sync at any time."""
    machine.start()
    os.kill(machine.pid, signal.SIGHUP)
    eventually(lambda: len(steps_of(machine)) == len(IN_TURN), PATIENCE_S)
    assert steps_of(machine) == IN_TURN
    machine.stop()
    machine.check_stopped_cleanly()


@pytest.mark.slow
def test_a_signal_restarts_one_after_the_other(machine: Machine) -> None:
    machine.start()
    load = Load(machine)
    before = machine.brokers()
    os.kill(machine.pid, signal.SIGHUP)

    def are_others() -> bool:
        load.send(20)
        now = machine.brokers()
        return now.keys() == before.keys() and not {*now.values()} & {*before.values()}

    eventually(are_others, PATIENCE_S)
    eventually(lambda: steps_of(machine) == IN_TURN, PATIENCE_S)
    assert sorted(load.read()) == sorted(load.acknowledged)
    os.kill(machine.pid, signal.SIGINT)
    machine.wait_stopped()
    machine.check_stopped_cleanly()


@pytest.mark.slow
def test_a_restart_that_does_not_succeed_ends(machine: Machine) -> None:
    """A file of properties became wrong meanwhile."""
    file = machine.folder / "all.properties"
    file.write_text("num.partitions=3\n")
    machine.arguments = ["--config", str(file)]
    machine.start()
    file.write_text("num.partitions=none\n")
    os.kill(machine.pid, signal.SIGHUP)
    eventually(lambda: not machine.is_running, PATIENCE_S)
    assert machine.exit_status == 1
    assert "broker 1 has ended 5 times" in machine.log()
    assert machine.brokers() == {}


@contextlib.contextmanager
def held_pair() -> Iterator[int]:
    """The first of two ports in a row, held; another client may have the port beside a free one."""
    with contextlib.ExitStack() as tried:
        while True:
            first = tried.enter_context(contextlib.closing(HeldPort())).number
            with contextlib.suppress(OSError):
                tried.enter_context(contextlib.closing(HeldPort(first + 1)))
                break
        yield first


@pytest.mark.slow
def test_one_address_has_the_metrics_of_all(machine: Machine) -> None:
    with held_pair() as first:
        machine.arguments = ["--metrics", f"127.0.0.1:{first}"]
        machine.start()
        load = Load(machine)
        load.send(100)
        with urllib.request.urlopen(f"http://127.0.0.1:{first}/metrics", timeout=PATIENCE_S) as response:
            families = {each.name: each for each in text_string_to_metric_families(response.read().decode())}
        up = {each.labels["broker"]: each.value for each in families["ottla_machine_broker_up"].samples}
        assert up == {"1": 1.0, "101": 1.0}
        led = {each.labels["broker"]: each.value for each in families[LEADERS].samples}
        assert led["1"] >= 4 and led["101"] >= 4
        assert {each.labels["broker"] for each in families["process_resident_memory_bytes"].samples} == {"1", "101"}


@pytest.mark.slow
def test_another_number_later(tmp_path: Path) -> None:
    """More brokers get their share by balancing, and the last one is drained before it goes."""
    with contextlib.closing(Machine(tmp_path, 3)) as machine:
        machine.count = 1
        machine.start()
        machine.told("topics", "create", "orders", "-p", "12", "-r", "1")
        machine.told("produce", "orders", given="one\ntwo\nthree\n")
        for count, change, led in (
            (3, ["balance"], [4, 4, 4]),
            (3, ["drain", "201", "--replicas"], [6, 6]),
            (2, ["unregister", "201"], [6, 6]),
        ):
            machine.stop()
            machine.count = count
            machine.log_file.unlink()
            machine.start()
            machine.told("cluster", *change)
            machine.told("cluster", "wait")
            assert sorted(machine.leaders("orders").values()) == led
            assert sorted(machine.told("consume", "orders", "-e").split()) == ["one", "three", "two"]
        assert "201" not in machine.told("cluster", "describe")


@pytest.mark.slow
def test_one_that_cannot_start_ends_all(machine: Machine) -> None:
    machine.arguments = ["--override", "num.partitions=none"]
    machine.launch()
    eventually(lambda: not machine.is_running, PATIENCE_S)
    assert machine.exit_status == 2 and "num.partitions" in machine.log()
    assert machine.brokers() == {}


@pytest.mark.slow
def test_one_that_ends_too_often_ends_all(machine: Machine) -> None:
    machine.arguments = ["--log-format", "json"]
    machine.start()
    killed: set[int] = set()
    while machine.is_running:
        pid = machine.brokers().get(101)
        if pid is not None and pid not in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            killed.add(pid)
    assert machine.exit_status == 1 and len(killed) == 5
    assert "broker 101 has ended 5 times" in machine.log()
    assert machine.brokers() == {}
    events = [json.loads(line) for line in machine.log().splitlines() if line.startswith("{")]
    assert {event["broker"] for event in events} == {"broker-1", "broker-101"}


def test_each_broker_has_its_own(tmp_path: Path) -> None:
    plan = plan_machine(3, listen="0.0.0.0:9092", advertise="k.example.org", data_dir=tmp_path / "d", metrics=":9464")
    assert plan.address == "k.example.org:9092"
    assert [each.broker_id for each in plan.brokers] == [1, 101, 201]
    first, _, third = (" ".join(each.arguments) for each in plan.brokers)
    assert "--cluster localhost:9093 --listen 0.0.0.0:9093 --advertise k.example.org:9093" in first
    assert f"--data-dir {tmp_path}/d --metrics :9464" in first
    assert "--override machine.metrics=101@localhost:9465,201@localhost:9466" in first
    assert "--override machine.listener=0.0.0.0:9092" in first
    assert "--node 201 --cluster localhost:9093 --listen 0.0.0.0:9096 --advertise k.example.org:9096" in third
    assert f"--data-dir {tmp_path}/d-201 --metrics localhost:9466" in third


def test_machines_of_one_cluster() -> None:
    """The first broker of each is the node of the list."""
    second = plan_machine(2, listen="0.0.0.0:9092", node=2, cluster="a:9193,b:9193,c:9193")
    assert [each.broker_id for each in second.brokers] == [2, 102]
    assert "--listen 0.0.0.0:9193" in " ".join(second.brokers[0].arguments)
    assert "--listen 0.0.0.0:9195" in " ".join(second.brokers[1].arguments)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"zookeeper": "zk:2181"}, "--brokers cannot be given with --zookeeper"),
        ({"override": ["log.dirs=/x", "num.partitions=2"]}, "each broker has its own log.dirs: leave that"),
        ({"config": Path("server.properties")}, "each broker has its own listeners, node.id: leave that"),
        ({"config": Path("missing")}, "cannot read missing: No such file"),
        ({"listen": "host:port"}, "'host:port'"),
    ],
)
def test_what_one_broker_is_told_cannot_be_told_all(
    options: dict[str, Any],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("server.properties").write_text("node.id=7\nlisteners=PLAINTEXT://:9092\nnum.partitions=3\n")
    assert run("2", **options) == 2
    assert why in capsys.readouterr().err


def test_how_many() -> None:
    assert how_many("3") == 3
    assert how_many("auto") == len(os.sched_getaffinity(0))
    for wrong in ("0", "-1", "many", "101"):
        with pytest.raises(ValueError, match="--brokers takes a number"):
            how_many(wrong)
