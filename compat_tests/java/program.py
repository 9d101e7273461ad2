"""A long-running Java program in its own process, with its output in a file."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import SHORT_LIVED

EXIT_AFTER_SIGTERM = 128 + signal.SIGTERM


class Program:
    """The process of a main class in ``class_path``."""

    def __init__(self, class_path: str, log: Path) -> None:
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        self._java = [str(toolchains.java()), *SHORT_LIVED, level, "-cp", class_path]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, main_class: str, *arguments: str) -> None:
        """Start it, perhaps again."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java, main_class, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def check(self) -> None:
        """Fail when it has ended by itself."""
        assert self._process is not None
        said = self._log.read_text(errors="replace")[-5000:]
        assert self._process.poll() is None, f"exit status {self._process.returncode}\n{said}"

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM: it commits what it has done, and leaves its groups."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(timeout=60) == EXIT_AFTER_SIGTERM

    def close(self) -> None:
        """End it if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
