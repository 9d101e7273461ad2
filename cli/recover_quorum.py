"""``ottla cluster recover-quorum``: makes a stopped node the only voter, where a majority of the voters is lost for good.

Exit codes: 0 done, or shown, 1 it cannot be done, 2 the directory cannot be used or what is lost is not accepted.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

from ..base.addresses import split_host_port
from ..base.seams import SystemClock
from ..broker.directories.quorum_recovery import (
    QuorumRecovery,
    QuorumRecoveryError,
    QuorumRemains,
    examine,
    recover_quorum,
)
from ..controller.raft.voter_set import ListenerEndpoint
from ..log.disk import Disk, OsDisk
from ..wire.schema import uuid_to_text
from .stopped_folder import why_unusable

_NOT_ACCEPTED = (
    "ottla: nothing was changed. Metadata that this log lacks are lost. Use --accept-data-loss if a "
    "majority of the voters is permanently lost, and no other remaining node has a longer log"
)


def run(data_dir: Path, *, endpoint: str | None, is_dry: bool, accepts_data_loss: bool) -> int:
    """Show what the node has, or do it; the exit code."""
    disk: Disk = OsDisk()
    try:
        endpoints = () if endpoint is None else (_parse(endpoint),)
        if is_dry or not accepts_data_loss:
            print("\n".join(_shown(examine(disk, str(data_dir), SystemClock()))))
            if is_dry:
                return 0
            print(_NOT_ACCEPTED, file=sys.stderr)
            return 2
        print("\n".join(_done(recover_quorum(disk, str(data_dir), SystemClock(), endpoints))))
    except QuorumRecoveryError as error:
        print(f"ottla: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"ottla: --endpoint: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"ottla: {why_unusable(data_dir, error, 'recovered')}", file=sys.stderr)
        return 2
    return 0


def _shown(remains: QuorumRemains) -> list[str]:
    return [
        f"node: {remains.key.node_id}",
        f"directory: {uuid_to_text(remains.key.directory_id)}",
        f"cluster: {remains.cluster_id}",
        f"voters: {','.join(map(str, remains.voters.ids)) or '-'}",
        f"log end: epoch {remains.epoch}, offset {remains.end_offset}",
        f"newest record: {_time(remains.newest_ms)}",
    ]


def _done(done: QuorumRecovery) -> list[str]:
    before = done.before
    node_id, lost = before.key.node_id, [each for each in before.voters.ids if each != before.key.node_id]
    return [
        *_shown(before),
        f"Node {node_id} is the only voter from its next start on. Its metadata log as it was is in {done.kept}",
        (
            f"Metadata are lost that were committed after epoch {before.epoch}, offset {before.end_offset}, if "
            "anything was."
        ),
        (
            f"DANGER: if nodes {', '.join(map(str, lost)) or '-'} start again with their old directories, they "
            "form a second quorum."
        ),
        "Empty these directories, and format them with --no-initial-controllers, before such a node is started.",
    ]


def _time(timestamp_ms: int | None) -> str:
    if timestamp_ms is None:
        return "-"
    time = datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
    return time.isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")


def _parse(text: str) -> ListenerEndpoint:
    """Raises ValueError."""
    name, separator, address = text.partition("://")
    if not separator or not name:
        raise ValueError(f"{text!r} is not LISTENER://HOST:PORT")
    return ListenerEndpoint(name.upper(), *split_host_port(address))
