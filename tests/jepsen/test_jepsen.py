"""A short run of the nemesis on three processes of Ottla, and on quorums of KRaft, as ``make jepsen`` does it.

In a world of its own where there are namespaces; else on 127.0.0.1, with the faults that are possible there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.compat_tests import toolchains
from ottla.compat_tests.zookeeper import JARS

from .faults import FAULTS
from .machine_faults import EmptyDisk
from .process_faults import ControllerChangeWhileMoving, RollingRestart
from .quorum_faults import KillControllers

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 420
_TOO_LONG = {EmptyDisk.name, RollingRestart.name, ControllerChangeWhileMoving.name, KillControllers.name}


@pytest.mark.slow
@pytest.mark.parametrize("system", ["ottla", "quorum", "own-quorum", "own-controllers"])
def test_nothing_is_lost_doubled_or_torn_by_a_few_faults(tmp_path: Path, system: str) -> None:
    if system == "quorum":
        toolchains.java()
        toolchains.kafka_jars()
    elif system == "ottla":
        toolchains.java()
        toolchains.jars(JARS)
    faults = ",".join(fault.name for fault in FAULTS if fault.name not in _TOO_LONG)
    options = ["--minutes", "0.35", "--seed", "1", "--system", system]
    options += ["--faults", faults, "--folder", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "ottla.tests.jepsen", *options],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        cwd=_ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing is wrong." in done.stdout
