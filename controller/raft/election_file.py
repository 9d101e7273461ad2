"""``quorum-state``: the election state that a node keeps on disk, in Apache Kafka's format.

The file is in the directory of the metadata log.

One line of JSON. Version 1, of clusters with ``kraft.version`` 1: ``{"leaderId":2,"leaderEpoch":1,"votedId":2,
"votedDirectoryId":"…","data_version":1}``. Version 0 has the ids of the voters and no directory: ``{"clusterId":"","leaderId":-1,
"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}``. -1 stands for nobody.

A vote counts from when the file is on stable storage.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ...log.checkpoints import CorruptFileError
from ...log.disk import Disk, join
from ...wire.schema import ZERO_UUID, uuid_from_text, uuid_to_text

FILE_NAME = "quorum-state"
NOBODY = -1


class ElectionState(NamedTuple):
    """The newest epoch that a node has heard of, who leads in it, and for whom the node voted."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: bytes = ZERO_UUID
    """ZERO_UUID where it is not known, as in version 0."""
    voters: tuple[int, ...] = ()
    """Those of version 0 only."""


def write_election(disk: Disk, folder: str, election: ElectionState, version: int) -> None:
    """Replace the file; it is on stable storage on return. Raises OSError."""
    disk.write_file(join(folder, FILE_NAME), encode_election(election, version))


def read_election(disk: Disk, folder: str) -> ElectionState | None:
    """None where there is no such file. Raises CorruptFileError, OSError."""
    path = join(folder, FILE_NAME)
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return None
    try:
        return decode_election(data)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(f"{path}: {error!r}") from None


def encode_election(election: ElectionState, version: int) -> bytes:
    fields: dict[str, Any] = {
        "leaderId": election.leader_id,
        "leaderEpoch": election.epoch,
        "votedId": election.voted_id,
    }
    if version:
        fields["votedDirectoryId"] = uuid_to_text(election.voted_directory_id)
    else:
        voters = [{"voterId": voter} for voter in election.voters]
        fields = {"clusterId": "", **fields, "appliedOffset": 0, "currentVoters": voters}
    return json.dumps({**fields, "data_version": version}, separators=(",", ":")).encode()


def decode_election(data: bytes) -> ElectionState:
    """Raises ValueError, KeyError, TypeError."""
    fields = json.loads(data)
    version = fields["data_version"]
    if version not in (0, 1):
        raise ValueError(f"data_version ({version}) is not within the min (0) and max (1) supported version")
    return ElectionState(
        epoch=int(fields["leaderEpoch"]),
        leader_id=int(fields["leaderId"]),
        voted_id=int(fields["votedId"]),
        voted_directory_id=uuid_from_text(fields["votedDirectoryId"]) if version else ZERO_UUID,
        voters=() if version else tuple(int(voter["voterId"]) for voter in fields["currentVoters"] or ()),
    )
