"""``ottla doctor`` at real brokers: one, one with rights and TLS, and what groups, transactions and clocks make of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

import ottla
from ottla.base.seams import SystemClock
from ottla.cli.tools.client import ClusterConnection
from ottla.cli.tools.doctor.clocks import TOPIC_PREFIX
from ottla.cli.tools.doctor.doctor import DoctorOptions, doctor
from ottla.compat_tests.wire_client import connect
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import RecordsBuilder

from ...helpers.command import Command

pytestmark = pytest.mark.slow

Line = tuple[str, str, str]
Look = Callable[..., tuple[int, list[Line]]]


@pytest.fixture
def look(capsys: pytest.CaptureFixture[str]) -> Look:
    """The exit status and the lines, each with area, level and sentence."""

    def at(
        connection: ClusterConnection, *, is_strict: bool = False, clock: SystemClock | None = None, **options: Any
    ) -> tuple[int, list[Line]]:
        options_of = DoctorOptions(**options)
        status = doctor(connection, options_of, is_strict=is_strict, as_json=True, clock=clock or SystemClock())
        found = json.loads(capsys.readouterr().out)
        assert found["healthy"] == (status == 0)
        assert all(each["mend"] for each in found["lines"] if each["level"] in ("warning", "problem"))
        return status, [(each["area"], each["level"], each["what"]) for each in found["lines"]]

    return at


def of(lines: list[Line], area: str) -> list[tuple[str, str]]:
    return [(level, what) for found, level, what in lines if found == area]


def test_a_broker_that_is_well() -> None:
    with ottla.Broker() as broker:
        broker.create_topic("orders")
        done = Command(broker.bootstrap_servers).run("doctor", "--strict")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[:2] == ["Brokers", "OK           1 broker is alive: 1"]
    assert "OK           1 partition has a leader and all replicas in sync" in lines
    assert "OK           Open files, mapped files and memory of broker 1 are within their limits" in lines
    assert lines[-1].endswith("; 0 not checked")


def test_no_broker() -> None:
    done = Command("127.0.0.1:1").run("doctor", "--json")
    (line,) = json.loads(done.stdout)["lines"]
    assert (done.returncode, line["level"]) == (1, "problem")
    assert line["what"].startswith("No broker answers at 127.0.0.1:1 (connection refused)")


def test_the_file_of_a_stopped_broker_is_looked_at_alone(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path}\n")
    command = Command("127.0.0.1:1")
    assert {each["area"] for each in command.json("doctor", "--config", str(file))["lines"]} == {"settings", "disks"}
    both = command.run("doctor", "--config", str(file), "-b", "127.0.0.1:1", "--json")
    assert (both.returncode, json.loads(both.stdout)["lines"][0]["area"]) == (1, "brokers")


def test_lag_that_nobody_reads(look: Look) -> None:
    with ottla.Broker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        connection = ClusterConnection(broker.bootstrap_servers)
        broker.create_topic("orders")
        consumer = KafkaConsumer(
            "orders", group_id="billing", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        )
        with closing(KafkaProducer(bootstrap_servers=broker.bootstrap_servers)) as producer:
            producer.send("orders", b"x").get(timeout=30)
            assert next(consumer).value == b"x"
            consumer.commit()
            producer.send("orders", b"x").get(timeout=30)
        consumer.close(autocommit=False)
        assert of(look(connection)[1], "groups")[0] == ("warning", "1 group has lag and no member: billing")


class LaterClock(SystemClock):
    """The machine's clock, some minutes later."""

    def __init__(self, minutes: int) -> None:
        self._ms = minutes * 60_000

    def now_ms(self) -> int:
        return super().now_ms() + self._ms


def test_a_transaction_that_is_open_for_long(look: Look) -> None:
    with ottla.Broker() as broker:
        broker.create_topic("orders")
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"x").get(timeout=30)
        connection, held = ClusterConnection(broker.bootstrap_servers), "An open transaction holds back consumers in"
        seen = [of(look(connection, clock=LaterClock(minutes))[1], "transactions")[0] for minutes in (0, 5, 20)]
        producer.close(timeout=0)
    assert [level for level, _ in seen] == ["ok", "warning", "problem"]
    assert [what for _, what in seen[1:]] == [f"{held} 1 partition: orders-0"] * 2


def test_a_transaction_that_hangs(look: Look) -> None:
    """It is in the log, and its coordinator does not know of it: the broker does not ask, as those before KIP-890."""
    with ottla.Broker(properties={"transaction.partition.verification.enable": "false"}) as broker:
        broker.create_topic("orders")
        batch = RecordsBuilder(producer_id=77, producer_epoch=0, base_sequence=0, is_transactional=True)
        batch.append(None, b"x", 1_700_000_000_000)
        data = [PartitionProduceData(index=0, records=batch.build())]
        request = ProduceRequest(
            transactional_id="t",
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name="orders", partition_data=data)],
        )
        with connect(broker.bootstrap_servers) as wire:
            (topic,) = wire.call(request, 9).responses
        assert topic.partition_responses[0].error_code == 0
        status, lines = look(ClusterConnection(broker.bootstrap_servers))
    assert (status, of(lines, "transactions")) == (
        1,
        [("problem", "A transaction hangs in orders-0, and no coordinator will end it")],
    )


def test_a_clock_that_is_ahead(look: Look) -> None:
    with ottla.Broker() as broker:
        connection = ClusterConnection(broker.bootstrap_servers)
        ((level, what), *_) = of(look(connection, probe_clocks=True)[1], "clocks")
        assert level == "ok" and what.startswith("The clock of broker 1 is as this machine's")
        broker.clock.advance(seconds=300)
        status, lines = look(connection, probe_clocks=True)
        ((level, what), *_) = of(lines, "clocks")
        assert (status, level) == (1, "problem")
        assert what.startswith("The clock of broker 1 is 300.0 s ahead of this machine's")
        with closing(connection.admin()) as admin:
            assert not [name for name in admin.list_topics() if name.startswith(TOPIC_PREFIX)]


def test_settings_and_certificates_of_a_broker_with_users(look: Look, tmp_path: Path) -> None:
    """Bob may see nothing; what he may not see is named, and never well."""
    rights = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "min.insync.replicas": "2",
    }
    with ottla.Broker(users={"admin": "a", "bob": "b"}, properties=rights) as broker:

        def of_user(user: str) -> ClusterConnection:
            file = tmp_path / f"{user}.properties"
            file.write_text("".join(f"{name}={value}\n" for name, value in broker.client_properties(user).items()))
            return ClusterConnection(broker.bootstrap_servers, file)

        broker.create_topic("hidden")
        broker.create_topic("shown")
        with closing(of_user("admin").admin()) as admin:
            what = ResourcePattern(ResourceType.TOPIC, "shown")
            admin.create_acls([ACL("User:bob", "*", ACLOperation.DESCRIBE, ACLPermissionType.ALLOW, what)])

        status, lines = look(of_user("admin"))
        assert status == 0
        assert of(lines, "settings") == [
            ("warning", "Broker 1 makes topics with 1 replica, and min.insync.replicas is 2")
        ]
        assert not [line for line in lines if line[1] == "not checked"]

        status, lines = look(of_user("bob"))
        unseen = {area: what for area, level, what in lines if level == "not checked"}
        assert status == 0
        assert unseen["topics"] == "Whether there are topics that this user may not describe"
        assert unseen["replication"] == "min.insync.replicas of shown: it takes DescribeConfigs of the topics"
        assert "it takes Describe of the cluster (CLUSTER_AUTHORIZATION_FAILED)" in unseen["settings"]
        assert {"quorum", "disks", "certificates"} <= unseen.keys()
        assert look(of_user("bob"), is_strict=True)[0] == 1
