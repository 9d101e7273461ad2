"""Parsing of quorum voters in command lines and properties, and their record in the log (KIP-853)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from ...base.addresses import join_host_port, split_host_port
from ...wire.messages.control_records import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from ...wire.schema import uuid_from_text, uuid_to_text

KRAFT_VERSIONS = (0, 1)
"""The lowest and the highest level of ``kraft.version`` that a node supports."""


class ControllerAddress(NamedTuple):
    """Where a controller is reached."""

    host: str
    port: int


class InitialVoter(NamedTuple):
    """A voter of a quorum that is made: ``ID@HOST:PORT:DIRECTORY``."""

    node_id: int
    host: str
    port: int
    directory_id: bytes

    def __str__(self) -> str:
        return f"{self.node_id}@{join_host_port(self.host, self.port)}:{uuid_to_text(self.directory_id)}"


def parse_initial_voters(text: str) -> list[InitialVoter]:
    """Those of ``--initial-controllers``, with commas between, by their ids. Raises ValueError."""
    voters = [_parse_voter(item) for item in filter(None, (part.strip() for part in text.split(",")))]
    if not voters:
        raise ValueError("No voters given.")
    voters.sort(key=lambda voter: voter.node_id)
    for before, voter in itertools.pairwise(voters):
        if before.node_id == voter.node_id:
            raise ValueError(f"Node id {voter.node_id} was specified more than once.")
    return voters


def _parse_voter(text: str) -> InitialVoter:
    node, at, place = text.partition("@")
    if not at:
        raise ValueError(f"No @ found in dynamic voter string: {text}")
    if not node.isdecimal():
        raise ValueError(f"Failed to parse node id in dynamic voter string: {text}")
    address, colon, directory = place.rpartition(":")
    try:
        host, port = split_host_port(address)
        return InitialVoter(int(node), host, port, uuid_from_text(directory))
    except ValueError:
        what = "address and directory id" if colon else "hostname:port:directory"
        raise ValueError(f"Failed to parse {what} in dynamic voter string: {text}") from None


def voters_record(voters: Iterable[InitialVoter], listener: str) -> VotersRecord:
    """The record of a new quorum, each voter with its address of the first controller listener."""
    lowest, highest = KRAFT_VERSIONS
    return VotersRecord(
        voters=[
            Voter(
                voter_id=voter.node_id,
                voter_directory_id=voter.directory_id,
                endpoints=[Endpoint(name=listener, host=voter.host, port=voter.port)],
                k_raft_version_feature=KRaftVersionFeature(min_supported_version=lowest, max_supported_version=highest),
            )
            for voter in voters
        ]
    )


def parse_addresses(servers: Iterable[str]) -> list[ControllerAddress]:
    """Those of ``controller.quorum.bootstrap.servers``. Raises ValueError."""
    return [ControllerAddress(*split_host_port(server)) for server in servers]


def parse_static_voters(voters: Iterable[str]) -> dict[int, ControllerAddress]:
    """Those of ``controller.quorum.voters``, ID@HOST:PORT each, by their ids. Raises ValueError."""
    found = {}
    for text in voters:
        node, at, address = text.partition("@")
        if not at or not node.isdecimal():
            raise ValueError(f"{text!r} is not ID@HOST:PORT")
        found[int(node)] = ControllerAddress(*split_host_port(address))
    return found
