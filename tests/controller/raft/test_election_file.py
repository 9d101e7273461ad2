"""``quorum-state``: the lines that Kafka 4.3.1 writes are read, and the same ones are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.controller.raft.election_file import (
    ElectionState,
    decode_election,
    encode_election,
    read_election,
    write_election,
)
from ottla.log.checkpoints import CorruptFileError
from ottla.log.disk import OsDisk
from ottla.wire.schema import uuid_from_text

DIRECTORY = "nYt1jCRIqbKuPBvnxfZ46w"
KAFKAS = {
    1: f'{{"leaderId":2,"leaderEpoch":1,"votedId":2,"votedDirectoryId":"{DIRECTORY}","data_version":1}}',
    0: '{"clusterId":"","leaderId":-1,"leaderEpoch":3,"votedId":1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}',
}


@pytest.mark.parametrize("version", [0, 1])
def test_kafkas_lines(version: int) -> None:
    election = decode_election(KAFKAS[version].encode())
    assert encode_election(election, version).decode() == KAFKAS[version]
    assert election == (
        ElectionState(1, 2, 2, uuid_from_text(DIRECTORY)) if version else ElectionState(3, -1, 1, voters=(1, 2))
    )


def test_a_file_that_is_not_there_or_cannot_be_read(tmp_path: Path) -> None:
    disk = OsDisk()
    assert read_election(disk, str(tmp_path)) is None
    write_election(disk, str(tmp_path), ElectionState(4, 1), 1)
    assert read_election(disk, str(tmp_path)) == ElectionState(4, 1)
    for content in ("", "{}", "[]", KAFKAS[1].replace('"data_version":1', '"data_version":2')):
        (tmp_path / "quorum-state").write_text(content)
        with pytest.raises(CorruptFileError, match="quorum-state"):
            read_election(disk, str(tmp_path))
