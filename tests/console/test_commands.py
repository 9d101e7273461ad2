"""The commands that pages show do what they say when they are pasted into a terminal."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

import ottla
from ottla.console import commands, more_commands

TOPIC, GROUP = "-dashed", "-o; echo gone"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ottla.Broker() as broker:
        broker.create_topic(TOPIC, partitions=2)
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for number in range(3):
                producer.send(TOPIC, b"record %d" % number, partition=1)
        with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=GROUP) as consumer:
            consumer.commit({TopicPartition(TOPIC, 1): OffsetAndMetadata(2, "", -1)})
        yield broker.bootstrap_servers


def printed(line: str) -> str:
    program, *arguments = shlex.split(line)
    assert program == "ottla"
    done = subprocess.run([sys.executable, "-m", "ottla", *arguments], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_each_shows_what_its_page_shows(server: str) -> None:
    assert TOPIC in printed(commands.topics(server).ottla)
    assert f"Topic: {TOPIC}" in printed(commands.topic(server, TOPIC).ottla)
    assert GROUP in printed(commands.groups(server).ottla)
    assert f"{GROUP}\t{TOPIC}\t1\t2\t3\t1" in printed(commands.group(server, GROUP).ottla)
    assert server.partition(":")[2] in printed(commands.cluster(server).ottla)


def test_pages_of_transactions_users_and_the_cluster(server: str) -> None:
    assert printed(more_commands.producers(server, TOPIC).ottla).startswith(f"{TOPIC}\t1\t")
    assert printed(more_commands.cluster(server).ottla)
    for command in (more_commands.transactions, more_commands.users, more_commands.quotas):
        assert printed(command(server).ottla) == "", "there are none"


def test_records_are_those_of_the_page(server: str) -> None:
    assert printed(commands.records(server, TOPIC, None, None, 2).ottla) == "record 1\nrecord 2\n"
    assert printed(commands.records(server, TOPIC, 1, None, 1).ottla) == "record 2\n"
    assert printed(commands.records(server, TOPIC, 1, 0, 2).ottla) == "record 0\nrecord 1\n"
    assert printed(commands.records(server, TOPIC, None, 1, 2).ottla) == "record 1\nrecord 2\n"
