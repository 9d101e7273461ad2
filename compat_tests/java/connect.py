"""A Kafka Connect worker process, standalone or distributed, with the connectors for files.

Standalone it keeps the source's place in a file; distributed in a topic, as it does with the connectors' configs and states.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ottla.compat_tests import toolchains
from ottla.compat_tests.java.program import Program
from ottla.compat_tests.session import eventually
from ottla.testing.held_port import HeldPort

JARS = "connect-4.3.1"
TIMEOUT_S = 120.0
SETTINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.flush.interval.ms": "200",
    "plugin.discovery": "service_load",
    "consumer.session.timeout.ms": "6000",
}


def source(path: Path, topic: str) -> dict[str, str]:
    """The config of a connector that writes the lines of a file into a topic."""
    return {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(path), "topic": topic}


def sink(path: Path, topic: str) -> dict[str, str]:
    """The config of a connector that writes a topic's records into a file."""
    return {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(path), "topics": topic}


class Worker(Program):
    """The process. What it says goes to a file in ``folder``."""

    def __init__(self, folder: Path, bootstrap: str, settings: Mapping[str, str]) -> None:
        super().__init__(f"{toolchains.jars(JARS)}/*", folder / "connect.log")
        self.folder = folder
        self._held_port = HeldPort()
        self.address = f"http://127.0.0.1:{self._held_port.number}"
        self._properties = SETTINGS | {"bootstrap.servers": bootstrap, "listeners": self.address} | dict(settings)

    def start_standalone(self, connectors: Mapping[str, Mapping[str, str]]) -> None:
        """With these connectors, by name."""
        files = [self._file(name, {"name": name, **config}) for name, config in connectors.items()]
        self._start("ConnectStandalone", *files)

    def start_distributed(self) -> None:
        """With what the cluster's topics say; returns when the worker answers."""
        self._start("ConnectDistributed")
        eventually(self._is_up, TIMEOUT_S)

    def close(self) -> None:
        super().close()
        self._held_port.close()

    def _start(self, program: str, *arguments: str) -> None:
        worker = self._file("worker", self._properties)
        self.launch(f"org.apache.kafka.connect.cli.{program}", worker, *arguments)

    def _file(self, name: str, properties: Mapping[str, str]) -> str:
        path = self.folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return str(path)

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector of a distributed worker, or change it; again while the workers agree on who does what."""
        body = json.dumps(config).encode()
        eventually(lambda: self._call("PUT", f"/connectors/{name}/config", body), TIMEOUT_S)

    def is_running(self, name: str) -> bool:
        """Whether a connector and its task run."""
        status = self._call("GET", f"/connectors/{name}/status") or {"connector": {"state": ""}, "tasks": []}
        states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
        return states == ["RUNNING", "RUNNING"]

    def _is_up(self) -> bool:
        return self._call("GET", "/connectors") is not None

    def _call(self, method: str, path: str, body: bytes | None = None) -> Any:
        """The answer to a REST request; None while the worker cannot answer."""
        self.check()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, data=body, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            assert error.code in (404, 409, 500, 503), f"{method} {path}: {error.code} {said}"
            return None
        except OSError:
            return None
