"""A quorum of one node, which formats its own log directories at its first start.

It is what ``ottla format --standalone`` makes, with the features that Ottla supports. Log directories that are added later get
the ids of the cluster and of the node. What an earlier broker has left in them is taken over (``take_over``).
"""

from __future__ import annotations

import dataclasses
import logging
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...base.config import Config
from ...base.seams import Clock, Workers
from ...controller.raft.voter_set import Endpoints
from ...log.checkpoints import LOCK, CorruptFileError, read_meta_properties
from ...log.disk import Disk, join
from ...log.files import OLD_STATE_DIR, OLD_STATE_TAKEN_DIR
from ...log.log_directories import LogStartError
from ...log.log_directory import LogDirectory
from ...log.log_manager import LogManager
from ...log.metadata_snapshots import known_voters
from ..identity import is_lone
from ..settings import BrokerSettings

if TYPE_CHECKING:
    from .format_directories import Formatting

logger = logging.getLogger(__name__)

IN_PROCESS_LISTENER = "CONTROLLER"
IN_PROCESS_HOST, IN_PROCESS_PORT = "localhost", 0
"""Where a controller is said to be that has no listener. Once it has one, its node tells the quorum of it."""

_NOBODYS = frozenset({LOCK, "lost+found"})
"""What may be in an empty log directory."""


async def form_quorum(
    disk: Disk,
    config: Config,
    logs: LogManager,
    metadata_log_dir: LogDirectory,
    own: Endpoints,
    *,
    is_dynamic: bool,
    randomness: random.Random,
    clock: Clock,
    workers: Workers,
) -> None:
    """Format the log directories, where that has not been done. Their logs are opened, if that is needed for it.

    ``own`` is where the node's controller is; ``is_dynamic`` is False where the node is its own only voter by a property. Raises
    LogStartError, KafkaError, OSError.
    """
    if metadata_log_dir.is_offline:
        failed = f"{metadata_log_dir.path} has the cluster's state and cannot be used: {metadata_log_dir.failure}"
        raise LogStartError(failed, may_pass=True)
    directories = [each.path for each in logs.folders if not each.is_offline]
    every = [*dict.fromkeys((*directories, metadata_log_dir.path))]
    is_formed = not any(_is_to_be_formed(disk, directory) for directory in every)
    # Formatted directories may be those of an Apache Kafka broker: a lone node goes on with a metadata log only as its voter.
    try:
        if is_formed and (not is_lone(config) or logs.broker_id in (known_voters(disk, metadata_log_dir.path) or ())):
            return
    except CorruptFileError as error:
        raise LogStartError(str(error)) from None
    from ...controller.raft.voters import InitialVoter  # most starts are spared this
    from ...wire.schema import uuid_to_text
    from .directory_ids import random_directory_id
    from .format_directories import FormatError, Formatting, format_folders

    node_id = config.settings(BrokerSettings).node_id if logs.broker_id is None else logs.broker_id
    wanted = Formatting(
        node_id=node_id,
        cluster_id=logs.cluster_id or uuid_to_text(random_directory_id(randomness)),
        folders=every,
        metadata_log_dir=metadata_log_dir.path,
        controller_listener=own[0].name,
        is_dynamic=is_dynamic,
        is_controller=True,
        voters=[InitialVoter(node_id, own[0].host, own[0].port, random_directory_id(randomness))] if is_dynamic else [],
        ignores_formatted=True,
    )
    try:
        if any({*disk.names(directory)} - _NOBODYS for directory in every):
            await _take_over(disk, config, logs, directories, wanted, randomness, clock, workers)
        else:
            await workers.run(format_folders, disk, wanted, randomness, clock.now_ms(), logger.debug)
    except FormatError as error:
        raise LogStartError(str(error)) from None
    logs.reopen()


async def _take_over(
    disk: Disk,
    config: Config,
    logs: LogManager,
    directories: Sequence[str],
    wanted: Formatting,
    randomness: random.Random,
    clock: Clock,
    workers: Workers,
) -> None:
    """Format directories that are not all empty. Raises FormatError, LogStartError, KafkaError, OSError."""
    from .format_directories import format_folders  # a first start on empty directories is spared the others
    from .stopped_node import pending_credentials
    from .take_over import TakeOver

    past = TakeOver(disk, config, directories, wanted.metadata_log_dir)
    if past.needs_logs:
        await logs.load()
    node_id = past.broker_id if logs.broker_id is None and past.broker_id is not None else wanted.node_id
    wanted = dataclasses.replace(
        wanted,
        node_id=node_id,
        cluster_id=past.cluster_id or wanted.cluster_id,
        voters=[voter._replace(node_id=node_id) for voter in wanted.voters],
        credentials=pending_credentials(disk, wanted.metadata_log_dir),
    )

    def form() -> None:
        if past.is_due:
            past.run(wanted, randomness, clock.now_ms(), logs.logs() if past.needs_logs else ())
        else:
            format_folders(disk, wanted, randomness, clock.now_ms(), logger.debug)

    await workers.run(form)


def _is_to_be_formed(disk: Disk, directory: str) -> bool:
    """Whether a directory is not one of a node of KRaft, or has metadata of a broker before that. Raises OSError."""
    if disk.is_dir(join(directory, OLD_STATE_DIR)) or disk.is_dir(join(directory, OLD_STATE_TAKEN_DIR)):
        return True
    try:
        meta = read_meta_properties(disk, directory)
    except CorruptFileError:
        return True
    return meta is None or meta.version != 1
