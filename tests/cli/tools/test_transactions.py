"""``ottla transactions …``."""

from __future__ import annotations

import itertools

import pytest
from kafka import KafkaProducer

import ottla

from ..helpers.command import Command

pytestmark = pytest.mark.slow

_ids = itertools.count()


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
