"""Requests above 256 KiB: nobody waits for them, they have a limit, and a client without rights cannot send them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryConnection
from ottla.broker.listeners.large_requests import _INDEPENDENT, LARGE_FRAME
from ottla.handlers.table import HANDLERS
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.wire.registry import request_class, response_class
from ottla.wire.schema import Array

from ...helpers.memory_broker import HOST, PORT, frame, read_answer, serving
from ..helpers.responses import body_of


def metadata_request(count: int) -> MetadataRequest:
    names = [MetadataRequestTopic(name=f"{number:020}") for number in range(count)]
    return MetadataRequest(topics=names, allow_auto_topic_creation=False)


async def has_coordinator(client: MemoryConnection) -> None:
    """Wait until groups have their coordinator, which makes its topic first."""
    code = -1
    with trio.fail_after(20):
        while code != ErrorCode.NONE:
            await client.send([frame(FindCoordinatorRequest(key="g"), 0, 9)])
            code = body_of((await read_answer(client))[1], FindCoordinatorResponse, 0).error_code


async def test_another_client_is_answered_first(tmp_path: Path) -> None:
    order = []
    async with serving(tmp_path) as network:
        large, small = [await network.connect(HOST, PORT) for _ in range(2)]

        async def ask(client: MemoryConnection, count: int, name: str) -> None:
            await client.send([frame(metadata_request(count), 4, 7)])
            _, answer = await read_answer(client)
            order.append(name)
            topics = body_of(answer, MetadataResponse, 4).topics
            assert [topic.name for topic in topics] == [f"{number:020}" for number in range(count)]
            assert {topic.error_code for topic in topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, large, 20_000, "large")
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(ask, small, 1, "small")
    assert order == ["small", "large"]


async def test_a_request_with_too_many_entries_closes_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, ottla_request_max_entries="1000") as network:
        client = await network.connect(HOST, PORT)
        await client.send([frame(metadata_request(900), 4, 1)])  # many, but small
        await read_answer(client)
        with caplog.at_level(logging.WARNING):
            await client.send([frame(metadata_request(20_000), 4, 2)])
            with trio.fail_after(20):
                assert await client.receive(1) == b""
    assert "the arrays of the message have more than 1000 elements" in caplog.text


async def test_a_client_without_rights_is_refused_before_it_has_sent_the_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    async with serving(tmp_path, authorizer_class_name=authorizer, super_users="User:somebody") as network:
        client = await network.connect(HOST, PORT)
        await client.send([frame(metadata_request(1), 4, 1)])
        _, answer = await read_answer(client)
        assert body_of(answer, MetadataResponse, 4).topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await client.send([frame(metadata_request(20_000), 4, 2)[:100]])
        with trio.fail_after(20):
            assert await client.receive(1) == b""
    assert "METADATA of" in caplog.text
    assert "User:ANONYMOUS, which has no right to it" in caplog.text


async def test_all_offsets_of_a_large_commit_are_there(tmp_path: Path) -> None:
    count = 30_000
    partitions = [OffsetCommitRequestPartition(partition_index=n, committed_offset=n + 1) for n in range(count)]
    async with serving(tmp_path, num_partitions="100", offsets_topic_num_partitions="1") as network:
        client = await network.connect(HOST, PORT)
        await client.send([frame(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4, 1)])
        await read_answer(client)
        await has_coordinator(client)
        topics = [OffsetCommitRequestTopic(name="t", partitions=partitions)]
        request = OffsetCommitRequest(group_id="g", topics=topics)
        sent = frame(request, 2, 2)
        assert len(sent) > LARGE_FRAME
        await client.send([sent])
        (topic,) = body_of((await read_answer(client))[1], OffsetCommitResponse, 2).topics
        codes = {answer.partition_index: answer.error_code for answer in topic.partitions}
        assert len(codes) == count
        assert [n for n, code in codes.items() if code == ErrorCode.NONE] == list(range(100))
        assert codes[100] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        wanted = OffsetFetchRequestTopics(name="t", partition_indexes=list(range(100)))
        group = OffsetFetchRequestGroup(group_id="g", topics=[wanted])
        await client.send([frame(OffsetFetchRequest(groups=[group]), 8, 3)])
        (found,) = body_of((await read_answer(client))[1], OffsetFetchResponse, 8).groups[0].topics
        assert [answer.committed_offset for answer in found.partitions] == list(range(1, 101))


async def test_offsets_of_many_groups_are_put_together_as_they_were_asked_for(tmp_path: Path) -> None:
    groups = [
        OffsetFetchRequestGroup(
            group_id=f"g{number}",
            topics=[
                OffsetFetchRequestTopics(name=f"t{number}-{topic}", partition_indexes=list(range(700 * topic)))
                for topic in range(4)
            ],
        )
        for number in range(17)
    ]
    async with serving(tmp_path, offsets_topic_num_partitions="1", ottla_request_max_entries="100000") as network:
        client = await network.connect(HOST, PORT)
        await has_coordinator(client)
        sent = frame(OffsetFetchRequest(groups=groups), 8, 1)
        assert len(sent) > LARGE_FRAME
        await client.send([sent])
        answered = body_of((await read_answer(client))[1], OffsetFetchResponse, 8).groups
    asked = [(g.group_id, [(t.name, t.partition_indexes) for t in g.topics]) for g in groups]
    got = [(g.group_id, [(t.name, [p.partition_index for p in t.partitions]) for t in g.topics]) for g in answered]
    assert got == asked


@pytest.mark.parametrize("api_key", _INDEPENDENT, ids=lambda api_key: api_key.name)
def test_the_entries_of_an_api_are_arrays_of_its_messages(api_key: ApiKey) -> None:
    (handler,) = [handler for handler in HANDLERS if handler.api_key is api_key]
    for version in range(handler.lowest, handler.highest + 1):
        entries = _INDEPENDENT[api_key](version)
        assert len(entries.asked) == len(entries.answered)
        for message, path in ((request_class(api_key), entries.asked), (response_class(api_key), entries.answered)):
            struct: Any = message
            for name in path:
                (spec,) = [spec for spec in struct.fields if spec.name == name]
                assert isinstance(spec.type, Array)
                struct = spec.type.element
