"""To whom a node grants a vote or a pre-vote: by its state, the candidate's log, epoch and voter key (KIP-595, KIP-996)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.raft.election_file import NOBODY
from ottla.controller.raft.voter_set import ReplicaKey
from ottla.tests.controller.raft.helpers.node_world import NodeState, NodeWorld, Told
from ottla.tests.controller.raft.helpers.quorum_parts import CHECK_QUORUM_MS, ELECTION_MS, OWN
from ottla.tests.simulation.raft.machine import key_of
from ottla.wire.schema import ZERO_UUID

EPOCH = 5
LOG = [(3, 2)]
"""The node's log ends with epoch 3 at offset 2."""
END = (3, 2)
OTHER_DIRECTORY = b"another disk 456"


def unattached(**options: object) -> NodeWorld:
    return NodeWorld(epoch=EPOCH, log=LOG, **options)  # type: ignore[arg-type]


def follower(has_fetched: bool = False, **options: object) -> NodeWorld:
    world = NodeWorld(**{"epoch": EPOCH, "leader": 3, "log": LOG, **options})  # type: ignore[arg-type]
    if has_fetched:
        world.answer_fetch(world.fetch_sent)
    return world


def deserted() -> NodeWorld:
    """A follower that has heard of its leader, at whose address nothing listens any more."""
    world = follower(has_fetched=True)
    world.refuse(world.fetch_sent)
    return world


def prospective(**options: object) -> NodeWorld:
    world = NodeWorld(epoch=EPOCH, log=LOG, **options)  # type: ignore[arg-type]
    world.become_prospective()
    return world


def leader() -> NodeWorld:
    world = NodeWorld(epoch=EPOCH - 1, log=LOG)
    world.become_leader()
    return world


STATES: dict[str, Callable[[], NodeWorld]] = {
    "unattached": unattached,
    "unattached, voted for 2": lambda: unattached(voted=key_of(2)),
    "unattached, voted for 2 of no known directory": lambda: unattached(voted=ReplicaKey(2)),
    "unattached, voted for another directory of 2": lambda: unattached(voted=ReplicaKey(2, OTHER_DIRECTORY)),
    "unattached, leader out of reach": lambda: unattached(leader=7),
    "follower": follower,
    "follower that has fetched": lambda: follower(has_fetched=True),
    "follower whose leader is gone": deserted,
    "follower, voted for 2": lambda: follower(leader=2, voted=key_of(2)),
    "prospective": prospective,
    "prospective, voted for 2": lambda: prospective(voted=key_of(2)),
    "prospective of a leader": lambda: prospective(leader=3),
    "prospective of a leader out of reach": lambda: prospective(leader=7),
    "candidate": lambda: unattached(voted=key_of(OWN)),
    "resigned": lambda: unattached(leader=OWN),
    "observer": lambda: unattached(voters=(2, 3)),
    "observer, voted for 2": lambda: unattached(voters=(2, 3), voted=key_of(2)),
    "observer, follower": lambda: follower(voters=(2, 3)),
    "observer, follower that has fetched": lambda: follower(has_fetched=True, voters=(2, 3)),
    "of static voters": lambda: unattached(kraft_version=0),
    "of static voters, voted for 2": lambda: unattached(kraft_version=0, voted=ReplicaKey(2)),
}
FREE = {"unattached", "prospective", "observer", "of static voters"}
"""They vote for any candidate whose log is up to date."""
VOTED_FOR_2 = {
    "unattached, voted for 2",
    "unattached, voted for 2 of no known directory",
    "prospective, voted for 2",
    "observer, voted for 2",
    "of static voters, voted for 2",
}
"""They repeat their vote, whatever the log says."""
FETCHED = {"follower that has fetched", "observer, follower that has fetched"}
"""They grant no pre-vote: their leader is alive."""

LOGS = {
    "as long": ((3, 2), True),
    "longer": ((3, 9), True),
    "of a later epoch": ((4, 0), True),
    "shorter": ((3, 1), False),
    "of an earlier epoch": ((2, 9), False),
    "empty": ((0, 0), False),
}


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("candidate", [2, 3, 4], ids=["2", "3", "no voter"])
@pytest.mark.parametrize("state", STATES)
def test_vote_in_the_same_epoch(state: str, candidate: int, log: str) -> None:
    world = STATES[state]()
    before, stored = world.seen, world.stored
    last, is_up_to_date = LOGS[log]
    granted = (state in FREE and is_up_to_date) or (state in VOTED_FOR_2 and candidate == 2)

    assert world.vote(candidate, EPOCH, last) == Told(ErrorCode.NONE, EPOCH, before.leader_id, granted)
    if granted:
        assert world.seen == before._replace(voted_id=candidate)
        assert world.stored.voted_id == candidate
    else:
        assert (world.seen, world.stored) == (before, stored)


@pytest.mark.parametrize("log", [*LOGS, "of this epoch"])
@pytest.mark.parametrize("candidate", [2, 3, 4], ids=["2", "3", "no voter"])
@pytest.mark.parametrize("state", STATES)
def test_pre_vote_in_the_same_epoch(state: str, candidate: int, log: str) -> None:
    """It changes nothing, so it may be granted to several, and again."""
    world = STATES[state]()
    before, stored = world.seen, world.stored
    last, is_up_to_date = LOGS.get(log, ((EPOCH, 3), True))
    granted = is_up_to_date and state not in FETCHED

    for _ in range(2):
        assert world.vote(candidate, EPOCH, last, pre_vote=True) == Told(
            ErrorCode.NONE, EPOCH, before.leader_id, granted
        )
    assert (world.seen, world.stored) == (before, stored)


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("pre_vote", [False, True], ids=["vote", "pre-vote"])
@pytest.mark.parametrize("state", STATES)
def test_vote_in_a_higher_epoch(state: str, pre_vote: bool, log: str) -> None:
    """The epoch counts in any case, and nobody is known to lead in it."""
    world = STATES[state]()
    last, granted = LOGS[log]

    assert world.vote(3, EPOCH + 1, last, pre_vote=pre_vote) == Told(ErrorCode.NONE, EPOCH + 1, NOBODY, granted)
    voted = 3 if granted and not pre_vote else NOBODY
    assert world.seen == NodeState("Unattached", EPOCH + 1, NOBODY, voted)
    assert (world.stored.epoch, world.stored.leader_id, world.stored.voted_id) == (EPOCH + 1, NOBODY, voted)
    assert world.stored.voted_directory_id == (
        key_of(3).directory_id if voted == 3 and "static" not in state else ZERO_UUID
    )


@pytest.mark.parametrize("pre_vote", [False, True], ids=["vote", "pre-vote"])
@pytest.mark.parametrize("state", STATES)
def test_vote_in_a_lower_epoch(state: str, pre_vote: bool) -> None:
    world = STATES[state]()
    before, stored = world.seen, world.stored

    told = world.vote(3, EPOCH - 1, (3, 99), pre_vote=pre_vote)
    assert told == Told(ErrorCode.FENCED_LEADER_EPOCH, EPOCH, before.leader_id)
    assert (world.seen, world.stored) == (before, stored)


@pytest.mark.parametrize(
    ("candidate", "pre_vote", "last"),
    [
        (candidate, pre_vote, last)
        for candidate, pre_vote, last in itertools.product((2, 4), (False, True), ((0, 0), (4, 99), (EPOCH, 99)))
        if pre_vote or last[0] < EPOCH
    ],
)
def test_a_leader_grants_nothing_in_its_epoch(candidate: int, pre_vote: bool, last: tuple[int, int]) -> None:
    world = leader()
    assert world.vote(candidate, EPOCH, last, pre_vote=pre_vote) == Told(ErrorCode.NONE, EPOCH, OWN)
    assert world.seen == NodeState("RaftLeader", EPOCH, OWN)


@pytest.mark.parametrize("pre_vote", [False, True], ids=["vote", "pre-vote"])
@pytest.mark.parametrize(("last", "granted"), [((EPOCH, 99), True), ((4, 99), False)], ids=["up to date", "behind"])
def test_a_leader_gives_up_for_a_higher_epoch(pre_vote: bool, last: tuple[int, int], granted: bool) -> None:
    world = leader()
    assert world.vote(2, EPOCH + 1, last, pre_vote=pre_vote) == Told(ErrorCode.NONE, EPOCH + 1, NOBODY, granted)
    assert world.seen == NodeState("Unattached", EPOCH + 1, NOBODY, 2 if granted and not pre_vote else NOBODY)


def test_a_leader_that_has_resigned_grants_pre_votes_only() -> None:
    world = leader()
    world.sleep(CHECK_QUORUM_MS)
    assert world.seen == NodeState("Resigned", EPOCH, OWN)
    assert world.vote(2, EPOCH, (EPOCH, 99), pre_vote=True) == Told(ErrorCode.NONE, EPOCH, OWN, True)
    assert world.vote(2, EPOCH, (4, 99)) == Told(ErrorCode.NONE, EPOCH, OWN, False)
    assert world.vote(2, EPOCH + 1, (EPOCH, 99)) == Told(ErrorCode.NONE, EPOCH + 1, NOBODY, True)


def test_a_node_that_shuts_down_grants_votes() -> None:
    world = leader()
    world.shut_down()
    assert world.vote(2, EPOCH + 1, (EPOCH, 99)) == Told(ErrorCode.NONE, EPOCH + 1, NOBODY, True)
    assert world.seen == NodeState("Unattached", EPOCH + 1, NOBODY, 2)


def test_one_vote_in_an_epoch() -> None:
    world = unattached()
    assert world.vote(2, EPOCH, END).granted
    assert world.vote(2, EPOCH, END).granted
    assert not world.vote(3, EPOCH, (4, 99)).granted
    assert world.vote(3, EPOCH, (4, 99), pre_vote=True).granted
    world.restart()
    assert world.seen == NodeState("Unattached", EPOCH, NOBODY, 2)
    assert not world.vote(3, EPOCH, (4, 99)).granted
    assert world.vote(2, EPOCH, END).granted


def test_a_vote_belongs_to_a_directory() -> None:
    """The same node with another disk is another candidate."""
    world = unattached()
    assert world.vote(key_of(2), EPOCH, END).granted
    assert not world.vote(ReplicaKey(2, OTHER_DIRECTORY), EPOCH, END).granted


@pytest.mark.parametrize("pre_vote", [False, True], ids=["vote", "pre-vote"])
@pytest.mark.parametrize("state", ["unattached", "prospective", "candidate", "follower", "resigned"])
@pytest.mark.parametrize("candidate", [key_of(OWN), ReplicaKey(OWN, OTHER_DIRECTORY)], ids=["key", "id"])
@pytest.mark.parametrize("higher", [0, 1], ids=["same epoch", "higher epoch"])
def test_a_candidate_with_the_nodes_own_id(candidate: ReplicaKey, state: str, pre_vote: bool, higher: int) -> None:
    """Two nodes were given one id. If this one voted for the other, and for itself after a restart, both could lead."""
    world = STATES[state]()
    assert not world.vote(candidate, EPOCH + higher, (4, 99), pre_vote=pre_vote).granted


# --- for whom the request is ------------------------------------------------------------------------------------------

VOTER_KEYS = {
    "this node": (key_of(OWN), True),
    "this node, directory not said": (ReplicaKey(OWN), True),
    "nobody, as before version 1": (ReplicaKey(-1), True),
    "another node": (ReplicaKey(10, key_of(OWN).directory_id), False),
    "another directory": (ReplicaKey(OWN, OTHER_DIRECTORY), False),
}


@pytest.mark.parametrize("pre_vote", [False, True], ids=["vote", "pre-vote"])
@pytest.mark.parametrize("higher", [0, 1], ids=["same epoch", "higher epoch"])
@pytest.mark.parametrize("voter", VOTER_KEYS)
def test_the_voter_key_of_a_vote(voter: str, higher: int, pre_vote: bool) -> None:
    """It is looked at last: the epoch counts though the vote is meant for another."""
    world = unattached()
    key, is_own = VOTER_KEYS[voter]
    told = world.vote(2, EPOCH + higher, END, voter=key, pre_vote=pre_vote)
    error = ErrorCode.NONE if is_own else ErrorCode.INVALID_VOTER_KEY
    assert told == Told(error, EPOCH + higher, NOBODY, is_own)
    assert world.seen == NodeState("Unattached", EPOCH + higher, NOBODY, 2 if is_own and not pre_vote else NOBODY)


@pytest.mark.parametrize("voter", VOTER_KEYS)
def test_the_voter_key_of_a_vote_at_the_leader(voter: str) -> None:
    world = leader()
    key, is_own = VOTER_KEYS[voter]
    error = ErrorCode.NONE if is_own else ErrorCode.INVALID_VOTER_KEY
    assert world.vote(2, EPOCH, (4, 99), voter=key, pre_vote=True) == Told(error, EPOCH, OWN)


# --- the election timeout ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pre_vote", "last", "left_ms"),
    [(False, END, ELECTION_MS), (False, (3, 1), 400), (True, END, 400)],
    ids=["a granted vote begins it anew", "a refused one does not", "a pre-vote does not"],
)
@pytest.mark.parametrize("higher", [0, 1], ids=["same epoch", "higher epoch"])
def test_the_election_timeout_after_a_vote(pre_vote: bool, last: tuple[int, int], left_ms: int, higher: int) -> None:
    world = unattached()
    world.sleep(600)
    world.vote(2, EPOCH + higher, last, pre_vote=pre_vote)
    world.sleep(left_ms - 1)
    assert world.seen.state == "Unattached"
    world.sleep(1)
    assert world.seen.state == "Prospective"


@pytest.mark.parametrize(
    ("state", "left_ms"),
    [("candidate", 400), ("prospective", 400), ("resigned", 400), ("follower", ELECTION_MS)],
)
def test_what_is_left_of_the_election_timeout_in_a_higher_epoch(state: str, left_ms: int) -> None:
    """Whoever raises the epoch and cannot be elected does not keep others from their turn."""
    world = STATES[state]()
    world.sleep(600)
    assert not world.vote(2, EPOCH + 1, (2, 0)).granted
    assert world.seen == NodeState("Unattached", EPOCH + 1)
    world.sleep(left_ms - 1)
    assert world.seen.state == "Unattached"
    world.sleep(1)
    assert world.seen.state == "Prospective"


def test_an_observer_that_has_voted_does_not_stand() -> None:
    world = unattached(voters=(2, 3))
    assert world.vote(2, EPOCH + 1, END).granted
    world.sleep(10 * ELECTION_MS)
    assert world.seen == NodeState("Unattached", EPOCH + 1, NOBODY, 2)
    assert not world.pre_votes
