"""What was set on topics, brokers, users, clients and IP addresses, as one broker knows it: the nodes under ``/config`` in
memory, kept up by ``/config/changes``.

An entity is a kind and a name: ``topics``, ``brokers``, ``users`` (quotas and SCRAM credentials), ``clients`` and ``ips``. The
pair of a user and a client is of the kind ``users`` too (``security.entities``). ``znodes`` knows how the nodes are named.

A broker that changes a config writes the node and, in the same transaction, a numbered notification under ``/config/changes``
that names it. Every broker watches that folder and reads again what is named there; the broker that made the change need
not wait for the watch. Notifications older than 15 minutes are removed, as Kafka does.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping

from ...base.errors import ErrorCode, KafkaError
from ...base.seams import Clock
from ...security.entities import EntityName
from . import znodes
from .loading import decoded
from .repeated_look import RepeatedLook
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
)

logger = logging.getLogger(__name__)

NOTIFICATION_LIFETIME_MS = 15 * 60 * 1000

TOPICS = "topics"
BROKERS = "brokers"
USERS = "users"
CLIENTS = "clients"
IPS = "ips"
KINDS = (TOPICS, BROKERS, USERS, CLIENTS, IPS)
_ALWAYS_LEFT = (TOPICS, BROKERS)
"""The kinds of which an entity's node stays when nothing is set on it any more."""

TopicConfigListener = Callable[[str, Mapping[str, str]], None]
ConfigListener = Callable[[EntityName, Mapping[str, str]], None]
"""(the name of the entity, all of its overrides), called after a change."""

Transform = Callable[[Mapping[str, str]], Mapping[str, str]]


class ConfigStore:
    """Overrides by kind and name. Only entities that have some are held."""

    def __init__(self, store: ClusterStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._overrides: dict[str, dict[EntityName, dict[str, str]]] = {kind: {} for kind in KINDS}
        self._last_notification = -1
        self._look = RepeatedLook("configs")
        self.on_topic_config: list[TopicConfigListener] = []
        self.on_broker_config: list[ConfigListener] = []
        self.on_user_config: list[ConfigListener] = []
        self.on_client_config: list[ConfigListener] = []
        self.on_ip_config: list[ConfigListener] = []
        self._listeners = {
            BROKERS: self.on_broker_config,
            USERS: self.on_user_config,
            CLIENTS: self.on_client_config,
            IPS: self.on_ip_config,
        }

    async def start(self) -> None:
        """Read everything, at first and again whenever watches may have been lost. Raises StoreError."""
        names = await self._store.children(znodes.CONFIG_CHANGES, self._look.watch)
        self._last_notification = max(map(_number, names), default=-1)
        for kind, known in self._overrides.items():
            stored = await self._store.children(znodes.config_path(kind))
            if kind == USERS:
                stored += await self._clients_of_users(stored)
            await self._load(kind, {*_names(kind, stored), *known})

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
            await self._look.run(self._follow, self.start)
        except StoreFailedError as error:
            logger.error("Changes of configs are not followed any more: %s", error)

    def overrides(self, kind: str, name: EntityName) -> dict[str, str]:
        """Property -> value as it was set on an entity; empty for one without."""
        return dict(self._overrides[kind].get(name, ()))

    def entities(self, kind: str) -> list[EntityName]:
        """The names of a kind that have overrides."""
        return list(self._overrides[kind])

    async def load(self, topics: Iterable[str]) -> None:
        """Read the overrides of some topics again. Raises StoreError."""
        await self._load(TOPICS, topics)

    async def _load(self, kind: str, entities: Iterable[EntityName]) -> None:
        names = list(entities)
        paths = [znodes.config_path(kind, znodes.entity_node(kind, name)) for name in names]
        for name, path, node in zip(names, paths, await self._store.get_many(paths), strict=True):
            if node is None:
                self._put(kind, name, {})
            elif (overrides := decoded(path, node, znodes.decode_config)) is not None:
                self._put(kind, name, overrides)

    async def change(self, kind: str, name: EntityName, transform: Transform) -> None:
        """Replace the overrides of an entity by what ``transform`` makes of them; tell every broker.

        ``transform`` is called again when another writer was faster, or a connection to the store was lost before the change
        was made. Raises what it raises, and KafkaError KAFKA_STORAGE_ERROR when the store is gone. If the caller gives up
        after the change was sent, this broker hears of it as the others do.
        """
        try:
            while not await self._try_change(kind, name, transform):
                pass
        except StoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def _try_change(self, kind: str, name: EntityName, transform: Transform) -> bool:
        entity = znodes.entity_node(kind, name)
        path = znodes.config_path(kind, entity)
        (node,) = await self._store.get_many([path])
        before = znodes.decode_config(node.data) if node is not None else {}
        overrides = transform(before)
        is_left = bool(overrides) or kind in _ALWAYS_LEFT or (node is not None and node.stat.child_count > 0)
        data = znodes.encode_config(overrides) if is_left else None
        if data is None:
            operations = [] if node is None else await self._removal(kind, entity, node.stat.version)
        elif node is None:
            operations = [*await self._missing_folders(kind, entity), Create(path, data)]
        else:
            operations = [Set(path, data, node.stat.version)]
        notification = znodes.encode_config_change(f"{kind}/{entity}")
        try:
            await self._store.multi([*operations, Create(znodes.CONFIG_CHANGE_PREFIX, notification, sequence=True)])
        except (BadVersionError, NodeExistsError, NoNodeError, NotEmptyError):
            return False
        except ConnectionLossError:
            (now,) = await self._store.get_many([path])
            if data != (None if now is None else now.data):
                return False
        self._put(kind, name, overrides)
        return True

    async def _missing_folders(self, kind: str, entity: str) -> list[Operation]:
        """What makes the nodes above that of a user's client."""
        folders = _folders(kind, entity)
        nodes = await self._store.get_many(folders)
        return [Create(folder) for folder, node in zip(folders, nodes, strict=True) if node is None]

    async def _removal(self, kind: str, entity: str, version: int) -> list[Operation]:
        """What removes the node of an entity that has nothing left, and the nodes above that are not needed any more.

        Kafka does the same, or the nodes of clients that come and go would pile up (AdminZkClient ``tryCleanQuotaNodes``).
        """
        operations: list[Operation] = [Delete(znodes.config_path(kind, entity), version)]
        folders = _folders(kind, entity)
        for folder, node in reversed(list(zip(folders, await self._store.get_many(folders), strict=True))):
            if node is None or node.stat.child_count > 1 or (node.data and znodes.decode_config(node.data)):
                break
            operations.append(Delete(folder, node.stat.version))
        return operations

    def put(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Note what the store holds now of a topic, and tell the listeners if it differs."""
        self._put(TOPICS, topic, overrides)

    def _put(self, kind: str, name: EntityName, overrides: Mapping[str, str]) -> None:
        known = self._overrides[kind]
        if dict(overrides) == known.get(name, {}):
            return
        if overrides:
            known[name] = dict(overrides)
        else:
            known.pop(name, None)
        if isinstance(name, str) and kind == TOPICS:
            for tell in self.on_topic_config:
                tell(name, overrides)
        for listener in self._listeners.get(kind, ()):
            listener(name, overrides)

    def forget(self, topic: str) -> None:
        """The topic is gone."""
        self._overrides[TOPICS].pop(topic, None)

    async def _follow(self) -> None:
        names = await self._store.children(znodes.CONFIG_CHANGES, self._look.watch)
        unseen = sorted(name for name in names if _number(name) > self._last_notification)
        changed: dict[str, dict[EntityName, None]] = {kind: {} for kind in self._overrides}
        nodes = await self._store.get_many([f"{znodes.CONFIG_CHANGES}/{name}" for name in unseen])
        for entry, node in zip(unseen, nodes, strict=True):
            if node is not None:
                path = decoded(f"{znodes.CONFIG_CHANGES}/{entry}", node, znodes.decode_config_change)
                kind, _, entity = (path or "").partition("/")
                names_found = _names(kind, [entity]) if kind in KINDS else []
                changed.get(kind, {}).update(dict.fromkeys(names_found))
                if path is not None and not names_found:
                    logger.warning("A change of %r is ignored: nothing can be set there", path)
        for kind, entities in changed.items():
            await self._load(kind, entities)
        if unseen:
            self._last_notification = _number(unseen[-1])
        await self._remove_old(names)

    async def _remove_old(self, names: Iterable[str]) -> None:
        paths = [f"{znodes.CONFIG_CHANGES}/{name}" for name in names]
        limit = self._clock.now_ms() - NOTIFICATION_LIFETIME_MS
        for path, node in zip(paths, await self._store.get_many(paths), strict=True):
            if node is not None and node.stat.created_ms < limit:
                try:
                    await self._store.multi([Delete(path)])
                except (NoNodeError, ConnectionLossError):
                    pass  # gone already, or it is removed another time


def _names(kind: str, nodes: Iterable[str]) -> list[EntityName]:
    """The names that nodes stand for, without those at which nothing can be set."""
    names = []
    for node in nodes:
        with contextlib.suppress(ValueError):
            names.append(znodes.entity_name(kind, node))
    return names


def _folders(kind: str, entity: str) -> list[str]:
    """The nodes between that of a kind and that of an entity, from above: those of a user and of its clients."""
    parts = entity.split("/")
    return [znodes.config_path(kind, "/".join(parts[:length])) for length in range(1, len(parts))]


def _number(name: str) -> int:
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isdigit() else -1
