"""A session at a shared store lives as one at ZooKeeper does: while its link is cut, when it is healed, after a death."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from ottla.base.seams import SystemClock
from ottla.controller.zookeeper.store.cluster_store import (
    BadVersionError,
    ConnectionLossError,
    Create,
    EventType,
    SessionExpiredError,
    Set,
    StoreFailedError,
    WatchEvent,
    create,
)
from ottla.controller.zookeeper.store.session import SessionState
from ottla.tests.zookeeper_double.embedded_session import EmbeddedSession
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore
from ottla.tests.zookeeper_double.shared_home import SharedHome
from ottla.tests.zookeeper_double.store_link import StoreLink

TIMEOUT = 18.0
SUSPECTED_AT = 12.0

Clock = trio.testing.MockClock


class Broker:
    """A broker's session with an ephemeral node, and another session that sees what the store has."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store
        self.link = StoreLink()
        self.session = store.session(self.link, TIMEOUT)
        self.other = store.session()
        self.events: list[WatchEvent] = []

    async def is_alive(self) -> bool:
        return await self.other.exists("/mine") is not None


@asynccontextmanager
async def broker() -> AsyncIterator[Broker]:
    store = EmbeddedStore(SystemClock())
    await store.open()
    found = Broker(store)
    await found.session.multi([Create("/mine", ephemeral=True), Create("/n", b"first")])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        yield found
        nursery.cancel_scope.cancel()


async def state_other_than(session: EmbeddedSession, known: SessionState) -> SessionState:
    while session.state is known:
        await session.wait_change(session.changes)
    return session.state


async def state_within(session: EmbeddedSession, seconds: float) -> SessionState:
    await trio.sleep(seconds)
    return session.state


async def test_a_cut_that_is_healed_soon_is_only_late(autojump_clock: Clock) -> None:
    async with broker() as it, trio.open_nursery() as nursery:
        await it.session.get("/n", it.events.append)
        it.link.cut()
        nursery.start_soon(it.session.multi, [Create("/made")])
        await it.other.multi([Set("/n", b"second")])
        assert await state_within(it.session, SUSPECTED_AT - 1) is SessionState.CONNECTED
        assert await it.other.exists("/made") is None
        assert it.events == []
        it.link.heal()
        assert it.events == [WatchEvent(EventType.CHANGED, "/n")]
        assert (await it.session.get("/n")).data == b"second"
        assert await it.other.exists("/made") is not None
        await trio.sleep(3 * TIMEOUT)
        assert await it.is_alive()


async def test_a_session_is_suspected_and_connects_again_without_its_watches(autojump_clock: Clock) -> None:
    async with broker() as it:
        await it.session.get("/n", it.events.append)
        it.link.cut()
        with trio.move_on_after(SUSPECTED_AT + 1):
            assert await state_other_than(it.session, SessionState.CONNECTED) is SessionState.SUSPECTED
            assert trio.current_time() == pytest.approx(SUSPECTED_AT)
        await it.other.multi([Set("/n", b"second")])
        it.link.heal()
        assert await state_other_than(it.session, SessionState.SUSPECTED) is SessionState.CONNECTED
        await it.other.multi([Set("/n", b"third")])
        assert it.events == []
        await trio.sleep(3 * TIMEOUT)
        assert await it.is_alive()


async def test_a_session_ends_at_the_store_and_its_broker_learns_of_it_when_the_link_is_healed(
    autojump_clock: Clock,
) -> None:
    async with broker() as it:
        it.link.cut()
        await trio.sleep(TIMEOUT - 1)
        assert await it.is_alive()
        await trio.sleep(2)
        assert not await it.is_alive()
        assert await state_within(it.session, 3 * TIMEOUT) is SessionState.SUSPECTED
        it.link.heal()
        assert await state_other_than(it.session, SessionState.SUSPECTED) is SessionState.EXPIRED
        with pytest.raises(SessionExpiredError):
            await it.session.exists("/n")


async def test_requests_of_a_suspected_session_wait_and_are_answered(autojump_clock: Clock) -> None:
    async with broker() as it, trio.open_nursery() as nursery:
        it.link.cut()
        await trio.sleep(SUSPECTED_AT + 1)
        nursery.start_soon(it.session.multi, [Create("/made")])
        with trio.move_on_after(1):
            await it.session.get("/n")
            raise AssertionError("nothing passes")
        it.link.heal()
        assert (await it.session.get("/n")).data == b"first"
        assert await it.other.exists("/made") is not None


async def test_a_read_under_way_is_asked_again_and_a_multi_is_lost(autojump_clock: Clock) -> None:
    async with broker() as it, trio.open_nursery() as nursery:
        it.link.cut()

        async def read() -> None:
            assert (await it.session.get("/n", it.events.append)).data == b"second"

        async def write() -> None:
            with pytest.raises(ConnectionLossError):
                await it.session.multi([Create("/made")])

        nursery.start_soon(read)
        nursery.start_soon(write)
        await trio.sleep(SUSPECTED_AT + 1)
        await it.other.multi([Set("/n", b"second")])
        it.link.heal()
        await state_other_than(it.session, SessionState.SUSPECTED)
        await trio.testing.wait_all_tasks_blocked()
        assert await it.other.exists("/made") is None
        await it.other.multi([Set("/n", b"third")])
        assert len(it.events) == 1


@pytest.mark.parametrize("is_executed", [True, False])
async def test_a_lost_answer_is_a_connection_loss(is_executed: bool, autojump_clock: Clock) -> None:
    async with broker() as it:
        await it.session.get("/mine", it.events.append)
        it.link.lose_connection_at_next_multi(is_executed=is_executed)
        with pytest.raises(ConnectionLossError):
            await it.session.multi([Set("/n", b"second", version=0)])
        assert it.session.state is SessionState.SUSPECTED
        assert (await it.session.get("/n")).data == (b"second" if is_executed else b"first")
        assert await it.is_alive()
        if is_executed:
            with pytest.raises(BadVersionError):  # its own doing
                await it.session.multi([Set("/n", b"second", version=0)])
        else:
            await it.session.multi([Set("/n", b"second", version=0)])


async def test_a_refusal_can_be_lost_too(autojump_clock: Clock) -> None:
    async with broker() as it:
        it.link.lose_connection_at_next_multi(is_executed=True)
        with pytest.raises(ConnectionLossError):
            await it.session.multi([Set("/n", b"second", version=7)])
        assert (await it.session.get("/n")).data == b"first"


async def test_a_killed_broker_leaves_its_session_behind_for_the_timeout(autojump_clock: Clock) -> None:
    async with broker() as it, trio.open_nursery() as nursery:

        async def refused() -> None:
            with pytest.raises(StoreFailedError):
                await it.session.multi([Create("/made")])

        it.link.cut()
        nursery.start_soon(refused)
        await trio.testing.wait_all_tasks_blocked()
        it.link.leave()
        await it.session.close()  # what a dying process still does
        it.link.heal()
        await trio.sleep(TIMEOUT - 1)
        assert await it.is_alive()
        await trio.sleep(2)
        assert not await it.is_alive()
        assert await it.other.exists("/made") is None
        assert it.store.sessions == [it.other]


async def test_a_clean_stop_ends_the_session_at_once_unless_the_store_is_out_of_reach(autojump_clock: Clock) -> None:
    async with broker() as it:
        unreachable = it.store.session(link := StoreLink(), TIMEOUT)
        await unreachable.multi([Create("/late", ephemeral=True)])
        link.cut()
        await it.session.close()
        await unreachable.close()
        link.heal()
        assert not await it.is_alive()
        await trio.sleep(TIMEOUT - 1)
        assert await it.other.exists("/late") is not None
        await trio.sleep(2)
        assert await it.other.exists("/late") is None


async def test_requests_of_a_session_arrive_in_their_order(autojump_clock: Clock) -> None:
    async with broker() as it:
        delays = iter([0.5, 0.1])
        slow = it.store.session(StoreLink(latency=lambda: next(delays, 0.0)), TIMEOUT)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(slow.multi, [Create("/a")])
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(slow.multi, [Create("/a/b")])
        assert await it.other.exists("/a/b") is not None


async def test_a_broker_gets_no_session_while_its_link_is_cut_and_none_after_its_death(autojump_clock: Clock) -> None:
    async with broker() as it:
        home = SharedHome(it.store)
        home.link.cut()
        with trio.move_on_after(60) as scope:
            await home.connect()
        assert scope.cancelled_caught
        home.link.heal()
        session = await home.connect()
        await create(session, "/of-home")
        home.link.leave()
        with pytest.raises(StoreFailedError):
            await home.connect()
