"""kcat, whose librdkafka is as old as the distribution's package: an old client on new servers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from ottla.compat_tests import toolchains
from ottla.compat_tests.clients.security import Security, librdkafka_properties
from ottla.compat_tests.session import ClientSession

pytestmark = pytest.mark.client("kcat")
Kcat = Callable[..., str]


@pytest.fixture
def kcat(bootstrap: str, security: Security) -> Kcat:
    """Runs kcat on the broker under test; what it printed."""
    program = toolchains.kcat()

    def run(*arguments: str, stdin: str = "") -> str:
        options = [word for item in librdkafka_properties(security).items() for word in ("-X", "=".join(item))]
        command = [str(program), "-b", bootstrap, *options, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


def records(printed: str) -> list[dict[str, Any]]:
    """What ``-J`` printed."""
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.capability("metadata")
def test_lists_metadata(kcat: Kcat, make_topic: Callable[..., str], bootstrap: str) -> None:
    topic = make_topic(3)
    listed = json.loads(kcat("-L", "-J", "-t", topic))
    assert {broker["name"] for broker in listed["brokers"]} >= set(bootstrap.split(","))
    assert listed["controllerid"] in {broker["id"] for broker in listed["brokers"]}
    (described,) = listed["topics"]
    assert [part["partition"] for part in described["partitions"]] == [0, 1, 2]
    assert all({"id": part["leader"]} in part["isrs"] for part in described["partitions"])
    assert topic in {each["topic"] for each in json.loads(kcat("-L", "-J"))["topics"]}


@pytest.mark.capability("produce and consume with every codec")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_produces_and_consumes(kcat: Kcat, topic: str, codec: str, sessions: Callable[[str], ClientSession]) -> None:
    values = [f"{number:04}" * 5000 for number in range(20)]
    lines = "".join(f"k{number}\t{value}\n" for number, value in enumerate(values))
    kcat("-P", "-t", topic, "-K", "\t", "-z", codec, "-H", "a=1", stdin=lines)
    printed = records(kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J"))
    assert [record["payload"] for record in printed] == values
    assert [record["key"] for record in printed] == [f"k{number}" for number in range(20)]
    assert {tuple(record["headers"]) for record in printed} == {("a", "1")}
    messages = sessions("kafka-python").read(topic, 20)
    assert [message.value for message in messages] == [value.encode() for value in values]


@pytest.mark.capability("offsets by time and from the end")
def test_offsets(kcat: Kcat, topic: str, sessions: Callable[[str], ClientSession]) -> None:
    producer = sessions("kafka-python").producer()
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=0, timestamp_ms=1_600_000_000_000 + number)
    producer.flush()
    assert f"{topic} [0] offset 7" in kcat("-Q", "-t", f"{topic}:0:1600000000007")
    last = records(kcat("-C", "-t", topic, "-p", "0", "-o", "-3", "-e", "-q", "-J"))
    assert [record["payload"] for record in last] == ["7", "8", "9"]
    timed = records(kcat("-C", "-t", topic, "-p", "0", "-o", "s@1600000000004", "-e", "-q", "-J"))
    assert [record["offset"] for record in timed] == [4, 5, 6, 7, 8, 9]
    assert timed[0]["ts"] == 1_600_000_000_004


@pytest.mark.capability("consumer group")
def test_group(kcat: Kcat, topic: str, group_id: str, sessions: Callable[[str], ClientSession]) -> None:
    sessions("kafka-python").produce(topic, [b"%d" % number for number in range(10)])
    first = records(kcat("-G", group_id, "-X", "auto.offset.reset=earliest", "-c", "4", "-J", "-q", topic))
    assert [record["offset"] for record in first] == [0, 1, 2, 3]
    rest = records(kcat("-G", group_id, "-X", "auto.offset.reset=earliest", "-e", "-J", "-q", topic))
    assert [record["offset"] for record in rest] == [4, 5, 6, 7, 8, 9]


@pytest.mark.capability("idempotent producer")
def test_idempotent_producer(kcat: Kcat, topic: str, sessions: Callable[[str], ClientSession]) -> None:
    lines = [f"{number}" for number in range(1000)]
    batching = ("-X", "enable.idempotence=true", "-X", "batch.num.messages=10")
    kcat("-P", "-t", topic, "-p", "0", *batching, stdin="\n".join(lines) + "\n")
    messages = sessions("kafka-python").read(topic, 1000)
    assert [message.value for message in messages] == [line.encode() for line in lines]
