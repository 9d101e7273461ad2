"""``ottla serve`` as a person starts it: the ready line, the exit codes, the one clear line when it cannot start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from ottla.testing.held_port import HeldPort

from ..helpers.served import LIMIT_S, READY, Served, refused

MAY_PASS = 1
"""The exit code after which a supervisor tries again: the units in docs/ have RestartPreventExitStatus=2."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(served: Served, number: int, tmp_path: Path) -> None:
    code, log = served.stop(number)
    assert code == 0, log
    assert "Traceback" not in log
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_what_was_written_is_there_after_a_restart(
    served: Served, serve: Callable[..., Served], tmp_path: Path
) -> None:
    producer = KafkaProducer(bootstrap_servers=served.address)
    for number in range(100):
        producer.send("kept", str(number).encode())
    producer.close()
    assert served.stop()[0] == 0
    again = serve("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"))
    assert again.cluster_id == served.cluster_id
    consumer = KafkaConsumer(
        "kept", bootstrap_servers=again.address, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    )
    values = [next(consumer).value for _ in range(100)]
    consumer.close()
    assert values == [str(number).encode() for number in range(100)]
    assert again.stop()[0] == 0


def test_the_ready_line_names_every_listener(serve: Callable[..., Served], tmp_path: Path) -> None:
    listeners = "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0"
    properties = f"listeners={listeners}", "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT"
    overrides = [word for each in properties for word in ("--override", each)]
    served = serve(*overrides, "--data-dir", str(tmp_path))
    name, _, outside = served.second.partition("://")
    assert (name, served.address == outside) == ("OUTSIDE", False)
    for address in (served.address, outside):
        with KafkaAdminClient(bootstrap_servers=address) as admin:
            assert admin.list_topics() == []


def test_a_stop_does_not_wait_for_long_polls(served: Served) -> None:
    consumer = KafkaConsumer("quiet", bootstrap_servers=served.address, fetch_max_wait_ms=25_000)
    consumer.poll(timeout_ms=2000)
    code, log = served.stop()
    assert code == 0, log
    consumer.close()


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("--listen", f"127.0.0.1:{port}", "--data-dir", str(tmp_path), code=MAY_PASS)
    assert (
        line
        == f"ottla: cannot listen on 127.0.0.1:{port}: the port is in use; choose another with --listen or listeners"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_data_folder_in_use_is_one_line(served: Served) -> None:
    line = refused("--listen", "127.0.0.1:0", "--data-dir", served.data_dir, code=MAY_PASS)
    assert served.data_dir in line


def test_a_data_folder_that_cannot_be_made_yet_is_one_line(tmp_path: Path) -> None:
    """Its disk is not mounted, say."""
    (tmp_path / "disk").touch()
    folder = str(tmp_path / "disk" / "data")
    assert folder in refused("--listen", "127.0.0.1:0", "--data-dir", folder, code=MAY_PASS)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("no.such.property=1", "no such property"),
        ("num.partitions=many", "Invalid value many for configuration num.partitions: Not a number of type INT"),
        ("num.partitions=0", "Value must be at least 1"),
        ("num.partitions", "an override is name=value"),
        ("log.cleanup.policy=shred", "must be one of: compact, delete"),
    ],
)
def test_a_bad_override_is_one_line(override: str, words: str) -> None:
    assert words in refused("--override", override)


def test_a_malformed_value_in_a_file_is_one_line(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("log.segment.bytes=big\n")
    assert "log.segment.bytes" in refused("--config", str(properties))
    assert "cannot read" in refused("--config", str(tmp_path / "missing"))


def test_names_of_no_use_give_one_warning_each(serve: Callable[..., Served], tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("num.network.threads=3\nnum.partitons=5\nnum.partitions=5\n")
    override = ("--override", "sasl.kerberos.min.time.before.relogin=1000")
    data_dir = str(tmp_path / "data")
    broker = serve("--config", str(properties), "--listen", "127.0.0.1:0", "--data-dir", data_dir, *override)
    code, log = broker.stop()
    assert code == 0
    warnings = [line for line in log.splitlines() if "WARNING" in line]
    assert len(warnings) == 3, log
    assert "num.network.threads is a property of Kafka that Ottla does not use" in log
    assert "sasl.kerberos.min.time.before.relogin is a property of Kafka that Ottla does not use" in log
    assert "num.partitons is not a property that Kafka or Ottla knows" in log


KRAFT_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
"""What ``config/server.properties`` of Kafka 4.3 sets, without its protocol map."""

PROTOCOL_MAP = (
    "listener.security.protocol.map="
    "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL\n"
)


@pytest.mark.parametrize("protocol_map", [PROTOCOL_MAP, ""], ids=["with its map", "without a map"])
def test_the_file_that_kafka_is_shipped_with_starts(
    serve: Callable[..., Served], tmp_path: Path, protocol_map: str
) -> None:
    properties = tmp_path / "server.properties"
    held = [HeldPort(), HeldPort()]
    text = KRAFT_PROPERTIES + protocol_map
    for port, each in zip(("9092", "9093"), held, strict=True):
        text = text.replace(port, str(each.number))
    properties.write_text(text)
    broker = serve("--config", str(properties), "--data-dir", str(tmp_path / "data"))
    admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{held[0].number}")
    (found,) = admin.describe_cluster()["brokers"]
    admin.close()
    assert (found["host"], found["port"]) == ("localhost", held[0].number)
    assert broker.stop()[0] == 0
    for each in held:
        each.close()


def test_a_controller_is_served_once_it_is_formatted(serve: Callable[..., Served], tmp_path: Path) -> None:
    properties, held = tmp_path / "server.properties", HeldPort()
    properties.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CONTROLLER://127.0.0.1:{held.number}\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{held.number}\nlog.dirs={tmp_path / 'data'}\n"
    )
    assert "have you run `ottla format`" in refused("--config", str(properties))
    command = [sys.executable, "-m", "ottla", "format", "--config", str(properties), "--standalone"]
    subprocess.run(command, check=True, capture_output=True)
    controller = serve("--config", str(properties))
    assert controller.address == f"127.0.0.1:{held.number}"
    assert controller.stop()[0] == 0
    held.close()


def test_each_listener_names_its_own_address(serve: Callable[..., Served], tmp_path: Path) -> None:
    held = [HeldPort(), HeldPort()]
    inside, outside = (port.number for port in held)
    broker = serve(
        "--data-dir",
        str(tmp_path / "data"),
        "--override",
        f"listeners=INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside}",
        "--override",
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "--override",
        f"advertised.listeners=INSIDE://127.0.0.1:{inside},OUTSIDE://localhost:{outside}",
    )
    for port, host in ((inside, "127.0.0.1"), (outside, "localhost")):
        admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")
        (found,) = admin.describe_cluster()["brokers"]
        admin.close()
        assert (found["host"], found["port"]) == (host, port)
    assert broker.stop()[0] == 0
    for each in held:
        each.close()


def test_running_out_of_descriptors_pauses_accepting(tmp_path: Path) -> None:
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64));"
        "sys.argv = ['ottla', 'serve', *sys.argv[1:]];"
        "from ottla.cli import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    match = READY.search(process.stdout.readline())
    assert match
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "only 64 files can be open at a time" in line
    assert "raise ulimit -n" in line
    host, port = match.group(1).rsplit(":", 1)
    clients = [socket.create_connection((host, int(port))) for _ in range(100)]
    line = process.stderr.readline()
    while "accepting connections is paused" not in line:
        line = process.stderr.readline()
        assert line
    assert line.rstrip().endswith("Too many open files: this process may have 64 open; raise its limit (ulimit -n)")
    # For the broker they close all at once: with only some descriptors free it would be out of them a second time.
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    for client in clients:
        client.close()
    process.send_signal(signal.SIGCONT)
    producer = KafkaProducer(bootstrap_servers=f"{host}:{port}")
    producer.send("t", b"x").get(timeout=30)
    producer.close()
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0
    assert "accepting connections is paused" not in rest


def test_a_broker_whose_only_data_folder_fails_stops_and_says_why(serve: Callable[..., Served], tmp_path: Path) -> None:
    folder = tmp_path / "data"
    broker = serve("--listen", "127.0.0.1:0", "--data-dir", str(folder), "--override", "log.segment.bytes=1000")
    producer = KafkaProducer(bootstrap_servers=broker.address, retries=0)
    producer.send("t", b"x" * 100).get(timeout=30)
    folder.rename(tmp_path / "gone")  # the next segment cannot be made
    with pytest.raises(KafkaError):
        for _ in range(20):
            producer.send("t", b"x" * 100).get(timeout=30)
    _, log = broker.process.communicate(timeout=LIMIT_S)
    producer.close()
    assert broker.process.returncode == 1
    assert log.count(" ERROR ") == 1, log
    assert log.splitlines()[-1].startswith(
        f"ottla: the broker has stopped: every log directory has failed, {folder} with:"
    )


def test_a_data_folder_that_fails_is_one_error(serve: Callable[..., Served], tmp_path: Path) -> None:
    """Whatever many partitions are in it, and the broker serves on from the other."""
    folders = [tmp_path / "first", tmp_path / "second"]
    broker = serve(
        *("--listen", "127.0.0.1:0", "--override", f"log.dirs={folders[0]},{folders[1]}"),
        *("--override", "log.segment.bytes=1000", "--override", "num.partitions=8", "--log-level", "debug"),
    )
    producer = KafkaProducer(bootstrap_servers=broker.address, retries=0, max_block_ms=10_000)
    for partition in range(8):
        producer.send("t", b"x" * 100, partition=partition).get(timeout=30)
    lost = {int(path.name.rpartition("-")[2]) for path in folders[1].glob("t-*")}
    folders[1].rename(tmp_path / "gone")  # the next segment cannot be made
    with pytest.raises(KafkaError):
        for number in range(20 * len(lost)):
            producer.send("t", b"x" * 100, partition=sorted(lost)[number % len(lost)]).get(timeout=30)
    producer.send("t", b"x", partition=min({*range(8)} - lost)).get(timeout=30)
    producer.close()
    code, log = broker.stop()
    assert code == 0
    errors = [line for line in log.splitlines() if " ERROR " in line or " WARNING " in line]
    assert len(errors) == 1, log
    assert f"The log directory {folders[1]} is offline from now on" in errors[0]
