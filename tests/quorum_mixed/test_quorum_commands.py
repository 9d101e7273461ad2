"""``ottla cluster quorum``, ``upgrade`` and changes of voters on a quorum of Apache Kafka that had its voters from a property."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.kraft_cluster import CLUSTER_ID
from ottla.compat_tests.quorum_cluster import QuorumCluster
from ottla.compat_tests.session import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def ended(*arguments: str, servers: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OTTLA_BOOTSTRAP_SERVERS": servers}
    command = [sys.executable, "-m", "ottla", "cluster", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def run(*arguments: str, servers: str) -> str:
    """What ``ottla cluster`` prints."""
    done = ended(*arguments, servers=servers)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def await_known_versions(servers: str) -> None:
    """Voters that are a property tell a leader by UpdateRaftVoter what they support, a moment after its election."""

    def are_known() -> bool:
        done = ended("upgrade", "--dry-run", servers=servers)
        assert done.returncode == 0 or "not all of the voters support it" in done.stderr, done.stderr
        return done.returncode == 0

    eventually(are_known)


def test_a_quorum_of_kafka_is_described_upgraded_and_changed(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path, kafkas=2, ottlas=0, release="4.1", turned_off=(), format_by="kafka")
    with contextlib.closing(cluster):
        cluster.start()

        def told(*arguments: str) -> Any:
            return json.loads(run(*arguments, "--json", servers=cluster.bootstrap))

        def status(quorum: Any) -> dict[int, bool]:
            return {each["node"]: each["status"] != "observer" for each in quorum["replicas"]}

        before = told("quorum")
        assert (before["cluster_id"], before["kraft_version"], status(before)) == (CLUSTER_ID, 0, {1: True, 2: True})
        direct = told("quorum", "--controller", cluster.kafka(2).controller_address)
        assert (direct["leader"], status(direct)) == (before["leader"], status(before))

        await_known_versions(cluster.bootstrap)
        plan = {each["feature"]: each for each in told("upgrade", "--dry-run")["features"]}
        assert {name for name, each in plan.items() if each["outcome"] == "would be set"} == {
            "metadata.version",
            "kraft.version",
            "share.version",
            "streams.version",
        }
        assert (plan["metadata.version"]["finalized"], plan["metadata.version"]["wanted"]) == (27, 30)
        told("upgrade")
        assert {each["outcome"] for each in told("upgrade")["features"]} == {None}
        assert told("quorum")["kraft_version"] == 1

        run("remove-voter", "2", servers=cluster.bootstrap)
        # If it led, the new leader lists it once it has fetched from it.
        eventually(lambda: status(told("quorum")) == {1: True, 2: False})
        printed = run("add-voter", "2", servers=cluster.bootstrap)
        assert f"at CONTROLLER://{cluster.kafka(2).controller_address}. The voters: 1, 2." in printed
        lowered = told("upgrade", "--downgrade", "--feature", "streams.version=0")
        assert [each["feature"] for each in lowered["features"] if each["outcome"]] == ["streams.version"]
