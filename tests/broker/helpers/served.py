"""``ottla serve`` as a process: its ready line, its end, and the line of a start that is refused."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

LIMIT_S = 120
READY = re.compile(r"is ready on (\S+),(?: (\S+),)* cluster (\S+), data in (.+)")


class Served:
    """A broker process and its ready line."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ottla", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = READY.search(line)
        assert match, self.process.communicate()[1]
        self.address, self.second, self.cluster_id, self.data_dir = match.groups()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit code and what was logged."""
        self.process.send_signal(number)
        _, log = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, log


def refused(*arguments: str, code: int = 2) -> str:
    """The one line of a start that is refused, with exit code 2 unless another is expected."""
    result = subprocess.run(
        [sys.executable, "-m", "ottla", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert result.returncode == code, result
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("ottla: ")]
    assert len(lines) == 1, result.stderr
    return lines[0]
