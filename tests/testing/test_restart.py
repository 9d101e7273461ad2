"""``ottla.Broker`` that is stopped or killed and started again: its address, its data and its faults stay."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

import ottla
from ottla.base.errors import KafkaError
from ottla.broker.server import BrokerFailedError
from ottla.compat_tests.wire_client import Connection
from ottla.testing.broker import Broker
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.record_codec import Record
from ottla.wire.records import build_batch

CLEAN_MARK = ".kafka_cleanshutdown"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with ottla.Broker(properties={"metrics.listener": "127.0.0.1:0"}) as running:
        running.create_topic("t")
        yield running


def produce(broker: Broker, value: bytes) -> int:
    record = Record(value=value, timestamp=broker.clock.now_ms())
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=build_batch([record]))])
    with contextlib.closing(Connection(broker.bootstrap_servers)) as connection:
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
        (answered,) = connection.call(request, 9).responses[0].partition_responses
    return int(answered.error_code)


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.records("t")]


def is_taken(address: str) -> bool:
    """Whether a server that is not the test's own cannot have this port."""
    host, _, port = address.rpartition(":")
    with contextlib.closing(socket.socket()) as other:
        try:
            other.bind((host, int(port)))
        except OSError:
            return True
    return False


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_a_broker_comes_back_with_its_address_and_data(broker: Broker, is_killed: bool) -> None:
    addresses = (broker.bootstrap_servers, broker.metrics_address)
    identity = (broker.cluster_id, broker.broker_id, broker.data_dir)
    assert produce(broker, b"one") == 0
    if is_killed:
        broker.kill()
    broker.restart()
    assert (broker.bootstrap_servers, broker.metrics_address) == addresses
    assert (broker.cluster_id, broker.broker_id, broker.data_dir) == identity
    assert values(broker) == [b"one"]
    assert produce(broker, b"two") == 0
    assert values(broker) == [b"one", b"two"]


def test_a_killed_broker_is_gone_at_once_and_its_port_is_kept(broker: Broker) -> None:
    assert broker.metrics_address is not None
    with contextlib.closing(Connection(broker.bootstrap_servers)) as client:
        broker.kill()
        with pytest.raises(EOFError):
            client.receive_frame()
    assert not broker.is_running
    with pytest.raises(ConnectionRefusedError):
        Connection(broker.bootstrap_servers)
    assert is_taken(broker.bootstrap_servers)
    assert is_taken(broker.metrics_address)
    assert not (broker.data_dir / CLEAN_MARK).exists()
    with pytest.raises(KafkaError, match="not running"):
        broker.records("t")
    broker.kill()  # as dead as before
    broker.restart()
    assert broker.is_running


def test_a_restart_of_a_running_broker_is_a_clean_stop(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    assert produce(broker, b"one") == 0
    with caplog.at_level("INFO", "ottla"):
        broker.restart()
    assert "not stopped cleanly" not in caplog.text
    broker.kill()
    with caplog.at_level("INFO", "ottla"):
        broker.restart()
    assert "not stopped cleanly" in caplog.text, "as after kill -9"


def test_faults_recorded_requests_and_time_outlast_a_restart(broker: Broker) -> None:
    broker.clock.advance(hours=1)
    before = broker.clock.now_ms()
    with broker.requests.recording(), broker.faults.add(api="Metadata", disconnect=True) as fault:
        broker.restart()
        assert broker.clock.now_ms() >= before
        with contextlib.closing(Connection(broker.bootstrap_servers)) as client, pytest.raises(EOFError):
            client.call(MetadataRequest(topics=None), 9)
    assert fault.hits == 1
    assert len(broker.requests.where(api="Metadata")) == 1


def test_a_broker_that_was_killed_can_be_stopped(broker: Broker) -> None:
    broker.kill()
    broker.stop()
    assert not broker.data_dir.exists()
    assert not is_taken(broker.bootstrap_servers)
    with pytest.raises(KafkaError, match="not running"):
        broker.restart()


def test_users_get_in_after_a_restart() -> None:
    with ottla.Broker(users={"alice": "secret"}, tls=True) as broker:
        address = broker.bootstrap_servers
        broker.kill()
        broker.restart()
        assert broker.client_properties("alice")["bootstrap.servers"] == address


def test_what_made_a_broker_end_by_itself_is_told_at_its_end(tmp_path: Path) -> None:
    broker = ottla.Broker(data_dir=tmp_path / "data").start()
    broker.create_topic("t")
    (tmp_path / "data").rename(tmp_path / "gone")
    (tmp_path / "data").write_bytes(b"")  # not a folder any more, and the broker's only one
    assert produce(broker, b"lost") != 0
    with pytest.raises(BrokerFailedError):
        broker.stop()


@pytest.mark.slow
def test_a_group_with_members_is_deleted(
    ottla_broker: Broker, kafka_topics: Callable[..., list[str]], kafka_group: str
) -> None:
    one, two = kafka_topics(2, partitions=3, configs={"retention.ms": "1000000"})
    group = kafka_group
    consumer = ConfluentConsumer(
        {"bootstrap.servers": ottla_broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([one, two])
    while len(consumer.assignment()) < 6:
        consumer.poll(0.1)
    ottla_broker.delete_group(group)
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        ottla_broker.delete_group(group)
    consumer.close()
