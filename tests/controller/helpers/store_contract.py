"""The contract of cluster stores, as tests that run on each of them: the embedded one, the one that brokers of a simulation
share, and ZooKeeper. ``test_store_contract`` and ``test_zookeeper`` run them.

``OPERATIONS`` hold for any session; ``session_life_contract`` has those for a session whose connection can be disturbed.
"""

from __future__ import annotations

import pytest
import trio

from ottla.controller.zookeeper.store.cluster_store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    EventType,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    Set,
    Stat,
    StoreError,
    WatchEvent,
    create,
    ensure_paths,
)
from ottla.controller.zookeeper.store.session import SessionState

from .store_place import PATIENCE, Noted, Place, Rule, asked, caught_up

OPERATIONS: list[Rule] = []


def operation(rule: Rule) -> Rule:
    OPERATIONS.append(rule)
    return rule


# --- nodes ------------------------------------------------------------------------------------------------------------


@operation
async def a_node_is_read_as_it_was_written(place: Place) -> None:
    assert await place.session.multi([Create("/n", b"first")]) == ["/n"]
    node = await place.session.get("/n")
    assert node.data == b"first"
    assert (node.stat.version, node.stat.ephemeral_owner, node.stat.child_count) == (0, 0, 0)
    assert node.stat.czxid == node.stat.mzxid > 0
    [after] = await place.session.multi([Set("/n", b"", version=0)])
    assert isinstance(after, Stat)
    assert (after.version, after.czxid) == (1, node.stat.czxid)
    assert after.mzxid > after.czxid
    assert await place.session.get("/n") == (b"", after)
    assert await place.session.exists("/n") == after
    assert await place.session.multi([Check("/n", 1), Delete("/n", 1)]) == [None, None]
    assert await place.session.exists("/n") is None


@operation
async def what_is_not_there_is_said(place: Place) -> None:
    await create(place.session, "/there", b"x")
    with pytest.raises(NoNodeError, match="/n"):
        await place.session.get("/n")
    with pytest.raises(NoNodeError, match="/n"):
        await place.session.children("/n")
    assert await place.session.exists("/n") is None
    found = await place.session.get_many(["/n", "/there", "/none"])
    assert [node and node.data for node in found] == [None, b"x", None]


@operation
async def children_are_named_without_their_path(place: Place) -> None:
    await place.session.multi([Create("/n"), Create("/n/a"), Create("/n/b"), Create("/n/b/c")])
    assert sorted(await place.session.children("/n")) == ["a", "b"]
    assert (await place.session.get("/n")).stat.child_count == 2
    assert {"n"} <= set(await place.session.children("/"))


@operation
async def many_are_read_in_their_order(place: Place) -> None:
    await place.session.multi([Create(f"/n{i}", b"%d" % i) for i in range(300)])
    found = await place.session.get_many([f"/n{i}" for i in range(299, -1, -1)])
    assert [node and node.data for node in found] == [b"%d" % i for i in range(299, -1, -1)]


@operation
async def a_refused_transaction_changes_nothing_and_says_what_was_refused(place: Place) -> None:
    session = place.session
    await session.multi([Create("/n"), Create("/n/child"), Create("/m")])
    refused: list[tuple[type[StoreError], str, list[Create | Set | Delete | Check]]] = [
        (NodeExistsError, "/n", [Set("/m", b"x"), Create("/n"), Create("/m")]),
        (NoNodeError, "/no/child", [Set("/m", b"x"), Create("/no/child")]),
        (NoNodeError, "/no", [Create("/new"), Set("/no", b""), Set("/m", b"x")]),
        (BadVersionError, "/m", [Check("/n", 0), Set("/m", b"x", version=3)]),
        (BadVersionError, "/m", [Delete("/m", 7)]),
        (BadVersionError, "/n", [Check("/n", 1), Create("/n"), Set("/m", b"x")]),
        (NotEmptyError, "/n", [Set("/m", b"x"), Delete("/n")]),
        (NoNodeError, "/no", [Delete("/no")]),
    ]
    for error, path, operations in refused:
        with pytest.raises(error) as raised:
            await session.multi(operations)
        assert type(raised.value) is error
        assert raised.value.path == path
    assert (await session.get("/m")).stat.version == 0
    assert await session.exists("/new") is None
    assert session.state is SessionState.CONNECTED


@operation
async def a_transaction_sees_its_own_steps(place: Place) -> None:
    await place.session.multi(
        [Create("/n"), Create("/n/a"), Set("/n/a", b"1", version=0), Set("/n/a", b"2", version=1)]
    )
    assert (await place.session.get("/n/a")).data == b"2"
    await place.session.multi([Delete("/n/a"), Delete("/n"), Create("/n")])
    assert await place.session.children("/n") == []


@operation
async def a_registration_tells_its_epoch(place: Place) -> None:
    """Kafka's broker epoch: the zxid of the creation, which only the write after it in the same transaction gives."""
    _, stat = await place.session.multi([Create("/n", b"x", ephemeral=True), Set("/n", b"x")])
    assert isinstance(stat, Stat)
    assert (stat.version, stat.ephemeral_owner) == (1, place.session.session_id)
    assert (await place.other.get("/n")).stat == stat
    await place.session.multi([Delete("/n")])
    _, again = await place.session.multi([Create("/n", b"x", ephemeral=True), Set("/n", b"x")])
    assert isinstance(again, Stat)
    assert again.czxid > stat.czxid


@operation
async def sequence_nodes_are_numbered_by_all_that_was_made(place: Place) -> None:
    await create(place.session, "/n")
    assert await place.session.multi([Create("/n/c_", b"x", sequence=True)]) == ["/n/c_0000000000"]
    assert await place.other.multi([Create("/n/c_", sequence=True)] * 2) == ["/n/c_0000000001", "/n/c_0000000002"]
    await place.session.multi([Create("/n/plain"), Delete("/n/plain"), Delete("/n/c_0000000002")])
    assert await place.session.multi([Create("/n/d_", sequence=True)]) == ["/n/d_0000000004"]
    with pytest.raises(NoNodeError):
        await place.session.multi([Create("/n/d_", sequence=True), Set("/no", b"")])
    assert await place.session.multi([Create("/n/d_", sequence=True)]) == ["/n/d_0000000005"]
    assert (await place.session.get("/n/c_0000000000")).data == b"x"


@operation
async def an_ephemeral_node_has_no_children_and_goes_with_its_session(place: Place) -> None:
    leaving = await place.connect()
    await leaving.multi([Create("/n", ephemeral=True)])
    with pytest.raises(StoreError):
        await place.session.multi([Create("/n/child")])
    gone = Noted()
    assert await place.other.exists("/n", gone) is not None
    await leaving.close()
    assert await gone.first() == WatchEvent(EventType.DELETED, "/n")
    assert await place.other.exists("/n") is None


@operation
async def a_session_that_was_closed_is_over(place: Place) -> None:
    session = await place.connect()
    assert session.state is SessionState.CONNECTED
    told = Noted()
    await session.exists("/n", told)
    changes = session.changes
    await session.close()
    assert session.state is SessionState.EXPIRED
    assert await session.wait_change(changes) > changes
    for ask in (session.get("/n"), session.exists("/n"), session.children("/"), session.multi([Create("/n")])):
        with pytest.raises(SessionExpiredError):
            await ask
    with pytest.raises(SessionExpiredError):
        await session.get_many(["/n", "/m"])
    await session.close()
    assert await place.other.exists("/n") is None
    assert told.events == []


@operation
async def sessions_differ(place: Place) -> None:
    third = await place.connect()
    assert len({place.session.session_id, place.other.session_id, third.session_id}) == 3
    await third.close()


@operation
async def requests_are_carried_out_in_their_order(place: Place) -> None:
    """Each of these is only possible after the one before it."""
    paths = ["/n" + "/n" * i for i in range(30)]
    async with trio.open_nursery() as nursery:
        for path in paths:
            nursery.start_soon(place.session.multi, [Create(path)])
            await asked()
    assert all(await place.other.get_many(paths))


@operation
async def helpers_meet_what_others_did(place: Place) -> None:
    await ensure_paths(place.session, ["/n", "/n/a", "/n/a/b"])
    await ensure_paths(place.other, ["/n", "/n/a", "/n/a/b", "/n/c"])
    assert sorted(await place.session.children("/n")) == ["a", "c"]


# --- watches ----------------------------------------------------------------------------------------------------------


@operation
async def a_watch_is_told_once_and_before_the_change_is_read(place: Place) -> None:
    await create(place.session, "/n", b"first")
    told = Noted()
    await place.session.get("/n", told)
    await place.other.multi([Set("/n", b"second")])
    await place.other.multi([Set("/n", b"third")])
    await told.first()
    assert (await place.session.get("/n")).data == b"third"
    await caught_up(place)
    assert told.events == [WatchEvent(EventType.CHANGED, "/n")]


@operation
async def a_watch_is_told_of_its_own_kind(place: Place) -> None:
    await place.session.multi([Create("/n"), Create("/m")])
    data, missing, names, names_of_other = Noted(), Noted(), Noted(), Noted()
    await place.session.get("/n", data)
    await place.session.exists("/n/a", missing)
    await place.session.children("/n", names)
    await place.session.children("/m", names_of_other)
    await place.other.multi([Create("/n/a")])
    assert await missing.first() == WatchEvent(EventType.CREATED, "/n/a")
    assert await names.first() == WatchEvent(EventType.CHILDREN, "/n")
    assert data.events == []
    await place.session.children("/n", names)
    await place.session.exists("/n/a", missing)
    await place.other.multi([Delete("/n/a"), Delete("/n")])
    assert await data.first() == WatchEvent(EventType.DELETED, "/n")
    await caught_up(place)
    assert missing.events[1:] == [WatchEvent(EventType.DELETED, "/n/a")]
    assert names.events[1:] in (
        [WatchEvent(EventType.CHILDREN, "/n")],
        [WatchEvent(EventType.DELETED, "/n")],
    )
    assert names_of_other.events == []


@operation
async def a_watch_set_twice_is_told_once(place: Place) -> None:
    await create(place.session, "/n")
    one, another = Noted(), Noted()
    await place.session.get("/n", one)
    await place.session.exists("/n", one)
    await place.session.children("/n", one)
    await place.session.get_many(["/n", "/n"], one)
    await place.session.get("/n", another)
    await place.other.multi([Delete("/n")])
    await another.first()
    await caught_up(place)
    assert one.events == another.events == [WatchEvent(EventType.DELETED, "/n")]


@operation
async def only_a_look_whether_it_exists_watches_a_node_that_does_not(place: Place) -> None:
    looked, read, listed, many = Noted(), Noted(), Noted(), Noted()
    await place.session.exists("/n", looked)
    with pytest.raises(NoNodeError):
        await place.session.get("/n", read)
    with pytest.raises(NoNodeError):
        await place.session.children("/n", listed)
    await place.session.get_many(["/n"], many)
    await place.other.multi([Create("/n")])
    await looked.first()
    await place.other.multi([Create("/n/a"), Set("/n", b"x")])
    await caught_up(place)
    assert (read.events, listed.events, many.events) == ([], [], [])


@operation
async def own_changes_are_told_as_well(place: Place) -> None:
    await create(place.session, "/n")
    told = Noted()
    await place.session.get("/n", told)
    await place.session.multi([Set("/n", b"x")])
    assert await told.first() == WatchEvent(EventType.CHANGED, "/n")


@operation
async def a_watch_may_ask(place: Place) -> None:
    """As parts of a broker do: read again, with a new watch, while there are changes."""
    await create(place.session, "/n", b"0")
    seen: list[bytes] = []
    woken = trio.Event()

    def wake(_: WatchEvent) -> None:
        woken.set()

    async def follow() -> None:
        nonlocal woken
        while b"9" not in seen:
            woken = trio.Event()
            seen.append((await place.session.get("/n", wake)).data)
            if b"9" not in seen:
                await woken.wait()

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            for i in range(1, 10):
                await place.other.multi([Set("/n", b"%d" % i)])
    assert seen == sorted(set(seen))
