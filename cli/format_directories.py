"""``ottla format``: formats log directories as a node's properties and kafka-storage's options say.

Exit codes: 0, and 1 where nothing was formatted because of what standard error says.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.config import Config
from ..base.seams import SystemClock
from ..base.settings import SettingError
from ..broker.config_file import read_properties
from ..broker.directories.directory_ids import random_directory_id
from ..broker.directories.format_directories import FormatError, Formatting, format_folders, standalone_voter
from ..broker.settings import BrokerSettings
from ..controller.quorum.settings import CONTROLLER_ROLE, QuorumSettings
from ..controller.quorum.snapshot_records import credential_record
from ..controller.raft.voters import InitialVoter, parse_initial_voters
from ..log.disk import OsDisk
from ..log.log_directories import metadata_log_dir_of
from ..security.scram_arguments import parse_credential_argument
from ..wire.messages.access_records import UserScramCredentialRecord
from ..wire.schema import uuid_to_text

_NO_VOTERS = (
    "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
    "--standalone, --initial-controllers, or --no-initial-controllers."
)
_STATIC_VOTERS = (
    "You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone. If you want to "
    "use dynamic quorum, please remove controller.quorum.voters and specify controller.quorum.bootstrap.servers instead."
)


@dataclass(frozen=True)
class FormatOptions:
    """The command line."""

    cluster_id: str | None
    is_standalone: bool
    initial_controllers: str | None
    has_no_initial_controllers: bool
    release: str | None
    features: Sequence[str]
    credentials: Sequence[str]
    ignores_formatted: bool


def run(path: Path, options: FormatOptions) -> int:
    """Format the folders of the node with these properties; the exit code."""
    randomness = random.SystemRandom()
    try:
        wanted = _formatting(Config(read_properties(path)), options, randomness)
        if options.cluster_id is None:
            print(f"The cluster's id is {wanted.cluster_id}.")
        format_folders(OsDisk(), wanted, randomness, SystemClock().now_ms(), print)
    except (FormatError, SettingError) as error:
        print(f"ottla: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"ottla: {error.filename or path}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _formatting(config: Config, options: FormatOptions, randomness: random.Random) -> Formatting:
    """Raises FormatError, SettingError."""
    quorum, broker = config.settings(QuorumSettings), config.settings(BrokerSettings)
    if not quorum.process_roles:
        raise FormatError("the file has no process.roles: only nodes of a KRaft cluster are formatted")
    if not config.is_given("node.id"):
        raise FormatError("the file has no node.id")
    folders = broker.log_dirs or (broker.log_dir,)
    metadata_log_dir = metadata_log_dir_of(quorum.metadata_log_dir, folders)
    listener = broker.controller_listener_names[0] if broker.controller_listener_names else None
    if listener is None:
        raise FormatError("the file has no controller.listener.names")
    return Formatting(
        node_id=broker.node_id,
        cluster_id=options.cluster_id or uuid_to_text(random_directory_id(randomness)),
        folders=sorted({*folders, metadata_log_dir}),
        metadata_log_dir=metadata_log_dir,
        controller_listener=listener.upper(),
        is_dynamic=not quorum.voters,
        is_controller=CONTROLLER_ROLE in quorum.process_roles,
        release=options.release,
        levels=_levels(options.features),
        voters=_voters(quorum, broker, listener.upper(), options, randomness),
        credentials=[_credential(text) for text in options.credentials],
        ignores_formatted=options.ignores_formatted,
    )


def _levels(features: Iterable[str]) -> dict[str, int]:
    levels = {}
    for feature in features:
        name, separator, level = feature.partition("=")
        if not separator or not level.strip().isdecimal():
            raise FormatError(f"Can't parse feature=level string {feature}")
        levels[name.strip()] = int(level)
    return levels


def _voters(
    quorum: QuorumSettings, broker: BrokerSettings, listener: str, options: FormatOptions, randomness: random.Random
) -> Sequence[InitialVoter]:
    is_controller = CONTROLLER_ROLE in quorum.process_roles
    if quorum.voters and (options.initial_controllers is not None or options.is_standalone):
        raise FormatError(_STATIC_VOTERS)
    if options.initial_controllers is not None:
        try:
            return parse_initial_voters(options.initial_controllers)
        except ValueError as error:
            raise FormatError(str(error)) from None
    if options.is_standalone:
        if not is_controller:
            raise FormatError("You can only use --standalone on a controller.")
        return [standalone_voter(broker, listener, random_directory_id(randomness))]
    if is_controller and not quorum.voters and not options.has_no_initial_controllers:
        raise FormatError(_NO_VOTERS)
    return ()


def _credential(text: str) -> UserScramCredentialRecord:
    try:
        user, mechanism, credential = parse_credential_argument(text)
    except ValueError as error:
        raise FormatError(str(error)) from None
    return credential_record(user, mechanism, credential)
