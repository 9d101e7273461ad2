"""``ottla verify``: what it makes of paths that are wrong, and whether a start does as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ottla.compat_tests.brokers import OttlaProcess
from ottla.compat_tests.raw.requests import batch, list_offset, produce
from ottla.compat_tests.wire_client import Operator, connect

from .helpers.command import run_alone

pytestmark = pytest.mark.slow

EARLIEST = -2
LATEST = -1
SEGMENT = "00000000000000000000.log"


def test_folder_of_no_broker(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    why = f"{tmp_path} is not a log directory of a broker: it has no meta.properties, no checkpoint and no partition"
    for arguments in ((), ("--json",)):
        assert run_alone("verify", tmp_path, *arguments) == (2, "", f"ottla: {why}\n")


def test_path_of_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run_alone("verify", tmp_path / "nowhere") == (
        2,
        "",
        f"ottla: {tmp_path}/nowhere: No such file or directory\n",
    )
    assert run_alone("verify", tmp_path / "file") == (2, "", f"ottla: {tmp_path}/file: Not a directory\n")


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_start_on_a_damaged_folder(tmp_path: Path, stop: str) -> None:
    """Bytes in the middle of a segment are overwritten: after a clean stop they stay, after a crash the log is cut there."""
    broker = OttlaProcess(tmp_path)
    try:
        broker.start()
        Operator(broker.bootstrap).create_topic("damaged", 1, {"retention.ms": "-1"})
        with connect(broker.bootstrap) as connection:
            for _ in range(30):
                produce(connection, "damaged", batch(*[b"x" * 1000] * 10))
        getattr(broker, stop)()
        data = broker.data_folders[0]
        log_file = data / "damaged-0" / SEGMENT
        with log_file.open("r+b") as file:
            file.seek(100_000)
            file.write(b"\xa5" * 100)
        status, printed, errors = run_alone("verify", data)
        assert (status, errors) == (1, "")
        (line,) = [line for line in printed.splitlines() if line.startswith("damaged-0")]
        cut = re.search(r"a start cuts the log at offset (\d+)$", line)
        assert line.startswith(f"damaged-0/{SEGMENT}: ") and (cut is None) == (stop == "stop")
        broker.start()
        Operator(broker.bootstrap).wait_until_ready("damaged", 1)
        with connect(broker.bootstrap) as connection:
            ends = [list_offset(connection, "damaged", which, 7).offset for which in (EARLIEST, LATEST)]
        assert ends == [0, 300 if cut is None else int(cut[1])]
    finally:
        broker.close()
