"""The formation record in an unformatted node's metadata log directory, and the formatting that follows.

``cluster-formation.json`` is one JSON object: the directory's id, the promise, the decision. It is there from the first start
until the directories are formatted. The directory of the metadata log is formatted last, so where that is formatted, all are.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...base.errors import ProtocolError
from ...controller.quorum.features import initial_levels
from ...controller.quorum.metadata_version import HIGHEST
from ...controller.quorum.supported_features import SUPPORTED
from ...controller.raft.voters import InitialVoter
from ...log.checkpoints import META_PROPERTIES, CorruptFileError, read_meta_properties
from ...log.disk import Disk, join
from ...log.files import METADATA_PARTITION_DIR, OLD_STATE_DIR
from ...log.log_directories import LogStartError
from ..directories.directory_ids import random_directory_id
from ..directories.format_directories import FormatError, Formatting, format_folders
from .messages import record_of_json, record_to_json
from .protocol import FormationRecord

RECORD_FILE = "cluster-formation.json"


@dataclass(frozen=True)
class FormationStore:
    """The log directories of one node that is not formatted yet."""

    disk: Disk
    folders: Sequence[str]
    """The entries of log.dirs."""
    metadata_log_dir: str
    """One of ``folders``, or beside them."""

    @property
    def all_log_dirs(self) -> list[str]:
        """The one of the metadata log is the last."""
        return [*(each for each in self.folders if each != self.metadata_log_dir), self.metadata_log_dir]

    @property
    def _path(self) -> str:
        return join(self.metadata_log_dir, RECORD_FILE)

    def make_log_dirs(self) -> None:
        """Make the directories that are not there yet. Raises OSError."""
        for folder in self.all_log_dirs:
            _make_durably(self.disk, os.path.abspath(folder))

    def is_formatted(self) -> bool:
        """Whether nothing is left to be done. Raises LogStartError where the directories are of another kind of node."""
        try:
            meta = read_meta_properties(self.disk, self.metadata_log_dir)
        except CorruptFileError as error:
            raise LogStartError(str(error)) from None
        if meta is None:
            self._check_empty()
            return False
        if meta.version != 1:
            raise LogStartError(
                f"{join(self.metadata_log_dir, META_PROPERTIES)} is of a broker that is not a KRaft node: a node of "
                "cluster.nodes needs separate log directories"
            )
        if self.disk.exists(self._path):
            self.disk.remove(self._path)  # the formatting had ended
        return True

    def _check_empty(self) -> None:
        """Refuse to give a second identity to a metadata log that has lost its ``meta.properties``."""
        if self.disk.exists(self._path):
            return
        for folder in self.all_log_dirs:
            for name in (METADATA_PARTITION_DIR, OLD_STATE_DIR, META_PROPERTIES):
                path = join(folder, name)
                if self.disk.exists(path):
                    raise LogStartError(
                        f"{path} exists, but {self.metadata_log_dir} is not formatted: a node that forms or joins a cluster "
                        "needs empty log directories"
                    )

    def load(self, randomness: random.Random) -> FormationRecord:
        """What is kept; the first time, a directory id is made and kept. Raises LogStartError, OSError."""
        if self.disk.exists(self._path):
            try:
                return record_of_json(json.loads(self.disk.read_file(self._path)))
            except (ProtocolError, ValueError) as error:
                raise LogStartError(f"{self._path}: {error}") from None
        record = FormationRecord(random_directory_id(randomness))
        self.save(record)
        return record

    def save(self, record: FormationRecord) -> None:
        """Replace what is kept; it is on stable storage on return. Raises OSError."""
        self.disk.write_file(self._path, json.dumps(record_to_json(record)).encode())

    def format(
        self, node_id: int, record: FormationRecord, listener: str, randomness: random.Random, now_ms: int
    ) -> None:
        """Format the directories as the decision says; again after a crash. Raises LogStartError, OSError.

        ``listener`` is the name of the controllers' listener.
        """
        promise = record.promise if record.is_first_voter else None
        assert record.cluster_id is not None
        voters = []
        if promise is not None:
            voters = [
                InitialVoter(place, node.host, node.port + 1, directory_id)
                for place, (node, directory_id) in enumerate(zip(record.nodes, promise.directory_ids, strict=True), 1)
            ]
        levels = initial_feature_levels() if promise is None else promise.levels
        wanted = Formatting(
            node_id,
            record.cluster_id,
            self.all_log_dirs,
            self.metadata_log_dir,
            listener,
            is_dynamic=True,
            levels=levels,
            voters=voters,
            ignores_formatted=True,
            directory_ids={self.metadata_log_dir: record.directory_id},
        )
        try:
            format_folders(
                self.disk, wanted, randomness, now_ms if promise is None else promise.created_ms, lambda line: None
            )
        except FormatError as error:
            raise LogStartError(str(error)) from None
        self.disk.remove(self._path)


def _make_durably(disk: Disk, folder: str) -> None:
    """Make a directory and those above it, and sync their names: with a name a promise would be lost."""
    parent = os.path.dirname(folder)
    if not disk.is_dir(folder) and parent != folder:
        _make_durably(disk, parent)
        disk.make_dir(folder)
        disk.sync_dir(parent)


def initial_feature_levels() -> dict[str, int]:
    """The levels that a cluster of Ottla begins with: of features that it supports."""
    return initial_levels(HIGHEST, {}, is_dynamic=True, supported=SUPPORTED)


def has_feature_levels(levels: Mapping[str, int]) -> bool:
    """Whether this node supports them."""
    return all(
        level <= (supported.highest if (supported := SUPPORTED.get(name)) is not None else 0)
        for name, level in levels.items()
    )
