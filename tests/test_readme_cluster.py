"""The quickstarts on three brokers of docs/quickstart.md, run as they stand there, and the three commands of docs/cluster.md.

The addresses are others. What is started in the background there ends with the test.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.java.tools import write_scripts
from ottla.compat_tests.session import eventually
from ottla.testing.held_port import HeldPort

from .helpers.pages import quickstarts

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
LIMIT_S = 600.0
DONE = "the quickstart has ended"

pytestmark = pytest.mark.slow


class Terminal:
    """A command whose output goes to a file, as it would to a terminal."""

    def __init__(self, folder: Path, name: str, *command: str, **variables: str) -> None:
        self._shown = folder / f"{name}.txt"
        with self._shown.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=folder, env=os.environ | variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def shown(self) -> str:
        """All so far."""
        return self._shown.read_text()

    def wait_for(self, pattern: str) -> str:
        """What was shown, once a line of it matches."""

        def is_shown() -> bool:
            found = re.search(pattern, self.shown(), re.MULTILINE) is not None
            assert found or self.process.poll() is None, self.shown()
            return found

        eventually(is_shown, LIMIT_S)
        return self.shown()

    def end(self, number: signal.Signals) -> int:
        """Send a signal; the exit status."""
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)


class Cluster:
    """``make cluster`` in a terminal, and the folder in which the rest is typed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        options = ["--folder", "data/cluster", "--port", "0"]
        self.terminal = Terminal(folder, "cluster", sys.executable, str(ROOT / "tools/cluster.py"), *options)
        self.shown = self.terminal.wait_for("^bootstrap.servers=.*\n")
        self.addresses = re.findall(r"^broker \d +(\S+)", self.shown, re.MULTILINE)

        self._typed: list[Terminal] = []

    def type(self, name: str, *folders: Path, after_kill: str = "") -> str:
        """Type a quickstart, with these folders on the PATH; what it showed. What it starts in the background goes on.

        ``after_kill``: a command that is typed after the one that kills a broker.
        """
        _, code = quickstarts()[name]
        code = re.sub("^kill -9 .*$", lambda kill: f"{kill[0]}\n{after_kill}", code, flags=re.MULTILINE)
        for port, address in zip((9092, 9094, 9096), self.addresses, strict=True):
            code = code.replace(f"127.0.0.1:{port}", address)
        script = self.folder / f"{name}.sh"
        script.write_text(f"{code}\necho; echo {DONE}\nwait\n")
        path = ":".join([*map(str, folders), str(BIN), os.environ["PATH"]])
        self._typed.append(Terminal(self.folder, name, "sh", "-e", str(script), PATH=path))
        return self._typed[-1].wait_for(f"^{DONE}$")

    def stop_background(self) -> None:
        """Stop the brokers that were started by what was typed."""
        started_here = {int(pid) for pid in re.findall(r" pid (\d+)", self.shown)}
        files = self.folder.glob("data/cluster/broker-*/pid")
        for pid in {int(file.read_text()) for file in files} - started_here:
            with contextlib.suppress(ProcessLookupError):  # what was typed may have killed it
                os.kill(pid, signal.SIGTERM)

    def terminals(self) -> list[Terminal]:
        """The last one first."""
        return [*reversed(self._typed), self.terminal]

    def close(self) -> tuple[int, str]:
        """Stop all by Ctrl-C, with the brokers in the background: the exit status of that, and what it showed."""
        status = self.terminal.end(signal.SIGINT)
        assert [typed.process.wait(LIMIT_S) for typed in self._typed] == [0] * len(self._typed)
        return status, self.terminal.shown()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    running = [typed for typed in made.terminals() if typed.process.poll() is None]
    if running:
        made.stop_background()
    for typed in running:
        if typed.process.poll() is None:
            typed.process.terminate()
            typed.process.wait(LIMIT_S)


def partition(printed: str, topic: str) -> list[tuple[str, str]]:
    """Leader and in-sync replicas of the only partition, each time they were shown: into a pipe both tools show the same."""
    return re.findall(rf"Topic: {topic}\s+Partition: 0\s+Leader: (\d)\s+Replicas: [\d,]+\s+Isr: ([\d,]+)", printed)


def check(shown: list[tuple[str, str]]) -> str:
    """Before, after and back again; the broker that was killed."""
    (killed, before), (leader, after), (_, back) = shown
    assert sorted(before.split(",")) == sorted(back.split(",")) == ["1", "2", "3"]
    assert leader != killed
    assert sorted([*after.split(","), killed]) == ["1", "2", "3"]
    return killed


def test_a_leader_is_killed_and_comes_back(cluster: Cluster) -> None:
    ours = cluster.type("three-brokers")
    killed = [check(partition(ours, "replicated"))]
    assert re.search("^one\ntwo\nthree\n", ours, re.MULTILINE)
    # A user may type slowly: by then the other brokers know that this one is gone.
    gone = "until ottla topics describe -b $brokers my-replicated-topic | grep -q under-replicated; do sleep 0.1; done"
    kafkas = cluster.type("three-brokers-with-kafkas-tools", write_scripts(cluster.folder), after_kill=gone)
    shown = partition(kafkas, "my-replicated-topic")
    # The partitions that are not whole yet are shown again and again while it is waited for them.
    killed.append(check([*shown[:2], shown[-1]]))
    assert "Created topic my-replicated-topic." in kafkas
    consumed = re.findall("^my test message [12]$", kafkas, re.MULTILINE)
    assert consumed == ["my test message 1", "my test message 2"] * 2
    status, told = cluster.close()
    assert status == 0, told
    assert f"broker-{killed[0]} has ended with status -9" in told


def test_what_was_started_again_by_hand_ends_with_the_rest_and_a_second_signal_kills(cluster: Cluster) -> None:
    """Without a ``pid`` file: its process is found by the log directory that it has open."""
    pids = dict(re.findall(r"^(broker \d) .* pid (\d+)", cluster.shown, re.MULTILINE))
    os.kill(int(pids["broker 3"]), signal.SIGKILL)
    told = cluster.terminal.wait_for("^started again by: .*\n")
    _, _, command = told.rpartition("started again by: ")
    by_hand = Terminal(cluster.folder, "by-hand", *shlex.split(command))
    by_hand.wait_for("is ready")
    cluster.terminal.process.send_signal(signal.SIGINT)
    cluster.terminal.wait_for("^stopping within .*\n")
    assert cluster.terminal.end(signal.SIGINT) == 0
    assert by_hand.process.wait(LIMIT_S) in (0, -signal.SIGKILL)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids.values())


def test_three_commands_are_a_cluster_and_a_fourth_joins(tmp_path: Path) -> None:
    typed = quickstarts(ROOT / "docs/cluster.md")
    code = typed["three-commands"][1] + typed["a-fourth"][1]
    with contextlib.ExitStack() as stack:
        for port in (9092, 9192, 9292, 9392):
            code = code.replace(f"localhost:{port}", f"localhost:{pair_of_ports(stack)}")
        script = tmp_path / "typed.sh"
        script.write_text(f"{code}\necho; echo {DONE}\n")
        terminal = Terminal(tmp_path, "typed", "sh", "-e", str(script), PATH=f"{BIN}:{os.environ['PATH']}")
        try:
            shown = terminal.wait_for(f"^{DONE}$")
        finally:
            for file in tmp_path.glob("node-*.pid"):
                os.kill(int(file.read_text()), signal.SIGKILL)
    assert re.findall(r"^(\d)\tlocalhost", shown, re.MULTILINE) == ["1", "2", "3", "4"]


def pair_of_ports(stack: contextlib.ExitStack) -> int:
    """A port that is kept for a node, and the next one for its controller."""
    while True:
        held = HeldPort()
        try:
            stack.callback(HeldPort(held.number + 1).close)
        except OSError:
            held.close()
            continue
        stack.callback(held.close)
        return held.number


@pytest.mark.parametrize("more", [[], ["--zookeeper", "--zookeeper-port", "0"]], ids=["controllers", "zookeeper"])
def test_a_port_that_is_in_use_is_named_before_anything_starts(tmp_path: Path, more: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ["--folder", "data/cluster", "--port", str(port), *more]
        terminal = Terminal(tmp_path, "cluster", sys.executable, str(ROOT / "tools/cluster.py"), *options)
        assert terminal.process.wait(LIMIT_S) == 1
    (line,) = terminal.shown().splitlines()
    assert line.startswith(f"cluster: cannot listen on 127.0.0.1:{port}: the port is in use; choose others with: make ")
    assert ("zookeeper" in line) == bool(more)
    assert not list(tmp_path.rglob("*.log"))
