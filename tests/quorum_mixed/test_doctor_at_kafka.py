"""``ottla doctor`` at a cluster of Apache Kafka: what it tells of brokers that are no Ottla."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.compat_tests.kraft_cluster import KAFKA, KRaftCluster, Seat

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def doctor(servers: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OTTLA_BOOTSTRAP_SERVERS": servers}
    command = [sys.executable, "-m", "ottla", "doctor", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def test_kafka_is_looked_at_whole(tmp_path: Path) -> None:
    """With nothing left out, an older metadata.version and a setting that differs between its brokers."""
    cluster = KRaftCluster(tmp_path, [Seat(KAFKA)] * 2, release="4.1", format_by=KAFKA, has_static_voters=True)
    cluster.nodes[1].properties = {**cluster.nodes[1].properties, "log.retention.hours": "5"}
    with contextlib.closing(cluster):
        cluster.start()
        done = doctor(cluster.bootstrap, "--probe-clocks", "--json")
        lines = json.loads(done.stdout)["lines"]
        assert (done.returncode, done.stderr) == (0, ""), lines
        assert [line["what"] for line in lines if line["level"] == "not checked"] == []
        said = {line["what"]: line["level"] for line in lines}
        assert said["2 brokers are alive: 1, 2"] == "ok"
        assert said["metadata.version is 4.1-IV1, and every broker supports 4.3-IV0"] == "note"
        assert said["log.retention.hours differs: 168 on 1, 5 on 2"] == "warning"
        assert said["2 log directories: " + free_of(said)] == "ok"
        assert sum("is as this machine's" in what for what in said) == 2
        assert sum("Open files, mapped files and memory of broker" in what for what in said) == 2


def test_two_of_three_are_killed(tmp_path: Path) -> None:
    """Their sessions outlast the test: the last one lists them as alive."""
    properties = {"broker.session.timeout.ms": "300000"}
    cluster = KRaftCluster(tmp_path, [Seat(KAFKA)] * 3, properties=properties, format_by=KAFKA, has_static_voters=True)
    with contextlib.closing(cluster):
        cluster.start()
        leader = cluster.controller()
        gone = [number for number in cluster.ids if number != leader][:2]
        for number in gone:
            cluster.node(number).kill()
        done = doctor(cluster.bootstrap, "--json")
        lines = json.loads(done.stdout)["lines"]
        problems = {
            area: [line["what"] for line in lines if (line["area"], line["level"]) == (area, "problem")]
            for area in ("brokers", "quorum")
        }
        assert (done.returncode, done.stderr) == (1, ""), lines
        assert problems["brokers"] == [
            f"Broker {n} does not respond at {cluster.node(n).address}: connection refused" for n in gone
        ]
        (what,) = problems["quorum"]
        assert what.endswith("nothing in the metadata can be changed")


def free_of(said: dict[str, str]) -> str:
    (disks,) = [what for what in said if "log directories: " in what]
    return disks.partition(": ")[2]
