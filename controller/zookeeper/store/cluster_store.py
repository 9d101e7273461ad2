"""The interface of the cluster store: ZooKeeper's semantics as a small protocol.

A store is a tree of nodes named by slash-separated paths. A node has data (bytes), a version that every write raises by
one, and the transaction ids (zxid) of its creation and last change. An *ephemeral* node vanishes with the session that
made it; a *sequence* node gets a ten-digit number appended to its name. A ``multi`` happens whole or not at all.

A *watch* is set by a read (``get``, ``exists``, ``children``) and called once, on the event loop, at the first change
after that read: of the node's data or existence for the first two, of the list of names for ``children``. A watch that
is set again before it fired still fires once. A watch is set only if the node exists, except for that of ``exists``.

``ClusterStore`` is one session at such a store. What was answered is durable. The rules are those of ZooKeeper's
programmer's guide, cut down to what Kafka's ZooKeeper mode uses, so that a real ZooKeeper can stand behind the protocol.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

ANY_VERSION = -1


class StoreError(Exception):
    """A refused operation, or a store that cannot answer."""

    def __init__(self, path: str = "", why: str = "") -> None:
        super().__init__(": ".join(part for part in (path, why) if part) or type(self).__name__)
        self.path = path
        """The node that it is about; empty for the store."""


class NoNodeError(StoreError):
    """The node, or the parent of a node to create, does not exist."""


class NodeExistsError(StoreError):
    """The node to create exists."""


class BadVersionError(StoreError):
    """The node has another version than the one named."""


class NotEmptyError(StoreError):
    """The node to delete has children."""


class ControllerMovedError(StoreError):
    """A controller's write was refused because ``/controller_epoch`` is not that of its own election."""


class OlderBrokerError(StoreError):
    """A broker is registered that is too old to have this one as its controller."""


class SessionExpiredError(StoreError):
    """The session is over and its ephemeral nodes are gone; a new session has to be opened."""


class ConnectionLossError(StoreError):
    """The connection broke while a ``multi`` was under way: it happened whole or not at all, and only a read can tell.

    The session may live on. Conditional writes that are sent again may find what they wrote themselves: BadVersionError,
    NodeExistsError.
    """


class StoreFailedError(StoreError):
    """The store can keep nothing any more (I/O error), or is closed to this broker for good."""


class Stat(NamedTuple):
    """What a store knows of a node beside its data. Times are milliseconds since the epoch."""

    czxid: int
    mzxid: int
    created_ms: int
    modified_ms: int
    version: int
    ephemeral_owner: int
    child_count: int


class ZnodeWithStat(NamedTuple):
    """A node as read."""

    data: bytes
    stat: Stat


class EventType(Enum):
    """What happened to a watched node."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"
    SESSION_EXPIRED = "session expired"


class WatchEvent(NamedTuple):
    """One change, as a watch is told of it."""

    type: EventType
    path: str


Watch = Callable[[WatchEvent], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Create:
    """Make a node; its parent must exist and not be ephemeral. Gives its path (with the number of a sequence node)."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Set:
    """Replace the data of a node. Gives the new Stat."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclasses.dataclass(frozen=True, slots=True)
class Delete:
    """Remove a node without children. Gives None."""

    path: str
    version: int = ANY_VERSION


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """Refuse the whole multi unless the node has this version. Gives None."""

    path: str
    version: int


Operation = Create | Set | Delete | Check
Result = str | Stat | None

_OPERATION_BYTES = 100


def size_of(operation: Operation) -> int:
    """How many bytes an operation takes in a request to ZooKeeper, or a few more."""
    data = operation.data if isinstance(operation, Create | Set) else b""
    return _OPERATION_BYTES + len(operation.path.encode()) + len(data)


class ClusterStore(Protocol):
    """One session. Every method raises SessionExpiredError or StoreFailedError when the store is gone.

    While there is no connection requests wait. Requests are carried out in the order in which they were made.
    """

    @property
    def session_id(self) -> int: ...

    async def get(self, path: str, watch: Watch | None = None) -> ZnodeWithStat:
        """Raises NoNodeError."""
        ...

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[ZnodeWithStat | None]:
        """The nodes in the order of ``paths``, None for one that does not exist; one round trip.

        ``watch`` is set on each node that exists.
        """
        ...

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None: ...

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Names (not paths) in no particular order. Raises NoNodeError."""
        ...

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """All of ``operations`` in order, or none: then the error of the first refused one is raised.

        Raises ConnectionLossError when it is not known whether they were carried out.
        """
        ...

    async def close(self) -> None:
        """End the session: its ephemeral nodes go away."""
        ...


async def create(store: ClusterStore, path: str, data: bytes = b"") -> None:
    """Make one node. Raises NodeExistsError, NoNodeError."""
    await store.multi([Create(path, data)])


async def ensure_paths(store: ClusterStore, paths: Sequence[str]) -> None:
    """Make those of ``paths`` that do not exist, parents named before their children."""
    while True:
        nodes = await store.get_many(paths)
        missing: list[Operation] = [Create(path) for path, node in zip(paths, nodes, strict=True) if node is None]
        if not missing:
            return
        try:
            await store.multi(missing)
            return
        except (NodeExistsError, ConnectionLossError):
            continue
