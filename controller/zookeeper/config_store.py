"""Configs of topics, brokers, users, clients and IP addresses: the znodes under ``/config``, published as they change.

What is set on a topic or a broker is published as its configs; on a user or a client, as quotas and SCRAM credentials; on an
address, as its quota. ``znodes`` knows how the nodes are named.

A broker that changes a config writes the node and, in the same transaction, a notification under ``/config/changes`` that names
it. The broker that made the change need not wait for the watch.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping

from ...base.errors import ErrorCode, KafkaError
from ...base.seams import Clock
from ...metadata.delta import ClusterDelta
from ...replication.metadata_cache import MetadataCache
from ...security.entities import BROKERS, CLIENTS, TOPICS, USERS, Entity, EntityKind
from ...security.quota_keys import read_limits
from ...security.scram import StoredCredentials, read_credentials
from ..cluster import Transform
from ..configs.broker_passwords import BrokerPasswords
from .nodes import znodes
from .nodes.decoding import decoded
from .nodes.notifications import Notifications
from .nodes.watch_loop import WatchLoop
from .store.cluster_store import (
    BadVersionError,
    ClusterStore,
    ConnectionLossError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    Set,
    StoreError,
    StoreFailedError,
    ensure_paths,
)

logger = logging.getLogger(__name__)

_ALWAYS_LEFT = (TOPICS, BROKERS)
"""The kinds of which an entity's node stays when nothing is set on it any more."""


class ConfigStore:
    """``start`` once, then ``run`` in a task of its own."""

    def __init__(self, store: ClusterStore, clock: Clock, metadata: MetadataCache) -> None:
        self.metadata = metadata
        """Where all that is read goes."""
        self._store = store
        self._watches = WatchLoop("configs")
        self._changes = Notifications(store, clock, znodes.CONFIG_CHANGES, self._watches.watch)

    async def create_parent_nodes(self) -> None:
        """Make what users need of a store that no broker has used yet, and not more. Raises StoreError.

        A start takes a store without a node for topics as a sign to look through its log directories, as Apache Kafka may have
        filled them.
        """
        await ensure_paths(self._store, [path for path in znodes.PERSISTENT_PATHS if path.startswith("/config")])

    async def start(self) -> None:
        """Read everything, at first and again whenever watches may have been lost. Raises StoreError."""
        # Before the read: what is changed while it is under way leaves a notification that does not count as seen.
        await self._changes.skip()
        image = self.metadata.image
        found = dict.fromkeys((*image.configs, *image.quotas, *(Entity(USERS, user) for user in image.scram)))
        for kind in znodes.ENTITY_KINDS:
            stored = await self._store.children(znodes.config_path(kind))
            if kind is USERS:
                stored += await self._clients_of_users(stored)
            found.update(dict.fromkeys(_entities(kind, stored)))
        await self._load(found)

    async def _clients_of_users(self, users: Iterable[str]) -> list[str]:
        """The entities that are pairs of one of these users and a client; few users have any."""
        names = list(users)
        nodes = await self._store.get_many([znodes.config_path(USERS, name) for name in names])
        found = []
        for user, node in zip(names, nodes, strict=True):
            if node is not None and node.stat.child_count:
                folder = f"{user}/{CLIENTS}"
                with contextlib.suppress(NoNodeError):
                    clients = await self._store.children(znodes.config_path(USERS, folder))
                    found += [f"{folder}/{client}" for client in clients]
        return found

    async def run(self) -> None:
        """Follow the changes that others make, for as long as there is a store to follow."""
        try:
            await self._watches.run(self._follow, self.start)
        except StoreFailedError as error:
            logger.error("Changes of configs are not followed any more: %s", error)

    async def load(self, topics: Iterable[str]) -> None:
        """Read what is set on some topics again. Raises StoreError."""
        await self._load([Entity(TOPICS, topic) for topic in topics])

    async def _load(self, entities: Iterable[Entity]) -> None:
        wanted = list(entities)
        paths = [znodes.config_path(kind, znodes.entity_node(kind, name)) for kind, name in wanted]
        stored: dict[Entity, Mapping[str, str]] = {}
        for entity, path, node in zip(wanted, paths, await self._store.get_many(paths), strict=True):
            if node is None:
                stored[entity] = {}
            elif (values := decoded(path, node, znodes.decode_config)) is not None:
                stored[entity] = values
        self._publish(stored)

    async def change(self, entity: Entity, transform: Transform) -> None:
        """Replace what is set on an entity by what ``transform`` makes of it; tell every broker.

        ``transform`` is called again when another writer was faster, or a connection to the store was lost before the change
        was made. Raises what it raises, and KafkaError KAFKA_STORAGE_ERROR when the store is gone. If the caller gives up
        after the change was sent, this broker hears of it as the others do.
        """
        try:
            while not await self._try_change(entity, transform):
                pass
        except StoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def _try_change(self, entity: Entity, transform: Transform) -> bool:
        kind, name = entity.kind, znodes.entity_node(*entity)
        path = znodes.config_path(kind, name)
        (node,) = await self._store.get_many([path])
        before = znodes.decode_config(node.data) if node is not None else {}
        after = transform(before)
        is_left = bool(after) or kind in _ALWAYS_LEFT or (node is not None and node.stat.child_count > 0)
        data = znodes.encode_config(after) if is_left else None
        if data is None:
            operations = [] if node is None else await self._removal(kind, name, node.stat.version)
        elif node is None:
            operations = [*await self._missing_parents(kind, name), Create(path, data)]
        else:
            operations = [Set(path, data, node.stat.version)]
        notification = znodes.encode_config_change(f"{kind}/{name}")
        try:
            await self._store.multi([*operations, Create(znodes.CONFIG_CHANGE_PREFIX, notification, sequence=True)])
        except (BadVersionError, NodeExistsError, NoNodeError, NotEmptyError):
            return False
        except ConnectionLossError:
            (now,) = await self._store.get_many([path])
            if data != (None if now is None else now.data):
                return False
        self._publish({entity: after})
        return True

    async def _missing_parents(self, kind: EntityKind, name: str) -> list[Operation]:
        """What makes the nodes above that of a user's client."""
        folders = _folders(kind, name)
        nodes = await self._store.get_many(folders)
        return [Create(folder) for folder, node in zip(folders, nodes, strict=True) if node is None]

    async def _removal(self, kind: EntityKind, name: str, version: int) -> list[Operation]:
        """What removes the node of an entity that has nothing left, and the nodes above that are not needed any more.

        Kafka does the same, or the nodes of clients that come and go would pile up (AdminZkClient ``tryCleanQuotaNodes``).
        """
        operations: list[Operation] = [Delete(znodes.config_path(kind, name), version)]
        folders = _folders(kind, name)
        for folder, node in reversed(list(zip(folders, await self._store.get_many(folders), strict=True))):
            if node is None or node.stat.child_count > 1 or (node.data and znodes.decode_config(node.data)):
                break
            operations.append(Delete(folder, node.stat.version))
        return operations

    def put(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Publish what the store holds of a topic now: nothing, where the topic is gone."""
        self._publish({Entity(TOPICS, topic): overrides})

    def _publish(self, stored: Mapping[Entity, Mapping[str, str]]) -> None:
        """Publish what differs from what is known of these entities."""
        image = self.metadata.image
        configs: dict[Entity, Mapping[str, str]] = {}
        quotas: dict[Entity, Mapping[str, float]] = {}
        scram: dict[str, StoredCredentials] = {}
        for entity, values in stored.items():
            kind, name = entity
            if kind in _ALWAYS_LEFT:
                if dict(values) != image.configs.get(entity, {}):
                    configs[entity] = dict(values)
                continue
            if (limits := read_limits(entity, values)) != image.quotas.get(entity, {}):
                quotas[entity] = limits
            if kind is USERS and isinstance(name, str):
                credentials = read_credentials(values)
                if credentials != image.scram.get(name, {}):
                    scram[name] = credentials
        if configs or quotas or scram:
            self.metadata.publish(ClusterDelta(configs=configs, quotas=quotas, scram=scram))

    async def _follow(self) -> None:
        changed: dict[Entity, None] = {}
        for path, node in await self._changes.unseen():
            named = decoded(path, node, znodes.decode_config_change)
            kind, _, name = (named or "").partition("/")
            found = _entities(EntityKind(kind), [name]) if kind in znodes.ENTITY_KINDS else []
            changed.update(dict.fromkeys(found))
            if named is not None and not found:
                logger.warning("A change of %r is ignored: nothing can be set there", named)
        await self._load(changed)
        await self._changes.remove_old()


def _entities(kind: EntityKind, nodes: Iterable[str]) -> list[Entity]:
    """The entities that nodes stand for, without those at which nothing can be set."""
    found = []
    for node in nodes:
        with contextlib.suppress(ValueError):
            found.append(Entity(kind, znodes.entity_name(kind, node)))
    return found


def _folders(kind: EntityKind, name: str) -> list[str]:
    """The nodes between that of a kind and that of an entity, from above: those of a user and of its clients."""
    parts = name.split("/")
    return [znodes.config_path(kind, "/".join(parts[:length])) for length in range(1, len(parts))]


async def take_new_secret(passwords: BrokerPasswords, store: ConfigStore, broker_id: int) -> None:
    """Encrypt the passwords of a broker in the store with its new secret, where it has one. Raises KafkaError."""
    name = str(broker_id)
    stored = store.metadata.image.broker_config(name)
    if passwords.with_new_secret(stored) != stored:
        await store.change(Entity(BROKERS, name), passwords.with_new_secret)
