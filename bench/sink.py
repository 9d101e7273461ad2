"""The sink of ``bench/c`` in place of a broker: it drops what it reads, which shows the kernel's cost of a load."""

from __future__ import annotations

from pathlib import Path

from .brokers import RunningBroker
from .c_programs import compiled


class Sink:
    """A ``Kind``: it answers Metadata, and Produce as if it had stored the records."""

    name = "C sink"
    ports = 1

    def prepare(self, folder: Path, port: int) -> list[str]:
        return [str(compiled("sink", folder)), str(port)]


class RunningSink(RunningBroker):
    """The sink as a broker under load: it has every topic that it is asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Sink(), folder)

    def create_topic(self, topic: str, partitions: int) -> None:
        pass

    def delete_topic(self, topic: str) -> None:
        pass
