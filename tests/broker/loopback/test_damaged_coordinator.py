"""A damaged batch in ``__consumer_offsets``: its groups are not served until an operator has taken it out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import trio

from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryNetwork
from ottla.log.disk import OsDisk
from ottla.log.set_aside import put_back, set_aside
from ottla.wire.codec import decode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from ottla.wire.schema import Message

from ...helpers.memory_broker import ADDRESS, frame, read_answer, serving

PARTITION = "__consumer_offsets-0"
_AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)

R = TypeVar("R", bound=Message)


async def ask(network: MemoryNetwork, request: Message, version: int, response: type[R]) -> R:
    client = await network.connect(*ADDRESS)
    await client.send([frame(request, version, 1)])
    _, answer = await read_answer(client)
    client.close()
    return decode(response, version, answer[4:])


async def settled(question: Callable[[], Awaitable[R]], code_of: Callable[[R], int]) -> R:
    """The first answer whose error does not say to try again."""
    with trio.fail_after(20):
        while True:
            answer = await question()
            if code_of(answer) not in _AGAIN:
                return answer
            await trio.sleep(0.01)


async def make_topics(network: MemoryNetwork) -> None:
    topics = [MetadataRequestTopic(name="t")]
    await settled(
        lambda: ask(network, MetadataRequest(topics=topics), 4, MetadataResponse), lambda a: a.topics[0].error_code
    )
    await settled(
        lambda: ask(network, FindCoordinatorRequest(key="g"), 1, FindCoordinatorResponse), lambda a: a.error_code
    )


async def commit(network: MemoryNetwork, offset: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics)
    answer = await settled(
        lambda: ask(network, request, 5, OffsetCommitResponse), lambda a: a.topics[0].partitions[0].error_code
    )
    code: int = answer.topics[0].partitions[0].error_code
    return code


async def committed(network: MemoryNetwork) -> tuple[int, int]:
    """The error code of OffsetFetch, and the offset."""
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    request = OffsetFetchRequest(group_id="g", topics=topics)
    answer = await settled(lambda: ask(network, request, 4, OffsetFetchResponse), lambda a: a.error_code)
    offsets = [partition.committed_offset for topic in answer.topics for partition in topic.partitions]
    return answer.error_code, offsets[0] if offsets else -1


async def test_its_groups_are_served_again_once_the_batch_is_set_aside(tmp_path: Path) -> None:
    broker = {"offsets_topic_num_partitions": "1", "auto_create_topics_enable": "true"}
    async with serving(tmp_path, **broker) as network:
        await make_topics(network)
        assert [await commit(network, offset) for offset in (5, 6, 7)] == [0, 0, 0]
    path = tmp_path / PARTITION / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    assert len(data) % 3 == 0
    data[len(data) // 3 * 2 - 1] ^= 1  # the last byte of the second of three equal batches
    path.write_bytes(data)

    async with serving(tmp_path, **broker) as network:
        assert await committed(network) == (ErrorCode.NOT_COORDINATOR, -1)
        assert await commit(network, 8) == ErrorCode.NOT_COORDINATOR
    set_aside(OsDisk(), str(tmp_path), PARTITION, 1)
    async with serving(tmp_path, **broker) as network:
        assert await committed(network) == (0, 7)
        assert await commit(network, 8) == 0
        assert await committed(network) == (0, 8)
    put_back(OsDisk(), str(tmp_path), PARTITION, 1)
    async with serving(tmp_path, **broker) as network:
        assert await committed(network) == (ErrorCode.NOT_COORDINATOR, -1)
