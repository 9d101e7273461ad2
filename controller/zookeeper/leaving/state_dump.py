"""Text dumps of a standalone broker's metadata from before KRaft: its journal and its snapshot (``old_state``)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from ....log.disk import Disk
from ....log.dump.files import FileDump
from ....log.dump.report import Report
from ..store.cluster_store import Check, Create, Delete, Operation, Set
from ..store.journal import JOURNAL, SNAPSHOT, read_snapshot, read_transactions
from .old_state import KEPT_PREFIX


def state_dumps(*, shows_data: bool) -> Mapping[str, FileDump]:
    """What prints each of these files, by its name."""
    found: dict[str, FileDump] = {}
    for prefix in ("", KEPT_PREFIX):
        found[prefix + JOURNAL] = functools.partial(_dump_journal, shows_data)
        found[prefix + SNAPSHOT] = functools.partial(_dump_snapshot, shows_data)
    return found


def _dump_journal(shows_data: bool, disk: Disk, path: str, report: Report) -> None:
    """Raises CorruptStateError, OSError."""
    report.line("Journal of a cluster's state before KRaft")
    for zxid, session_id, time_ms, operations in read_transactions(disk.read_file(path)):
        report.line(f"zxid: {zxid} sessionId: {session_id} time: {time_ms} count: {len(operations)}")
        for operation in operations:
            report.line("| " + " ".join(_operation(operation, shows_data=shows_data)))


def _operation(operation: Operation, *, shows_data: bool) -> Iterator[str]:
    yield type(operation).__name__.lower()
    yield f"path: {operation.path}"
    match operation:
        case Create(_, data, is_ephemeral, is_sequence):
            yield from ["ephemeral"] * is_ephemeral + ["sequence"] * is_sequence
            yield _data(data, shows_data=shows_data)
        case Set(_, data):
            yield _data(data, shows_data=shows_data)
        case Delete() | Check():
            pass


def _dump_snapshot(shows_data: bool, disk: Disk, path: str, report: Report) -> None:
    """Raises CorruptStateError, OSError."""
    tree = read_snapshot(disk.read_file(path))
    report.line(f"Snapshot of a cluster's state before KRaft, zxid: {tree.zxid} count: {len(tree.nodes) - 1}")
    for name, node in sorted(tree.entries()):
        stat = f"czxid: {node.czxid} mzxid: {node.mzxid} version: {node.version}"
        report.line(f"| path: {name} {stat} {_data(node.data, shows_data=shows_data)}")


def _data(data: bytes, *, shows_data: bool) -> str:
    return f"dataSize: {len(data)}" + (f" data: {data.decode('utf-8', 'replace')}" if shows_data and data else "")
