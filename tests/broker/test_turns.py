"""A request that is much work gives turns to those of other connections."""

from __future__ import annotations

from pathlib import Path

import trio

from ottla.base.memory_network import MemoryConnection
from ottla.base.seams import SystemClock
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

from ..memory_broker import HOST, PORT, frame, read_answer, serving

_PARTITIONS = 30


class SlowBroker(SystemClock):
    """By its monotonic clock everything that the broker does takes long."""

    def __init__(self) -> None:
        self._elapsed = 0.0

    def elapsed(self) -> float:
        self._elapsed += 0.01
        return self._elapsed


async def test_a_produce_to_many_partitions_lets_others_be_answered(tmp_path: Path) -> None:
    topic = CreatableTopic(name="t", num_partitions=_PARTITIONS, replication_factor=1)
    produce = frame(produce_request("t", {number: batch(b"x") for number in range(_PARTITIONS)}), 9, 2)
    asked = frame(ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3, 3)
    async with serving(tmp_path, clock=SlowBroker()) as network:
        busy, other = await network.connect(HOST, PORT), await network.connect(HOST, PORT)
        await busy.send([frame(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5, 1)])
        await read_answer(busy)
        for _ in range(5):  # whichever of the two the loop takes first
            answered: list[int] = []

            async def note(client: MemoryConnection, answered: list[int] = answered) -> None:
                answered.append((await read_answer(client))[0])

            async with trio.open_nursery() as nursery:
                nursery.start_soon(note, busy)
                nursery.start_soon(note, other)
                await busy.send([produce])
                await other.send([asked])
            assert answered == [3, 2]
        busy.close()
        other.close()
