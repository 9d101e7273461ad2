"""A standalone Spark cluster on loopback, from the pyspark package: a master and workers, each in its own process.

A worker is killed together with its executors, as a machine is that loses power: they are in its session. Who is there
is asked of the master, which says it as JSON.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ottla.compat_tests.session import eventually
from ottla.compat_tests.spark import jvm
from ottla.compat_tests.spark.killing import kill_all

START_TIMEOUT_S = 240.0
DAEMON_MEMORY = "256m"


class Daemon:
    """A main class of Spark's that runs until it is killed; what it says goes to a file in ``folder``."""

    def __init__(self, folder: Path, name: str, main_class: str, *arguments: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder),
            "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
            "SPARK_DAEMON_JAVA_OPTS": jvm.OPTIONS,
            "PYSPARK_PYTHON": sys.executable,
        }
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main_class}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )

    def said(self, pattern: str) -> str:
        """Wait until it has said something; the first group of the regular expression."""

        def found() -> str | None:
            text = self._log.read_text(errors="replace")
            assert self._process.poll() is None, f"it has ended: {text[-3000:]}"
            whole_lines = text[: text.rfind("\n") + 1]
            match = re.search(pattern, whole_lines)
            return match and match[1]

        return eventually(found, START_TIMEOUT_S) or ""

    def kill(self) -> None:
        """SIGKILL for it and whatever it has started."""
        kill_all(self._process)


class Cluster:
    """A master and ``workers``, each with ``cores`` and the memory for as many executors of ``EXECUTOR_MEMORY``.

    ``master`` is the URL that jobs are given. Everything that is written lies in ``folder``.
    """

    EXECUTOR_MEMORY = "512m"

    def __init__(self, folder: Path, workers: int, cores: int) -> None:
        self._folder = folder
        folder.mkdir()
        self._master = Daemon(folder, "master", "master.Master", *_addresses())
        self.workers: list[Daemon] = []
        try:
            self.master = self._master.said(r"(spark://127\.0\.0\.1:\d+)")
            self._address = "http://127.0.0.1:" + self._master.said(r"'MasterUI' on port (\d+)")
            for number in range(workers):
                options = [
                    "--cores",
                    str(cores),
                    "--memory",
                    f"{cores}g",
                    "--work-dir",
                    str(folder / f"worker-{number}"),
                ]
                self.workers.append(
                    Daemon(folder, f"worker-{number}", "worker.Worker", *_addresses(), *options, self.master)
                )
            self.wait_for_workers(workers)
        except BaseException:
            self.close()
            raise

    def state(self) -> dict[str, Any]:
        """What the master knows of its workers and applications."""
        with urllib.request.urlopen(f"{self._address}/json/", timeout=10) as answer:
            state: dict[str, Any] = json.load(answer)
        return state

    def wait_for_workers(self, alive: int) -> None:
        """Until the master counts so many."""

        def are_alive() -> bool:
            try:
                return bool(self.state()["aliveworkers"] == alive)
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                return False  # it listens before its pages are there, and has the one for people first; or is busy

        eventually(are_alive, START_TIMEOUT_S)

    def settings(self, **more: str) -> list[str]:
        """What the command of a job needs to run on the cluster, with one executor of one core on each worker."""
        spark = {
            "spark.executor.memory": self.EXECUTOR_MEMORY,
            "spark.executor.cores": "1",
            "spark.cores.max": str(len(self.workers)),
            "spark.sql.shuffle.partitions": "2",
            **more,
        }
        return ["--master", self.master, *(word for item in spark.items() for word in ("--setting", "=".join(item)))]

    def close(self) -> None:
        """Kill all that still run."""
        for daemon in (*self.workers, self._master):
            daemon.kill()


def _addresses() -> list[str]:
    return ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]


@contextlib.contextmanager
def running(folder: Path, workers: int = 2, cores: int = 2) -> Iterator[Cluster]:
    """A cluster for the length of a block."""
    cluster = Cluster(folder, workers, cores)
    try:
        yield cluster
    finally:
        cluster.close()


class Job:
    """An ``ottla spark`` command in a session of its own, so that its JVM can be killed with it.

    What it says goes to ``NAME.log`` in ``folder``, where it runs, too. ``checkpoint`` is that of its query.
    """

    def __init__(self, folder: Path, name: str, *arguments: str, checkpoint: Path) -> None:
        self._commits = checkpoint / "commits"
        self._log = folder / f"{name}.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ottla", "spark", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )

    def batches(self) -> int:
        """How many micro-batches are done, by its checkpoint."""
        return max((int(path.name) + 1 for path in self._commits.glob("[0-9]*")), default=0)

    def wait_for_batches(self, number: int, timeout_s: float = START_TIMEOUT_S) -> None:
        """Until so many are done in all, with more to do: AssertionError when it has ended by then."""
        self._wait_until(lambda: self.batches() >= number, timeout_s)

    def wait_for_offsets(self, topic: str, ends: Sequence[int], timeout_s: float = START_TIMEOUT_S) -> None:
        """Until it has come to ``ends`` in the partitions of its only source, a topic, without ending."""
        wanted = {topic: {str(partition): end for partition, end in enumerate(ends)}}
        self._wait_until(lambda: self._offsets() == wanted, timeout_s)

    def _offsets(self) -> Any:
        done = self.batches()
        if not done:
            return None
        *_, source = (self._commits.parent / "offsets" / str(done - 1)).read_text().splitlines()
        return json.loads(source)

    def _wait_until(self, check: Callable[[], bool], timeout_s: float) -> None:
        eventually(lambda: check() or self._process.poll() is not None, timeout_s)
        assert self._process.poll() is None, f"it has ended: {self.said()[-3000:]}"

    def wait(self, timeout_s: float) -> None:
        """Its end, which must be a good one."""
        assert self._process.wait(timeout_s) == 0, self.said()[-3000:]

    def said(self) -> str:
        """All that it has said."""
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """SIGKILL for it and its JVM."""
        kill_all(self._process)
