"""Changes of a quorum's voters: the first set, adding, removing, updating, raising kraft.version (KIP-853)."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.raft import events, messages, voter_changes
from ottla.controller.raft.effects import AppendControl
from ottla.controller.raft.voter_set import ListenerEndpoint, QuorumVoter, ReplicaKey, VoterSet
from ottla.tests.controller.raft.helpers.node_world import NodeState, NodeWorld
from ottla.tests.controller.raft.helpers.quorum_parts import (
    BEGIN_QUORUM_MS,
    CHECK_QUORUM_MS,
    ELECTION_MS,
    FETCH_MS,
    OWN,
    REQUEST_MS,
    address_of_node,
    batch_of,
    control_of,
    static_voters_of,
    voter_of,
    voters_of,
)
from ottla.tests.simulation.raft.machine import CLUSTER_ID, endpoint_of, key_of
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.control_records import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.messages.vote import VoteRequest

NONE, TIMED_OUT = ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT
EPOCH = 4
NEW = 4
OTHER_DIRECTORY = b"another disk 456"
ELSEWHERE = ListenerEndpoint("OTHER", "elsewhere", 8990)


def led(*voters: int, is_committed: bool = True, **options: Any) -> NodeWorld:
    """A leader of epoch 4, with the first records of its epoch committed by 2 unless told otherwise."""
    world = NodeWorld(**{"epoch": EPOCH - 1, "voters": voters or (1, 2), **options})
    world.become_leader()
    if is_committed and len(world.quorum.voters) > 1:
        world.commit()
        world.forget()
    return world


def add(world: NodeWorld, key: ReplicaKey = key_of(NEW), *, acks_when_committed: bool = True) -> int:  # noqa: B008
    name, host, port = endpoint_of(key.node_id)
    return world.ask(
        AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=30_000,
            voter_id=key.node_id,
            voter_directory_id=key.directory_id,
            listeners=[Listener(name=name, host=host, port=port)],
            ack_when_committed=acks_when_committed,
        )
    )


def remove(world: NodeWorld, key: ReplicaKey) -> int:
    return world.ask(
        RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=key.node_id, voter_directory_id=key.directory_id)
    )


def update(world: NodeWorld, voter: QuorumVoter) -> int:
    return world.ask(messages.update_voter_request(CLUSTER_ID, voter, world.node.epoch))


def answer_versions(
    world: NodeWorld, versions: tuple[int, int] | None = (0, 1), error: ErrorCode = NONE, name: str = "kraft.version"
) -> None:
    """The new voter tells which levels of kraft.version it supports."""
    features = (
        [] if versions is None else [SupportedFeatureKey(name=name, min_version=versions[0], max_version=versions[1])]
    )
    world.answer(world.sent(ApiVersionsRequest), ApiVersionsResponse(error_code=error, supported_features=features))


def error_of(world: NodeWorld, request_id: int) -> ErrorCode | None:
    response = world.response(request_id)
    return None if response is None else ErrorCode(response.error_code)


def written_voters(world: NodeWorld) -> list[VoterSet]:
    """The voter sets that were written, in their order."""
    return [
        VoterSet.of_record(message)
        for each in world.news(AppendControl)
        for message, _ in each.messages
        if isinstance(message, VotersRecord)
    ]


# --- the first voter set ----------------------------------------------------------------------------------------------


def begun(**options: Any) -> list[Any]:
    """The records with which a leader begins its epoch."""
    world = NodeWorld(epoch=EPOCH - 1, **options)
    for sent in world.become_candidate():
        if world.seen.state == "RaftCandidate":
            world.answer_vote(sent)
    assert world.seen == NodeState("RaftLeader", EPOCH, OWN)
    return [message for message, _ in world.news(AppendControl)[0].messages]


IN_LOG = (KRaftVersionRecord(k_raft_version=1), voters_of(1, 2, 3).to_record())


def test_the_first_leader_writes_the_voters_of_the_checkpoint() -> None:
    change, version, voters = begun(voters=(1, 2, 3))
    assert isinstance(change, LeaderChangeMessage)
    assert version.k_raft_version == 1
    assert VoterSet.of_record(voters) == voters_of(1, 2, 3)


@pytest.mark.parametrize("options", [{"kraft_version": 0}, {"log": [(2, *IN_LOG)]}], ids=["static", "in the log"])
def test_a_leader_does_not_write_voters_that_are_known(options: dict[str, Any]) -> None:
    assert [type(each) for each in begun(voters=(1, 2, 3), **options)] == [LeaderChangeMessage]


def test_a_leader_with_other_addresses_writes_its_own() -> None:
    where = (endpoint_of(OWN), ELSEWHERE)
    _, version, voters = begun(voters=(1, 2, 3), log=[(2, *IN_LOG)], endpoints=where)
    assert version.k_raft_version == 1
    assert VoterSet.of_record(voters) == voters_of(1, 2, 3).with_voter(voter_of(OWN, others=[ELSEWHERE]))


def test_a_follower_reads_the_voters_that_a_leader_writes() -> None:
    """As soon as they are in its log, committed or not; it becomes a voter so."""
    world = NodeWorld(own=key_of(NEW), voters=(2, 3), epoch=EPOCH, leader=2)
    assert not world.quorum.is_voter
    said = (LeaderChangeMessage(leader_id=2), KRaftVersionRecord(k_raft_version=1), voters_of(2, 3, NEW).to_record())
    world.answer_fetch(world.fetch_sent, control_of(0, EPOCH, *said))
    assert world.high_watermark == 0
    assert world.quorum.is_voter
    world.sleep(1.1 * FETCH_MS)
    assert world.seen.state == "Prospective"


def test_voters_are_taken_back_with_their_record() -> None:
    world = NodeWorld(voters=(1, 2, 3), epoch=EPOCH, leader=2, log=[(2, *IN_LOG), (3, voters_of(1, 2).to_record())])
    assert world.quorum.voters.ids == (1, 2)
    world.answer_fetch(world.fetch_sent, diverging=(2, 2))
    assert world.quorum.voters.ids == (1, 2, 3)


def test_the_level_of_kraft_version_is_taken_back_with_its_record() -> None:
    world = NodeWorld(voters=(1, 2, 3), kraft_version=0, epoch=EPOCH, leader=2, log=[(2, 1), (3, *IN_LOG)])
    assert world.quorum.kraft_version == 1
    world.answer_fetch(world.fetch_sent, diverging=(2, 1))
    assert world.quorum.kraft_version == 0
    assert world.quorum.voters == static_voters_of(1, 2, 3)


# --- adding -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks_when_committed", [True, False], ids=["when committed", "when appended"])
def test_a_voter_is_added(acks_when_committed: bool) -> None:
    """Asked for its versions, then in the log, where it counts at once; answered with the commit or before."""
    world = led()
    world.fetch(NEW)
    request = add(world, acks_when_committed=acks_when_committed)
    answer_versions(world)
    assert written_voters(world) == [voters_of(1, 2, NEW)]
    assert world.quorum.voters == voters_of(1, 2, NEW)
    assert error_of(world, request) == (None if acks_when_committed else NONE)
    world.fetch(2)
    assert error_of(world, request) == NONE
    assert world.high_watermark == world.end_offset


def test_a_new_voter_is_asked_where_the_request_says() -> None:
    world = led()
    add(world)
    assert world.sent(ApiVersionsRequest).peer == (NEW, address_of_node(NEW))


def test_the_new_voter_counts_for_the_commit_of_its_own_record() -> None:
    world = led(1, 2, 3)
    world.fetch(NEW)
    request = add(world)
    answer_versions(world)
    world.fetch(2)
    assert error_of(world, request) is None
    world.fetch(NEW)
    assert error_of(world, request) == NONE


def test_the_leader_announces_itself_to_the_new_voter() -> None:
    world = led()
    world.fetch(NEW)
    add(world)
    answer_versions(world)
    world.commit(2)
    world.sleep(2 * BEGIN_QUORUM_MS)
    assert NEW in world.receivers(BeginQuorumEpochRequest)


@pytest.mark.parametrize(
    ("versions", "error", "expected"),
    [
        ((0, 1), NONE, None),
        ((1, 1), NONE, None),
        ((0, 9), NONE, None),
        ((0, 0), NONE, ErrorCode.INVALID_REQUEST),
        ((2, 3), NONE, ErrorCode.INVALID_REQUEST),
        (None, NONE, ErrorCode.INVALID_REQUEST),
        ((0, 1), ErrorCode.UNSUPPORTED_VERSION, TIMED_OUT),
        ((0, 1), ErrorCode.INVALID_REQUEST, TIMED_OUT),
    ],
    ids=str,
)
def test_the_versions_of_a_new_voter(
    versions: tuple[int, int] | None, error: ErrorCode, expected: ErrorCode | None
) -> None:
    world = led()
    world.fetch(NEW)
    request = add(world)
    answer_versions(world, versions, error)
    assert error_of(world, request) == expected
    assert bool(written_voters(world)) == (expected is None)
    if expected is not None:
        assert add(world, key_of(5)) and world.receivers(ApiVersionsRequest) == [5]


def test_versions_of_a_voter_that_is_not_added_any_more() -> None:
    """Its request has timed out, and another voter is added."""
    world = led()
    world.fetch(NEW)
    world.fetch(5)
    add(world)
    late = world.sent(ApiVersionsRequest)
    world.sleep(REQUEST_MS)
    request = add(world, key_of(5))
    feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
    world.answer(late, ApiVersionsResponse(supported_features=[feature]))
    assert not written_voters(world)
    assert error_of(world, request) is None
    answer_versions(world)
    assert written_voters(world) == [voters_of(1, 2, 5)]


def test_a_new_voter_that_supports_only_other_features() -> None:
    world = led()
    world.fetch(NEW)
    request = add(world)
    answer_versions(world, (0, 1), name="metadata.version")
    assert error_of(world, request) == ErrorCode.INVALID_REQUEST


def test_a_new_voter_that_cannot_be_reached() -> None:
    world = led()
    world.fetch(NEW)
    request = add(world)
    world.fail(world.sent(ApiVersionsRequest))
    assert error_of(world, request) == TIMED_OUT
    assert not written_voters(world)
    again = add(world)
    assert error_of(world, again) == TIMED_OUT
    world.sleep(world.times.retry_backoff_ms)
    add(world)
    assert world.receivers(ApiVersionsRequest) == [NEW]


def test_a_new_voter_that_does_not_answer() -> None:
    world = led()
    world.fetch(NEW)
    request = add(world)
    late = world.sent(ApiVersionsRequest)
    world.sleep(REQUEST_MS - 1)
    assert error_of(world, request) is None
    world.sleep(1)
    assert error_of(world, request) == TIMED_OUT
    world.answer(late, ApiVersionsResponse(supported_features=[]))
    assert not written_voters(world)


@pytest.mark.parametrize(
    ("fetches", "sleep_ms", "is_added"),
    [
        ([], 0, False),
        ([0], 0, False),
        ([3], 0, True),
        ([3, 0], 0, True),
        ([3], 3_599_999, True),
        ([3], 3_600_000, False),
    ],
    ids=["never fetched", "behind", "at the end", "was at the end once", "an hour ago", "over an hour ago"],
)
def test_a_new_voter_has_to_be_at_the_end_of_the_log_once(fetches: list[int], sleep_ms: int, is_added: bool) -> None:
    """And to have fetched within the hour: otherwise commits would wait for it."""
    world = led(1)
    for offset in fetches:
        world.fetch(NEW, offset, EPOCH if offset else 0)
    world.sleep(sleep_ms)
    world.fetch(5)
    request = add(world)
    answer_versions(world)
    assert error_of(world, request) == (None if is_added else TIMED_OUT)
    assert bool(written_voters(world)) == is_added


def test_a_leader_by_itself_goes_on_leading_when_it_has_another_voter() -> None:
    """Check-quorum counts from the last fetch, also of one that was no voter then."""
    world = led(1)
    for _ in range(3):
        world.sleep(CHECK_QUORUM_MS - 1)
        world.fetch(NEW)
    add(world)
    answer_versions(world)
    assert world.quorum.voters.ids == (1, NEW)
    world.sleep(CHECK_QUORUM_MS - 1)
    assert world.seen == NodeState("RaftLeader", EPOCH, OWN)
    world.sleep(1)
    assert world.seen == NodeState("Resigned", EPOCH, OWN)


def test_another_directory_of_the_new_voter_has_not_caught_up() -> None:
    world = led()
    world.fetch(ReplicaKey(NEW, OTHER_DIRECTORY))
    request = add(world)
    answer_versions(world)
    assert error_of(world, request) == TIMED_OUT


@pytest.mark.parametrize(
    "key", [key_of(2), ReplicaKey(2, OTHER_DIRECTORY), key_of(OWN)], ids=["voter", "its id", "leader"]
)
def test_a_voter_that_there_is(key: ReplicaKey) -> None:
    """By its id: one with a new disk is removed first."""
    world = led()
    assert error_of(world, add(world, key)) == ErrorCode.DUPLICATE_VOTER
    assert not world.all_sent(ApiVersionsRequest)


def test_adding_takes_too_long_to_commit() -> None:
    """It may be committed all the same; until then no other change begins."""
    world = led()
    world.fetch(NEW)
    request = add(world)
    answer_versions(world)
    world.sleep(REQUEST_MS)
    assert error_of(world, request) == TIMED_OUT
    assert world.quorum.voters.ids == (1, 2, NEW)
    assert error_of(world, add(world, key_of(5))) == TIMED_OUT
    world.commit()
    assert error_of(world, remove(world, key_of(NEW))) is None


# --- removing ---------------------------------------------------------------------------------------------------------


def test_a_voter_is_removed() -> None:
    world = led(1, 2, 3)
    request = remove(world, key_of(3))
    assert written_voters(world) == [voters_of(1, 2)]
    assert error_of(world, request) is None
    world.fetch(3)
    assert error_of(world, request) is None
    world.fetch(2)
    assert error_of(world, request) == NONE
    assert world.seen == NodeState("RaftLeader", EPOCH, OWN)


@pytest.mark.parametrize(
    "key",
    [key_of(NEW), ReplicaKey(3, OTHER_DIRECTORY), ReplicaKey(NEW, key_of(3).directory_id)],
    ids=["unknown", "another directory", "another id"],
)
def test_what_is_no_voter_is_not_removed(key: ReplicaKey) -> None:
    world = led(1, 2, 3)
    assert error_of(world, remove(world, key)) == ErrorCode.VOTER_NOT_FOUND
    assert not written_voters(world)


def test_the_only_voter_is_not_removed() -> None:
    world = led(1)
    assert error_of(world, remove(world, key_of(OWN))) == ErrorCode.VOTER_NOT_FOUND
    assert world.seen == NodeState("RaftLeader", EPOCH, OWN)


def test_removing_takes_too_long_to_commit() -> None:
    world = led(1, 2, 3)
    request = remove(world, key_of(3))
    world.sleep(REQUEST_MS - 1)
    assert error_of(world, request) is None
    world.sleep(1)
    assert error_of(world, request) == TIMED_OUT
    assert world.quorum.voters.ids == (1, 2)


def test_a_leader_that_removes_itself_leads_until_that_is_committed() -> None:
    """It counts itself no more: both others have to have it."""
    world = led(1, 2, 3)
    request = remove(world, key_of(OWN))
    world.fetch(2)
    assert (error_of(world, request), world.seen) == (None, NodeState("RaftLeader", EPOCH, OWN))
    world.fetch(3)
    assert error_of(world, request) == NONE
    assert world.seen == NodeState("Resigned", EPOCH, OWN)
    assert world.receivers(EndQuorumEpochRequest) == [2, 3]
    world.sleep(10 * ELECTION_MS)
    assert world.seen == NodeState("Unattached", EPOCH + 1)
    assert not world.all_sent(VoteRequest)


@pytest.mark.parametrize(("replicas", "stays"), [([2], False), ([2, 3], True)])
def test_a_leader_that_removes_itself_is_no_part_of_the_majority_that_follows(replicas: list[int], stays: bool) -> None:
    world = led(1, 2, 3)
    remove(world, key_of(OWN))
    world.sleep(CHECK_QUORUM_MS - 1)
    for replica in replicas:
        world.fetch(replica, 3, EPOCH)
    world.sleep(1)
    assert world.seen.state == ("RaftLeader" if stays else "Resigned")


def test_a_removed_leader_may_stand_until_its_removal_is_committed() -> None:
    """Not so in Kafka, where the other one could not be elected without the record that only this one has."""
    world = led(1, 2)
    remove(world, key_of(OWN))
    world.restart()
    assert world.seen == NodeState("Resigned", EPOCH, OWN)
    world.sleep(ELECTION_MS)
    assert world.seen == NodeState("Prospective", EPOCH + 1)
    assert [each.peer.node_id for each in world.pre_votes] == [2]


@pytest.mark.parametrize(("high_watermark", "stands"), [(3, False), (2, True)], ids=["committed", "not committed"])
def test_a_removed_voter_does_not_stand(high_watermark: int, stands: bool) -> None:
    world = NodeWorld(own=key_of(3), voters=(1, 2, 3), epoch=EPOCH, leader=2, log=[(2, *IN_LOG)])
    records = control_of(2, EPOCH, voters_of(1, 2).to_record())
    world.answer_fetch(world.fetch_sent, records, high_watermark=high_watermark)
    world.sleep(10 * FETCH_MS)
    assert bool(world.all_sent(VoteRequest)) == stands
    if not stands:
        assert world.seen == NodeState("RaftFollower", EPOCH, 2)


def test_a_removed_voter_that_fetches_is_an_observer() -> None:
    world = led(1, 2, 3)
    remove(world, key_of(3))
    world.commit()
    world.append(1)
    world.fetch(3)
    assert world.high_watermark == world.end_offset - 1


def test_a_voter_with_the_id_0_comes_and_goes() -> None:
    world = led(1, 2)
    world.fetch(0)
    request = add(world, key_of(0))
    answer_versions(world)
    world.commit()
    assert error_of(world, request) == NONE
    assert error_of(world, update(world, voter_of(0, others=[ELSEWHERE]))) == NONE
    world.commit()
    request = remove(world, key_of(0))
    world.commit()
    assert error_of(world, request) == NONE


# --- one at a time ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["add", "added", "remove"])
@pytest.mark.parametrize("second", ["add", "remove", "update"])
def test_one_change_at_a_time(first: str, second: str) -> None:
    world = led(1, 2, 3)
    world.fetch(NEW)
    if first == "remove":
        remove(world, key_of(2))
    else:
        add(world)
        if first == "added":
            answer_versions(world)
    if second == "add":
        request = add(world, key_of(5))
    elif second == "remove":
        request = remove(world, key_of(3))
    else:
        request = update(world, voter_of(3, others=[ELSEWHERE]))
    assert error_of(world, request) == TIMED_OUT


@pytest.mark.parametrize(("kind", "kraft_version"), [("add", 1), ("remove", 1), ("update", 1), ("update", 0)], ids=str)
def test_no_change_before_the_leader_has_committed(kind: str, kraft_version: int) -> None:
    """A change of the leader before may come to light until then."""
    world = led(1, 2, 3, is_committed=False, kraft_version=kraft_version)
    world.fetch(NEW)
    if kind == "add":
        request = add(world)
    elif kind == "remove":
        request = remove(world, key_of(3))
    else:
        request = update(world, voter_of(3, others=[ELSEWHERE]))
    assert error_of(world, request) == TIMED_OUT
    assert not written_voters(world)


@pytest.mark.parametrize("kind", ["add", "remove"])
@pytest.mark.parametrize(
    ("is_committed", "error"), [(True, ErrorCode.UNSUPPORTED_VERSION), (False, TIMED_OUT)], ids=["committed", "not yet"]
)
def test_static_voters_do_not_change(kind: str, is_committed: bool, error: ErrorCode) -> None:
    world = led(1, 2, 3, kraft_version=0, is_committed=is_committed)
    world.fetch(NEW)
    request = add(world) if kind == "add" else remove(world, key_of(3))
    assert error_of(world, request) == error


@pytest.mark.parametrize("kind", ["add", "remove"])
def test_a_change_is_answered_with_its_commit_and_not_with_what_is_before(kind: str) -> None:
    world = led(1, 2)
    world.fetch(NEW)
    world.append(1)
    request = add(world) if kind == "add" else remove(world, key_of(OWN))
    if kind == "add":
        answer_versions(world)
    world.fetch(2, 4, EPOCH)
    assert (world.high_watermark, error_of(world, request)) == (4, None)
    world.fetch(2)
    assert (world.high_watermark, error_of(world, request)) == (5, NONE)


@pytest.mark.parametrize("kind", ["add", "added", "remove"])
@pytest.mark.parametrize("how", ["resign", "begin", "vote", "shut down"])
def test_a_change_ends_with_the_leadership(kind: str, how: str) -> None:
    """Whoever asked has to ask the next leader."""
    world = led(1, 2, 3)
    world.fetch(NEW)
    request = remove(world, key_of(3)) if kind == "remove" else add(world)
    if kind == "added":
        answer_versions(world)
    if how == "resign":
        world.resign()
    elif how == "begin":
        world.begin(2, EPOCH + 1)
    elif how == "vote":
        world.vote(2, EPOCH + 1)
    else:
        world.shut_down()
    assert error_of(world, request) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_change_that_was_answered_is_not_answered_again() -> None:
    world = led(1, 2, 3)
    world.fetch(NEW)
    request = add(world, acks_when_committed=False)
    answer_versions(world)
    assert error_of(world, request) == NONE
    world.resign()
    assert error_of(world, request) == NONE


def test_versions_that_come_after_the_leadership_are_ignored() -> None:
    world = led(1, 2, 3)
    world.fetch(NEW)
    add(world)
    late = world.sent(ApiVersionsRequest)
    world.resign()
    world.answer(late, ApiVersionsResponse(supported_features=[]))
    assert not written_voters(world)


# --- updating ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "voter",
    [voter_of(3, others=[ELSEWHERE]), voter_of(3, versions=(1, 1)), voter_of(3, versions=(0, 2))],
    ids=["addresses", "lowest level", "highest level"],
)
def test_a_voter_is_updated(voter: QuorumVoter) -> None:
    """Answered before it is committed, and one that asks follows."""
    world = led(1, 2, 3)
    world.sleep(CHECK_QUORUM_MS - 1)
    request = update(world, voter)
    assert error_of(world, request) == NONE
    assert written_voters(world) == [voters_of(1, 2, 3).with_voter(voter)]
    world.sleep(1)
    assert world.seen == NodeState("RaftLeader", EPOCH, OWN)


@pytest.mark.parametrize(
    "key", [ReplicaKey(3, OTHER_DIRECTORY), ReplicaKey(NEW, key_of(3).directory_id)], ids=["directory", "id"]
)
def test_what_is_no_voter_is_not_updated(key: ReplicaKey) -> None:
    world = led(1, 2, 3)
    request = update(world, QuorumVoter(key, (endpoint_of(key.node_id),), 0, 1))
    assert error_of(world, request) == ErrorCode.VOTER_NOT_FOUND


@pytest.mark.parametrize(
    ("voter", "error"),
    [
        (voter_of(3, versions=(0, 0)), TIMED_OUT),
        (voter_of(NEW), TIMED_OUT),
        (voter_of(3, versions=(1, 0)), ErrorCode.INVALID_REQUEST),
        (QuorumVoter(ReplicaKey(3), (endpoint_of(3),), 0, 1), ErrorCode.INVALID_REQUEST),
        (QuorumVoter(key_of(3), (ELSEWHERE,), 0, 1), ErrorCode.INVALID_REQUEST),
    ],
    ids=["another level", "no voter", "versions upside down", "no directory", "no address"],
)
@pytest.mark.parametrize("why", ["pending", "not committed"])
def test_what_is_malformed_is_refused_before_what_comes_at_a_bad_time(
    voter: QuorumVoter, error: ErrorCode, why: str
) -> None:
    """And what does not fit to the voters after that, since these may change."""
    world = led(1, 2, 3, is_committed=why == "pending")
    if why == "pending":
        add(world, key_of(5))
    assert error_of(world, update(world, voter)) == error


def test_an_update_of_the_leader_is_none_of_a_voter_that_follows() -> None:
    world = led(1, 2, 3)
    world.sleep(CHECK_QUORUM_MS - 1)
    assert error_of(world, update(world, voter_of(OWN, others=[ELSEWHERE]))) == NONE
    world.sleep(1)
    assert world.seen.state == "Resigned"


def test_with_static_voters_an_update_is_kept_in_memory() -> None:
    """Whatever directory the voter has: until then none is known."""
    world = led(1, 2, 3, kraft_version=0)
    assert error_of(world, update(world, voter_of(2))) == NONE
    assert not written_voters(world)
    assert world.quorum.voters == static_voters_of(1, 2, 3)
    assert world.quorum.state.volatile_voters == VoterSet(
        [voter_of(1), voter_of(2), *static_voters_of(3).voters.values()]
    )
    assert error_of(world, update(world, voter_of(NEW))) == ErrorCode.VOTER_NOT_FOUND


def test_a_voter_in_the_log_is_updated_after_static_ones_were_written() -> None:
    world = led(1, 2, 3, kraft_version=0, log=[(2, 1), (2, *IN_LOG)])
    assert error_of(world, update(world, voter_of(2, others=[ELSEWHERE]))) == NONE
    assert len(written_voters(world)) == 1


# --- raising kraft.version --------------------------------------------------------------------------------------------


def raised(world: NodeWorld, level: int = 1, epoch: int | None = None) -> list[Any]:
    """The controller raises the level; returns the messages that are written."""
    world.forget()
    world.step(events.KRaftVersionRequested(EPOCH if epoch is None else epoch, level))
    return [message for each in world.news(AppendControl) for message, _ in each.messages]


def test_static_voters_are_written_with_the_first_level_of_kraft_version() -> None:
    """When each has told its directory and its versions. From then on they count, and may change."""
    world = led(1, 2, 3, kraft_version=0)
    update(world, voter_of(2))
    update(world, voter_of(3, others=[ELSEWHERE]))
    version, voters = raised(world)
    expected = VoterSet([voter_of(1), voter_of(2), voter_of(3, others=[ELSEWHERE])])
    assert (version.k_raft_version, VoterSet.of_record(voters)) == (1, expected)
    assert world.quorum.voters == expected
    topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
    response = world.response(world.ask(DescribeQuorumRequest(topics=[topic])))
    described = [
        (each.replica_id, each.replica_directory_id) for each in response.topics[0].partitions[0].current_voters
    ]
    assert described == [key_of(1), key_of(2), key_of(3)]
    assert error_of(world, remove(world, key_of(3))) == TIMED_OUT
    world.commit(2)
    assert error_of(world, remove(world, key_of(3))) is None


def test_quorum_state_names_directories_from_then_on() -> None:
    world = led(1, 2, 3, kraft_version=0)
    for voter in (2, 3):
        update(world, voter_of(voter))
    raised(world)
    assert world.stored.voters == (1, 2, 3)
    world.vote(2, EPOCH + 1)
    assert (world.stored.voted_id, world.stored.voted_directory_id, world.stored.voters) == (*key_of(2), ())


@pytest.mark.parametrize(
    ("told", "level"),
    [
        ([], 1),
        ([voter_of(2)], 1),
        ([voter_of(2), voter_of(3, versions=(0, 0))], 1),
        ([voter_of(2), voter_of(3)], 0),
        ([voter_of(2), voter_of(3)], 2),
        ([voter_of(2, versions=(0, 2)), voter_of(3, versions=(0, 2))], 2),
    ],
    ids=["none", "one", "one does not", "the same level", "no voter", "the leader does not"],
)
def test_each_voter_has_to_support_the_level(told: list[QuorumVoter], level: int) -> None:
    world = led(1, 2, 3, kraft_version=0)
    for voter in told:
        assert error_of(world, update(world, voter)) == NONE
    assert not raised(world, level)
    assert world.quorum.kraft_version == 0


@pytest.mark.parametrize("level", [0, 1, 2])
def test_there_is_no_way_back_and_none_beyond(level: int) -> None:
    world = led(1, 2, 3)
    assert not raised(world, level)
    state = world.quorum.state
    if level == 1:
        assert not voter_changes.check_upgrade(world.quorum, state, level)
    else:
        with pytest.raises(KafkaError) as refused:
            voter_changes.check_upgrade(world.quorum, state, level)
        assert refused.value.code == ErrorCode.INVALID_UPDATE_VERSION


def test_the_level_is_raised_once() -> None:
    world = led(1, 2, 3, kraft_version=0)
    update(world, voter_of(2))
    update(world, voter_of(3, versions=(0, 1)))
    assert raised(world)
    assert not raised(world)


def test_only_the_leader_raises_it_and_in_its_epoch() -> None:
    world = led(1, 2, 3, kraft_version=0)
    for voter in (2, 3):
        update(world, voter_of(voter))
    assert not raised(world, epoch=EPOCH - 1)
    world.resign()
    assert not raised(world)


def test_what_voters_have_told_is_forgotten_with_the_leadership() -> None:
    world = led(1, 2, 3, kraft_version=0)
    for voter in (2, 3):
        update(world, voter_of(voter))
    world.begin(2, EPOCH + 1)
    epoch = world.become_leader()
    assert not raised(world, epoch=epoch)


# --- counting by the newest set ---------------------------------------------------------------------------------------


def test_the_high_watermark_does_not_fall_when_a_voter_is_added() -> None:
    world = led(1, 2)
    world.fetch(NEW)
    add(world)
    answer_versions(world)
    assert world.high_watermark == 3
    world.fetch(NEW, 0, 0)
    assert world.high_watermark == 3
    world.fetch(2)
    assert world.high_watermark == 4


def test_the_high_watermark_may_rise_when_a_voter_is_removed() -> None:
    """Two of four have the record and the removal; of three they are a majority."""
    world = led(1, 2, 3, 5)
    world.append(1)
    world.fetch(2)
    assert world.high_watermark == 3
    remove(world, key_of(5))
    assert world.high_watermark == 4
    world.fetch(2)
    assert world.high_watermark == 5


def test_a_new_set_counts_before_it_is_flushed() -> None:
    world = led(1, 2, 3, 5)
    world.append(1)
    world.fetch(2)
    assert world.high_watermark == 3
    world.holds_flushes = True
    remove(world, key_of(5))
    assert world.is_flushing
    assert world.high_watermark == 4


def test_followers_of_a_leader_count_by_the_set_that_they_have() -> None:
    """A voter that was added is asked for its vote, though its record is not committed."""
    world = NodeWorld(epoch=EPOCH, leader=2, log=[(2, *IN_LOG)])
    world.answer_fetch(world.fetch_sent, control_of(2, EPOCH, voters_of(1, 2, 3, NEW, 5).to_record()))
    sent = world.become_prospective()
    assert [each.peer.node_id for each in sent] == [2, 3, NEW, 5]
    world.answer_vote(sent[0])
    assert world.seen.state == "Prospective"
    world.answer_vote(sent[1])
    assert world.seen.state == "RaftCandidate"


def test_an_append_of_the_controller_goes_on_beside_a_change() -> None:
    world = led(1, 2, 3)
    request = remove(world, key_of(3))
    world.step(events.AppendRequested(EPOCH, (events.PreparedBatch(batch_of(0, 0), 1),)))
    world.fetch(2)
    assert error_of(world, request) == NONE
    assert world.high_watermark == world.end_offset
