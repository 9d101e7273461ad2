"""A place at a real ZooKeeper: a session through a proxy that can disturb it, and another one directly to the server."""

from __future__ import annotations

import functools
import itertools
import os
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import trio

from ottla.controller.zookeeper.store.cluster_store import StoreError
from ottla.controller.zookeeper.store.session import StoreSession
from ottla.controller.zookeeper.store.zookeeper import ZooKeeper
from ottla.controller.zookeeper.store.zookeeper_settings import ZooKeeperSettings

from .store_place import PATIENCE
from .tcp_proxy import TcpProxy, tcp_proxy

SESSION_MS = 4000
"""Long enough for a busy machine, short enough to wait for."""

MULTI = 14
"""The number of a transaction among ZooKeeper's requests (ZooDefs.OpCode)."""

_paths = itertools.count(1)


def new_path() -> str:
    """A node that no other test has."""
    return f"/test-{os.getpid()}-{next(_paths)}"


def zookeeper_at(address: str, properties: Mapping[str, str] | None = None) -> ZooKeeper:
    return ZooKeeper(
        ZooKeeperSettings.from_properties(
            {
                "zookeeper.connect": address,
                "zookeeper.session.timeout.ms": str(SESSION_MS),
                "zookeeper.connection.timeout.ms": "60000",
                **(properties or {}),
            }
        )
    )


async def refusal(address: str, properties: Mapping[str, str], reason: str) -> None:
    """Opening a session fails, with ``reason`` in the message.

    On a busy machine the time-out can end before the reason is known; then it is tried again.
    """
    said = ""
    with trio.move_on_after(PATIENCE):
        while reason not in said:
            zookeeper = zookeeper_at(address, properties)
            with pytest.raises(StoreError) as raised:
                await zookeeper.connect()
            zookeeper.close()
            said = str(raised.value)
    assert reason in said


class ZooKeeperPlace:
    """A ``store_place.Place``; ``session`` goes through ``proxy``; ``path`` is its chroot."""

    def __init__(self, proxy: TcpProxy, address: str, properties: Mapping[str, str] | None) -> None:
        self.proxy = proxy
        self.path = new_path()
        self.zookeeper = zookeeper_at(proxy.address + self.path, properties)
        self.straight = zookeeper_at(address + self.path, properties)
        self.session: StoreSession
        self.other: StoreSession

    async def connect(self) -> StoreSession:
        return await self.zookeeper.connect()

    def cut(self) -> None:
        self.proxy.hold()

    def heal(self) -> None:
        self.proxy.release()

    def break_connection(self) -> None:
        self.proxy.break_connections()

    def lose_next_multi(self, *, is_executed: bool) -> None:
        def see_request(piece: bytes) -> bytes:
            for _, xid, kind in _frames(piece):
                if kind == MULTI:
                    self.proxy.requests.rewrite = None
                    if is_executed:
                        self.proxy.answers.rewrite = functools.partial(see_answer, xid)
                    else:
                        self.proxy.break_connections()
            return piece

        def see_answer(wanted: int, piece: bytes) -> bytes:
            if any(xid == wanted for _, xid, _ in _frames(piece)):
                self.proxy.answers.rewrite = None
                self.proxy.break_connections()
            return piece

        self.proxy.requests.rewrite = see_request


def _frames(piece: bytes) -> list[tuple[int, int, int]]:
    """Length, xid and type (the number after it) of each message in a piece that begins with a message."""
    found = []
    at = 0
    while at + 12 <= len(piece):
        length, xid, kind = struct.unpack_from(">iii", piece, at)
        found.append((length, xid, kind))
        at += 4 + length
    return found


@asynccontextmanager
async def zookeeper_place(address: str, properties: Mapping[str, str] | None = None) -> AsyncIterator[ZooKeeperPlace]:
    """A place at the server at ``host:port``; ``properties`` are those of its sessions."""
    async with tcp_proxy(address) as proxy:
        place = ZooKeeperPlace(proxy, address, properties)
        try:
            place.other = await place.straight.connect()
            place.session = await place.zookeeper.connect()
            yield place
            proxy.release()
            await place.session.close()
            await place.other.close()
        finally:
            place.zookeeper.close()
            place.straight.close()
