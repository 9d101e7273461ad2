"""The voters of a quorum as a value: who is one, how one set becomes the next, and the record of it (Kafka's ``VoterSet``)."""

from __future__ import annotations

import itertools

import pytest

from ottla.controller.raft.voter_set import ListenerEndpoint, QuorumVoter, ReplicaKey, VoterSet, address_of
from ottla.controller.raft.voters import ControllerAddress
from ottla.tests.controller.raft.helpers.quorum_parts import address_of_node, static_voters_of, voter_of, voters_of
from ottla.tests.simulation.raft.machine import LISTENER, endpoint_of, key_of
from ottla.wire.messages.control_records import Endpoint, Voter, VotersRecord

OTHER_DIRECTORY = b"another disk 456"
KEYS = {
    "its key": key_of(1),
    "another directory": ReplicaKey(1, OTHER_DIRECTORY),
    "no directory": ReplicaKey(1),
    "another id": ReplicaKey(4, key_of(1).directory_id),
}


@pytest.mark.parametrize(
    ("voters", "known"),
    [(voters_of(1, 2, 3), {"its key"}), (static_voters_of(1, 2, 3), {"its key", "another directory", "no directory"})],
    ids=["with directories", "static"],
)
@pytest.mark.parametrize("key", KEYS)
def test_who_is_a_voter(voters: VoterSet, known: set[str], key: str) -> None:
    """A voter with a directory is one with it alone; one without it is one with any."""
    assert voters.is_voter(KEYS[key]) == (key in known)
    assert not voters.is_only_voter(KEYS[key])
    assert VoterSet([next(iter(voters.voters.values()))]).is_only_voter(KEYS[key]) == (key in known)


def test_where_voters_are_reached() -> None:
    voters = voters_of(1, 2)
    assert voters.endpoints(2) == (endpoint_of(2),)
    assert voters.endpoints(4) == ()
    assert address_of(voters.endpoints(2), LISTENER) == address_of_node(2)
    assert address_of(voters.endpoints(2), "OTHER") is None


def test_ids_are_in_their_order() -> None:
    voters = voters_of(3, 1, 2)
    assert (voters.ids, voters.keys, len(voters)) == ((1, 2, 3), [key_of(1), key_of(2), key_of(3)], 3)


def test_a_set_is_a_value() -> None:
    assert voters_of(1, 2) == voters_of(2, 1) != voters_of(1, 3)
    assert len({voters_of(1, 2), voters_of(2, 1)}) == 1
    assert voters_of(1, 2) != (1, 2)


def test_one_voter_more() -> None:
    voters = voters_of(1, 2)
    assert voters.with_voter(voter_of(3)) == voters_of(1, 2, 3)
    assert voters == voters_of(1, 2)


def test_another_voter_of_the_same_id() -> None:
    changed = voter_of(2, others=[ListenerEndpoint("OTHER", "elsewhere", 1)])
    voters = voters_of(1, 2).with_voter(changed)
    assert (voters.ids, voters.voters[2]) == ((1, 2), changed)


@pytest.mark.parametrize(
    ("voters", "key", "left"),
    [
        (voters_of(1, 2, 3), key_of(3), voters_of(1, 2)),
        (voters_of(1, 2), key_of(1), voters_of(2)),
        (voters_of(1), key_of(1), None),
        (voters_of(1, 2), key_of(3), None),
        (voters_of(1, 2), ReplicaKey(1, OTHER_DIRECTORY), None),
        (voters_of(1, 2), ReplicaKey(1), None),
    ],
    ids=["one of three", "one of two", "the only one", "no voter", "another directory", "no directory"],
)
def test_one_voter_less(voters: VoterSet, key: ReplicaKey, left: VoterSet | None) -> None:
    assert voters.without(key) == left


@pytest.mark.parametrize(
    ("voter", "needs"),
    [
        (voter_of(1), False),
        (voter_of(1, versions=(1, 1)), True),
        (voter_of(1, others=[ListenerEndpoint("OTHER", "elsewhere", 1)]), True),
        (QuorumVoter(ReplicaKey(1, OTHER_DIRECTORY), (endpoint_of(1),), 1, 1), False),
        (voter_of(4, versions=(1, 1)), False),
    ],
    ids=["as it is", "versions", "addresses", "another directory", "no voter"],
)
def test_who_is_not_known_rightly(voter: QuorumVoter, needs: bool) -> None:
    assert voters_of(1, 2).needs_update(voter) == needs


def test_the_record_of_a_set() -> None:
    voters = VoterSet([voter_of(1), voter_of(2, others=[ListenerEndpoint("OTHER", "elsewhere", 1)], versions=(1, 1))])
    assert VoterSet.of_record(voters.to_record()) == voters


@pytest.mark.parametrize("count", range(1, 7))
def test_majorities_before_and_after_a_change_of_one_overlap(count: int) -> None:
    """Why voters change one at a time; with two at once, those of an odd number of voters may be apart."""

    def majorities(size: int) -> list[set[int]]:
        return [set(each) for each in itertools.combinations(range(size), size // 2 + 1)]

    assert all(before & after for before, after in itertools.product(majorities(count), majorities(count + 1)))
    two_more = itertools.product(majorities(count), majorities(count + 2))
    assert all(before & after for before, after in two_more) == (count % 2 == 0)


def test_a_listener_is_named_in_capitals_whoever_wrote_its_name() -> None:
    """As Kafka's ``ListenerName.normalised``."""
    endpoints = [Endpoint(name="OTHER", host="elsewhere", port=1), Endpoint(name="Controller", host="three", port=9093)]
    voters = VoterSet.of_record(VotersRecord(voters=[Voter(voter_id=3, endpoints=endpoints)]))
    assert address_of(voters.endpoints(3), "CONTROLLER") == ("three", 9093)


def test_static_voters_have_any_directory() -> None:
    voters = VoterSet.of_addresses({2: ControllerAddress("two", 9093)}, "CONTROLLER")
    assert address_of(voters.endpoints(2), "CONTROLLER") == ("two", 9093)
    assert voters.is_voter(ReplicaKey(2, b"d" * 16))
