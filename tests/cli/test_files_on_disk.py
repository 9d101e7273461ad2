"""``ottla verify`` and ``ottla dump-log``: what they make of paths that are wrong, and whether a start does as verify says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.compat_tests.brokers import OttlaProcess
from ottla.compat_tests.raw.requests import batch, list_offset, produce
from ottla.compat_tests.wire_client import Operator, connect

pytestmark = pytest.mark.slow

EARLIEST, LATEST = -2, -1
SEGMENT = "00000000000000000000.log"


def run(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command that needs no broker."""
    words = [sys.executable, "-m", "ottla", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


# --- verify -----------------------------------------------------------------------------------------------------------


def test_folder_of_no_broker(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    why = f"{tmp_path} is no data folder of a broker: there is no meta.properties in it, no checkpoint and no partition"
    for arguments in ((), ("--json",)):
        assert run("verify", tmp_path, *arguments) == (2, "", f"ottla: {why}\n")


def test_path_of_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run("verify", tmp_path / "nowhere") == (2, "", f"ottla: {tmp_path}/nowhere: No such file or directory\n")
    assert run("verify", tmp_path / "file") == (2, "", f"ottla: {tmp_path}/file: Not a directory\n")


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
        status, printed, errors = run("verify", data)
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


# --- set-aside --------------------------------------------------------------------------------------------------------


def test_damaged_batch_is_set_aside_as_verify_says_and_put_back(tmp_path: Path) -> None:
    broker = OttlaProcess(tmp_path)
    try:
        broker.start()
        Operator(broker.bootstrap).create_topic("damaged", 1, {"retention.ms": "-1"})
        with connect(broker.bootstrap) as connection:
            for _ in range(3):
                produce(connection, "damaged", batch(b"x" * 1000, b"y" * 1000))
        data = broker.data_folders[0]
        in_use = run("set-aside", data, "damaged-0", "2")
        assert (in_use[0], in_use[1]) == (2, "")
        assert "is in use by a broker" in in_use[2]
        broker.stop()
        with (data / "damaged-0" / SEGMENT).open("r+b") as file:
            file.seek(3000)
            file.write(b"\xa5")
        whole = (data / "damaged-0" / SEGMENT).read_bytes()
        (line,) = [line for line in run("verify", data)[1].splitlines() if line.startswith("damaged-0")]
        advice = re.search(r"'ottla set-aside DATA_DIR (\S+) (\d+)' takes it out$", line)
        assert advice is not None
        status, printed, errors = run("set-aside", data, *advice.groups())
        assert (status, errors) == (0, "")
        assert "offsets 2 to 3, " in printed
        assert run("verify", data) == (0, "", "")
        broker.start()
        Operator(broker.bootstrap).wait_until_ready("damaged", 1)
        with connect(broker.bootstrap) as connection:
            ends = [list_offset(connection, "damaged", which, 7).offset for which in (EARLIEST, LATEST)]
        assert ends == [0, 6]
        broker.stop()
        undo = printed.partition("To put them back: ottla ")[2].splitlines()[0].split()
        assert run(*undo)[0] == 0
        assert (data / "damaged-0" / SEGMENT).read_bytes() == whole
    finally:
        broker.close()


def test_nothing_to_set_aside(tmp_path: Path) -> None:
    why = f"there is no partition t-0 in {tmp_path}; they are named TOPIC-NUMBER"
    assert run("set-aside", tmp_path, "t-0", "0") == (1, "", f"ottla: {why}\n")


# --- dump-log ---------------------------------------------------------------------------------------------------------

NAMELESS = "its name has to be the first offset that the file may hold, as in 00000000000000000000.log"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for name in ("nope.log", SEGMENT, "nope.index", "0.timeindex", "nope.txnindex", "nope.snapshot"):
        status, printed, errors = run("dump-log", "--files", tmp_path / name)
        assert (status, errors) == (
            1,
            f"{tmp_path / name}: No such file or directory\n".replace("0.timeindex", "0.log"),
        )
        assert printed.startswith(f"Dumping {tmp_path / name}\n")


@pytest.mark.parametrize("name", ["orders.log", "1_0.log", "orders.index", "x1.timeindex", "copy of 0.txnindex"])
def test_name_that_is_no_offset(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert run("dump-log", "--files", tmp_path / name) == (
        1,
        f"Dumping {tmp_path / name}\n",
        f"{tmp_path / name}: {NAMELESS}\n",
    )


def test_offset_without_twenty_digits(tmp_path: Path) -> None:
    (tmp_path / "7.log").write_bytes(batch(b"a"))
    status, printed, errors = run("dump-log", "--files", tmp_path / "7.log")
    assert (status, errors) == (0, "") and printed.splitlines()[1] == "Log starting offset: 7"


def test_folders(tmp_path: Path) -> None:
    (tmp_path / SEGMENT).mkdir()
    assert run("dump-log", "--files", tmp_path) == (
        0,
        f"Dumping {tmp_path}\n",
        f"Ignoring unknown file {tmp_path}\n",
    ), "as Apache Kafka's tool"
    status, _, errors = run("dump-log", "--files", tmp_path / SEGMENT)
    assert (status, errors) == (1, f"{tmp_path / SEGMENT}: Is a directory\n")
