"""The connection: order of answers, frames in any pieces, answers that leave before a wait, buffers that shrink.

A whole broker on a network in memory, so that each byte arrives when the test says so.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from ottla.base.config import Config
from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.broker.listeners.monitor import Ending
from ottla.broker.server import BrokerServer
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode
from ottla.wire.headers import decode_response_header
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch
from ottla.wire.registry import response_class

from ...helpers.memory_broker import ADDRESS, frame, read_answer, running, serving


async def read_message(client: MemoryConnection, key: ApiKey, version: int) -> Any:
    _, answer = await read_answer(client)
    _, offset = decode_response_header(answer, key, version)
    return decode(response_class(key), version, memoryview(answer)[offset:])


async def create_topic(client: MemoryConnection, name: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    await client.send([frame(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 5, 0)])
    response = await read_message(client, ApiKey.CREATE_TOPICS, 5)
    assert response.topics[0].error_code == 0


def produce(name: str, acks: int = 1, value: bytes = b"v") -> ProduceRequest:
    records = bytes(build_batch([Record(0, time.time_ns() // 1_000_000, None, value, [])]))
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=name, partition_data=[data])])


def long_poll(name: str, max_wait_ms: int, offset: int = 0) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic=name, partitions=[asked])],
    )


@asynccontextmanager
async def slow_reader(tmp_path: Path) -> AsyncIterator[tuple[BrokerServer, MemoryConnection]]:
    """A broker and its client; partition 0 of topic ``t`` has a record larger than what fits onto the way to the client."""
    config = Config({"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://test:9092"})
    network = MemoryNetwork()
    async with running(BrokerServer(config, network=network)) as server:
        client = await network.connect(*ADDRESS)
        await create_topic(client, "t")
        await client.send([frame(produce("t", value=bytes(2 * network.limit)), 7, 1)])
        await read_answer(client)
        yield server, client


def truncate(server: BrokerServer) -> None:
    assert server.assembly is not None
    server.assembly.services.replicas.partition("t", 0).log.truncate_to(0)


async def test_pipelined_requests_are_answered_in_their_order(tmp_path: Path) -> None:
    async with serving(tmp_path) as network:
        client = await network.connect(*ADDRESS)
        await client.send([b"".join(frame(MetadataRequest(topics=[]), 9, number) for number in range(100))])
        assert [(await read_answer(client))[0] for _ in range(100)] == list(range(100))
        client.close()


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
async def test_a_frame_may_come_in_any_pieces(tmp_path: Path, size: int) -> None:
    async with serving(tmp_path) as network:
        client = await network.connect(*ADDRESS)
        data = frame(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3, 1)
        data += frame(MetadataRequest(topics=[]), 9, 2)
        for start in range(0, len(data), size):
            await client.send([data[start : start + size]])
            await trio.testing.wait_all_tasks_blocked()
        assert [(await read_answer(client))[0] for _ in range(2)] == [1, 2]
        client.close()


async def test_answers_leave_before_a_handler_waits(tmp_path: Path) -> None:
    async with serving(tmp_path) as network:
        client = await network.connect(*ADDRESS)
        await create_topic(client, "t")
        await client.send([frame(MetadataRequest(topics=[]), 9, 1) + frame(long_poll("t", 60_000), 11, 2)])
        assert (await read_answer(client))[0] == 1
        client.close()


async def test_a_long_poll_is_answered_as_soon_as_there_are_records(tmp_path: Path) -> None:
    async with serving(tmp_path) as network:
        reader, writer = await network.connect(*ADDRESS), await network.connect(*ADDRESS)
        await create_topic(writer, "t")
        await reader.send([frame(long_poll("t", 3_600_000), 11, 1)])
        await writer.send([frame(produce("t"), 7, 1)])
        response = await read_message(reader, ApiKey.FETCH, 11)
        assert len(response.responses[0].partitions[0].records) > 0
        reader.close()
        writer.close()


async def test_a_produce_without_acks_has_no_answer_and_the_next_request_has(tmp_path: Path) -> None:
    async with serving(tmp_path) as network:
        client = await network.connect(*ADDRESS)
        await create_topic(client, "t")
        await client.send([frame(produce("t", acks=0), 7, 1) + frame(MetadataRequest(topics=[]), 9, 2)])
        assert (await read_answer(client))[0] == 2
        client.close()


async def test_a_failed_produce_without_acks_closes_the_connection(tmp_path: Path) -> None:
    async with serving(tmp_path) as network:
        client = await network.connect(*ADDRESS)
        await client.send([frame(produce("missing", acks=0), 7, 1)])
        with trio.fail_after(20):
            assert await client.receive() == b""


@pytest.mark.parametrize("bad", ["key", "version", "body", "acks-0", "size", "empty"])
async def test_what_came_before_a_bad_request_is_answered(tmp_path: Path, bad: str) -> None:
    async with serving(tmp_path) as network:
        client = await network.connect(*ADDRESS)
        await create_topic(client, "t")
        last_words = {
            "key": struct.pack(">ihhih", 10, 999, 0, 3, -1),
            "version": struct.pack(">ihhih", 10, ApiKey.METADATA, 99, 3, -1),
            "body": struct.pack(">ihhih", 10, ApiKey.METADATA, 1, 3, -1),
            "acks-0": frame(produce("missing", acks=0), 7, 3),
            "size": struct.pack(">i", -1),
            "empty": struct.pack(">i", 0),
        }[bad]
        unheard = frame(MetadataRequest(topics=[]), 9, 4)
        await client.send([frame(produce("t"), 7, 1) + frame(produce("t"), 7, 2) + last_words + unheard])
        assert [(await read_answer(client))[0] for _ in range(2)] == [1, 2]
        with trio.fail_after(20):
            assert await client.receive() == b""


async def test_a_large_request_is_taken_whole_and_its_buffer_given_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as network:
        client = await network.connect(*ADDRESS)
        await create_topic(client, "t")
        value = bytes(900_000)
        await client.send([frame(produce("t", value=value), 7, 1)])
        response = await read_message(client, ApiKey.PRODUCE, 7)
        assert response.responses[0].partition_responses[0].error_code == 0
        await client.send([frame(long_poll("t", 100), 11, 2)])
        fetched = await read_message(client, ApiKey.FETCH, 11)
        assert len(fetched.responses[0].partitions[0].records) > len(value)
        client.close()


async def test_an_answer_that_is_truncated_before_it_leaves_ends_the_connection_and_is_no_bug(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A follower truncates while a client that reads slowly has answers on hold."""
    async with slow_reader(tmp_path) as (server, client):
        await client.send([frame(long_poll("t", 0), 11, 2) + frame(long_poll("t", 0), 11, 3)])
        await trio.testing.wait_all_tasks_blocked()
        truncate(server)
        assert (await read_answer(client))[0] == 2
        with trio.fail_after(20):
            while await client.receive():
                pass
    assert server.monitor.errors == {Ending.STORAGE: 1}
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("how", ["the client is gone", "the log is truncated"])
async def test_answers_that_cannot_leave_while_another_request_waits_end_the_connection(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no failure of that request, whose answer could not be told from the rest of the one before."""
    async with slow_reader(tmp_path) as (server, client):
        await client.send([b"".join(frame(long_poll("t", 60_000, offset), 11, 2) for offset in (0, 0, 1))])
        await trio.testing.wait_all_tasks_blocked()
        if how == "the client is gone":
            client.close()
        else:
            truncate(server)
            with trio.fail_after(20):
                while await client.receive():
                    pass
        await trio.testing.wait_all_tasks_blocked()
        assert server.monitor.errors == {Ending.NETWORK if how == "the client is gone" else Ending.STORAGE: 1}
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_connection_above_the_limit_of_its_host_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, max_connections_per_ip="1") as network:
        first = await network.connect(*ADDRESS)
        await create_topic(first, "t")
        second = await network.connect(*ADDRESS)
        with trio.fail_after(20):
            assert await second.receive() == b""
        await create_topic(first, "u")
        first.close()


async def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, connections_max_idle_ms="200") as network:
        client = await network.connect(*ADDRESS)
        await create_topic(client, "t")
        with trio.fail_after(20):
            assert await client.receive() == b""


async def test_a_client_that_vanishes_takes_nothing_with_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as network:
        client, other = await network.connect(*ADDRESS), await network.connect(*ADDRESS)
        await create_topic(client, "t")
        await client.send([frame(produce("t"), 7, 1)[:40]])
        client.cut()
        await create_topic(other, "u")
        other.close()
