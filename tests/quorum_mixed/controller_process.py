"""A controller of Ottla in a process of its own: ``python -m ottla.tests.quorum_mixed.controller_process ID FOLDER PORT…``.

The ports are those of all controllers of the quorum, whose ids are 1 and following. The folder is formatted at the first start.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import trio

from ottla.base.seams import SystemClock, TrioWorkers
from ottla.base.tcp import TcpNetwork
from ottla.compat_tests.quorum_cluster import CLUSTER_ID
from ottla.compat_tests.server_process import ServerProcess
from ottla.log.disk import OsDisk
from ottla.tests.controller.quorum.active.controller_server import ControllerQuorum

_SESSION_MS = 6000


class ControllerProcess(ServerProcess):
    """Controller ``node_id``. ``ports`` has those of all, and is complete before the first start."""

    clean_exit = -15

    def __init__(self, folder: Path, node_id: int, ports: list[int]) -> None:
        folder.mkdir(parents=True)
        super().__init__(folder, "controller.log")
        self.node_id = node_id
        self._ports = ports
        ports.append(self.port)

    def command(self) -> list[str]:
        arguments = [str(self.node_id), str(self.folder / "data"), *map(str, self._ports)]
        return [sys.executable, "-m", "ottla.tests.quorum_mixed.controller_process", *arguments]


async def _serve(node_id: int, folder: str, ports: Sequence[int]) -> None:
    quorum = ControllerQuorum(CLUSTER_ID, seed=node_id, settings={"session_timeout_ms": _SESSION_MS})
    network, clock = TcpNetwork(TrioWorkers(2)), SystemClock()
    for number, port in enumerate(ports, 1):
        quorum.add(number, "127.0.0.1", port, network, OsDisk(), folder, clock)
    own = quorum.servers[node_id]
    if not (Path(folder) / "__cluster_metadata-0").exists():
        own.format(quorum.voters)
    await own.live()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    trio.run(_serve, int(sys.argv[1]), sys.argv[2], [int(port) for port in sys.argv[3:]])
