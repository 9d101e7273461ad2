"""``ottla top`` beside a broker with a console."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaProducer

from ottla.cli.tools.client import ClusterConnection
from ottla.cli.tools.running import ToolError
from ottla.cli.tools.top import show
from ottla.compat_tests.session import eventually
from ottla.testing.held_port import HeldPort

LIMIT_S = 120

pytestmark = pytest.mark.slow


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[str, str]]:
    """The addresses of a broker and of its console."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "ottla", "serve", "--console", "127.0.0.1:0", "--data-dir", str(folder)),
            *options,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = ""
        while "the console is on" not in line:
            line = process.stderr.readline()
            assert line, "the broker has ended"
        console = line.split("http://")[1].strip().rstrip("/")
        yield process.stdout.readline().split(" is ready on ")[1].split(",")[0], console
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of a broker with a topic, and of its console."""
    with serving(tmp_path_factory.mktemp("top"), "--listen", "127.0.0.1:0") as (address, console):
        producer = KafkaProducer(bootstrap_servers=address)
        for _ in range(100):
            producer.send("orders", b"x" * 100)
        producer.close()
        yield address, console


PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the console of a broker where alice may do everything, and bob nothing."""
    properties = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN_LOGIN} user_alice="hers" user_bob="his";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice",
    }
    folder = tmp_path_factory.mktemp("secured")
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    with serving(folder / "data", "--config", str(file)) as (_, console):
        yield console


def client(user: str, password: str, protocol: str = "SASL_PLAINTEXT", mechanism: str = "PLAIN") -> ClusterConnection:
    jaas = f'{PLAIN_LOGIN} username="{user}" password="{password}";'
    properties = {"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    return ClusterConnection("127.0.0.1", None, tuple(f"{name}={value}" for name, value in properties.items()))


def top(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ottla", "top", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1", **environment},
    )


def test_what_the_broker_is_doing(served: tuple[str, str]) -> None:
    address, console = served
    done = top("--console", console)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"Ottla broker 1 at {address}, up ")
    assert "topics 1   partitions 1   groups 0" in lines[2]
    assert lines[3].startswith("not checked, or not completely: whether the lag of a group grows"), (
        "it has just started"
    )
    (orders,) = [line.split() for line in lines if line.startswith("orders ")]
    assert orders[-2:] == ["100", "-"]


def test_the_same_for_programs(served: tuple[str, str]) -> None:
    _, console = served
    seen = json.loads(top("--json", OTTLA_CONSOLE=console).stdout)
    assert seen["topics"][0]["name"] == "orders"
    assert seen["topics"][0]["records"] == "100", "as text: JSON's numbers are rounded by some readers"


def test_names_are_cut_and_numbers_are_not(served: tuple[str, str]) -> None:
    address, console = served
    name = "orders-of-customers-in-all-countries-since-the-beginning"
    with KafkaProducer(bootstrap_servers=address) as producer:
        for _ in range(12_345):
            producer.send(name, b"x" * 100)
    eventually(lambda: "12,345" in top("--console", console, "--once").stdout)
    for columns in (80, 110):
        lines = top("--console", console, "--once", COLUMNS=str(columns)).stdout.splitlines()
        assert max(map(len, lines[4:])) <= columns
        head = next(line for line in lines if line.startswith("TOPIC")).split()
        assert head == ["TOPIC", "IN", "RECORDS/S", "OUT", "SIZE", "RECORDS", "LARGEST", "LAG"]
        (cut,) = [line for line in lines if line.startswith("orders-of-")]
        assert name not in cut and "…" in cut
        assert cut.split()[-2:] == ["12,345", "-"]


ON_ITS_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "ottla", "top", *sys.argv[1:]])
"""
"""``ottla top`` in a session whose terminal is standard input, so that Ctrl-C typed there interrupts it."""


@pytest.mark.parametrize("end", [b"q", b"\x03"], ids=["q", "Ctrl-C"])
def test_a_key_ends_it(served: tuple[str, str], end: bytes) -> None:
    _, console = served
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_ITS_TERMINAL, "--console", console, "--interval", "3600"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"},
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # Linux says so when the other side is closed
        while chunk := os.read(ours, 65536) if select.select([ours], [], [], LIMIT_S)[0] else b"":
            shown += chunk
            if end and b"LARGEST LAG" in shown:
                os.write(ours, b"x" + end)
                end = b""
    os.close(ours)
    assert process.wait(LIMIT_S) == 0, shown
    assert b"Traceback" not in shown


@pytest.mark.parametrize("arguments", [("--console", "x:y"), ("--interval", "0")])
def test_what_makes_no_sense(arguments: tuple[str, ...]) -> None:
    done = top(*arguments)
    assert done.returncode == 2


def test_where_there_is_no_console() -> None:
    port = HeldPort()
    done = top("--console", f"127.0.0.1:{port.number}", "--once")
    port.close()
    assert done.returncode == 1
    assert done.stderr.startswith(f"ottla: no console answers at 127.0.0.1:{port.number} (")
    assert f"'ottla serve --console 127.0.0.1:{port.number}' has one" in done.stderr


def test_a_console_that_wants_a_log_in(secured: str, capsys: pytest.CaptureFixture[str]) -> None:
    show(client("alice", "hers"), secured, 1, once=True, as_json=True)
    assert json.loads(capsys.readouterr().out)["broker"]["broker_id"] == "1"
    far = secured.replace("127.0.0.1", "0.0.0.0")
    show(client("alice", "hers"), far, 1, once=True, as_json=True)
    refused = {
        (
            ClusterConnection("127.0.0.1"),
            secured,
        ): "wants a log-in: sasl.jaas.config with the name and password of a user",
        (client("alice", "his"), secured): "does not let alice in: the user name or the password is wrong",
        (client("bob", "his"), secured): "does not show this to bob: it takes Describe of the cluster",
        (client("alice", "hers", mechanism="SCRAM-SHA-256"), far): "has no TLS, so the password of alice is not sent",
        (client("alice", "hers", protocol="SASL_SSL"), far): "has no TLS, so the password of alice is not sent",
    }
    for (connection, place), why in refused.items():
        with pytest.raises(ToolError, match=f"^the console at {place} {why}"):
            show(connection, place, 1, once=True, as_json=True)
