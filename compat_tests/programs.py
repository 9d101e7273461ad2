"""The clients without a driver in ``clients.registry``, which have tests of their own.

A test says which one it is with ``@pytest.mark.client("…")``; the name is one of these, or a driver's.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ottla.compat_tests import toolchains
from ottla.compat_tests.clients.registry import CLIENTS


@dataclass(frozen=True)
class Program:
    """``version`` gives None where the program is missing."""

    what: str
    version: Callable[[], str | None]


def _jars_version(folder: str, library: str) -> Callable[[], str | None]:
    """Of the library in a folder of jars, by the jar's name."""

    def version() -> str | None:
        for jar in toolchains.jars_folder(folder).glob(f"{library}-[0-9]*.jar"):
            return f"{library} {jar.stem.removeprefix(library + '-')}"
        return None

    return version


def _kcat_version() -> str | None:
    program = shutil.which("kcat") or shutil.which("kafkacat")
    if program is None:
        return None
    shown = subprocess.run([program, "-V"], capture_output=True, text=True, timeout=20).stdout
    version = [line for line in shown.splitlines() if line.startswith("Version")]
    return version[0].removeprefix("Version ").partition(" (")[0] if version else None


def _spark_version() -> str | None:
    try:
        return f"pyspark {importlib.metadata.version('pyspark')}"
    except importlib.metadata.PackageNotFoundError:
        return None


def _wire_version() -> str:
    import ottla

    return f"Ottla's own codec {ottla.__version__}"


PROGRAMS: Mapping[str, Program] = {
    "java-tools": Program("Kafka's command-line tools", _jars_version(toolchains.KAFKA_JARS, "kafka-tools")),
    "kafka-streams": Program(
        "a word count with exactly_once_v2", _jars_version("kafka-streams-4.3.1", "kafka-streams")
    ),
    "connect": Program("Kafka Connect's file source and sink", _jars_version("connect-4.3.1", "connect-runtime")),
    "kcat": Program("kcat, whose librdkafka is an old one", _kcat_version),
    "spark": Program("Spark's kafka format", _spark_version),
    "wire": Program("no client: frames on a socket", _wire_version),
}


def names() -> list[str]:
    """All that ``--client`` takes, in the order of the table."""
    return [*CLIENTS, *PROGRAMS]
