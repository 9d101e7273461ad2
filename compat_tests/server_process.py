"""A server in its own process, on a fixed port, that can be started, paused, stopped, killed and restarted.

What it prints goes to one file, in which each start goes on. A start has as long as a JVM on a busy machine may need.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from ottla.testing.held_port import HeldPort

START_TIMEOUT_S = 120.0
_TAIL = 2000
"""Characters of the log that an error shows."""


class ServerProcess(ABC):
    """A server with what it keeps in ``folder``; ``log_file`` is what it has printed, ``port`` the one that it listens on.

    ``clean_exit`` is its exit status after SIGTERM. The port is a free one unless it is given; OSError where that is taken.
    """

    clean_exit = 0
    is_apart = False
    """Whether Ctrl-C at the terminal does not reach it."""
    host = "127.0.0.1"
    """The address on which it listens."""
    prefix: Sequence[str] = ()
    """What its command line begins with: a program that starts it elsewhere, or otherwise."""

    def __init__(self, folder: Path, log_name: str, port: int = 0) -> None:
        self.folder = folder
        self.log_file = folder / log_name
        self._held_port = HeldPort(port)
        self.port = self._held_port.number
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """host:port."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """Its process id. AssertionError before the first start."""
        assert self._process is not None, "never started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has been started and has not ended; one that is paused runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """That of its last process, negative for a signal; None while it runs."""
        return None if self._process is None else self._process.poll()

    @abstractmethod
    def command(self) -> list[str]:
        """The server's command line."""

    def is_ready(self) -> bool:
        """Whether it can be used: unless a server knows better, whether it accepts connections."""
        try:
            socket.create_connection((self.host, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def start(self) -> None:
        """Start it, and return when it can be used. Raises RuntimeError, with the end of its log, when it can't."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start it, without waiting: several servers may begin side by side. ``wait_ready`` is to follow."""
        assert not self.is_running, f"{self.command()} is running"
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.prefix, *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0 if self.is_apart else None,
            )

    def wait_ready(self) -> None:
        """Return when it can be used. Raises RuntimeError when it has ended, or takes too long."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.is_ready():
            if not self.is_running or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {self.command()}\n{self.log()[-_TAIL:]}")
            time.sleep(0.02)

    def log(self) -> str:
        """All that it has printed, over all of its starts."""
        return self.log_file.read_text(errors="replace")

    def pause(self) -> None:
        """SIGSTOP: it neither reads nor writes when this returns, and its connections stay."""
        self._signal(signal.SIGSTOP)
        while not all(map(_is_stopped, Path(f"/proc/{self.pid}/task").glob("*"))):
            time.sleep(0.001)  # a busy machine stops a thread when its turn comes, and nothing else tells of it

    def resume(self) -> None:
        """SIGCONT, the end of ``pause``."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "never started"
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None, "never started"
        self._process.kill()
        self._process.wait()

    def ask_to_stop(self) -> None:
        """SIGTERM, without waiting; one that is paused goes on for that. ``wait_stopped`` is to follow."""
        assert self._process is not None, "never started"
        self._process.send_signal(signal.SIGTERM)
        self._process.send_signal(signal.SIGCONT)

    def wait_stopped(self, limit_s: float = START_TIMEOUT_S) -> None:
        """Wait for the exit, which must be a clean one. Raises AssertionError; TimeoutExpired after ``limit_s``."""
        assert self._process is not None, "never started"
        status = self._process.wait(timeout=limit_s)
        assert status == self.clean_exit, f"exit status {status}: {self.command()}\n{self.log()[-_TAIL:]}"

    def stop(self, limit_s: float = START_TIMEOUT_S) -> None:
        """SIGTERM, and wait for the exit. As ``wait_stopped`` raises."""
        self.ask_to_stop()
        self.wait_stopped(limit_s)

    def close(self) -> None:
        """End it if it still runs, and let go of its port."""
        if self.is_running:
            self.kill()
        self._held_port.close()


def _is_stopped(task: Path) -> bool:
    """Whether a thread is stopped, or gone."""
    try:
        state = (task / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "TZX"
