"""``ottla serve`` with metrics, levels, JSON and a trace: as a person starts it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from ottla.base.wording import how_to_install

LIMIT_S = 120
READY = re.compile(r"is ready on (\S+), ")
TRACE = re.compile(r"ottla\.broker\.listeners\.request_log: (api=.*)")


class Served:
    """A broker process; ``stop`` gives the lines of its log."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        match = READY.search(self.process.stdout.readline())
        assert match, self.process.communicate()[1]
        self.address = match.group(1)

    def stop(self) -> list[str]:
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == 0, log
        return log.splitlines()


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    started: list[Served] = []

    def start(*arguments: str) -> Served:
        started.append(Served("--data-dir", str(tmp_path / "data"), *arguments))
        return started[-1]

    yield start
    for served in started:
        if served.process.poll() is None:
            served.process.kill()
            served.process.communicate()


def refused(*arguments: str, script: str = "from ottla.cli import main; main()", code: int = 2) -> str:
    """The one line of a start that is refused, with exit code 2 unless another is expected."""
    script = f"import sys; sys.argv = ['ottla', 'serve', *sys.argv[1:]]; {script}"
    done = subprocess.run(
        [sys.executable, "-c", script, "--listen", "127.0.0.1:0", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == code, done
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def produce(served: Served, client_id: str = "shop") -> None:
    producer = KafkaProducer(bootstrap_servers=served.address, client_id=client_id)
    producer.send("t", b"v").get(timeout=30)
    producer.close()


def test_metrics_are_where_it_says(serve: Serve) -> None:
    served = serve("--metrics", "127.0.0.1:0")
    assert served.process.stderr is not None
    line = ""
    while "metrics are on" not in line:
        line = served.process.stderr.readline()
        assert line
    with urllib.request.urlopen(line.split()[-1], timeout=20) as response:
        assert b"kafka_server_replicamanager_leadercount" in response.read()
    assert not [line for line in served.stop() if "Traceback" in line]


def test_a_port_that_is_left_out_is_9092_for_both_sides(serve: Serve) -> None:
    """On an address of the loopback network where nothing else listens."""
    number = os.getpid()
    host = f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255 | 2}"
    served = serve("--listen", host)
    assert served.address == f"{host}:9092"
    listed = subprocess.run(
        [sys.executable, "-m", "ottla", "topics", "list", "-b", host], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (listed.returncode, listed.stderr) == (0, "")
    served.stop()


def test_a_metrics_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = refused("--metrics", address, "--data-dir", str(tmp_path), code=1)  # it may pass
    others = "choose another with --metrics or metrics.listener"
    assert line == f"ottla: cannot listen on {address}: the port is in use; {others}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--metrics", "9464"], "'9464' is not HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "the port of '127.0.0.1:99999' is out of range"),
        (["--log-level", "loud"], "--log-level takes debug, info, warning, error, not loud"),
        (["--log-level", "info,log=loud"], "--log-level takes"),
        (["--log-level", "nothing=info"], "--log-level knows the areas base, wire, log,"),
        (["--log-format", "xml"], "--log-format takes text or json, not xml"),
        (["--trace", "produce,walk"], "there is no API 'walk'"),
    ],
)
def test_what_cannot_be_is_one_line(arguments: list[str], words: str, tmp_path: Path) -> None:
    line = refused(*arguments, "--data-dir", str(tmp_path / "data"))
    assert line.startswith("ottla: ")
    assert words in line
    assert not (tmp_path / "data").exists()


def test_without_the_extra_the_line_says_what_to_install(tmp_path: Path) -> None:
    script = "sys.modules['h11'] = None; from ottla.cli import main; main()"
    line = refused("--metrics", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"), script=script)
    assert f"metrics need {how_to_install('metrics')}: " in line


def test_every_line_of_a_json_log_is_an_event(serve: Serve) -> None:
    served = serve("--log-format", "json", "--log-level", "debug", "--trace", "all", "--metrics", "127.0.0.1:0")
    produce(served, "line one\nline two")
    events = [json.loads(line) for line in served.stop()]
    assert len(events) > 5
    for event in events:
        assert datetime.fromisoformat(event["time"]).tzinfo is not None
        assert event["level"] in ("debug", "info", "warning", "error")
        assert event["message"]
    assert {"broker", "cli", "controller"} <= {event["area"] for event in events}
    (request,) = [e["request"] for e in events if e.get("request", {}).get("api") == "Produce"]
    assert request["client_id"] == "line one\nline two"
    assert request["errors"] == []
    assert 0 < request["local_ms"] <= request["total_ms"]
    assert request["bytes"] > request["answer_bytes"] > 0


def test_levels_by_area(serve: Serve) -> None:
    served = serve("--log-level", "error,log=debug,controller=info", "--override", "log.segment.bytes=100")
    for _ in range(3):
        produce(served)
    lines = served.stop()
    assert any(" INFO ottla.controller." in line for line in lines)
    assert any(" DEBUG ottla.log." in line for line in lines)
    assert all(" ottla.log." in line or " ottla.controller." in line for line in lines)


def fields(line: str) -> dict[str, Any]:
    return dict(re.findall(r"(\w+)=('[^']*'|\S+)", line))


def test_the_trace_has_a_line_for_each_request_that_was_asked_for(serve: Serve) -> None:
    served = serve("--trace", "produce,init-producer-id")
    produce(served)
    lines = [match.group(1) for line in served.stop() if (match := TRACE.search(line))]
    assert {fields(line)["api"] for line in lines} == {"Produce", "InitProducerId"}
    (line,) = [line for line in lines if line.startswith("api=Produce ")]
    shown = fields(line)
    assert shown["client_id"] == "'shop'"
    assert shown["errors"] == "-"
    assert int(shown["bytes"]) > int(shown["answer_bytes"]) > 0
    assert float(shown["local_ms"]) <= float(shown["total_ms"])


def test_without_a_trace_there_are_no_such_lines(serve: Serve) -> None:
    served = serve("--log-level", "debug")
    produce(served)
    assert not [line for line in served.stop() if TRACE.search(line)]
