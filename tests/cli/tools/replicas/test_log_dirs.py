"""``ottla log-dirs``."""

from __future__ import annotations

import pytest

from ...helpers.command import Command

pytestmark = pytest.mark.slow


def test_log_dirs(command: Command, topic: str) -> None:
    command("produce", topic, given="x\n")
    (folder,) = command.json("log-dirs")
    (replica,) = [replica for replica in folder["replicas"] if replica["topic"] == topic]
    assert (folder["broker"], folder["error"], replica["partition"], replica["lag"]) == (1, None, 0, 0)
    assert folder["total"] >= folder["usable"] > 0 and folder["size"] >= replica["size"] > 0
    ((*place, size, lag, is_future),) = command.rows("log-dirs", f"{topic}:0")
    assert (place[0], place[2:], int(size), lag, is_future) == ("1", [topic, "0"], replica["size"], "0", "false")
    assert "BROKER_NOT_AVAILABLE" in command.refused("log-dirs", "--brokers", "7")
