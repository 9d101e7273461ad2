"""The location of the non-Python programs that tests need, and the error for a missing one.

A missing toolchain skips its tests with the reason; with ``CI=true`` in the environment it fails them instead, so that
nothing is left out unnoticed. In a program that is no test it is a ToolchainMissing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

PACKAGE = Path(__file__).resolve().parents[1]
KAFKA_JARS = "kafka-tools-4.3.1"


class ToolchainMissing(RuntimeError):
    """A program or its files are not here; ``str()`` says which, and how to get them."""


def missing(reason: str) -> NoReturn:
    """Skip the test that asked, or fail it in CI. Raises ToolchainMissing where no pytest runs, which need not be installed."""
    if "pytest" not in sys.modules:
        raise ToolchainMissing(reason)
    import pytest

    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; in CI nothing is skipped", pytrace=False)
    pytest.skip(reason)


def _variable_or(variable: str, default: Path) -> Path:
    return Path(os.environ[variable]) if variable in os.environ else default


def kafka_python_2() -> Path:
    """The interpreter of the virtualenv that holds kafka-python 2.x."""
    python = _variable_or("OTTLA_KAFKA_PYTHON_2", PACKAGE / ".venv-kafka-python-2" / "bin" / "python")
    if not python.exists():
        missing(f"no virtualenv with kafka-python 2.x at {python} (make setup-all, or OTTLA_KAFKA_PYTHON_2)")
    return python


def jars_folder(name: str) -> Path:
    """Where one set of jars is, by the name that tools/fetch_jars.sh gives it, or would be."""
    if name == KAFKA_JARS:
        return _variable_or("OTTLA_KAFKA_JARS", PACKAGE / ".jars" / name)
    return _variable_or("OTTLA_JARS", PACKAGE / ".jars") / name


def kafka_jars() -> Path:
    """The folder with the jars of Kafka's tools and broker."""
    folder = jars_folder(KAFKA_JARS)
    if not list(folder.glob("kafka-tools-*.jar")):
        missing(f"no jars of Kafka's tools in {folder} (make setup-all, or OTTLA_KAFKA_JARS)")
    return folder


def jars(name: str) -> Path:
    """The folder of one set of jars, by the name that tools/fetch_jars.sh gives it."""
    folder = jars_folder(name)
    if not list(folder.glob("*.jar")):
        missing(f"no jars in {folder} (make setup-all, or OTTLA_JARS)")
    return folder


def built_clients(language: str) -> Path:
    """The folder with the drivers in one language, as tools/build_clients.sh leaves it."""
    folder = _variable_or("OTTLA_CLIENTS", PACKAGE / ".clients") / language
    if not (folder / ".built").exists():
        missing(f"no clients in {folder} (make setup-all, or tools/build_clients.sh {language}, or OTTLA_CLIENTS)")
    return folder


def node() -> str:
    """The Node.js program."""
    found = shutil.which("node")
    if found is None:
        missing("no node on the PATH (Node.js 20)")
    return found


def _from_java(program: str) -> Path:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(program, path=str(Path(home) / "bin") if home else None)
    if found is None:
        missing(f"no {program} on the PATH and no JAVA_HOME that has it")
    return Path(found)


def java() -> Path:
    """The Java launcher."""
    return _from_java("java")


def compile_java(sources: Sequence[Path], jars: Path, target: Path) -> None:
    """Compile programs that use the jars of a folder into class files; a JDK is needed."""
    options = ["-cp", f"{jars}/*", "-d", str(target), "-nowarn", "-proc:none"]
    # The compiler lives for a second, so it is not worth compiling.
    command = [str(_from_java("javac")), "-J-XX:TieredStopAtLevel=1", *options, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def kcat() -> Path:
    """The kcat program (Debian's package kcat)."""
    found = shutil.which("kcat") or shutil.which("kafkacat")
    if found is None:
        missing("no kcat on the PATH (apt-get install kcat)")
    return Path(found)
