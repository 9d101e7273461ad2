"""The opening of a broker's ZooKeeper sessions, with Kazoo imported for the first one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from .cluster_store import ConnectionLossError, Create, NodeExistsError, StoreError
from .session import StoreSession
from .zookeeper_session import ZooKeeperSession
from .zookeeper_settings import (
    ZooKeeperAddress,
    ZooKeeperSettings,
    check_acl,
    parse_zookeeper_address,
    sasl_credentials,
    tls_context,
)

if TYPE_CHECKING:
    from .kazoo_client import KazooConnection

logger = logging.getLogger(__name__)

_LOOK_UP_SECONDS = 2.0


class ZooKeeper:
    """One ensemble, as ``zookeeper.connect`` names it. Raises SettingError for settings that do not go together."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        assert settings.connect is not None
        self.address = parse_zookeeper_address(settings.connect)
        self._settings = settings
        self._tls = tls_context(settings)
        self._credentials = sasl_credentials(settings)
        check_acl(settings)
        self._connections: list[KazooConnection] = []

    async def connect(self, *, makes_folder: bool = True) -> StoreSession:
        """A new session. The path of the cluster is made where it does not exist, unless nothing is to be changed.

        Raises StoreError when there is none within ``zookeeper.connection.timeout.ms``.
        """
        from .kazoo_client import KazooConnection

        settings = self._settings
        limit_ms = settings.connection_timeout_ms or settings.session_timeout_ms
        connection = KazooConnection(
            self.address, settings.session_timeout_ms / 1000, self._tls, self._credentials, settings.set_acl
        )
        self._connections = [one for one in self._connections if not one.is_over]
        self._connections.append(connection)
        session = ZooKeeperSession(connection, settings.max_in_flight_requests)
        connection.start(session)
        is_open = False
        try:
            with trio.move_on_after(limit_ms / 1000):
                if makes_folder:
                    await _create_chroot(session, self.address.chroot)
                else:
                    await session.exists(self.address.chroot or "/")
                is_open = True
        except StoreError as error:
            why = connection.last_error or str(error)
            raise StoreError(why=f"no session at ZooKeeper {self.address}: {why}") from error
        finally:
            if not is_open:
                connection.abandon()
        if not is_open:
            why = connection.last_error or await _unknown_names(self.address) or "no answer"
            raise StoreError(why=f"no session at ZooKeeper {self.address} within {limit_ms} ms: {why}")
        connection.chroot = self.address.chroot
        # The first session is opened before the broker has a nursery, and has to live while the broker starts.
        trio.lowlevel.spawn_system_task(session.run_timers)
        return session

    def close(self) -> None:
        """Connect no more. A session that was not closed is kept by ZooKeeper until its time is up."""
        for connection in self._connections:
            connection.abandon()
        self._connections.clear()


async def _unknown_names(address: ZooKeeperAddress) -> str:
    """Which hosts have no address, since kazoo ignores these silently; '' where all have one or the look-up takes long."""
    unknown = []
    with trio.move_on_after(_LOOK_UP_SECONDS):
        for host, port in address.servers:
            try:
                await trio.socket.getaddrinfo(host, port)
            except OSError as error:
                unknown.append(f"{host}: {error.strerror}")
    return ", ".join(unknown)


async def _create_chroot(session: ZooKeeperSession, path: str) -> None:
    """Make a node and those above it, as far as they do not exist (KafkaZkClient.createChrootIfNecessary)."""
    names = path.split("/")[1:]
    for i in range(len(names) + 1):
        folder = "/" + "/".join(names[:i])
        while await session.exists(folder) is None:
            try:
                await session.multi([Create(folder)])
            except (NodeExistsError, ConnectionLossError):
                continue
            logger.info("Made %s in ZooKeeper, for the state of the cluster", folder)
