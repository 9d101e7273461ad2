"""Kafka 4.3's tools on transactions: the Java producer's own, and ``kafka-transactions`` on what another client left open."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ottla.compat_tests.java.tools import KafkaTools
from ottla.compat_tests.session import ClientSession, eventually

pytestmark = pytest.mark.client("java-tools")


@pytest.mark.capability("transactions: producer-perf-test, console-consumer with read_committed")
def test_perf_test(tools: KafkaTools, make_topic: Callable[..., str], fresh_name: Callable[[str], str]) -> None:
    topic = make_topic(2)
    load = ("--num-records", "5000", "--record-size", "50", "--throughput", "-1")
    transactional = ("--transactional-id", fresh_name("txn"), "--transaction-duration-ms", "20")
    properties = ("--command-property", f"bootstrap.servers={tools.bootstrap}")
    produced = tools.run("producer-perf-test", "--topic", topic, *load, *transactional, *properties)
    assert re.search(r"^5000 records sent", produced, re.MULTILINE)
    limits = ("--max-messages", "5000", "--timeout-ms", "20000", "--isolation-level", "read_committed")
    read = tools.run("console-consumer", "--topic", topic, "--from-beginning", *limits)
    assert len([line for line in read.splitlines() if len(line) == 50]) == 5000


@pytest.mark.capability("kafka-transactions")
def test_transactions(
    tools: KafkaTools, topic: str, sessions: Callable[[str], ClientSession], fresh_name: Callable[[str], str]
) -> None:
    client = sessions("confluent-kafka")
    transactional_id = fresh_name("txn")
    # Tools that start a JVM each take their time on a busy machine; the transaction is to be open until one of them ends it.
    producer = client.producer(transactional_id=transactional_id, transaction_timeout_ms=600_000)
    producer.begin()
    producer.send(topic, b"open", partition=0)
    producer.flush()

    listed = tools.run("transactions", "list")
    (line,) = [line for line in listed.splitlines() if line.startswith(transactional_id)]
    _, _, producer_id, state = line.split()
    assert state == "Ongoing"
    described = tools.run("transactions", "describe", "--transactional-id", transactional_id)
    assert re.search(rf"{producer_id}\s+0\s+Ongoing\s+600000\s.*{topic}-0", described)
    producers = tools.run("transactions", "describe-producers", "--topic", topic, "--partition", "0")
    assert re.search(rf"^{producer_id}\s+0\s+-1\s+0\s+\d+\s+0\s*$", producers, re.MULTILINE)
    hanging = tools.run("transactions", "find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    assert topic not in hanging, "its coordinator still knows it"

    tools.run("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    reader = client.consumer(read_committed=True)
    reader.assign({(topic, 0): "beginning"})
    client.produce(topic, [b"behind"])
    values: list[bytes | None] = []

    def is_read() -> bool:
        values.extend(message.value for message in reader.poll(0.2))
        return bool(values)

    eventually(is_read)
    assert values == [b"behind"]
