"""The voter set of a quorum as a value: its voters, their endpoints, and its permitted changes (KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...wire.messages.control_records import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from ...wire.schema import ZERO_UUID
from .voters import ControllerAddress


class ReplicaKey(NamedTuple):
    """A node with one of its directories: a node that lost its disk is another replica."""

    node_id: int
    directory_id: bytes = ZERO_UUID
    """ZERO_UUID where it is not known."""


class ListenerEndpoint(NamedTuple):
    """Where a node is reached by a listener of this name."""

    name: str
    host: str
    port: int


Endpoints = tuple[ListenerEndpoint, ...]


def address_of(endpoints: Endpoints, listener: str) -> ControllerAddress | None:
    for endpoint in endpoints:
        if endpoint.name == listener:
            return ControllerAddress(endpoint.host, endpoint.port)
    return None


class QuorumVoter(NamedTuple):
    """A voter, its addresses, and the levels of ``kraft.version`` that it supports."""

    key: ReplicaKey
    endpoints: Endpoints
    min_version: int = 0
    max_version: int = 0

    def is_voter(self, key: ReplicaKey) -> bool:
        """A voter whose directory is not known (``kraft.version`` 0) is so with any."""
        return key.node_id == self.key.node_id and self.key.directory_id in (ZERO_UUID, key.directory_id)


class VoterSet:
    """An immutable set of voters by their ids."""

    __slots__ = ("voters",)

    def __init__(self, voters: Iterable[QuorumVoter] = ()) -> None:
        self.voters: Mapping[int, QuorumVoter] = {
            voter.key.node_id: voter for voter in sorted(voters, key=lambda voter: voter.key)
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self.voters == other.voters

    def __hash__(self) -> int:
        return hash(tuple(self.voters.values()))

    def __repr__(self) -> str:
        return f"VoterSet({list(self.voters)})"

    def __len__(self) -> int:
        return len(self.voters)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self.voters)

    @property
    def keys(self) -> list[ReplicaKey]:
        return [voter.key for voter in self.voters.values()]

    def is_voter(self, key: ReplicaKey) -> bool:
        voter = self.voters.get(key.node_id)
        return voter is not None and voter.is_voter(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        return len(self.voters) == 1 and self.is_voter(key)

    def endpoints(self, node_id: int) -> Endpoints:
        voter = self.voters.get(node_id)
        return () if voter is None else voter.endpoints

    def needs_update(self, voter: QuorumVoter) -> bool:
        """Whether it is a voter here, with other addresses or versions."""
        known = self.voters.get(voter.key.node_id)
        return known is not None and known.is_voter(voter.key) and known != voter

    # --- the next set -------------------------------------------------------------------------------------------------

    def with_voter(self, voter: QuorumVoter) -> VoterSet:
        """This set with one voter more, or another in place of the one of the same id."""
        return VoterSet([*(each for each in self.voters.values() if each.key.node_id != voter.key.node_id), voter])

    def without(self, key: ReplicaKey) -> VoterSet | None:
        """None where exactly that one is no voter, or the only one."""
        voter = self.voters.get(key.node_id)
        if voter is None or voter.key != key or len(self.voters) == 1:
            return None
        return VoterSet(each for each in self.voters.values() if each.key != key)

    # --- the record in the log ----------------------------------------------------------------------------------------

    def to_record(self) -> VotersRecord:
        return VotersRecord(
            voters=[
                Voter(
                    voter_id=voter.key.node_id,
                    voter_directory_id=voter.key.directory_id,
                    endpoints=[Endpoint(name=name, host=host, port=port) for name, host, port in voter.endpoints],
                    k_raft_version_feature=KRaftVersionFeature(
                        min_supported_version=voter.min_version, max_supported_version=voter.max_version
                    ),
                )
                for voter in self.voters.values()
            ]
        )

    @classmethod
    def of_addresses(cls, addresses: Mapping[int, ControllerAddress], listener: str) -> VoterSet:
        """Static voters, of which ``controller.quorum.voters`` says no directories, and no level of ``kraft.version``."""
        return cls(
            QuorumVoter(ReplicaKey(node_id), (ListenerEndpoint(listener, host, port),))
            for node_id, (host, port) in addresses.items()
        )

    @classmethod
    def of_record(cls, record: VotersRecord) -> VoterSet:
        return cls(
            QuorumVoter(
                ReplicaKey(voter.voter_id, voter.voter_directory_id),
                tuple(ListenerEndpoint(each.name.upper(), each.host, each.port) for each in voter.endpoints),
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            )
            for voter in record.voters
        )
