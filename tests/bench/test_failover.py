"""A failover of three processes on ZooKeeper under load, as ``make bench-failover`` measures it; here only what must hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.compat_tests import toolchains
from ottla.compat_tests.zookeeper import JARS

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 300


@pytest.mark.slow
def test_clients_lose_nothing_when_a_leader_that_is_the_controller_is_killed(tmp_path: Path) -> None:
    toolchains.java()
    toolchains.jars(JARS)
    options = (
        "--systems",
        "ottla",
        "--turns",
        "1",
        "--kills",
        "both",
        "--no-restarts",
        "--loads",
        "confluent,kafka-python",
    )
    command = [sys.executable, "-m", "bench.failover", *options, "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "- nothing lost, doubled or reordered" in done.stdout
    assert "error" not in done.stdout, "no client reported one"
