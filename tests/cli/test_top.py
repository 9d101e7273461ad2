"""``ottla top`` beside a broker with a console."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from kafka import KafkaProducer

from ottla.testing.held_port import HeldPort

LIMIT_S = 120

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of a broker and of its console."""
    folder = tmp_path_factory.mktemp("top")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0"),
            *("--data-dir", str(folder)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    line = ""
    while "the console is on" not in line:
        line = process.stderr.readline()
        assert line, "the broker has ended"
    console = line.split("http://")[1].strip().rstrip("/")
    address = process.stdout.readline().split(" is ready on ")[1].split(",")[0]
    producer = KafkaProducer(bootstrap_servers=address)
    for _ in range(100):
        producer.send("orders", b"x" * 100)
    producer.close()
    yield address, console
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LIMIT_S)


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
    (orders,) = [line.split() for line in lines if line.startswith("orders ")]
    assert orders[-2:] == ["100", "-"]


def test_the_same_for_programs(served: tuple[str, str]) -> None:
    _, console = served
    seen = json.loads(top("--json", OTTLA_CONSOLE=console).stdout)
    assert seen["topics"][0]["name"] == "orders"
    assert seen["topics"][0]["records"] == "100", "as text: JSON's numbers are rounded by some readers"


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
