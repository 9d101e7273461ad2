"""The on-disk store of a standalone broker from before KRaft: a journal of transactions, and snapshots of the tree.

Both files are sequences of frames in a folder ``cluster-state``:

=========  =====  ================================================
length     u32    size of the payload in bytes, big-endian
crc        u32    CRC-32C of the payload
payload    bytes  JSON, UTF-8
=========  =====  ================================================

``journal`` has one frame per sync: a list of transactions ``[zxid, session id, time in ms, [operation, ...]]``, with an
operation ``["c", path, data, flags]`` (1 ephemeral, 2 sequence), ``["s", path, data]`` or ``["d", path]``. Versions are
left out: what is in the journal was accepted. ``snapshot`` has one frame ``[zxid, number of nodes, children ever made
under the root]``, then one per node. Data that is not UTF-8 survives by surrogate escapes.

A crash can leave a torn last frame in the journal: it was never acknowledged and is cut off. There is only one such
frame, because the next is written after the sync of the one before; pages of one frame may well arrive out of order. A
bad frame with good ones behind it, or any in the snapshot, is damage and raises ``CorruptStateError``.
The snapshot is written beside the old one and renamed; the journal is emptied after that, and
transactions that a snapshot already holds are ignored by their zxid, so a crash between the two steps does no harm.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import crc32c

from ....base.errors import ErrorCode, KafkaError
from .cluster_store import Check, Create, Delete, Operation, Set
from .znode_tree import Znode, ZnodeTransaction, ZnodeTree

JOURNAL = "journal"
SNAPSHOT = "snapshot"
_FRAME = struct.Struct(">II")
_EPHEMERAL, _SEQUENCE = 1, 2


class CorruptStateError(KafkaError):
    """The cluster state on disk is damaged; the message names the file and the place."""

    def __init__(self, what: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"the cluster state is damaged: {what}")


class StateFiles(Protocol):
    """The few things a journal does with files of one folder. All block; all raise OSError."""

    def read(self, name: str) -> bytes | None:
        """The whole file, None when there is none."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Write ``data`` after the end of the file and sync it; after a failure the file is as before or torn."""
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cut the file to ``size`` bytes and sync it."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Put a file with this content in place of ``name``: after a crash it is the old or the new one, whole."""
        ...


def encode_transactions(transactions: Iterable[ZnodeTransaction]) -> bytes:
    """The journal's frame of the transactions that share a sync."""
    payload = []
    for zxid, session_id, time_ms, operations in transactions:
        kept = [_encode_operation(operation) for operation in operations if not isinstance(operation, Check)]
        payload.append([zxid, session_id, time_ms, kept])
    return _frame(payload)


def _frame(payload: Any) -> bytes:
    body = json.dumps(payload, separators=(",", ":")).encode()
    return _FRAME.pack(len(body), crc32c.crc32c(body)) + body


def encode_snapshot(tree: ZnodeTree) -> bytes:
    """The whole tree, as ``snapshot`` holds it."""
    frames = [_frame([tree.zxid, len(tree.nodes) - 1, tree.nodes["/"].sequence])]
    frames.extend(
        _frame(
            [
                path,
                _to_text(node.data),
                node.czxid,
                node.mzxid,
                node.created_ms,
                node.modified_ms,
                node.version,
                node.ephemeral_owner,
                node.sequence,
            ]
        )
        for path, node in tree.entries()
    )
    return b"".join(frames)


def load(files: StateFiles) -> tuple[ZnodeTree, int]:
    """The tree as it was last acknowledged, and the journal's size in bytes. Raises CorruptStateError, OSError."""
    tree = ZnodeTree()
    snapshot = files.read(SNAPSHOT)
    if snapshot is not None:
        _load_snapshot(tree, snapshot)
    journal = files.read(JOURNAL)
    if journal is None:
        return tree, 0
    end = 0
    for frame_end, payload in _frames(JOURNAL, journal):
        end = frame_end
        for transaction in map(_decode_transaction, payload):
            if transaction.zxid > tree.zxid:
                tree.apply(transaction)
    if end < len(journal):
        files.truncate(JOURNAL, end)
    return tree, end


def read_transactions(data: bytes) -> Iterator[ZnodeTransaction]:
    """Those of a journal, up to its end or to a torn last frame. Raises CorruptStateError."""
    for _, payload in _frames(JOURNAL, data):
        yield from map(_decode_transaction, payload)


def read_snapshot(data: bytes) -> ZnodeTree:
    """The tree of a snapshot alone. Raises CorruptStateError."""
    tree = ZnodeTree()
    _load_snapshot(tree, data)
    return tree


def _load_snapshot(tree: ZnodeTree, snapshot: bytes) -> None:
    frames = _frames(SNAPSHOT, snapshot)
    try:
        _, (zxid, count, root_sequence) = next(frames)
    except StopIteration:
        raise CorruptStateError(f"{SNAPSHOT}: no head") from None
    for _, payload in frames:
        path, data, czxid, mzxid, created_ms, modified_ms, version, owner, sequence = payload
        node = Znode(_to_bytes(data), czxid, mzxid, created_ms, modified_ms, version, owner, sequence)
        tree.restore(path, node)
    if len(tree.nodes) - 1 != count:
        raise CorruptStateError(f"{SNAPSHOT}: {len(tree.nodes) - 1} of {count} nodes")
    tree.nodes["/"].sequence = root_sequence
    tree.zxid = zxid


def _frames(name: str, buffer: bytes) -> Iterator[tuple[int, Any]]:
    """(position after the frame, payload) of each good frame, up to the end or to a torn tail."""
    position = 0
    while position < len(buffer):
        payload = _frame_at(buffer, position)
        if payload is None:
            if _good_frame_behind(buffer, position):
                raise CorruptStateError(f"{name}: damaged at byte {position} of {len(buffer)}")
            return
        position += _FRAME.size + len(payload)
        yield position, json.loads(payload)


def _frame_at(buffer: bytes, position: int) -> bytes | None:
    start = position + _FRAME.size
    if start > len(buffer):
        return None
    length, crc = _FRAME.unpack_from(buffer, position)
    payload = buffer[start : start + length]
    return payload if length > 0 and len(payload) == length and crc32c.crc32c(payload) == crc else None


def _good_frame_behind(buffer: bytes, position: int) -> bool:
    """Whether a whole frame begins anywhere behind ``position``; each payload begins with ``[``, so few places qualify."""
    candidate = buffer.find(b"[", position + 2 * _FRAME.size)
    while candidate != -1:
        if _frame_at(buffer, candidate - _FRAME.size) is not None:
            return True
        candidate = buffer.find(b"[", candidate + 1)
    return False


def _encode_operation(operation: Operation) -> list[Any]:
    match operation:
        case Create(path, data, ephemeral, sequence):
            return ["c", path, _to_text(data), _EPHEMERAL * ephemeral | _SEQUENCE * sequence]
        case Set(path, data):
            return ["s", path, _to_text(data)]
        case Delete(path):
            return ["d", path]
    raise AssertionError(operation)


def _decode_transaction(payload: Any) -> ZnodeTransaction:
    zxid, session_id, time_ms, operations = payload
    return ZnodeTransaction(zxid, session_id, time_ms, [_decode_operation(operation) for operation in operations])


def _decode_operation(fields: list[Any]) -> Operation:
    match fields:
        case ["c", path, data, flags]:
            return Create(path, _to_bytes(data), bool(flags & _EPHEMERAL), bool(flags & _SEQUENCE))
        case ["s", path, data]:
            return Set(path, _to_bytes(data))
        case ["d", path]:
            return Delete(path)
    raise CorruptStateError(f"{JOURNAL}: unknown operation {fields!r}")


def _to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
