"""A session at ZooKeeper in time: when it asks for a sign of life, when it is suspected, what goes out and when.

The connection is one that the test answers for, so that the clock is the test's; ``test_store_contract`` has a real one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from ottla.controller.zookeeper.store.cluster_store import (
    ConnectionLossError,
    Create,
    EventType,
    SessionExpiredError,
    Stat,
    StoreError,
    WatchEvent,
    ZnodeWithStat,
)
from ottla.controller.zookeeper.store.session import SessionState
from ottla.controller.zookeeper.store.zookeeper_session import (
    Answer,
    Answered,
    Exists,
    Get,
    Multi,
    Request,
    ZooKeeperSession,
)

TIMEOUT = 18.0
NODE = ZnodeWithStat(b"x", Stat(1, 1, 0, 0, 0, 0, 0))

Clock = trio.testing.MockClock


class Server:
    """A connection that says nothing by itself. ``asked`` are the requests without an answer, the oldest first."""

    session_id = 7
    timeout = TIMEOUT

    def __init__(self) -> None:
        self.asked: list[tuple[Request, Answered]] = []
        self.log: list[tuple[float, Request]] = []
        self.drops: list[float] = []
        self.is_stopped = False
        self.is_deaf = False
        """Whether looks at the root, the signs of life, get no answer."""

    def send(self, request: Request, is_watched: bool, answered: Answered) -> None:
        self.log.append((trio.current_time(), request))
        if request == Exists("/") and not self.is_deaf:
            trio.lowlevel.current_trio_token().run_sync_soon(answered, None, None)
        else:
            self.asked.append((request, answered))

    def answer(self, answer: Answer = NODE, error: StoreError | None = None) -> Request:
        """The oldest request gets its answer."""
        request, answered = self.asked.pop(0)
        answered(answer, error)
        return request

    def drop(self) -> None:
        self.drops.append(trio.current_time())

    def stop(self) -> None:
        self.is_stopped = True

    async def end_session(self, limit: float) -> None:
        self.is_stopped = True


@asynccontextmanager
async def connected(window: int = 10) -> AsyncIterator[tuple[ZooKeeperSession, Server]]:
    server = Server()
    session = ZooKeeperSession(server, window)
    session.on_connected()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.run_timers)
        yield session, server
        nursery.cancel_scope.cancel()


async def wait_asked(server: Server, count: int) -> list[Request]:
    await trio.testing.wait_all_tasks_blocked()
    assert len(server.asked) == count
    return [request for request, _ in server.asked]


async def test_signs_of_life_are_asked_for_while_nothing_else_is(autojump_clock: Clock) -> None:
    async with connected() as (session, server):
        await trio.sleep(20)
        assert [(time, request.path) for time, request in server.log if isinstance(request, Exists)] == [
            (pytest.approx(6.0 * i), "/") for i in (1, 2, 3)
        ]
        assert session.changes == 0


async def test_a_session_without_signs_of_life_is_suspected_in_time(autojump_clock: Clock) -> None:
    async with connected() as (session, server):
        await trio.sleep(7)
        server.is_deaf = True
        assert await session.wait_change(0) == 1
        assert session.state is SessionState.SUSPECTED
        assert trio.current_time() == pytest.approx(6.0 + 12.0)  # since the last sign that was answered was asked for
        assert server.drops == [trio.current_time()]
        session.on_lost()
        assert session.changes == 1
        session.on_connected()
        assert (session.state, session.changes) == (SessionState.CONNECTED, 2)


async def test_requests_that_go_on_do_not_keep_up_a_session_that_gets_no_answers(autojump_clock: Clock) -> None:
    async with connected(window=1000) as (session, server), trio.open_nursery() as nursery:
        server.is_deaf = True
        while session.state is SessionState.CONNECTED:
            nursery.start_soon(session.exists, "/n")
            await trio.sleep(0.5)
        assert trio.current_time() == pytest.approx(12.5)
        nursery.cancel_scope.cancel()


async def test_it_is_suspected_then_and_not_at_the_next_sign(autojump_clock: Clock) -> None:
    async with connected(window=1) as (session, server), trio.open_nursery() as nursery:
        await trio.sleep(2)
        server.is_deaf = True
        nursery.start_soon(session.get, "/n")
        await trio.sleep(1)
        server.answer()
        nursery.start_soon(session.get, "/n")  # signs of life would be asked for 3, 6, 9 and 12 s later
        await wait_asked(server, 1)
        assert await session.wait_change(0) == 1
        assert trio.current_time() == pytest.approx(2.0 + 12.0)
        nursery.cancel_scope.cancel()


async def test_it_is_reckoned_from_when_a_request_was_sent(autojump_clock: Clock) -> None:
    """ZooKeeper heard the broker no later than that: an answer that was long under way proves nothing newer."""
    async with connected() as (session, server), trio.open_nursery() as nursery:
        server.is_deaf = True
        nursery.start_soon(session.get, "/n")
        await trio.sleep(9)
        server.answer()
        assert await session.wait_change(0) == 1
        assert trio.current_time() == pytest.approx(12.0)


async def test_a_process_that_was_stopped_sends_nothing_before_it_has_connected_anew(autojump_clock: Clock) -> None:
    """As after SIGSTOP: time has passed, and no task has run, nor the thread of the connection."""
    async with connected() as (session, server), trio.open_nursery() as nursery:
        await trio.testing.wait_all_tasks_blocked()
        autojump_clock.autojump_threshold = float("inf")
        autojump_clock.jump(20)
        nursery.start_soon(session.multi, [Create("/n")])
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        autojump_clock.autojump_threshold = 0
        assert session.state is SessionState.SUSPECTED
        assert not any(isinstance(request, Multi) for _, request in server.log)
        session.on_connected()
        assert await wait_asked(server, 1) == [Multi([Create("/n")])]
        server.answer(["/n"])


async def test_answers_that_came_while_the_loop_was_held_up_are_heard_first(autojump_clock: Clock) -> None:
    async with connected() as (session, server), trio.open_nursery() as nursery:
        await trio.sleep(2)
        nursery.start_soon(session.get, "/n")
        await wait_asked(server, 1)
        autojump_clock.autojump_threshold = float("inf")
        trio.lowlevel.current_trio_token().run_sync_soon(server.answer)
        autojump_clock.jump(11)
        for _ in range(4):
            await trio.lowlevel.checkpoint()
        autojump_clock.autojump_threshold = 0
        assert (session.state, server.drops) == (SessionState.CONNECTED, [])


async def test_no_more_go_out_than_the_window_takes_and_in_their_order(autojump_clock: Clock) -> None:
    async with connected(window=2) as (session, server):
        found: list[list[ZnodeWithStat | None]] = []

        async def ask() -> None:
            found.append(await session.get_many(["/a", "/b", "/c", "/d"]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            assert await wait_asked(server, 2) == [Get("/a"), Get("/b")]
            server.answer()
            assert await wait_asked(server, 2) == [Get("/b"), Get("/c")]
            for _ in range(3):
                server.answer()
        assert found == [[NODE] * 4]


async def test_what_was_lost_is_asked_again_before_what_waits(autojump_clock: Clock) -> None:
    async with connected(window=2) as (session, server), trio.open_nursery() as nursery:
        nursery.start_soon(session.get_many, ["/a", "/b", "/c"])
        await wait_asked(server, 2)
        late = list(server.asked)
        server.asked.clear()
        session.on_lost()
        session.on_connected()
        assert await wait_asked(server, 2) == [Get("/a"), Get("/b")]
        for _, answered in late:  # of the connection before
            answered(None, ConnectionLossError())
        assert session.state is SessionState.CONNECTED
        for _ in range(3):
            server.answer()


async def test_a_loss_that_an_answer_tells_of_first_is_a_loss(autojump_clock: Clock) -> None:
    async with connected() as (session, server), trio.open_nursery() as nursery:
        told: list[WatchEvent] = []
        nursery.start_soon(session.exists, "/n", told.append)
        await wait_asked(server, 1)
        server.answer(None)

        async def write() -> None:
            with pytest.raises(ConnectionLossError):
                await session.multi([Create("/n")])

        nursery.start_soon(write)
        await wait_asked(server, 1)
        server.answer(None, ConnectionLossError())
        assert (session.state, session.changes) == (SessionState.SUSPECTED, 1)
        session.on_lost()
        session.on_connected()
        session.on_event(WatchEvent(EventType.CREATED, "/n"))
        assert (told, session.changes) == ([], 2)


async def test_watches_of_a_session_that_ends_while_it_is_connected_are_told(autojump_clock: Clock) -> None:
    """As when another session is handed out unasked."""
    async with connected() as (session, server), trio.open_nursery() as nursery:
        told: list[WatchEvent] = []
        nursery.start_soon(session.get, "/n", told.append)
        nursery.start_soon(session.children, "/m", lambda event: told.append(event))  # another watch
        await wait_asked(server, 2)
        server.answer()
        server.answer()
        session.on_expired()
        assert told == [WatchEvent(EventType.SESSION_EXPIRED, "")] * 2
        assert (session.state, server.is_stopped) == (SessionState.EXPIRED, True)
        with pytest.raises(SessionExpiredError):
            await session.get("/n")
        session.on_connected()
        assert session.state is SessionState.EXPIRED
