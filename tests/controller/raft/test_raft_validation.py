"""Which requests a node of a quorum refuses, with which error, and which check comes first.

The order is Kafka's: the cluster, the partition, what the request says, its epoch, ids below 0, then who leads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.raft import messages
from ottla.controller.raft.voter_set import ReplicaKey
from ottla.log.metadata_snapshots import MetadataSnapshotId
from ottla.tests.controller.raft.helpers.node_world import Fetched, NodeState, NodeWorld, Told
from ottla.tests.controller.raft.helpers.quorum_parts import OWN, voter_of
from ottla.tests.simulation.raft.machine import CLUSTER_ID, endpoint_of, key_of
from ottla.wire.messages import fetch, fetch_snapshot, vote
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.schema import ZERO_UUID, Message

EPOCH = 5
INVALID, FENCED = ErrorCode.INVALID_REQUEST, ErrorCode.FENCED_LEADER_EPOCH
INCONSISTENT, UNKNOWN_EPOCH = ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.UNKNOWN_LEADER_EPOCH
NOT_LEADER, UNAVAILABLE = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE


def leader() -> NodeWorld:
    """A leader of epoch 5 that has committed; its log ends at 6."""
    world = NodeWorld(epoch=EPOCH - 1, log=[(3, 3)])
    world.become_leader()
    world.commit(2)
    return world


def follower() -> NodeWorld:
    return NodeWorld(epoch=EPOCH, leader=2, log=[(3, 3)])


def unattached() -> NodeWorld:
    return NodeWorld(epoch=EPOCH, log=[(3, 3)])


def resigned() -> NodeWorld:
    return NodeWorld(epoch=EPOCH, leader=OWN, log=[(3, 3)])


def stopping() -> NodeWorld:
    world = leader()
    world.shut_down()
    return world


STATES: dict[str, Callable[[], NodeWorld]] = {
    "leader": leader,
    "follower": follower,
    "unattached": unattached,
    "resigned": resigned,
}

REQUESTS: dict[str, Callable[[], Any]] = {
    "Vote": lambda: messages.vote_request(CLUSTER_ID, key_of(2), key_of(OWN), EPOCH, (3, 3), False),
    "BeginQuorumEpoch": lambda: messages.begin_quorum_epoch_request(CLUSTER_ID, 2, EPOCH, key_of(OWN), ()),
    "EndQuorumEpoch": lambda: messages.end_quorum_epoch_request(CLUSTER_ID, 2, EPOCH, (), ()),
    "Fetch": lambda: messages.fetch_request(CLUSTER_ID, key_of(2), EPOCH, (3, 3), -1, max_wait_ms=0, max_bytes=9),
    "FetchSnapshot": lambda: messages.fetch_snapshot_request(
        CLUSTER_ID, key_of(2), EPOCH, MetadataSnapshotId(3, 3), 0, 9
    ),
    "AddRaftVoter": lambda: AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        voter_id=4,
        voter_directory_id=key_of(4).directory_id,
        listeners=[_listener(4)],
    ),
    "RemoveRaftVoter": lambda: RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=2, voter_directory_id=key_of(2).directory_id
    ),
    "UpdateRaftVoter": lambda: messages.update_voter_request(CLUSTER_ID, voter_of(2), EPOCH),
}
LEADER_ONLY = ["Fetch", "FetchSnapshot", "AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter"]


def _listener(node_id: int) -> Listener:
    name, host, port = endpoint_of(node_id)
    return Listener(name=name, host=host, port=port)


def refusal(world: NodeWorld, request: Message) -> ErrorCode:
    """The error of the response, wherever it stands; NONE without one, or while it waits."""
    response = world.response(world.ask(request))
    if response is None or response.error_code:
        return ErrorCode.NONE if response is None else ErrorCode(response.error_code)
    topics = getattr(response, "topics", None) or getattr(response, "responses", None)
    return ErrorCode(topics[0].partitions[0].error_code) if topics else ErrorCode.NONE


def is_top_level(world: NodeWorld, request: Message) -> bool:
    response = world.response(world.ask(request))
    return bool(response.error_code) and not (getattr(response, "topics", None) or getattr(response, "responses", None))


# --- the cluster ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster_id", "is_refused"),
    [(CLUSTER_ID, False), (None, False), ("", True), ("another", True)],
    ids=["this", "none", "empty", "another"],
)
@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (kind, state)
        for kind in REQUESTS
        for state in STATES
        if state in ("follower", "unattached") or kind not in ("BeginQuorumEpoch", "EndQuorumEpoch")
    ],
)
def test_the_cluster_id(kind: str, state: str, cluster_id: str | None, is_refused: bool) -> None:
    """It may be left out. Another one is refused before anything else, and changes nothing."""
    world = STATES[state]()
    before = world.seen
    request = REQUESTS[kind]()
    request.cluster_id = cluster_id
    error = refusal(world, request)
    assert (error == INCONSISTENT) == is_refused
    if is_refused:
        assert is_top_level(world, request)
        assert world.seen == before


# --- the partition ----------------------------------------------------------------------------------------------------


def _of_topic(request: Any, name: str) -> None:
    if isinstance(request, fetch.FetchRequest):
        request.topics[0].topic_id = name.ljust(16)[:16].encode()
    elif isinstance(request, fetch_snapshot.FetchSnapshotRequest):
        request.topics[0].name = name
    else:
        request.topics[0].topic_name = name


def _of_partition(request: Any, index: int) -> None:
    partition = request.topics[0].partitions[0]
    if isinstance(request, fetch.FetchRequest | fetch_snapshot.FetchSnapshotRequest):
        partition.partition = index
    else:
        partition.partition_index = index


def _no_topics(request: Any) -> None:
    request.topics = []


def _no_partitions(request: Any) -> None:
    request.topics[0].partitions = []


def _two_topics(request: Any) -> None:
    request.topics = request.topics * 2


def _two_partitions(request: Any) -> None:
    request.topics[0].partitions = request.topics[0].partitions * 2


PARTITIONS: dict[str, Callable[[Any], None]] = {
    "another topic": lambda request: _of_topic(request, "other"),
    "another partition": lambda request: _of_partition(request, 1),
    "no topic": _no_topics,
    "no partition": _no_partitions,
    "two topics": _two_topics,
    "two partitions": _two_partitions,
}


@pytest.mark.parametrize("wrong", PARTITIONS)
@pytest.mark.parametrize("kind", ["Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "Fetch"])
def test_the_partition(kind: str, wrong: str) -> None:
    """There is one; a request for another changes nothing, whatever its epoch."""
    world = unattached()
    request = REQUESTS[kind]()
    partition = request.topics[0].partitions[0]
    for name in ("replica_epoch", "leader_epoch", "current_leader_epoch"):
        if hasattr(partition, name):
            setattr(partition, name, EPOCH + 1)
    PARTITIONS[wrong](request)
    assert refusal(world, request) == INVALID
    assert is_top_level(world, request)
    assert world.seen == NodeState("Unattached", EPOCH)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("another topic", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("another partition", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("no topic", INVALID),
        ("no partition", INVALID),
    ],
)
def test_the_partition_of_a_snapshot(wrong: str, error: ErrorCode) -> None:
    world = leader()
    request = REQUESTS["FetchSnapshot"]()
    PARTITIONS[wrong](request)
    assert refusal(world, request) == error


def test_a_fetch_by_the_topics_name() -> None:
    """As before version 13: without a topic id."""
    world = leader()
    request = REQUESTS["Fetch"]()
    request.topics[0].topic_id = ZERO_UUID
    assert refusal(world, request) == ErrorCode.NONE


# --- what a vote says -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pre_vote", "epoch", "last", "candidate", "error"),
    [
        (False, EPOCH, (3, -5), 2, INVALID),
        (False, EPOCH, (-1, 0), 2, INVALID),
        (False, EPOCH, (EPOCH, 9), 2, INVALID),
        (False, EPOCH, (EPOCH + 1, 9), 2, INVALID),
        (False, EPOCH + 1, (EPOCH + 1, 9), 2, INVALID),
        (False, EPOCH + 1, (3, -5), 2, INVALID),
        (False, EPOCH + 1, (EPOCH, 9), 2, ErrorCode.NONE),
        (True, EPOCH, (3, -5), 2, INVALID),
        (True, EPOCH, (-1, 0), 2, INVALID),
        (True, EPOCH, (EPOCH, 9), 2, ErrorCode.NONE),
        (True, EPOCH, (EPOCH + 1, 9), 2, INVALID),
        (False, EPOCH - 1, (3, -5), 2, INVALID),
        (True, EPOCH - 1, (EPOCH, 9), 2, INVALID),
        (False, EPOCH - 1, (3, 9), 2, FENCED),
        (False, EPOCH - 1, (3, 9), -1, FENCED),
        (False, EPOCH, (3, 9), -1, INVALID),
        (False, EPOCH + 1, (3, 9), -1, INVALID),
        (True, EPOCH + 1, (3, 9), -1, INVALID),
    ],
)
@pytest.mark.parametrize("state", ["unattached", "follower"])
def test_what_a_vote_says(
    state: str, pre_vote: bool, epoch: int, last: tuple[int, int], candidate: int, error: ErrorCode
) -> None:
    """A candidate has an epoch above its log's, one that asks beforehand at least that. What is refused changes nothing."""
    world = STATES[state]()
    before, stored = world.seen, world.stored
    told = world.vote(candidate, epoch, last, pre_vote=pre_vote)
    assert told.error == error
    if error:
        assert told == Told(error, EPOCH, before.leader_id)
        assert (world.seen, world.stored) == (before, stored)


@pytest.mark.parametrize("kind", ["BeginQuorumEpoch", "EndQuorumEpoch"])
@pytest.mark.parametrize(
    ("leader_id", "epoch", "error"),
    [(2, EPOCH - 1, FENCED), (-1, EPOCH - 1, FENCED), (-1, EPOCH, INVALID), (-1, EPOCH + 1, INVALID)],
)
def test_what_a_leader_says_of_itself(kind: str, leader_id: int, epoch: int, error: ErrorCode) -> None:
    world = unattached()
    request = REQUESTS[kind]()
    request.topics[0].partitions[0].leader_id = leader_id
    request.topics[0].partitions[0].leader_epoch = epoch
    assert refusal(world, request) == error
    assert world.seen == NodeState("Unattached", EPOCH)


# --- what is for the leader -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "last_epoch", "epoch", "max_wait_ms", "error"),
    [
        (-5, 0, EPOCH, 0, INVALID),
        (0, -1, EPOCH, 0, INVALID),
        (0, EPOCH + 1, EPOCH, 0, INVALID),
        (0, 0, EPOCH, -1, INVALID),
        (-5, 0, EPOCH - 1, 0, INVALID),
        (0, EPOCH, EPOCH - 1, 0, INVALID),
        (0, 0, EPOCH - 1, 0, FENCED),
        (0, 0, EPOCH + 1, 0, UNKNOWN_EPOCH),
        (0, EPOCH + 1, EPOCH + 1, 0, UNKNOWN_EPOCH),
        (0, 0, EPOCH, 0, ErrorCode.NONE),
    ],
)
@pytest.mark.parametrize("state", STATES)
def test_what_a_fetch_says(
    state: str, offset: int, last_epoch: int, epoch: int, max_wait_ms: int, error: ErrorCode
) -> None:
    """Malformed ones are refused first, whoever leads."""
    world = STATES[state]()
    leader_id = world.seen.leader_id
    if not error and state != "leader":
        error = NOT_LEADER
    told = world.fetch(2, offset, last_epoch, epoch=epoch, max_wait_ms=max_wait_ms)
    assert (told.error, told.epoch, told.leader_id) == (error, EPOCH, leader_id)
    if error:
        assert told == Fetched(error, EPOCH, leader_id)


@pytest.mark.parametrize(
    ("kind", "state", "epoch", "error"),
    [
        (kind, state, epoch, error)
        for state, epoch, error in [
            ("leader", EPOCH - 1, FENCED),
            ("leader", EPOCH + 1, UNKNOWN_EPOCH),
            ("follower", EPOCH - 1, FENCED),
            ("follower", EPOCH, NOT_LEADER),
            ("follower", EPOCH + 1, UNKNOWN_EPOCH),
            ("unattached", EPOCH, NOT_LEADER),
            ("resigned", EPOCH, NOT_LEADER),
        ]
        for kind in LEADER_ONLY
        if epoch == EPOCH or kind not in ("AddRaftVoter", "RemoveRaftVoter")  # they name no epoch
    ],
)
def test_what_only_a_leader_of_the_epoch_answers(kind: str, state: str, epoch: int, error: ErrorCode) -> None:
    """Unlike a Vote, these do not raise the epoch of the node."""
    world = STATES[state]()
    before = world.seen
    request = REQUESTS[kind]()
    if hasattr(request, "current_leader_epoch"):
        request.current_leader_epoch = epoch
    elif kind in ("Fetch", "FetchSnapshot"):
        request.topics[0].partitions[0].current_leader_epoch = epoch
    assert refusal(world, request) == error
    assert world.seen == before


@pytest.mark.parametrize("kind", LEADER_ONLY)
def test_a_leader_that_shuts_down_has_resigned(kind: str) -> None:
    assert refusal(stopping(), REQUESTS[kind]()) == NOT_LEADER


@pytest.mark.parametrize("kind", [kind for kind in REQUESTS if kind not in ("AddRaftVoter", "RemoveRaftVoter")])
def test_each_response_says_who_leads_and_where(kind: str) -> None:
    """AddRaftVoter and RemoveRaftVoter have no place for it."""
    world = follower()
    response = world.response(world.ask(REQUESTS[kind]()))
    if kind == "UpdateRaftVoter":
        told = response.current_leader
        assert (told.leader_id, told.leader_epoch, told.host, told.port) == (2, EPOCH, *endpoint_of(2)[1:])
        return
    partition = (response.responses if kind == "Fetch" else response.topics)[0].partitions[0]
    told = getattr(partition, "current_leader", partition)
    assert (told.leader_id, told.leader_epoch) == (2, EPOCH)
    assert [(each.node_id, each.host, each.port) for each in response.node_endpoints] == [(2, *endpoint_of(2)[1:])]


def test_a_response_names_no_endpoint_of_an_unknown_leader() -> None:
    world = unattached()
    response: vote.VoteResponse = world.response(world.ask(REQUESTS["Vote"]()))
    assert response.topics[0].partitions[0].leader_id == -1
    assert not response.node_endpoints


# --- changes of the voters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter"])
@pytest.mark.parametrize(
    "key",
    [ReplicaKey(-1, key_of(2).directory_id), ReplicaKey(2), ReplicaKey(-1)],
    ids=["no id", "no directory", "neither"],
)
def test_a_voter_has_an_id_and_a_directory(kind: str, key: ReplicaKey) -> None:
    request = REQUESTS[kind]()
    request.voter_id, request.voter_directory_id = key
    assert refusal(leader(), request) == INVALID


@pytest.mark.parametrize("kind", ["AddRaftVoter", "UpdateRaftVoter"])
@pytest.mark.parametrize("listeners", ["none", "another"])
def test_a_voter_is_reached_by_the_listener_of_the_quorum(kind: str, listeners: str) -> None:
    request = REQUESTS[kind]()
    if listeners == "none":
        request.listeners = []
    else:
        request.listeners[0].name = "OTHER"
    assert refusal(leader(), request) == INVALID


@pytest.mark.parametrize(
    "versions", [(-1, 1), (0, -1), (1, 0), (0, 0), (2, 3)], ids=["low", "negative", "upside down", "too old", "too new"]
)
def test_a_voter_supports_the_level_of_kraft_version(versions: tuple[int, int]) -> None:
    request = REQUESTS["UpdateRaftVoter"]()
    feature = request.kraft_version_feature
    feature.min_supported_version, feature.max_supported_version = versions
    assert refusal(leader(), request) == INVALID
