"""``ottla doctor`` and ``ottla cluster health`` at three nodes, each a process, of which some do not respond any more."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.kraft_cluster import BROKER, CONTROLLER, OTTLA, KRaftCluster, Seat
from ottla.compat_tests.session import eventually

from ...helpers.command import Command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

UNCHANGEABLE = "nothing in the metadata can be changed"
NO_LEADER = ("The quorum of controllers has no leader", "No leader of the quorum has responded")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KRaftCluster]:
    """The sessions of brokers last longer than a test, so that the metadata list those that do not respond as alive."""
    cluster = KRaftCluster(tmp_path, [Seat(OTTLA)] * 3, properties={"broker.session.timeout.ms": "300000"})
    with contextlib.closing(cluster):
        cluster.start()
        yield cluster


class Lines:
    """What the doctor says, by area."""

    def __init__(self, command: Command, *options: str) -> None:
        done = command.run("doctor", "--json", *options)
        assert done.stderr == ""
        self.status = done.returncode
        self._lines = json.loads(done.stdout)["lines"]

    def of(self, area: str) -> list[tuple[str, str]]:
        return [(each["level"], each["what"]) for each in self._lines if each["area"] == area]

    def mends(self, area: str) -> list[str]:
        return [each["mend"] for each in self._lines if each["area"] == area and each["level"] == "problem"]


def health(command: Command) -> dict[str, Any]:
    done = command.run("cluster", "health", "--json")
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if found["healthy"] else 1)
    return found


def followers(cluster: KRaftCluster) -> list[int]:
    """The nodes that do not lead the quorum."""
    leader: list[int | None] = [None]

    def is_known() -> bool:
        leader[0] = cluster.controller()
        return leader[0] is not None

    eventually(is_known)
    return [number for number in cluster.ids if number != leader[0]]


def test_a_broker_that_hangs_is_a_problem_and_a_majority_is_left(cluster: KRaftCluster) -> None:
    command = Command(cluster.bootstrap)
    one, other = followers(cluster)
    (leader,) = set(cluster.ids) - {one, other}
    assert (health(command)["healthy"], health(command)["controller"]) == (True, leader)

    os.kill(cluster.node(one).pid, signal.SIGSTOP)
    try:
        lines, found = Lines(command), health(command)
    finally:
        os.kill(cluster.node(one).pid, signal.SIGCONT)
    sentence = f"Broker {one} does not respond at {cluster.node(one).address}: no response within 3 s"
    left = ", ".join(map(str, sorted((leader, other))))
    assert (lines.status, lines.of("brokers")) == (1, [("problem", sentence), ("ok", f"2 brokers are alive: {left}")])
    assert "problem" not in [level for level, _ in lines.of("quorum")]
    assert (found["healthy"], found["problems"], found["brokers_down"]) == (False, [sentence], [one])
    assert (found["controller"], found["brokers"]) == (leader, sorted((leader, other)))
    eventually(lambda: health(command)["healthy"])


def test_two_of_three_are_killed(cluster: KRaftCluster) -> None:
    command = Command(cluster.bootstrap)
    command("topics", "create", "orders", "-r", "3")
    gone = followers(cluster)
    (leader,) = set(cluster.ids) - set(gone)
    for number in gone:
        cluster.node(number).kill()

    lines, found = Lines(command, "--probe-clocks"), health(command)
    sentences = [f"Broker {n} does not respond at {cluster.node(n).address}: connection refused" for n in gone]
    assert lines.of("brokers") == [*(("problem", each) for each in sentences), ("ok", f"1 broker is alive: {leader}")]
    for number, mend in zip(gone, lines.mends("brokers"), strict=True):
        assert f"ottla serve --node {number} " in mend
    ((level, what),) = lines.of("quorum")
    assert (lines.status, level) == (1, "problem")
    missing = f"2 of 3 voters do not fetch from the leader of the quorum ({gone[0]}, {gone[1]})"
    assert what.startswith((missing, *NO_LEADER)) and what.endswith(UNCHANGEABLE)
    assert next(level for level, _ in lines.of("replication")) in ("problem", "warning")
    assert all(f"broker {n}" not in what for n in gone for _, what in lines.of("limits"))
    assert ("not checked", f"Settings, of brokers {gone[0]}, {gone[1]}: they do not respond") in lines.of("settings")
    assert (found["healthy"], found["brokers"], found["brokers_down"]) == (False, [leader], gone)
    assert found["problems"][:2] == sentences and found["problems"][2].endswith(UNCHANGEABLE)

    eventually(lambda: Lines(command).of("quorum")[0][1].startswith(NO_LEADER))
    assert health(command)["controller"] is None
    printed = command.run("cluster", "health").stdout.splitlines()
    assert printed[:3] == ["healthy: false", "controller: none", f"brokers: {leader}"]
    assert f"problem: {sentences[0]}" in printed


def test_a_controller_that_is_no_broker_is_killed(tmp_path: Path) -> None:
    """It is the only voter: the broker serves on, and forwards to nobody."""
    cluster = KRaftCluster(tmp_path, [Seat(OTTLA, (BROKER,)), Seat(OTTLA, (CONTROLLER,))])
    with contextlib.closing(cluster):
        cluster.start()
        command = Command(cluster.bootstrap)
        found = health(command)
        assert (found["healthy"], found["controller"], found["problems"]) == (True, 2, [])
        cluster.node(2).kill()

        lines, found = Lines(command), health(command)
        ((level, what),) = lines.of("quorum")
        assert (lines.status, level) == (1, "problem")
        assert what.startswith(NO_LEADER) and what.endswith(UNCHANGEABLE)
        assert lines.of("brokers") == [("ok", "1 broker is alive: 1")]
        assert (found["healthy"], found["controller"], found["brokers"], found["brokers_down"]) == (
            False,
            None,
            [1],
            [],
        )
        assert len(found["problems"]) == 1
