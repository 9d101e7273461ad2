"""A broker with two log directories: Kafka's tools, and a Python client, move partitions from one to the other.

These tests start a broker of their own, since the folders are part of its configuration.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

from ottla.compat_tests import brokers
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.java.tools import KafkaTools
from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.wire_client import Operator

pytestmark = [
    pytest.mark.restart,
    pytest.mark.client("java-tools"),
    pytest.mark.one_broker("the folders of one broker, which it starts itself"),
]
RECORDS = [b"%d" % number for number in range(200)]


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[brokers.BrokerProcess]:
    with brokers.process(request.config.getoption("--broker"), tmp_path, data_folders=2) as started:
        yield started


@pytest.fixture
def tools(broker: brokers.BrokerProcess, tmp_path: Path) -> KafkaTools:
    return KafkaTools(broker.bootstrap, tmp_path)


def places(tools: KafkaTools, topic: str) -> dict[str, str]:
    """Partition -> the log directory it is in; nothing while it moves."""
    described = tools.run("log-dirs", "--describe", "--topic-list", topic)
    (broker,) = json.loads(described.splitlines()[-1])["brokers"]
    found: dict[str, str] = {}
    for folder in broker["logDirs"]:
        assert folder["error"] is None
        for partition in folder["partitions"]:
            if partition["isFuture"]:
                return {}
            found[partition["partition"]] = folder["logDir"]
    return found


def fill(broker: brokers.BrokerProcess, topic: str) -> ClientSession:
    Operator(broker.bootstrap).create_topic(topic, 2, {"segment.bytes": "1048576"})
    session = ClientSession("kafka-python", CLIENTS["kafka-python"].connect(broker.bootstrap))
    session.produce(topic, RECORDS)
    return session


@pytest.mark.capability("kafka-reassign-partitions, kafka-log-dirs: moves between log directories")
def test_reassign_partitions(broker: brokers.BrokerProcess, tools: KafkaTools) -> None:
    session = fill(broker, "moved")
    before = places(tools, "moved")
    assert sorted(before.values()) == sorted(map(str, broker.data_folders)), "each folder has one of the two"
    for target in map(str, broker.data_folders):
        wanted: dict[str, Any] = {
            "version": 1,
            "partitions": [
                {"topic": "moved", "partition": number, "replicas": [1], "log_dirs": [target]} for number in range(2)
            ],
        }
        plan = ("--reassignment-json-file", tools.file("plan.json", json.dumps(wanted)))
        executed = tools.run("reassign-partitions", *plan, "--execute")
        for number in range(2):
            assert f"Successfully started moving log directory to {target} for replica moved-{number}" in executed
        deadline = time.monotonic() + 60
        verified = ""
        while verified.count("completed successfully") < 2:
            assert time.monotonic() < deadline, verified
            verified = tools.run("reassign-partitions", *plan, "--verify")
        assert places(tools, "moved") == {"moved-0": target, "moved-1": target}
    assert sorted(message.value or b"" for message in session.read("moved", len(RECORDS))) == sorted(RECORDS)
    session.close()


@pytest.mark.client("kafka-python")
@pytest.mark.capability("moves between log directories")
def test_alter_replica_log_dirs(broker: brokers.BrokerProcess) -> None:
    session = fill(broker, "moved")
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    target = str(broker.data_folders[1])
    answers = admin.alter_replica_log_dirs({("moved", 0, 1): target, ("moved", 1, 1): target, ("moved", 2, 1): target})
    assert {replica.partition: error.errno for replica, error in answers.items()} == {0: 0, 1: 0, 2: 3}
    nowhere = admin.alter_replica_log_dirs({("moved", 0, 1): str(broker.folder / "nowhere")})
    assert [error.errno for error in nowhere.values()] == [57]
    deadline = time.monotonic() + 60
    there: list[int] = []
    while there != [0, 1]:
        assert time.monotonic() < deadline
        (described,) = admin.describe_log_dirs(["moved"])
        there = sorted(
            partition["partition_index"]
            for folder in described["log_dirs"]
            for topic in folder["topics"]
            for partition in topic["partitions"]
            if folder["log_dir"] == target and not partition["is_future_key"]
        )
    assert sorted(message.value or b"" for message in session.read("moved", len(RECORDS))) == sorted(RECORDS)
    broker.kill()
    broker.start()
    assert sorted(message.value or b"" for message in session.read("moved", len(RECORDS))) == sorted(RECORDS)
    admin.close()
    session.close()
