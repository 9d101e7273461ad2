"""``ottla set-aside``: a damaged batch is taken out as ``ottla verify`` says, and put back."""

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


def test_damaged_batch_is_set_aside_as_verify_says_and_put_back(tmp_path: Path) -> None:
    broker = OttlaProcess(tmp_path)
    try:
        broker.start()
        Operator(broker.bootstrap).create_topic("damaged", 1, {"retention.ms": "-1"})
        with connect(broker.bootstrap) as connection:
            for _ in range(3):
                produce(connection, "damaged", batch(b"x" * 1000, b"y" * 1000))
        data = broker.data_folders[0]
        in_use = run_alone("set-aside", data, "damaged-0", "2")
        assert (in_use[0], in_use[1]) == (2, "")
        assert "is in use by a broker" in in_use[2]
        broker.stop()
        with (data / "damaged-0" / SEGMENT).open("r+b") as file:
            file.seek(3000)
            file.write(b"\xa5")
        whole = (data / "damaged-0" / SEGMENT).read_bytes()
        (line,) = [line for line in run_alone("verify", data)[1].splitlines() if line.startswith("damaged-0")]
        advice = re.search(r"'ottla set-aside DATA_DIR (\S+) (\d+)' takes it out$", line)
        assert advice is not None
        status, printed, errors = run_alone("set-aside", data, *advice.groups())
        assert (status, errors) == (0, "")
        assert "offsets 2 to 3, " in printed
        assert run_alone("verify", data) == (0, "", "")
        broker.start()
        Operator(broker.bootstrap).wait_until_ready("damaged", 1)
        with connect(broker.bootstrap) as connection:
            ends = [list_offset(connection, "damaged", which, 7).offset for which in (EARLIEST, LATEST)]
        assert ends == [0, 6]
        broker.stop()
        undo = printed.partition("To put them back: ottla ")[2].splitlines()[0].split()
        assert run_alone(*undo)[0] == 0
        assert (data / "damaged-0" / SEGMENT).read_bytes() == whole
    finally:
        broker.close()


def test_nothing_to_set_aside(tmp_path: Path) -> None:
    why = f"there is no partition t-0 in {tmp_path}; they are named TOPIC-NUMBER"
    assert run_alone("set-aside", tmp_path, "t-0", "0") == (1, "", f"ottla: {why}\n")
