"""A tree of znodes in memory, and the application of transactions to it, without I/O, clock or waiting.

``apply`` carries out a transaction (a zxid, a session, a time and operations) or refuses it whole and leaves the tree as
it was. It is deterministic: the same transactions in the same order give the same tree, which is what a journal relies on.
A refused transaction uses up no zxid.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .cluster_store import (
    ANY_VERSION,
    BadVersionError,
    Check,
    Create,
    Delete,
    EventType,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    Result,
    Set,
    Stat,
    StoreError,
    WatchEvent,
    ZnodeWithStat,
)


@dataclasses.dataclass(slots=True)
class Znode:
    """A node of the tree."""

    data: bytes
    czxid: int
    mzxid: int
    created_ms: int
    modified_ms: int
    version: int = 0
    ephemeral_owner: int = 0
    """The session with which the node ends; 0 for a persistent one."""
    sequence: int = 0
    """How many children were ever made. It numbers sequence nodes as ZooKeeper does."""
    children: set[str] = dataclasses.field(default_factory=set)

    def stat(self) -> Stat:
        return Stat(
            self.czxid,
            self.mzxid,
            self.created_ms,
            self.modified_ms,
            self.version,
            self.ephemeral_owner,
            len(self.children),
        )


class ZnodeTransaction(NamedTuple):
    """What a journal keeps: the operations, by which session, when, and the transaction's number."""

    zxid: int
    session_id: int
    time_ms: int
    operations: Sequence[Operation]


class ZnodeTree:
    """A tree of nodes, as ZooKeeper has it."""

    def __init__(self) -> None:
        self.nodes: dict[str, Znode] = {"/": Znode(b"", 0, 0, 0, 0)}
        """By path; ``/`` always exists."""
        self.zxid = 0
        """Of the last transaction."""

    def get(self, path: str) -> ZnodeWithStat | None:
        node = self.nodes.get(path)
        return None if node is None else ZnodeWithStat(node.data, node.stat())

    def children(self, path: str) -> list[str]:
        node = self.nodes.get(path)
        if node is None:
            raise NoNodeError(path)
        return list(node.children)

    def ephemerals(self, session_id: int | None = None) -> list[str]:
        """Paths of the ephemeral nodes of one session, or of all, the deepest first."""
        found = [
            path
            for path, node in self.nodes.items()
            if node.ephemeral_owner and (session_id is None or node.ephemeral_owner == session_id)
        ]
        return sorted(found, key=lambda path: path.count("/"), reverse=True)

    def apply(self, transaction: ZnodeTransaction) -> tuple[list[Result], list[WatchEvent]]:
        """Carry out ``transaction``: the results by operation and the changes seen. Raises StoreError, changing nothing."""
        step = _Step(self, transaction)
        try:
            results = [step.run(operation) for operation in transaction.operations]
        except StoreError:
            step.undo()
            raise
        self.zxid = transaction.zxid
        return results, step.events

    def entries(self) -> Iterator[tuple[str, Znode]]:
        """Every node but the root, parents before their children."""
        stack = ["/"]
        while stack:
            path = stack.pop()
            node = self.nodes[path]
            if path != "/":
                yield path, node
            prefix = path if path == "/" else path + "/"
            stack.extend(prefix + name for name in node.children)

    def restore(self, path: str, node: Znode) -> None:
        """Put back a node read from a snapshot; parents come before their children."""
        parent, name = split(path)
        self.nodes[path] = node
        self.nodes[parent].children.add(name)


def split(path: str) -> tuple[str, str]:
    """Path of the parent, and the node's own name."""
    parent, _, name = path.rpartition("/")
    return parent or "/", name


class _Step:
    """One transaction under way, with what takes each of its changes back."""

    def __init__(self, tree: ZnodeTree, transaction: ZnodeTransaction) -> None:
        self._nodes = tree.nodes
        self._transaction = transaction
        self._inverse: list[Callable[[], None]] = []
        self.events: list[WatchEvent] = []

    def run(self, operation: Operation) -> Result:
        match operation:
            case Create():
                return self._create(operation)
            case Set():
                return self._set(operation)
            case Delete():
                self._delete(operation)
            case Check():
                self._node(operation.path, operation.version)
        return None

    def undo(self) -> None:
        for take_back in reversed(self._inverse):
            take_back()

    def _node(self, path: str, version: int) -> Znode:
        node = self._nodes.get(path)
        if node is None:
            raise NoNodeError(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersionError(path, f"version is {node.version}, expected {version}")
        return node

    def _create(self, operation: Create) -> str:
        parent_path, name = split(operation.path)
        parent = self._nodes.get(parent_path)
        if parent is None:
            raise NoNodeError(operation.path, "its parent does not exist")
        if parent.ephemeral_owner:
            raise StoreError(operation.path, "an ephemeral node has no children")
        path = operation.path
        if operation.sequence:
            path += f"{parent.sequence:010d}"
            name += f"{parent.sequence:010d}"
        if path in self._nodes:
            raise NodeExistsError(path)
        zxid, session_id, time_ms, _ = self._transaction
        owner = session_id if operation.ephemeral else 0
        self._nodes[path] = Znode(operation.data, zxid, zxid, time_ms, time_ms, ephemeral_owner=owner)
        parent.children.add(name)
        parent.sequence += 1
        self._inverse.append(lambda: self._uncreate(path, parent, name))
        self.events.append(WatchEvent(EventType.CREATED, path))
        self.events.append(WatchEvent(EventType.CHILDREN, parent_path))
        return path

    def _uncreate(self, path: str, parent: Znode, name: str) -> None:
        del self._nodes[path]
        parent.children.discard(name)
        parent.sequence -= 1

    def _set(self, operation: Set) -> Stat:
        node = self._node(operation.path, operation.version)
        before = (node.data, node.version, node.mzxid, node.modified_ms)
        self._inverse.append(lambda: self._unset(node, *before))
        node.data = operation.data
        node.version += 1
        node.mzxid = self._transaction.zxid
        node.modified_ms = self._transaction.time_ms
        self.events.append(WatchEvent(EventType.CHANGED, operation.path))
        return node.stat()

    def _unset(self, node: Znode, data: bytes, version: int, mzxid: int, modified_ms: int) -> None:
        node.data, node.version, node.mzxid, node.modified_ms = data, version, mzxid, modified_ms

    def _delete(self, operation: Delete) -> None:
        node = self._node(operation.path, operation.version)
        if node.children:
            raise NotEmptyError(operation.path)
        parent_path, name = split(operation.path)
        parent = self._nodes[parent_path]
        del self._nodes[operation.path]
        parent.children.discard(name)
        self._inverse.append(lambda: self._undelete(operation.path, node, parent, name))
        self.events.append(WatchEvent(EventType.DELETED, operation.path))
        self.events.append(WatchEvent(EventType.CHILDREN, parent_path))

    def _undelete(self, path: str, node: Znode, parent: Znode, name: str) -> None:
        self._nodes[path] = node
        parent.children.add(name)
