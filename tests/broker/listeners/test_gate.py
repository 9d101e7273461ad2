"""The gate of a connection, and what holds a client back: a connection on a network in memory, by a clock that jumps."""

from __future__ import annotations

import itertools
import logging
import struct
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.seams import SystemClock
from ottla.broker.listeners.monitor import Ending
from ottla.wire.messages.api_versions import ApiVersionsRequest

from ...helpers.memory_broker import frame, read_answer
from ..helpers.guarded_connection import LIMIT, THROTTLE_MS, Doorman, framed, guarded, heard, read_frame


async def test_every_frame_goes_to_the_gate_until_it_is_open() -> None:
    async with guarded() as (client, _, _):
        await client.send([framed(b"one") + framed(b"") + framed(b"open") + frame(ApiVersionsRequest(), 0, 7)])
        assert [await heard(client) for _ in range(3)] == [b"one", b"", b"open"]
        assert (await read_answer(client))[0] == 7


async def test_before_authentication_the_gate_says_how_large_a_frame_may_be(caplog: pytest.LogCaptureFixture) -> None:
    async with guarded() as (client, _, monitor):
        await client.send([framed(bytes(LIMIT)) + struct.pack(">i", LIMIT + 1)])
        assert await heard(client) == bytes(LIMIT)
        assert await client.receive() == b""
        assert monitor.errors == {Ending.PROTOCOL: 1}
    assert "65 bytes before authentication (sasl.server.max.receive.size is 64)" in caplog.text
    async with guarded() as (client, _, _):
        await client.send([framed(b"open") + frame(ApiVersionsRequest(), 0, 7, client_id="c" * LIMIT)])
        assert await heard(client) == b"open"
        assert (await read_answer(client))[0] == 7


async def test_a_failed_authentication_is_answered_after_the_delay_and_ends_the_connection(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with guarded(connection_failed_authentication_delay_ms="3000") as (client, _, monitor):
        began = trio.current_time()
        await client.send([framed(b"one") + framed(b"fail") + framed(b"open")])
        assert await heard(client) == b"one"
        assert trio.current_time() == began
        assert await heard(client) == b"no"
        assert trio.current_time() == began + 3
        assert await client.receive() == b""
        assert monitor.errors == {Ending.AUTHENTICATION: 1}
    assert "wrong word" in caplog.text


async def test_a_throttled_client_has_its_answer_at_once_and_is_not_heard_for_a_while(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with guarded() as (client, _, _):
        began = trio.current_time()
        await client.send([framed(b"slow") + framed(b"one")])
        assert await heard(client) == b"slow"
        assert trio.current_time() == began
        assert await heard(client) == b"one"
        assert trio.current_time() == began + THROTTLE_MS / 1000
        await client.send([framed(b"two")])
        assert await heard(client) == b"two"
        assert trio.current_time() == began + THROTTLE_MS / 1000


@pytest.mark.parametrize("said", [b"slow", b"fail"])
async def test_a_stop_does_not_wait_for_who_is_held_back(autojump_clock: trio.testing.MockClock, said: bytes) -> None:
    async with guarded(connection_failed_authentication_delay_ms="3000") as (client, connection, _):
        began = trio.current_time()
        await client.send([framed(said)])
        await trio.testing.wait_all_tasks_blocked()
        connection.stop()
        answers: list[Any] = []
        while (answer := await read_frame(client)) is not None:
            answers.append(answer)
        assert answers == [b"slow" if said == b"slow" else b"no"]
        assert trio.current_time() == began


@pytest.mark.parametrize("said", [b"one", b"fail", b"wait"])
async def test_a_client_that_does_not_read_its_last_word_keeps_no_connection_open(
    autojump_clock: trio.testing.MockClock, said: bytes
) -> None:
    with trio.fail_after(60):
        async with guarded(room=20) as (client, connection, _):
            await client.send([framed(bytes(16))])
            await trio.testing.wait_all_tasks_blocked()
            await client.send([framed(b"one") + framed(said)])
            await trio.sleep(10)  # it is sent what it does not read
            connection.stop()


class SlowClock(SystemClock):
    """Each look at it takes half a millisecond."""

    def __init__(self) -> None:
        self.now = 0.0

    def elapsed(self) -> float:
        self.now += 0.0005
        return self.now


async def test_many_small_frames_that_come_together_do_not_keep_others_waiting() -> None:
    """A buffer that was filled by one large frame holds tens of thousands of small ones."""
    gate = Doorman()
    async with guarded(clock=SlowClock(), gate=gate) as (client, _, _):
        await client.send([framed(b"one") * 1000])
        seen = [0]
        while gate.taken < 1000:
            await trio.lowlevel.checkpoint()
            seen.append(gate.taken)
        assert max(after - before for before, after in itertools.pairwise(seen)) <= 32
        assert [await heard(client) for _ in range(1000)] == [b"one"] * 1000
