"""How a node comes to stand for election, wins or loses, leads and gives up: pre-votes, votes and their timeouts (KIP-996).

The elections of several nodes with each other are in the simulation; here the others are played by hand.
"""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.raft.effects import AppendControl, HighWatermarkAdvanced, LeaderChanged, ShutdownFinished
from ottla.controller.raft.election import EpochElection
from ottla.controller.raft.election_file import NOBODY
from ottla.controller.raft.messages import vote_response
from ottla.controller.raft.settings import RaftTimes
from ottla.controller.raft.voter_set import ReplicaKey
from ottla.tests.controller.raft.helpers.node_world import NodeState, NodeWorld, Told
from ottla.tests.controller.raft.helpers.quorum_parts import (
    CHECK_QUORUM_MS,
    ELECTION_MS,
    FETCH_MS,
    OWN,
    REQUEST_MS,
    voters_of,
)
from ottla.tests.simulation.raft.machine import CLUSTER_ID, key_of
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.control_records import LeaderChangeMessage
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.vote import VoteRequest, VoteResponse

LEVELS = pytest.mark.parametrize("kraft_version", [0, 1])
PATIENT = RaftTimes(request_timeout_ms=500)
"""A request is given up before an election is."""

# --- standing for election --------------------------------------------------------------------------------------------


@LEVELS
@pytest.mark.parametrize(
    ("options", "after_ms"),
    [
        ({}, ELECTION_MS),
        ({"epoch": 5}, ELECTION_MS),
        ({"epoch": 5, "leader": 7}, ELECTION_MS),
        ({"epoch": 5, "voted": key_of(2)}, ELECTION_MS),
        ({"epoch": 5, "leader": 2}, FETCH_MS),
        ({"epoch": 5, "leader": 2, "voted": key_of(2)}, FETCH_MS),
    ],
    ids=["no file", "unattached", "leader out of reach", "voted", "follower", "follower that has voted"],
)
def test_when_a_voter_asks_for_pre_votes(options: dict[str, object], after_ms: int, kraft_version: int) -> None:
    """The epoch, the leader and the vote are what they were."""
    world = NodeWorld(kraft_version=kraft_version, **options)  # type: ignore[arg-type]
    before, stored = world.seen, world.stored
    world.sleep(after_ms - 1)
    assert world.seen == before
    world.sleep(1)
    assert world.seen == before._replace(state="Prospective")
    assert world.stored == stored
    assert [each.peer.node_id for each in world.pre_votes] == [2, 3]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_the_election_timeout_is_random_up_to_twice_its_least(share: float) -> None:
    world = NodeWorld()
    world.chance.share = share
    world.restart()
    world.sleep(ELECTION_MS * (1 + share) - 0.01)
    assert world.seen.state == "Unattached"
    world.sleep(0.01)
    assert world.seen.state == "Prospective"


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
@pytest.mark.parametrize(
    ("own", "voters", "turn"),
    [(1, (1, 2, 3), 0.0), (3, (1, 2, 3), 0.1), (3, (1, 2, 3, 4, 5), 0.2 / 3), (5, (1, 2, 3, 4, 5), 0.2)],
    ids=["first of three", "last of three", "second of five", "last of five"],
)
def test_followers_of_a_silent_leader_stand_one_after_the_other(
    own: int, voters: tuple[int, ...], turn: float, share: float
) -> None:
    """Not so in Kafka, where two followers of a dead leader time out together and split the vote."""
    world = NodeWorld(own=key_of(own), voters=voters, epoch=5, leader=2)
    world.chance.share = share
    world.restart()
    world.sleep(FETCH_MS * (1 + turn + 0.025 * share) - 0.01)
    assert world.seen.state == "RaftFollower"
    world.sleep(0.02)
    assert world.seen.state == "Prospective"


@pytest.mark.parametrize(
    "options", [{}, {"epoch": 5}, {"epoch": 5, "leader": 2}], ids=["new", "unattached", "follower"]
)
@pytest.mark.parametrize(
    "own", [key_of(4), ReplicaKey(2, b"another disk 456")], ids=["no voter", "a voter that lost its disk"]
)
def test_an_observer_never_stands(own: ReplicaKey, options: dict[str, int]) -> None:
    world = NodeWorld(own=own, voters=(2, 3), **options)  # type: ignore[arg-type]
    if own.node_id == 2 and "leader" in options:
        world = NodeWorld(own=own, voters=(2, 3), epoch=5, leader=3)
    before = world.seen
    world.sleep(10 * FETCH_MS)
    assert world.seen == before
    assert not world.all_sent(VoteRequest)


def test_a_vote_request_names_both_replicas_and_the_end_of_the_log() -> None:
    world = NodeWorld(epoch=5, log=[(2, 3), (4, 1)])
    sent = world.become_prospective()[0]
    request: VoteRequest = sent.request  # type: ignore[assignment]
    asked = request.topics[0].partitions[0]
    assert (request.cluster_id, request.voter_id, asked.voter_directory_id) == (CLUSTER_ID, *key_of(2))
    assert (asked.replica_id, asked.replica_directory_id) == key_of(OWN)
    assert (asked.replica_epoch, asked.last_offset_epoch, asked.last_offset, asked.pre_vote) == (5, 4, 4, True)


@pytest.mark.parametrize("pre_vote", [True, False], ids=["pre-vote", "vote"])
def test_each_voter_is_asked_once_until_the_request_times_out(pre_vote: bool) -> None:
    """The answer to the first request counts no more then."""
    world = NodeWorld(epoch=5, voters=(1, 2), times=PATIENT)
    first = world.become_prospective()[0] if pre_vote else world.become_candidate()[0]
    before = world.seen
    world.sleep(PATIENT.request_timeout_ms - 1)
    assert not world.all_sent(VoteRequest)
    world.sleep(1)
    second = world.sent(VoteRequest)
    world.answer_vote(first)
    assert world.seen == before
    world.answer_vote(second)
    assert world.seen == (NodeState("RaftCandidate", 6) if pre_vote else NodeState("RaftLeader", 6, OWN))


@pytest.mark.parametrize("pre_vote", [True, False], ids=["pre-vote", "vote"])
def test_a_voter_that_cannot_be_reached_is_asked_again_after_a_backoff(pre_vote: bool) -> None:
    world = NodeWorld(epoch=5, voters=(1, 2))
    sent = world.become_prospective()[0] if pre_vote else world.become_candidate()[0]
    world.fail(sent)
    world.sleep(world.times.retry_backoff_ms - 1)
    assert not world.all_sent(VoteRequest)
    world.sleep(1)
    assert world.receivers(VoteRequest) == [2]


# --- pre-votes --------------------------------------------------------------------------------------------------------


@LEVELS
@pytest.mark.parametrize(
    ("voters", "granted", "expected"),
    [
        ((1, 2), [True], "RaftCandidate"),
        ((1, 2), [False], "Unattached"),
        ((1, 2, 3), [True], "RaftCandidate"),
        ((1, 2, 3), [False], "Prospective"),
        ((1, 2, 3), [False, True], "RaftCandidate"),
        ((1, 2, 3), [False, False], "Unattached"),
        ((1, 2, 3, 4, 5), [True], "Prospective"),
        ((1, 2, 3, 4, 5), [True, True], "RaftCandidate"),
        ((1, 2, 3, 4, 5), [True, False, False], "Prospective"),
        ((1, 2, 3, 4, 5), [True, False, False, False], "Unattached"),
    ],
)
def test_a_majority_of_pre_votes(
    voters: tuple[int, ...], granted: list[bool], expected: str, kraft_version: int
) -> None:
    world = NodeWorld(epoch=5, voters=voters, kraft_version=kraft_version)
    for sent, each in zip(world.become_prospective(), granted, strict=False):
        world.answer_vote(sent, each)
    assert world.seen.state == expected
    assert world.seen.epoch == (6 if expected == "RaftCandidate" else 5)


def test_a_candidate_has_written_its_vote_before_it_asks() -> None:
    world = NodeWorld(epoch=5)
    world.become_candidate()
    assert (world.stored.epoch, world.stored.voted_id, world.stored.voted_directory_id) == (6, *key_of(OWN))


@pytest.mark.parametrize(
    ("leader", "lost", "next_ms"),
    [
        (NOBODY, NodeState("Unattached", 5), ELECTION_MS),
        (2, NodeState("RaftFollower", 5, 2), FETCH_MS),
        (7, NodeState("Unattached", 5, 7), ELECTION_MS),
    ],
    ids=["no leader", "leader", "leader out of reach"],
)
def test_who_is_refused_pre_votes_goes_back_to_its_leader(leader: int, lost: NodeState, next_ms: int) -> None:
    """It looks for the leader, and tries again after another timeout, which is a whole one."""
    world = NodeWorld(epoch=5, leader=leader)
    for _ in range(2):
        first, second = world.become_prospective()
        world.sleep(400)
        world.answer_vote(first, False)
        assert world.seen == NodeState("Prospective", 5, leader)
        world.answer_vote(second, False)
        assert world.seen == lost
        assert world.all_sent(FetchRequest)
        world.sleep(next_ms - 1)
        assert world.seen == lost
        world.sleep(1)
        assert world.seen == NodeState("Prospective", 5, leader)


def test_who_gets_no_pre_votes_in_time_goes_back_to_its_leader() -> None:
    world = NodeWorld(epoch=5, leader=2)
    world.become_prospective()
    world.sleep(ELECTION_MS)
    assert world.seen == NodeState("RaftFollower", 5, 2)
    assert world.fetch_sent.peer.node_id == 2


@pytest.mark.parametrize("leader", [NOBODY, 7], ids=["no leader", "leader out of reach"])
def test_who_gets_no_pre_votes_in_time_and_has_no_leader_asks_again_at_once(leader: int) -> None:
    """Nothing is left of its timeout when it is unattached again."""
    world = NodeWorld(epoch=5, leader=leader, times=PATIENT)
    world.become_prospective()
    world.sleep(ELECTION_MS - 1)
    world.forget()
    world.sleep(1)
    assert world.seen == NodeState("Prospective", 5, leader)
    assert [each.peer.node_id for each in world.pre_votes] == [2, 3]


@pytest.mark.parametrize("how", ["failure", "response"])
def test_a_voter_that_knows_no_pre_vote(how: str) -> None:
    """Then votes decide, as before KIP-996."""
    world = NodeWorld(epoch=5)
    first, second = world.become_prospective()
    if how == "failure":
        world.fail(first, ErrorCode.UNSUPPORTED_VERSION)
    else:
        world.answer(first, VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    assert world.seen == NodeState("RaftCandidate", 6)
    world.answer_vote(second, epoch=5)
    assert world.seen == NodeState("RaftCandidate", 6)
    assert [each.peer.node_id for each in world.votes] == [2, 3]

    world.sleep(ELECTION_MS)
    assert world.seen == NodeState("Prospective", 6, NOBODY, OWN)
    first, second = world.pre_votes
    world.answer_vote(first)
    assert world.seen == NodeState("RaftCandidate", 7)
    world.fail(second, ErrorCode.UNSUPPORTED_VERSION)
    assert world.seen == NodeState("RaftCandidate", 7)


# --- votes ------------------------------------------------------------------------------------------------------------


@LEVELS
@pytest.mark.parametrize(
    ("voters", "granted", "leads"),
    [
        ((1, 2), [True], True),
        ((1, 2), [False], False),
        ((1, 2, 3), [True], True),
        ((1, 2, 3), [False, True], True),
        ((1, 2, 3), [False, False], False),
        ((1, 2, 3, 4, 5), [True], False),
        ((1, 2, 3, 4, 5), [True, False, True], True),
        ((1, 2, 3, 4, 5), [True, False, False, False], False),
    ],
)
def test_a_majority_of_votes(voters: tuple[int, ...], granted: list[bool], leads: bool, kraft_version: int) -> None:
    world = NodeWorld(epoch=5, voters=voters, kraft_version=kraft_version)
    for sent, each in zip(world.become_candidate(), granted, strict=False):
        world.answer_vote(sent, each)
    assert world.seen == (NodeState("RaftLeader", 6, OWN) if leads else NodeState("RaftCandidate", 6))
    assert (world.stored.leader_id, world.stored.voted_id) == ((OWN, NOBODY) if leads else (NOBODY, OWN))


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "no response"])
def test_a_candidate_that_is_not_elected_waits_for_the_end_of_its_timeout(refused: bool) -> None:
    """Then it asks for pre-votes, in the epoch in which it has voted for itself."""
    world = NodeWorld(epoch=5, voters=(1, 2))
    sent = world.become_candidate()[0]
    if refused:
        world.answer_vote(sent, False)
    world.sleep(ELECTION_MS - 1)
    assert world.seen == NodeState("RaftCandidate", 6)
    assert not world.all_sent(VoteRequest)
    world.sleep(1)
    assert world.seen == NodeState("Prospective", 6, NOBODY, OWN)
    assert world.stored.voted_id == OWN
    assert not world.vote(2, 6, (5, 99)).granted
    world.answer_vote(world.pre_votes[0])
    assert world.seen == NodeState("RaftCandidate", 7)


def test_a_lost_election_is_not_continued() -> None:
    """The voter that has not answered is not asked again."""
    world = NodeWorld(epoch=5, voters=(1, 2, 3, 4, 5), times=PATIENT)
    for sent in world.become_candidate()[:3]:
        world.answer_vote(sent, False)
    world.sleep(ELECTION_MS - 1)
    assert world.seen == NodeState("RaftCandidate", 6)
    assert not world.all_sent(VoteRequest)


def test_votes_of_who_is_no_voter_do_not_count() -> None:
    world = NodeWorld(epoch=5, voters=(1, 2, 3))
    sent = world.become_candidate()[0]
    world.answer(
        sent._replace(request_id=sent.request_id + 100), vote_response(world.leader_of(), ErrorCode.NONE, True)
    )
    assert world.seen == NodeState("RaftCandidate", 6)


@pytest.mark.parametrize(
    ("error", "epoch", "leader", "expected"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, 8, 3, NodeState("RaftFollower", 8, 3)),
        (ErrorCode.FENCED_LEADER_EPOCH, 8, NOBODY, NodeState("Unattached", 8)),
        (ErrorCode.NONE, 8, 3, NodeState("RaftFollower", 8, 3)),
        (ErrorCode.NONE, 8, NOBODY, NodeState("Unattached", 8)),
        (ErrorCode.NONE, None, 3, NodeState("RaftFollower", 0, 3)),
        (ErrorCode.INVALID_VOTER_KEY, None, NOBODY, None),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, 1, NOBODY, None),
        (ErrorCode.BROKER_NOT_AVAILABLE, None, NOBODY, None),
        (ErrorCode.NONE, 1, 3, None),
    ],
)
@pytest.mark.parametrize("pre_vote", [True, False], ids=["pre-vote", "vote"])
def test_what_the_response_to_a_vote_tells_of_the_leader(
    error: ErrorCode, epoch: int | None, leader: int, expected: NodeState | None, pre_vote: bool
) -> None:
    """It counts before the vote, even if that is granted. What is of an older epoch is void."""
    world = NodeWorld(epoch=5)
    sent = (world.become_prospective() if pre_vote else world.become_candidate())[0]
    before = world.seen
    world.answer_vote(sent, error is ErrorCode.NONE, error=error, epoch=epoch, leader=leader)
    if expected is None:
        assert world.seen == before
    elif expected.epoch:
        assert world.seen == expected
    else:
        assert world.seen[:3] == ("RaftFollower", before.epoch, 3)


def test_a_prospective_hears_of_a_new_leader() -> None:
    world = NodeWorld(epoch=5, leader=2)
    sent = world.become_prospective()
    world.answer_vote(sent[0], False, error=ErrorCode.FENCED_LEADER_EPOCH, epoch=6, leader=3)
    assert world.seen == NodeState("RaftFollower", 6, 3)
    assert world.fetch_sent.peer.node_id == 3


@LEVELS
@pytest.mark.parametrize("state", ["prospective", "candidate"])
def test_a_leader_comes_up_in_the_same_epoch(state: str, kraft_version: int) -> None:
    """Votes that come later are not counted; the own vote is kept."""
    world = NodeWorld(epoch=5, kraft_version=kraft_version)
    sent = world.become_prospective() if state == "prospective" else world.become_candidate()
    epoch = world.node.epoch
    assert world.begin(3, epoch) == Told(ErrorCode.NONE, epoch, 3)
    expected = NodeState("RaftFollower", epoch, 3, OWN if state == "candidate" else NOBODY)
    assert world.seen == expected
    assert (world.stored.leader_id, world.stored.voted_id) == (3, expected.voted_id)
    for each in sent:
        world.answer_vote(each)
    assert world.seen == expected


def test_a_leader_ignores_votes_that_come_later() -> None:
    world = NodeWorld(epoch=5)
    first, second = world.become_candidate()
    world.answer_vote(first)
    end = world.end_offset
    world.answer_vote(second)
    assert world.seen == NodeState("RaftLeader", 6, OWN)
    assert world.end_offset == end


def test_two_leaders_of_one_epoch_stop_a_node() -> None:
    world = NodeWorld(epoch=5, leader=2)
    with pytest.raises(AssertionError):
        world.begin(3, 5)


def test_a_node_that_is_told_to_lead_stops() -> None:
    world = NodeWorld(epoch=5)
    with pytest.raises(AssertionError):
        world.begin(OWN, 6)


@pytest.mark.parametrize("state", ["prospective", "candidate"])
def test_a_refused_cluster_stops_a_node(state: str) -> None:
    world = NodeWorld(epoch=5)
    sent = (world.become_prospective() if state == "prospective" else world.become_candidate())[0]
    with pytest.raises(AssertionError):
        world.answer(sent, VoteResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))


@LEVELS
def test_a_node_with_the_id_0(kraft_version: int) -> None:
    """It is one as any other: -1 is nobody."""
    world = NodeWorld(own=key_of(0), voters=(0, 2), epoch=5, kraft_version=kraft_version)
    assert world.begin(2, 6) == Told(ErrorCode.NONE, 6, 2)
    assert world.become_leader() == 7
    assert world.seen == NodeState("RaftLeader", 7, 0)
    assert world.stored.leader_id == 0
    assert world.vote(2, 7, (6, 99), pre_vote=True, voter=ReplicaKey(0, b"another disk 456")) == Told(
        ErrorCode.INVALID_VOTER_KEY, 7, 0
    )
    other = NodeWorld(voters=(0, 1, 2), epoch=5, kraft_version=kraft_version)
    assert other.vote(0, 6, (5, 99)) == Told(ErrorCode.NONE, 6, NOBODY, True)
    assert other.begin(0, 6) == Told(ErrorCode.NONE, 6, 0)
    assert other.end(0, 6, [key_of(2)]) == Told(ErrorCode.NONE, 6, 0)
    assert other.seen == NodeState("RaftFollower", 6, 0, 0)


# --- counting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "granting", "unrecorded", "outcome"),
    [
        ([], [1], [2, 3], None),
        ([(2, True)], [1, 2], [3], True),
        ([(2, False)], [1], [3], None),
        ([(2, False), (2, False)], [1], [3], None),
        ([(2, False), (3, False)], [1], [], False),
        ([(2, True), (2, False)], [1], [3], None),
        ([(2, False), (2, True)], [1, 2], [3], True),
        ([(9, True)], [1], [2, 3], None),
    ],
    ids=["none", "granted", "refused", "refused twice", "lost", "taken back", "changed", "of no voter"],
)
def test_counting_votes(
    votes: list[tuple[int, bool]], granting: list[int], unrecorded: list[int], outcome: bool | None
) -> None:
    """The last vote of a voter counts. The outcome is None while it is open."""
    election = EpochElection(voters_of(1, 2, 3), OWN)
    for voter, is_granted in votes:
        election.record(voter, is_granted)
    assert election.granting == granting
    assert [key.node_id for key in election.unrecorded] == unrecorded
    assert (election.is_won, election.is_lost) == (outcome is True, outcome is False)


# --- a single voter ---------------------------------------------------------------------------------------------------


@LEVELS
@pytest.mark.parametrize(
    ("options", "epoch"),
    [
        ({}, 1),
        ({"epoch": 2}, 3),
        ({"epoch": 2, "leader": OWN}, 3),
        ({"epoch": 2, "leader": 2}, 3),
        ({"epoch": 2, "voted": key_of(2)}, 3),
        ({"epoch": 2, "voted": key_of(OWN)}, 2),
        ({"epoch": 2, "log": [(4, 1)]}, 5),
    ],
    ids=["new", "unattached", "led", "followed", "voted", "candidate", "log of a later epoch"],
)
def test_a_single_voter_leads_at_once(options: dict[str, object], epoch: int, kraft_version: int) -> None:
    world = NodeWorld(voters=(OWN,), kraft_version=kraft_version, **options)  # type: ignore[arg-type]
    assert world.seen == NodeState("RaftLeader", epoch, OWN)
    assert (world.stored.epoch, world.stored.leader_id) == (epoch, OWN)
    assert not world.all_sent()
    assert world.high_watermark == world.end_offset > 0
    assert world.node.deadline_ms == float("inf")


# --- beginning to lead ------------------------------------------------------------------------------------------------


@LEVELS
def test_a_new_leader_writes_first_and_tells_all(kraft_version: int) -> None:
    world = NodeWorld(epoch=5, log=[(3, 2)], kraft_version=kraft_version)
    world.holds_flushes = True
    for sent in world.become_candidate()[1:]:
        world.answer_vote(sent)
    assert world.seen == NodeState("RaftLeader", 6, OWN)
    written = world.news(AppendControl)
    assert [(each.base_offset, each.epoch) for each in written] == [(2, 6)]
    change: LeaderChangeMessage = written[0].messages[0][0]
    assert change.leader_id == OWN
    assert [each.voter_id for each in change.voters] == [1, 2, 3]
    assert [each.voter_id for each in change.granting_voters] == [1, 3]
    assert world.receivers(BeginQuorumEpochRequest) == [2, 3]
    assert world.is_flushing


def test_a_leader_is_told_of_only_when_its_own_epoch_is_committed() -> None:
    """The controller begins with all records of earlier epochs."""
    world = NodeWorld(epoch=5, log=[(3, 2)])
    for sent in world.become_candidate():
        world.answer_vote(sent)
    assert not [each for each in world.news(LeaderChanged) if each.leader_id == OWN]
    world.fetch(2, 2, 3)
    assert not world.news(HighWatermarkAdvanced)
    world.told.clear()
    world.fetch(2)
    assert [each for each in world.told if isinstance(each, LeaderChanged | HighWatermarkAdvanced)] == [
        HighWatermarkAdvanced(world.end_offset),
        LeaderChanged(6, OWN),
    ]


# --- giving up --------------------------------------------------------------------------------------------------------


def led(**options: object) -> NodeWorld:
    world = NodeWorld(epoch=5, **options)  # type: ignore[arg-type]
    world.become_leader()
    return world


def test_a_leader_that_resigns_tells_whom_it_prefers() -> None:
    world = led(voters=(1, 2, 3, 4))
    world.append(1)
    for replica, offset in ((4, 1), (3, world.end_offset)):
        world.fetch(replica, offset, 6)
    world.resign()
    assert world.seen == NodeState("Resigned", 6, OWN)
    requests = world.all_sent(EndQuorumEpochRequest)
    assert [each.peer.node_id for each in requests] == [2, 3, 4]
    told = requests[0].request.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (told.leader_id, told.leader_epoch) == (OWN, 6)
    assert [(each.candidate_id, each.candidate_directory_id) for each in told.preferred_candidates] == [
        key_of(3),
        key_of(4),
        key_of(2),
    ]


@pytest.mark.parametrize("epoch", [4, 5, 7])
def test_resigning_in_another_epoch_is_ignored(epoch: int) -> None:
    world = led()
    world.resign(epoch)
    assert world.seen == NodeState("RaftLeader", 6, OWN)
    assert not world.all_sent(EndQuorumEpochRequest)


@pytest.mark.parametrize("options", [{"epoch": 5}, {"epoch": 5, "leader": 2}, {"epoch": 5, "voted": key_of(OWN)}])
def test_only_a_leader_resigns(options: dict[str, object]) -> None:
    world = NodeWorld(**options)  # type: ignore[arg-type]
    before = world.seen
    world.resign(5)
    assert world.seen == before


def test_who_has_resigned_asks_until_each_has_answered() -> None:
    world = NodeWorld(epoch=5, leader=OWN, times=PATIENT)
    first, second = world.all_sent(EndQuorumEpochRequest)
    world.answer_end(first)
    world.sleep(PATIENT.request_timeout_ms - 1)
    assert not world.all_sent(EndQuorumEpochRequest)
    world.sleep(1)
    again = world.sent(EndQuorumEpochRequest)
    assert again.peer == second.peer
    world.answer_end(again)
    world.sleep(PATIENT.request_timeout_ms - 1)
    assert not world.all_sent()


def test_who_has_resigned_leaves_its_epoch_after_an_election_timeout() -> None:
    """It asks for pre-votes at once then, in an epoch in which it has not led."""
    world = led()
    world.resign()
    world.sleep(ELECTION_MS - 1)
    assert world.seen == NodeState("Resigned", 6, OWN)
    world.sleep(1)
    assert world.seen == NodeState("Prospective", 7)
    assert world.stored.epoch == 7
    assert [each.peer.node_id for each in world.pre_votes] == [2, 3]


def test_who_has_resigned_follows_the_next_leader() -> None:
    world = led()
    world.resign()
    assert world.begin(2, 7) == Told(ErrorCode.NONE, 7, 2)
    assert world.seen == NodeState("RaftFollower", 7, 2)
    assert world.news(LeaderChanged)[-1] == LeaderChanged(7, 2)


@pytest.mark.parametrize("how", ["vote", "begin", "resign"])
def test_the_controller_hears_that_it_leads_no_more(how: str) -> None:
    world = led()
    world.commit(2)
    world.forget()
    if how == "vote":
        world.vote(2, 7)
    elif how == "begin":
        world.begin(2, 7)
    else:
        world.resign()
    assert [each.leader_id for each in world.news(LeaderChanged)] == [2 if how == "begin" else NOBODY]


# --- the end of an epoch ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successors", "after_ms"),
    [
        ((1,), 0),
        ((1, 3), 0),
        ((3, 1), 500),
        ((3, 4, 1), 500),
        ((3, 1, 4), 250),
        ((3, 4, 5, 1), 500),
        ((3, 4, 1, 5), 250),
        ((3, 1, 4, 5), 125),
        ((3,), 1000),
        ((3, 4), 1000),
        ((3, 4, 5, 6, 7), 1000),
        ((), 0),
    ],
)
@pytest.mark.parametrize("state", ["follower", "unattached"])
def test_how_soon_a_voter_stands_when_its_leader_resigns(
    state: str, successors: tuple[int, ...], after_ms: int
) -> None:
    """The preferred one at once, those behind it ever later, those not named last.

    A leader that was restarted names nobody, since it knows of no voter's log: all stand at once.
    """
    world = NodeWorld(epoch=5, leader=2 if state == "follower" else NOBODY, voters=(1, 2, 3, 4, 5))
    told = world.end(2, 5, [key_of(each) for each in successors])
    assert told == Told(ErrorCode.NONE, 5, 2)
    if after_ms:
        world.sleep(after_ms - 1)
        assert world.seen == NodeState("RaftFollower", 5, 2)
        world.sleep(1)
    assert world.seen == NodeState("Prospective", 5, 2)


def test_a_successor_is_one_with_its_directory() -> None:
    world = NodeWorld(epoch=5, leader=2)
    world.end(2, 5, [ReplicaKey(OWN, b"another disk 456"), key_of(3)])
    assert world.seen == NodeState("RaftFollower", 5, 2)
    world.end(2, 5, [ReplicaKey(OWN), key_of(3)])
    assert world.seen == NodeState("Prospective", 5, 2)


@pytest.mark.parametrize("state", ["candidate", "leader", "follower"])
def test_the_end_of_an_older_epoch_is_refused(state: str) -> None:
    world = NodeWorld(epoch=5, leader=3 if state == "follower" else NOBODY)
    if state == "candidate":
        world.become_candidate()
    elif state == "leader":
        world.become_leader()
    before = world.seen
    told = world.end(2, 4, [key_of(OWN)])
    assert told == Told(ErrorCode.FENCED_LEADER_EPOCH, before.epoch, before.leader_id)
    assert world.seen == before


def test_an_observer_does_not_stand_when_the_leader_resigns() -> None:
    world = NodeWorld(own=key_of(4), epoch=5, leader=2, voters=(1, 2, 3))
    world.end(2, 5, [key_of(3)])
    world.sleep(5 * FETCH_MS)
    assert world.seen == NodeState("RaftFollower", 5, 2)


# --- shutting down ----------------------------------------------------------------------------------------------------


def test_a_leader_shuts_down_when_another_leads() -> None:
    world = led()
    world.shut_down(5000)
    assert world.receivers(EndQuorumEpochRequest) == [2, 3]
    world.sleep(4000)
    assert world.shutdown is None
    assert world.seen == NodeState("Resigned", 6, OWN)
    world.begin(2, 7)
    assert world.shutdown is True


@pytest.mark.parametrize("state", ["leader", "candidate", "unattached"])
def test_a_voter_shuts_down_after_a_time_in_any_case(state: str) -> None:
    world = NodeWorld(epoch=5)
    if state == "leader":
        world.become_leader()
    elif state == "candidate":
        world.become_candidate()
    world.shut_down(5000)
    world.sleep(4999)
    assert world.shutdown is None
    world.sleep(1)
    assert world.shutdown is False


def test_a_candidate_that_shuts_down_goes_on_with_its_election() -> None:
    """If it is elected it resigns at once."""
    world = NodeWorld(epoch=5)
    sent = world.become_candidate()[0]
    world.shut_down(5000)
    assert world.shutdown is None
    world.answer_vote(sent)
    assert world.seen == NodeState("Resigned", 6, OWN)


@pytest.mark.parametrize(
    "options",
    [
        {"epoch": 5, "leader": 2},
        {"epoch": 5, "own": key_of(4), "voters": (2, 3)},
        {"epoch": 5, "own": key_of(4), "voters": (2, 3), "leader": 2},
        {"voters": (OWN,)},
    ],
    ids=["follower", "observer without a leader", "observer", "single voter"],
)
def test_who_is_not_missed_shuts_down_at_once(options: dict[str, object]) -> None:
    world = NodeWorld(**options)  # type: ignore[arg-type]
    world.forget()
    world.shut_down(5000)
    assert world.shutdown is True
    world.sleep(10 * FETCH_MS)
    world.vote(2, 9, (8, 99))
    assert len(world.news(ShutdownFinished)) == 1
    assert not world.all_sent()


def test_leader_and_voters_lose_each_other() -> None:
    """A leader that nobody fetches from resigns; its voters have elected another by then, or do not want to."""
    world = led()
    world.sleep(CHECK_QUORUM_MS)
    assert world.seen == NodeState("Resigned", 6, OWN)
    world.sleep(ELECTION_MS)
    assert world.seen == NodeState("Prospective", 7)
    world.sleep(REQUEST_MS)
    assert world.seen.epoch == 7
