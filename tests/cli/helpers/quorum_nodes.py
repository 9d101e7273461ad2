"""Nodes of a cluster of KRaft as processes, each ``ottla serve`` with a file ``node-N.properties`` in one folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from ottla.compat_tests.server_process import ServerProcess
from ottla.testing.held_port import HeldPort

CLUSTER_ID = "3Db5QLSqSZieL3rJBUUegA"
_READY = re.compile(r"^Ottla \S+ is ready on ", re.MULTILINE)


class QuorumNode(ServerProcess):
    """Node ``node_id``: its broker's port is the server's own, ``controller_address`` is for that of its controller."""

    def __init__(self, folder: Path, node_id: int) -> None:
        super().__init__(folder, f"node-{node_id}.log")
        self.node_id = node_id
        self._controller = HeldPort()
        self._starts = 0

    @property
    def controller_address(self) -> str:
        return f"127.0.0.1:{self._controller.number}"

    @property
    def voter(self) -> str:
        """What ``--initial-controllers`` has of it."""
        return f"{self.node_id}@{self.controller_address}:{'abcdefgh'[self.node_id]}Yt1jCRIqbKuPBvnxfZ46w"

    @property
    def file(self) -> str:
        return f"node-{self.node_id}.properties"

    def command(self) -> list[str]:
        return ["sh", "-c", f'cd "{self.folder}" && exec "{sys.executable}" -m ottla serve --config {self.file}']

    def format(self, *options: str) -> None:
        """Format its log directories, for one cluster id."""
        command = [sys.executable, "-m", "ottla", "format", "-c", self.file, "-t", CLUSTER_ID, *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def launch(self) -> None:
        self._starts += 1
        super().launch()

    def is_ready(self) -> bool:
        return len(_READY.findall(self.log())) == self._starts

    def destroy(self) -> None:
        """The machine goes with its disk."""
        self.kill()
        shutil.rmtree(self.folder / f"data-{self.node_id}")

    def close(self) -> None:
        super().close()
        self._controller.close()


def start_all(nodes: Iterable[QuorumNode]) -> None:
    """Start nodes side by side: none is ready without a majority."""
    started = list(nodes)
    for node in started:
        node.launch()
    for node in started:
        node.wait_ready()
