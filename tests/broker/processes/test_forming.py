"""``ottla serve --node N --cluster …`` in processes: three form a cluster, one is killed, one loses its disk, a fourth joins.

And a console of one of them tells of all.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.server_process import ServerProcess
from ottla.compat_tests.session import eventually
from ottla.testing.certificates import Authority
from ottla.testing.held_port import HeldPort

pytestmark = pytest.mark.slow


class Node(ServerProcess):
    """A node with a controller at the next port."""

    def __init__(self, folder: Path, number: int) -> None:
        folder.mkdir()
        while True:
            super().__init__(folder, "node.log")
            try:
                self._controller_port = HeldPort(self.port + 1)
                break
            except OSError:
                super().close()
        self.number = number
        self.arguments: list[str] = []

    def command(self) -> list[str]:
        own = ["--node", str(self.number), "--data-dir", str(self.folder / "data")]
        return [sys.executable, "-m", "ottla", "serve", *own, *self.arguments]

    def close(self) -> None:
        super().close()
        self._controller_port.close()


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    """Four; the first three are in the list. None runs."""
    with contextlib.ExitStack() as stack:
        made = []
        for number in range(1, 5):
            made.append(Node(tmp_path / str(number), number))
            stack.callback(made[-1].close)
        secret = tmp_path / "secret"
        secret.write_text("known to all four of them\n")
        listed = ",".join(node.address for node in made[:3])
        for node in made:
            node.arguments = ["--cluster", listed, "--cluster-secret-file", str(secret)]
        made[3].arguments += ["--listen", made[3].address]
        yield made


def by_certificate(folder: Path, node: Node, authority: Authority, trusted: Authority) -> list[str]:
    """Arguments of a node that has a certificate of an authority, and lets those in that have one of ``trusted``."""
    (folder / f"{node.number}.pem").write_bytes(authority.issue(f"node {node.number}", ["127.0.0.1"]))
    (folder / f"{node.number}.ca.pem").write_bytes(trusted.certificate_pem)
    properties = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        "listener.name.controller.ssl.keystore.location": str(folder / f"{node.number}.pem"),
        "listener.name.controller.ssl.keystore.type": "PEM",
        "listener.name.controller.ssl.truststore.location": str(folder / f"{node.number}.ca.pem"),
        "listener.name.controller.ssl.truststore.type": "PEM",
        "listener.name.controller.ssl.client.auth": "required",
    }
    return [word for pair in properties.items() for word in ("--override", "=".join(pair))]


def test_certificates_instead_of_a_secret(nodes: list[Node], tmp_path: Path) -> None:
    """A node whose certificate is nobody's here is no part of the cluster, with one of the right authority it is."""
    authority, stranger = Authority("ours"), Authority("a stranger's")
    *listed, fourth = nodes
    for node in nodes:
        cluster = node.arguments[: node.arguments.index("--cluster-secret-file")]
        own = [*cluster, "--listen", node.address] if node is fourth else cluster
        issued = stranger if node is fourth else authority
        node.arguments = own + by_certificate(tmp_path, node, issued, authority)
    for node in listed:
        node.launch()
    for node in listed:
        node.wait_ready()
    ottla(listed, "topics", "create", "orders", "-r", "3")
    fourth.launch()
    eventually(lambda: re.search(r"(?i)certificate|tls|ssl", fourth.log()), 60)
    assert fourth.is_running and not fourth.is_ready()
    fourth.kill()
    fourth.arguments = own + by_certificate(tmp_path, fourth, authority, authority)
    fourth.start()
    assert identity(fourth)["cluster.id"] == identity(listed[0])["cluster.id"]
    assert "orders" in ottla([fourth], "topics", "list")


def ottla(nodes: list[Node], *arguments: str, given: str = "") -> str:
    """What a command prints, which is to succeed."""
    servers = ",".join(node.address for node in nodes)
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *arguments, "-b", servers],
        input=given,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def identity(node: Node) -> dict[str, str]:
    return dict(re.findall(r"^([\w.]+)=(.*)$", (node.folder / "data/meta.properties").read_text(), re.MULTILINE))


def test_three_commands_are_a_cluster(nodes: list[Node]) -> None:
    first, second, third, fourth = nodes
    for node in (first, second, third):
        node.launch()
    for node in (first, second, third):
        node.wait_ready()
    ottla(nodes[:3], "topics", "create", "orders", "-r", "3", "--config", "min.insync.replicas=2")
    ottla(nodes[:3], "produce", "orders", given="one\n")

    second.kill()
    ottla([first, third], "produce", "orders", given="two\n")
    second.start()
    ottla(nodes[:3], "cluster", "wait")

    before = identity(third)
    third.kill()
    shutil.rmtree(third.folder / "data")
    third.start()
    fourth.start()
    ottla(nodes[:3], "cluster", "wait")
    assert identity(third)["cluster.id"] == identity(fourth)["cluster.id"] == before["cluster.id"]
    assert identity(third)["directory.id"] != before["directory.id"]
    assert ottla(nodes, "consume", "orders", "-n", "2").split() == ["one", "two"]

    # With its new directory the third node is a voter again: a majority of the three goes on without the first.
    eventually(lambda: _votes(third), 60)
    first.kill()
    ottla([second, third], "topics", "create", "later", "-r", "3")


def test_a_second_ctrl_c_does_not_wait_for_a_controller(nodes: list[Node]) -> None:
    """The last broker of a cluster would wait for 30 s here, as its session is long."""
    listed = nodes[:3]
    for node in listed:
        node.arguments += ["--override", "broker.session.timeout.ms=600000"]
        node.launch()
    for node in listed:
        node.wait_ready()
    ottla(listed, "topics", "create", "orders", "-r", "3")
    last = listed[0]
    for node in listed[1:]:
        node.kill()
    os.kill(last.pid, signal.SIGINT)
    eventually(lambda: "stopping on SIGINT" in last.log())
    os.kill(last.pid, signal.SIGINT)
    last.wait_stopped()
    assert "stopping without handing over, on another SIGINT" in last.log()
    assert "has not moved all that this broker leads" not in last.log()
    assert (last.folder / "data/.kafka_cleanshutdown").exists()


def _votes(node: Node) -> bool:
    """Whether the last voters in its metadata log have its present directory."""
    segments = sorted((node.folder / "data/__cluster_metadata-0").glob("*.log"))
    shown = subprocess.run(
        [sys.executable, "-m", "ottla", "dump-log", "--cluster-metadata-decoder", "--files", str(segments[-1])],
        capture_output=True,
        text=True,
        timeout=100,
    ).stdout
    voters = [line for line in shown.splitlines() if "KRaftVoters" in line]
    return bool(voters) and identity(node)["directory.id"] in voters[-1]


def test_one_console_tells_of_three_brokers_of_which_one_stands_still(nodes: list[Node]) -> None:
    first, second, third = nodes[:3]
    for node in (first, second, third):
        node.arguments += ["--console", "127.0.0.1:0"]
        node.launch()
    for node in (first, second, third):
        node.wait_ready()
    console = eventually(lambda: re.search(r"the console is on (http://[^/]+)", first.log()))[1]

    def page() -> str:
        with urllib.request.urlopen(f"{console}/connections?q=broker-1-inside", timeout=60) as answer:
            text: str = re.sub("<[^>]*>", "", answer.read().decode())
        return text

    eventually(lambda: "did not report" not in page() and "broker-1-inside" in page())
    third.pause()
    try:
        # Once its session has ended it is fenced.
        eventually(lambda: re.search("Broker 3 did not report its data: it (has not answered|is fenced)", page()))
        assert "Broker 2 did not report" not in page()
    finally:
        third.resume()
    eventually(lambda: "did not report" not in page(), 60)
