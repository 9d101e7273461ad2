"""The contract of cluster stores, its second part: what becomes of a session whose connection to the store is disturbed.

``LIFE`` has the rules, as ``store_contract`` has those for any session.
"""

from __future__ import annotations

from collections.abc import Awaitable

import pytest
import trio

from ottla.controller.zookeeper.store.cluster_store import (
    BadVersionError,
    ConnectionLossError,
    Create,
    Delete,
    EventType,
    SessionExpiredError,
    Set,
    StoreError,
    WatchEvent,
    create,
)
from ottla.controller.zookeeper.store.session import SessionState

from .store_place import PATIENCE, Noted, Place, Rule, asked, caught_up, until_gone, until_state

LIFE: list[Rule] = []


def life(rule: Rule) -> Rule:
    LIFE.append(rule)
    return rule


@life
async def a_cut_that_is_healed_soon_is_only_late(place: Place) -> None:
    await place.session.multi([Create("/mine", ephemeral=True), Create("/n")])
    told, changes = Noted(), place.session.changes
    await place.session.get("/n", told)
    place.cut()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.session.multi, [Create("/made")])
        await place.other.multi([Set("/n", b"second")])
        await trio.sleep(place.session.timeout / 10)
        assert await place.other.exists("/made") is None
        assert told.events == []
        place.heal()
        assert await told.first() == WatchEvent(EventType.CHANGED, "/n")
    assert (await place.session.get("/n")).data == b"second"
    assert await place.other.exists("/made") is not None
    assert (place.session.state, place.session.changes) == (SessionState.CONNECTED, changes)
    assert await place.other.exists("/mine") is not None


@life
async def a_session_that_gets_no_answer_is_suspected_and_lives_on_without_its_watches(place: Place) -> None:
    session, session_id, changes = place.session, place.session.session_id, place.session.changes
    await session.multi([Create("/mine", ephemeral=True), Create("/n", b"first")])
    told = Noted()
    await session.get("/n", told)
    await session.children("/n", told)
    await session.exists("/none", told)
    place.cut()
    await until_state(session, SessionState.SUSPECTED)
    await place.other.multi([Set("/n", b"second"), Create("/n/child")])
    place.heal()
    await until_state(session, SessionState.CONNECTED)
    assert (session.session_id, session.changes) == (session_id, changes + 2)
    assert await place.other.exists("/mine") is not None
    await place.other.multi([Set("/n", b"third"), Delete("/n/child"), Create("/none")])
    await caught_up(place)
    assert told.events == []
    await session.get("/n", told)
    await place.other.multi([Set("/n", b"fourth")])
    assert await told.first() == WatchEvent(EventType.CHANGED, "/n")


@life
async def a_session_that_is_not_heard_in_time_is_over_and_another_can_begin(place: Place) -> None:
    session, session_id = place.session, place.session.session_id
    await session.multi([Create("/mine", ephemeral=True)])
    told, errors = Noted(), 0
    await session.exists("/mine", told)
    place.cut()
    await until_gone(place.other, "/mine")
    assert session.state is SessionState.SUSPECTED

    async def ask(request: Awaitable[object]) -> None:
        nonlocal errors
        with pytest.raises(SessionExpiredError):
            await request
        errors += 1

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, session.get("/n"))
            nursery.start_soon(ask, session.get_many(["/n", "/m"]))
            nursery.start_soon(ask, session.multi([Create("/n")]))
            await asked()
            place.heal()
    assert errors == 3
    assert session.state is SessionState.EXPIRED
    with pytest.raises(SessionExpiredError):
        await session.exists("/n")
    assert told.events == []
    again = await place.connect()
    assert again.session_id != session_id
    await again.multi([Create("/mine", ephemeral=True)])
    assert await again.exists("/n") is None
    await again.close()


@life
async def requests_wait_for_a_connection_and_keep_their_order(place: Place) -> None:
    session = place.session
    place.cut()
    await until_state(session, SessionState.SUSPECTED)
    paths = ["/n" + "/n" * i for i in range(20)]
    async with trio.open_nursery() as nursery:
        for path in paths:
            nursery.start_soon(session.multi, [Create(path)])
            await asked()
        nursery.start_soon(session.get, paths[-1])
        await asked()
        assert await place.other.exists("/n") is None
        place.heal()
    assert all(await place.other.get_many(paths))


@life
async def a_read_under_way_is_asked_again_and_nobody_knows_of_a_transaction(place: Place) -> None:
    session = place.session
    await create(session, "/n", b"first")
    told = Noted()
    looks: list[bool] = []

    async def read() -> None:
        assert (await session.get("/n", told)).data == b"second"

    async def write() -> None:
        with pytest.raises(ConnectionLossError):
            await session.multi([Create("/made")])
        looks.append(await session.exists("/made") is not None)

    place.cut()
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            nursery.start_soon(write)
            await until_state(session, SessionState.SUSPECTED)
            await place.other.multi([Set("/n", b"second")])
            place.heal()
    await caught_up(place)
    assert looks == [await place.other.exists("/made") is not None]
    assert told.events == []
    await place.other.multi([Set("/n", b"third")])
    assert await told.first() == WatchEvent(EventType.CHANGED, "/n")


async def _nobody_knows(place: Place, *, is_executed: bool) -> None:
    session = place.session
    await session.multi([Create("/mine", ephemeral=True), Create("/n", b"first")])
    told = Noted()
    await session.get("/mine", told)
    place.lose_next_multi(is_executed=is_executed)
    with trio.fail_after(PATIENCE):
        with pytest.raises(ConnectionLossError):
            await session.multi([Set("/n", b"second", version=0)])
        assert (await session.get("/n")).data == (b"second" if is_executed else b"first")
    if is_executed:
        with pytest.raises(BadVersionError):  # its own doing
            await session.multi([Set("/n", b"second", version=0)])
    else:
        await session.multi([Set("/n", b"second", version=0)])
    assert await place.other.exists("/mine") is not None
    assert told.events == []


@life
async def a_transaction_whose_answer_was_lost_may_have_happened(place: Place) -> None:
    await _nobody_knows(place, is_executed=True)


@life
async def a_transaction_that_was_lost_may_not_have_happened(place: Place) -> None:
    await _nobody_knows(place, is_executed=False)


@life
async def a_refusal_can_be_lost_too(place: Place) -> None:
    await create(place.session, "/n", b"first")
    place.lose_next_multi(is_executed=True)
    with trio.fail_after(PATIENCE), pytest.raises(ConnectionLossError):
        await place.session.multi([Set("/n", b"second", version=7)])
    assert (await place.session.get("/n")).data == b"first"


@life
async def a_broken_connection_is_followed_by_another(place: Place) -> None:
    session, session_id, changes = place.session, place.session.session_id, place.session.changes
    await session.multi([Create("/mine", ephemeral=True), Create("/n")])
    told = Noted()
    await session.get("/n", told)
    place.break_connection()
    with trio.fail_after(PATIENCE):
        while session.changes < changes + 2:
            await session.wait_change(session.changes)
    await until_state(session, SessionState.CONNECTED)
    assert session.session_id == session_id
    await place.other.multi([Set("/n", b"x")])
    await caught_up(place)
    assert told.events == []
    assert await place.other.exists("/mine") is not None


@life
async def an_idle_session_lives(place: Place) -> None:
    await place.session.multi([Create("/mine", ephemeral=True)])
    changes = place.session.changes
    await trio.sleep(1.5 * place.session.timeout)
    assert await place.other.exists("/mine") is not None
    assert (place.session.state, place.session.changes) == (SessionState.CONNECTED, changes)


@life
async def a_session_that_is_closed_out_of_reach_is_over_for_its_broker_at_once(place: Place) -> None:
    session = place.session
    await session.multi([Create("/mine", ephemeral=True)])
    place.cut()
    errors: list[type[StoreError]] = []

    async def ask() -> None:
        try:
            await session.get("/mine")
        except StoreError as error:
            errors.append(type(error))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await asked()
            await session.close()
    assert session.state is SessionState.EXPIRED
    assert errors == [SessionExpiredError]
    await until_gone(place.other, "/mine")
    place.heal()


@life
async def a_request_that_was_given_up_leaves_no_watch(place: Place) -> None:
    await create(place.session, "/n")
    told = Noted()
    place.cut()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(place.session.get, "/n", told)
            nursery.start_soon(place.session.get_many, ["/n", "/m"], told)
            await asked()
            scope.cancel()
    place.heal()
    await place.session.get("/n")
    await place.other.multi([Set("/n", b"x")])
    await caught_up(place)
    assert told.events == []
