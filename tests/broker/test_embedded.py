"""A broker inside a program: the two forms of the Python API."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
import trio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer

import ottla
from ottla.base.settings import SettingError
from ottla.broker.server import StartError


def round_trip(bootstrap_servers: str) -> bytes:
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers)
    producer.send("t", b"hello").get(timeout=30)
    producer.close()
    consumer = KafkaConsumer("t", bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest")
    value: bytes = next(consumer).value
    consumer.close()
    return value


def test_any_program_runs_a_broker_in_a_with_block() -> None:
    before = threading.enumerate()
    with ottla.Broker() as broker:
        folder = broker.data_dir
        assert round_trip(broker.bootstrap_servers) == b"hello"
        assert (folder / "t-0").is_dir()
    assert not folder.exists()
    assert "ottla-broker" not in {thread.name for thread in threading.enumerate() if thread not in before}


async def test_a_trio_program_runs_a_broker_in_its_own_loop() -> None:
    async with ottla.open_broker() as broker:
        value = await trio.to_thread.run_sync(round_trip, broker.bootstrap_servers)
        assert value == b"hello"
    assert not broker.data_dir.exists()


def test_an_asyncio_program_uses_the_broker_in_its_thread() -> None:
    async def use(address: str) -> bytes | None:
        producer = AIOKafkaProducer(bootstrap_servers=address)
        await producer.start()
        await producer.send_and_wait("t", b"async")
        await producer.stop()
        consumer = AIOKafkaConsumer("t", bootstrap_servers=address, auto_offset_reset="earliest")
        await consumer.start()
        record = await consumer.getone()
        await consumer.stop()
        return record.value

    with ottla.Broker() as broker:
        assert asyncio.run(use(broker.bootstrap_servers)) == b"async"


def test_a_named_folder_outlives_its_broker(tmp_path: Path) -> None:
    with ottla.Broker(data_dir=tmp_path) as broker:
        cluster_id = broker.cluster_id
        round_trip(broker.bootstrap_servers)
    with ottla.Broker(data_dir=tmp_path) as broker:
        assert broker.cluster_id == cluster_id
        consumer = KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
        assert next(consumer).value == b"hello"
        consumer.close()


def test_properties_are_kafkas_own() -> None:
    with ottla.Broker(properties={"num.partitions": "7", "node.id": "3"}) as broker:
        assert broker.broker_id == 3
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send("seven", b"").get(timeout=30)
        assert producer.partitions_for("seven") == set(range(7))
        producer.close()


def test_two_brokers_in_one_process_do_not_meet() -> None:
    with ottla.Broker() as one, ottla.Broker() as other:
        assert one.bootstrap_servers != other.bootstrap_servers
        assert one.cluster_id != other.cluster_id
        assert round_trip(one.bootstrap_servers) == b"hello"
        assert round_trip(other.bootstrap_servers) == b"hello"


def test_what_cannot_start_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"num\.partitions"):
        ottla.Broker(properties={"num.partitions": "none"}).start()
    with ottla.Broker(data_dir=tmp_path), pytest.raises(StartError, match="another process"):
        ottla.Broker(data_dir=tmp_path).start()


def test_an_error_in_the_block_gets_out_and_the_broker_still_stops() -> None:
    with pytest.raises(ZeroDivisionError), ottla.Broker() as broker:
        folder = broker.data_dir
        raise ZeroDivisionError
    assert not folder.exists()
