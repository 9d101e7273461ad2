"""A controller of Ottla in a process of its own: ``ottla serve`` with ``process.roles=controller``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ottla.compat_tests.kraft_cluster import CLUSTER_ID
from ottla.compat_tests.server_process import ServerProcess
from ottla.wire.schema import uuid_to_text

_SESSION_MS = 6000
_TURNED_OFF = "eligible.leader.replicas.version"
"""For a test that turns it on."""


class ControllerProcess(ServerProcess):
    """Controller ``node_id``. ``ports`` has those of all, by their ids from 1 on, and is complete before the first start."""

    def __init__(self, folder: Path, node_id: int, ports: list[int]) -> None:
        folder.mkdir(parents=True)
        super().__init__(folder, "controller.log")
        self.node_id = node_id
        self._ports = ports
        ports.append(self.port)

    def command(self) -> list[str]:
        file = self.folder / "server.properties"
        if not file.exists():
            self._format(file)
        return [sys.executable, "-m", "ottla", "serve", "--config", str(file)]

    def _format(self, file: Path) -> None:
        properties = {
            "process.roles": "controller",
            "node.id": str(self.node_id),
            "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in self._ports),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{self.address}",
            "log.dirs": str(self.folder / "data"),
            "broker.session.timeout.ms": str(_SESSION_MS),
        }
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        voters = [
            f"{number}@127.0.0.1:{port}:{uuid_to_text(bytes(15) + bytes([200 + number]))}"
            for number, port in enumerate(self._ports, 1)
        ]
        command = [sys.executable, "-m", "ottla", "format", "-c", str(file), "-t", CLUSTER_ID, "-I", ",".join(voters)]
        subprocess.run([*command, "--feature", f"{_TURNED_OFF}=0"], check=True, capture_output=True)
