"""The stores in memory keep both contracts, ``store_contract`` and ``session_life_contract``: one with a journal, and the one
that several brokers share.

``test_zookeeper`` has the same of ZooKeeper.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio.testing

from ottla.base.seams import SystemClock
from ottla.controller.zookeeper.store.session import StoreSession
from ottla.controller.zookeeper.store.state_files import DiskStateFiles
from ottla.log.memory_disk import MemoryDisk
from ottla.tests.zookeeper_double.embedded_session import EmbeddedSession
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore
from ottla.tests.zookeeper_double.shared_home import SharedHome

from .helpers.session_life_contract import LIFE
from .helpers.store_contract import OPERATIONS
from .helpers.store_place import Rule


class EmbeddedPlace:
    """A store of one broker's own: nothing happens on the way to it."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store
        self.session: StoreSession = store.session()
        self.other: StoreSession = store.session()

    async def connect(self) -> StoreSession:
        return self.store.session()

    def cut(self) -> None:
        raise NotImplementedError

    def heal(self) -> None:
        raise NotImplementedError

    def break_connection(self) -> None:
        raise NotImplementedError

    def lose_next_multi(self, *, is_executed: bool) -> None:
        raise NotImplementedError


class SharedPlace:
    """A broker's place at a store in memory, with its link; the other session has a link of its own."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.home = SharedHome(store)
        self.session: StoreSession
        self.other: StoreSession = store.session()

    async def connect(self) -> StoreSession:
        return await self.home.connect()

    def cut(self) -> None:
        self.home.link.cut()

    def heal(self) -> None:
        self.home.link.heal()

    def break_connection(self) -> None:
        assert isinstance(self.session, EmbeddedSession)
        self.session.lose_connection()

    def lose_next_multi(self, *, is_executed: bool) -> None:
        self.home.link.lose_connection_at_next_multi(is_executed=is_executed)


@asynccontextmanager
async def shared_place() -> AsyncIterator[SharedPlace]:
    store = EmbeddedStore(SystemClock())
    await store.open()
    place = SharedPlace(store)
    place.session = await place.connect()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        yield place
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("rule", OPERATIONS, ids=lambda rule: rule.__name__)
async def test_of_the_embedded_store(rule: Rule) -> None:
    store = EmbeddedStore(SystemClock(), files=DiskStateFiles(MemoryDisk(), "state"))
    await store.open()
    await rule(EmbeddedPlace(store))


@pytest.mark.parametrize("rule", OPERATIONS + LIFE, ids=lambda rule: rule.__name__)
async def test_of_the_shared_store(rule: Rule, autojump_clock: trio.testing.MockClock) -> None:
    async with shared_place() as place:
        await rule(place)
