"""Kafka's command-line tools, one call after the other in one JVM, whose start costs more than most calls."""

from __future__ import annotations

import copy
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, java_command

SOURCE = Path(__file__).with_name("KafkaTools.java")


class Outcome(NamedTuple):
    """A call: its exit code, and what it printed, that on standard error behind the rest."""

    code: int
    printed: str


class WarmTools:
    """The tools, on one cluster."""

    def __init__(self, bootstrap_servers: str, folder: Path) -> None:
        self._bootstrap = bootstrap_servers
        toolchains.compile_java([SOURCE], toolchains.kafka_jars(), folder)
        *java, jars = java_command(folder, *SHORT_LIVED)
        self._process = subprocess.Popen(
            [*java, f"{folder}:{jars}", "KafkaTools"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def run(self, tool: str, *arguments: str) -> Outcome:
        """One call with these arguments only."""
        assert self._process.stdin is not None and self._process.stdout is not None
        words = (MAIN_CLASSES[tool], *arguments)
        self._process.stdin.write(("\t".join(words) + "\n").encode())
        self._process.stdin.flush()
        head = self._process.stdout.readline().split()
        assert head, "the JVM has ended"
        return Outcome(int(head[0]), self._process.stdout.read(int(head[1])).decode())

    def __call__(self, tool: str, *arguments: str, code: int = 0) -> str:
        """One call to the cluster: what it printed."""
        outcome = self.run(tool, "--bootstrap-server", self._bootstrap, *arguments)
        assert outcome.code == code, outcome.printed
        return outcome.printed

    def at(self, bootstrap_servers: str) -> WarmTools:
        """The same tools, on other brokers."""
        other = copy.copy(self)
        other._bootstrap = bootstrap_servers
        return other

    def described(self, *arguments: str) -> dict[str, tuple[str, set[int]]]:
        """Leader and in-sync replicas by partition, as kafka-topics tells them."""
        rows = re.findall(
            r"Topic: (\S+)\tPartition: (\d+)\tLeader: (\S+).*?\tIsr: (\S*)", self("topics", "--describe", *arguments)
        )
        return {
            f"{topic}-{number}": (leader, {int(i) for i in isr.split(",") if i}) for topic, number, leader, isr in rows
        }

    def close(self) -> None:
        """End the JVM."""
        self._process.communicate()
