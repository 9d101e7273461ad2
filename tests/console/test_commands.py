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
from ottla.console import action_commands, commands, more_commands
from ottla.console.record_forms import RecordContent, RecordPosition

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


def test_the_page_of_the_quorum() -> None:
    with ottla.Cluster(1) as cluster:
        text = printed(more_commands.quorum(cluster.bootstrap_servers).ottla)
    assert "high watermark: " in text
    assert "\tobserver\t" in text, "the broker, of which the controller is another node"


def test_records_are_those_of_the_page(server: str) -> None:
    assert printed(commands.records(server, TOPIC, None, None, 2).ottla) == "record 1\nrecord 2\n"
    assert printed(commands.records(server, TOPIC, 1, None, 1).ottla) == "record 2\n"
    assert printed(commands.records(server, TOPIC, 1, 0, 2).ottla) == "record 0\nrecord 1\n"
    assert printed(commands.records(server, TOPIC, None, 1, 2).ottla) == "record 1\nrecord 2\n"


def run_in_a_shell(line: str) -> None:
    as_module = line.replace("ottla ", f"{shlex.quote(sys.executable)} -m ottla ")
    subprocess.run(["sh", "-c", as_module], capture_output=True, timeout=120, check=True)


def test_records_are_written_and_sent_again_as_the_page_does_it(server: str) -> None:
    content = RecordContent(b"it's", b"\0\xff", (("h", b"1"), ("h", b"2"), ("raw", b"\xff")))
    assert action_commands.produce(server, "written", 0, RecordContent(None, b"", (("h", None),))) is None
    command = action_commands.produce(server, "written", 0, content)
    assert command is not None
    run_in_a_shell(command.ottla)
    run_in_a_shell(action_commands.send_again(server, "written", RecordPosition(0, 0), "again").ottla)
    for topic in ("written", "again"):
        with KafkaConsumer(topic, bootstrap_servers=server, auto_offset_reset="earliest") as consumer:
            record = next(consumer)
        assert (record.key, record.value) == (content.key, content.value)
        assert [(header[0], header[1]) for header in record.headers] == list(content.headers)


@pytest.mark.slow
def test_each_of_an_action_does_what_its_button_does(server: str) -> None:
    printed(
        action_commands.create_topic(server, "-made", 2, 1, {"retention.ms": "5", "cleanup.policy": "compact"}).ottla
    )
    printed(action_commands.add_partitions(server, "-made", 3).ottla)
    printed(action_commands.set_config(server, "-made", "cleanup.policy", "compact,delete").ottla)
    printed(action_commands.unset_config(server, "-made", "retention.ms").ottla)
    told = printed(commands.topic(server, "-made").ottla)
    assert "PartitionCount: 3" in told
    assert "compact,delete" in told
    assert "retention.ms=5" not in told
    printed(action_commands.reset_offsets(server, GROUP, [], "shift", -1).ottla)
    assert f"{GROUP}\t{TOPIC}\t1\t1\t" in printed(commands.group(server, GROUP).ottla)
    printed(action_commands.reset_offsets(server, GROUP, [f"{TOPIC}:1"], "time", 4_070_908_800_000).ottla)
    assert f"{GROUP}\t{TOPIC}\t1\t3\t3\t0" in printed(commands.group(server, GROUP).ottla)
    printed(action_commands.delete_records(server, TOPIC, 1, None).ottla)
    printed(action_commands.delete_group(server, GROUP).ottla)
    assert GROUP not in printed(commands.groups(server).ottla)
    printed(action_commands.delete_topic(server, "-made").ottla)
    assert "-made" not in printed(commands.topics(server).ottla)
