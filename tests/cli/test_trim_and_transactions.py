"""``ottla topics trim``, ``ottla transactions …``, ``ottla log-dirs`` and ``ottla cluster health``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer

import ottla

from .conftest import Command

pytestmark = pytest.mark.slow

_ids = itertools.count()


def starts(command: Command, topic: str) -> list[int]:
    (described,) = command.json("topics", "describe", topic)
    return [partition["start_offset"] for partition in described["partitions"]]


def test_records_are_trimmed_when_it_is_told_to(
    command: Command, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    name = new_topic(2)
    for partition in "01":
        command("produce", name, "-p", partition, given="1\n2\n3\n")
    trim = ("topics", "trim", name, "-p", "1", "-o", "-1")
    shown = [[name, "1", "0", "2", "3"]]
    assert command.rows(*trim) == shown
    assert starts(command, name) == [0, 0]
    assert command.rows(*trim, "--execute") == shown
    assert starts(command, name) == [0, 2]
    plan = tmp_path / "plan.json"
    rows = [{"topic": name, "partition": 0, "offset": 3}, {"topic": name, "partition": 1, "offset": 1}]
    plan.write_text(json.dumps({"partitions": rows, "version": 1}))
    trimmed = command.json("topics", "trim", "--from-file", str(plan), "--execute")
    assert [(row["start_offset"], row["new_start_offset"]) for row in trimmed] == [(0, 3), (2, 2)]
    assert starts(command, name) == [3, 2]


def test_what_cannot_be_trimmed(command: Command, new_topic: Callable[..., str]) -> None:
    name = new_topic(1, {"cleanup.policy": "compact"})
    command("produce", name, "-k", "k", given="1\n")
    assert "POLICY_VIOLATION" in command.refused("topics", "trim", name, "-o", "end", "--execute")
    assert command.refused("topics", "trim", f"{name}:0", "-o", "9").endswith("(OFFSET_OUT_OF_RANGE)")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in command.refused("topics", "trim", "none", "-o", "end")
    command.refused("topics", "trim", name, code=2)
    command.refused("topics", "trim", name, "-o", "1:2", code=2)


def test_an_open_transaction_is_seen_and_aborted(command: Command, broker: ottla.Broker, topic: str) -> None:
    name = f"open-{next(_ids)}"
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"x").get(timeout=30)
    assert [row["state"] for row in command.json("transactions", "list") if row["transactional_id"] == name] == [
        "Ongoing"
    ]
    (described,) = command.json("transactions", "describe", name)
    assert (described["coordinator"], described["partitions"]) == (1, [f"{topic}-0"])
    (known,) = command.json("transactions", "producers", f"{topic}:0")
    assert (known["producer_id"], known["start_offset"]) == (described["producer_id"], 0)
    # The coordinator will end it when it is out of time: it does not hang.
    assert command.json("transactions", "find-hanging", topic, "--max-transaction-timeout", "0") == []
    read = ("consume", topic, "-e", "--isolation-level", "read_committed")
    said = command("transactions", "abort", topic, "-p", "0", "--start-offset", "0")
    assert said == f"Aborted the transaction of producer {described['producer_id']} in {topic}-0.\n"
    command("produce", topic, given="after\n")
    assert command(*read) == "after\n"
    (known, _) = command.json("transactions", "producers", f"{topic}:0")
    assert known["start_offset"] is None
    producer.close(timeout=0)


def test_transactions_that_are_not_there(command: Command, topic: str) -> None:
    assert "TRANSACTIONAL_ID_NOT_FOUND" in command.refused("transactions", "describe", "none")
    why = command.refused("transactions", "abort", topic, "-p", "0", "--start-offset", "3")
    assert why == f"Could not find any open transactions starting at offset 3 on partition {topic}-0"
    assert "has no partition 7" in command.refused("transactions", "abort", topic, "-p", "7", "--start-offset", "3")
    command.refused("transactions", "abort", topic, "-p", "0", "--producer-id", "3", code=2)


def test_log_dirs(command: Command, topic: str) -> None:
    command("produce", topic, given="x\n")
    (folder,) = command.json("log-dirs")
    (replica,) = [replica for replica in folder["replicas"] if replica["topic"] == topic]
    assert (folder["broker"], folder["error"], replica["partition"], replica["lag"]) == (1, None, 0, 0)
    assert folder["total"] >= folder["usable"] > 0 and folder["size"] >= replica["size"] > 0
    ((*place, size, lag, is_future),) = command.rows("log-dirs", f"{topic}:0")
    assert (place[0], place[2:], int(size), lag, is_future) == ("1", [topic, "0"], replica["size"], "0", "false")
    assert "BROKER_NOT_AVAILABLE" in command.refused("log-dirs", "--brokers", "7")


def test_a_healthy_cluster(command: Command) -> None:
    healthy = command.json("cluster", "health")
    assert (healthy["healthy"], healthy["controller"], healthy["brokers"]) == (True, 1, [1])
    assert command("cluster", "health").startswith("healthy: true\ncontroller: 1\n")


def test_each_replica_tells_of_producers_and_a_broker_that_is_down_is_not_healthy() -> None:
    with ottla.Cluster(2) as cluster:
        command = Command(cluster.bootstrap_servers)
        command("topics", "create", "both", "-r", "2")
        command("topics", "create", "alone", "-r", "1")
        command("produce", "both", given="x\n")
        by_replica = [command.json("transactions", "producers", "both", "--broker", str(n)) for n in (1, 2)]
        assert [[row["last_sequence"] for row in rows] for rows in by_replica] == [[0], [0]]  # a follower tells, too
        (described,) = command.json("topics", "describe", "alone")
        gone = described["partitions"][0]["leader"]
        cluster.kill(gone)
        left = Command(cluster.brokers[3 - gone].bootstrap_servers)
        for _ in range(100):  # until the session of the one that is down has ended
            done = left.run("cluster", "health", "--json")
            found = json.loads(done.stdout)
            if found["offline_partitions"] and found["brokers_down"]:
                break
        assert (done.returncode, found["healthy"], found["brokers_down"]) == (1, False, [gone])
        assert "alone-0" in found["offline_partitions"] and "both-0" in found["under_replicated_partitions"]
        assert left.run("cluster", "health").stdout.splitlines()[0] == "healthy: false"
