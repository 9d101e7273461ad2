"""``ottla doctor`` at three nodes, each a process: all is well; then one is killed, and the disk of another is nearly full."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ottla.compat_tests.kraft_cluster import OTTLA, KRaftCluster, OttlaNode, Seat
from ottla.compat_tests.session import eventually

from ...helpers.command import Command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DISK = 256 << 20
LEFT = 8 << 20
MOUNT = f"mount -t tmpfs -o size={DISK} none"


def may_mount() -> bool:
    """Whether this machine lets a process have mounts of its own."""
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


class NodeWithDisk(OttlaNode):
    """A node whose folder is a disk of its own, seen by its process only, where this machine allows for that."""

    def command(self) -> list[str]:
        if not may_mount():
            return super().command()
        folder, copy = shlex.quote(str(self.folder)), shlex.quote(f"{self.folder}.copy")
        mounted = f"mkdir -p {copy} && cp -a {folder}/. {copy} && {MOUNT} {folder} && cp -a {copy}/. {folder}"
        return ["unshare", "-m", "sh", "-c", f"{mounted} && exec {shlex.join(super().command())}"]

    def fill_disk(self) -> None:
        """Use its space, but for a little that the node needs to go on."""
        folder = Path(f"/proc/{self.pid}/root{self.folder}")
        room = os.statvfs(folder)
        with open(folder / "filler", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - LEFT)


class ClusterWithDisks(KRaftCluster):
    kinds: ClassVar = {OTTLA: NodeWithDisk}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KRaftCluster]:
    cluster = ClusterWithDisks(tmp_path, [Seat(OTTLA)] * 3)
    with contextlib.closing(cluster):
        cluster.start()
        yield cluster


def test_faults_are_named_with_what_mends_them(cluster: KRaftCluster) -> None:
    command = Command(cluster.bootstrap)

    def look(*options: str) -> tuple[int, dict[str, list[Any]]]:
        """The exit status, and the lines by area."""
        done = command.run("doctor", "--json", *options)
        assert done.stderr == ""
        lines: dict[str, list[Any]] = {}
        for line in json.loads(done.stdout)["lines"]:
            lines.setdefault(line["area"], []).append(line)
        return done.returncode, lines

    command("topics", "create", "orders", "-p", "3", "-r", "3", "-c", "min.insync.replicas=3")
    command("topics", "create", "alone", "-r", "1")
    command("cluster", "wait")
    status, lines = look("--probe-clocks")
    assert status == 0, lines
    assert lines["quorum"][0]["what"].endswith("leads 3 voters, and none lags")
    assert [line["what"] for line in lines["topics"]] == ["1 topic has one replica, in a cluster of 3 brokers: alone"]
    clocks = [line["what"] for line in lines["clocks"] if line["level"] == "ok"]
    assert [what.partition(" is as ")[0] for what in clocks] == [f"The clock of broker {n}" for n in (1, 2, 3)]

    node = cluster.node(2)
    assert isinstance(node, NodeWithDisk)
    if may_mount():
        node.fill_disk()
    gone = next(n for n in (1, 3) if n != cluster.controller())
    cluster.node(gone).kill()
    eventually(lambda: " is down" in look()[1]["brokers"][0]["what"])
    status, lines = look()
    assert status == 1
    left = ", ".join(str(n) for n in (1, 2, 3) if n != gone)
    assert [line["what"] for line in lines["brokers"]] == [
        f"Broker {gone} is down, and has {lines_of(command, gone)}",
        f"2 brokers are alive: {left}",
    ]
    assert f"ottla cluster drain {gone} --replicas" in lines["brokers"][0]["mend"]
    assert any(
        line["what"].startswith(f"Controller {gone}, a voter of the quorum, has not fetched")
        for line in lines["quorum"]
    )
    found = {line["what"]: line["level"] for line in lines["replication"]}
    assert found["1 topic refuses acks=all, below min.insync.replicas: orders"] == "problem"
    if may_mount():
        (full,) = [line for line in lines["disks"] if line["level"] == "problem"]
        assert full["what"].startswith("1 log directory is nearly full: ") and "of broker 2 (" in full["what"]


def lines_of(command: Command, broker: int) -> str:
    """How many replicas a broker has."""
    rows = [row for row in command.json("cluster", "describe")["brokers"] if row["broker"] == broker]
    return f"{rows[0]['replicas']} replica{'s' * (rows[0]['replicas'] != 1)}"
