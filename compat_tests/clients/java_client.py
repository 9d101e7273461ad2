"""The driver of Java's kafka-clients, through a pipe to the program in ``java/``, one JVM per driver.

The program is compiled once per run, against the older of the two versions, and runs with either. Its folder goes with the
process that had it compiled; processes that this one starts find it by an environment variable.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

from ottla.compat_tests import toolchains
from ottla.compat_tests.clients import pipe
from ottla.compat_tests.java.tools import SHORT_LIVED

COMPILED_AGAINST = "3.9.2"
CLASSES_VARIABLE = "OTTLA_COMPAT_JAVA_CLASSES"


def jars(version: str) -> Path:
    """The folder with the jars of one version."""
    return toolchains.jars(f"kafka-clients-{version}")


@functools.cache
def classes() -> str:
    """The folder with the compiled program."""
    if CLASSES_VARIABLE in os.environ:
        return os.environ[CLASSES_VARIABLE]
    sources = sorted(Path(__file__).with_name("java").glob("*.java"))
    folder = tempfile.mkdtemp(prefix="ottla-compat-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    toolchains.compile_java(sources, jars(COMPILED_AGAINST), Path(folder))
    os.environ[CLASSES_VARIABLE] = folder
    return folder


class Client(pipe.Client):
    """kafka-clients of one version."""

    def __init__(self, version: str, bootstrap: str) -> None:
        # The library leaves it to its users to bring what OAUTHBEARER needs.
        bearer = sorted(toolchains.jars_folder(toolchains.KAFKA_JARS).glob("jose4j-*.jar"))
        path = os.pathsep.join([classes(), f"{jars(version)}/*", *map(str, bearer)])
        command = [str(toolchains.java()), *SHORT_LIVED, "-cp", path, "Driver"]
        super().__init__(f"kafka-clients {version}", command, bootstrap)
