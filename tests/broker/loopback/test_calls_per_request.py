"""What a request costs one node: Python calls from the frame to the parts of its answer, counted to the call.

Each costs about a tenth of a microsecond and there are as many for every request, so a part that is of use only to a
cluster must not add one here. A change that makes one less lowers the number.
"""

from __future__ import annotations

import struct
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio

from ottla.base.config import Config
from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import SystemClock
from ottla.broker.listeners.dispatch import answer
from ottla.broker.server import BrokerServer
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.controller.new_topics import NewTopic
from ottla.handlers.activity import Activity
from ottla.handlers.call import Call
from ottla.handlers.connection_context import ConnectionContext
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.schema import Message

from ...helpers.memory_broker import HOST, PORT, frame, read_answer, running, serving

PRODUCE_CALLS = 60
FETCH_CALLS = 45
NEW_SESSION_CALLS = 55
SESSION_CALLS = 47
_SESSION_ID_AT = 4 + 2  # in the body, after the throttle time and the error code


@pytest.mark.cpython
@pytest.mark.parametrize("activity", [None, Activity()], ids=["without a console", "with one"])
async def test_the_calls_of_a_produce_and_of_a_fetch(activity: Activity | None, tmp_path: Path) -> None:
    """What a connection notes of them for the console is no call more."""
    config = Config({"log.dirs": str(tmp_path), "listeners": f"PLAINTEXT://{HOST}:{PORT}"})
    server = BrokerServer(config, network=MemoryNetwork())
    async with running(server):
        services = server.assembly.services
        await services.cluster.create_missing_topics([NewTopic("t", 1)])
        call = Call(services, ConnectionContext("PLAINTEXT", "peer:1"), trio.lowlevel.checkpoint)
        call.activity = activity
        topic_id = services.metadata.topic_id("t")
        assert topic_id is not None

        def count(request: Message, version: int) -> tuple[Counter[str], list[Any]]:
            return _count(call, memoryview(bytearray(frame(request, version, 1)))[4:])

        def fetch(session_epoch: int, session_id: int = 0) -> FetchRequest:
            asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=0)
            return FetchRequest(
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=1 << 20,
                topics=[FetchTopic(topic_id=topic_id, partitions=[asked])],
                session_id=session_id,
                session_epoch=session_epoch,
            )

        produce = produce_request("t", {0: batch(b"x")})
        for _ in range(3):  # what is compiled once is compiled by the first ones
            produced, _ = count(produce, 9)
        for _ in range(3):
            fetched, _ = count(fetch(-1), 17)
            began, (_, body, *_) = count(fetch(0), 17)
            (session_id,) = struct.unpack_from(">i", body, _SESSION_ID_AT)
            went_on, _ = count(fetch(1, session_id), 17)
        most = {PRODUCE_CALLS: produced, FETCH_CALLS: fetched, NEW_SESSION_CALLS: began, SESSION_CALLS: went_on}
        for limit, calls in most.items():
            assert calls.total() <= limit, (calls.total(), sorted(calls.items()))
        if activity is not None:
            assert activity.produced.keys() == {("t", 0)}
            assert [fetched.number for fetched in activity.fetched] == [0]


class StillClock(SystemClock):
    """No turn of a connection is over by it."""

    def elapsed(self) -> float:
        return 0.0


async def test_a_connection_calls_nothing_of_its_own_for_one_more_request(tmp_path: Path) -> None:
    """Requests that were read together: what each of them costs in the module of connections, besides answering it."""
    async with serving(tmp_path, clock=StillClock()) as network:
        client = await network.connect(HOST, PORT)
        produce = frame(produce_request("t", {0: batch(b"x")}), 9, 1)

        async def calls(requests: int) -> int:
            with _counted() as counted:
                await client.send([produce * requests])
                for _ in range(requests):
                    await read_answer(client)
            return sum(count for file, count in counted.items() if file.endswith("broker/listeners/connection.py"))

        await calls(1)
        assert await calls(4) == await calls(12)
        client.close()


@contextmanager
def _counted() -> Iterator[Counter[str]]:
    """The calls of Python functions meanwhile, by file."""
    calls: Counter[str] = Counter()

    def profile(of: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[of.f_code.co_filename] += 1

    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def _count(call: Call, request: memoryview) -> tuple[Counter[str], list[Any]]:
    """The Python functions that are called to answer, without waiting; and the answer's parts."""
    calls: Counter[str] = Counter()

    def profile(of: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[of.f_code.co_qualname] += 1

    answering = answer(call, request)
    sys.setprofile(profile)
    try:
        answering.send(None)
    except StopIteration as stop:
        parts = stop.value
    finally:
        sys.setprofile(None)
    return calls, parts
