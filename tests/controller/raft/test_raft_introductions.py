"""Nodes that tell the leader of a quorum who they are, and controllers that add themselves to its voters (KIP-853, KIP-1186)."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.raft import messages
from ottla.controller.raft.settings import RaftTimes
from ottla.controller.raft.voter_set import ListenerEndpoint, ReplicaKey
from ottla.tests.controller.raft.helpers.node_world import NodeState, NodeWorld
from ottla.tests.controller.raft.helpers.quorum_parts import (
    FETCH_MS,
    OWN,
    REQUEST_MS,
    control_of,
    voters_of,
)
from ottla.tests.simulation.raft.machine import CLUSTER_ID, endpoint_of, key_of
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.control_records import KRaftVersionRecord
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterRequest

NONE, TIMED_OUT = ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT
EPOCH = 4
NEW = 4
OTHER_DIRECTORY = b"another disk 456"
ELSEWHERE = ListenerEndpoint("OTHER", "elsewhere", 8990)
LEVEL_1 = KRaftVersionRecord(k_raft_version=1)


# --- introducing oneself ----------------------------------------------------------------------------------------------


def fetching(world: NodeWorld, duration_ms: float, every_ms: float = 500) -> None:
    """Time passes, and the leader answers each fetch at its end."""
    for _ in range(int(duration_ms // every_ms)):
        world.sleep(every_ms)
        for sent in world.all_sent(FetchRequest):
            world.answer_fetch(sent)


def follower(own: int = OWN, **options: Any) -> NodeWorld:
    return NodeWorld(**{"own": key_of(own), "epoch": EPOCH, "leader": 2, "times": RaftTimes(), **options})


def answer_update(
    world: NodeWorld, sent: Any, error: ErrorCode = NONE, leader: int = 2, epoch: int | None = None
) -> None:
    world.answer(sent, messages.update_voter_response(world.leader_of(leader, epoch), error))


def test_a_voter_with_other_addresses_tells_the_leader() -> None:
    """After a fetch timeout, and again while the voter set says otherwise."""
    where = (endpoint_of(OWN), ELSEWHERE)
    world = follower(endpoints=where)
    for _ in range(2):
        fetching(world, FETCH_MS - 500)
        assert not world.all_sent(UpdateRaftVoterRequest)
        fetching(world, 500)
        sent = world.sent(UpdateRaftVoterRequest)
        request: Any = sent.request
        assert sent.peer.node_id == 2
        assert (request.cluster_id, request.current_leader_epoch) == (CLUSTER_ID, EPOCH)
        assert (request.voter_id, request.voter_directory_id) == key_of(OWN)
        assert [(each.name, each.host, each.port) for each in request.listeners] == list(where)
        feature = request.kraft_version_feature
        assert (feature.min_supported_version, feature.max_supported_version) == (0, 1)
        answer_update(world, sent)


@pytest.mark.parametrize("own", [OWN, NEW], ids=["voter", "observer"])
def test_who_is_known_rightly_says_nothing(own: int) -> None:
    world = follower(own)
    fetching(world, 4 * FETCH_MS)
    assert not world.all_sent(UpdateRaftVoterRequest)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)


@pytest.mark.parametrize("error", [NONE, ErrorCode.UNSUPPORTED_VERSION])
def test_a_static_voter_tells_each_leader_once(error: ErrorCode) -> None:
    """So that the voters can be written with the first level of kraft.version; an older leader may not know the request."""
    world = follower(kraft_version=0)
    fetching(world, FETCH_MS)
    answer_update(world, world.sent(UpdateRaftVoterRequest), error)
    fetching(world, 5 * FETCH_MS)
    assert not world.all_sent(UpdateRaftVoterRequest)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    world.begin(3, EPOCH + 1)
    fetching(world, FETCH_MS)
    sent = world.sent(UpdateRaftVoterRequest)
    assert sent.peer.node_id == 3
    assert sent.request.current_leader_epoch == EPOCH + 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [TIMED_OUT, ErrorCode.VOTER_NOT_FOUND, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_an_update_that_fails_is_made_again(error: ErrorCode) -> None:
    world = follower(kraft_version=0)
    fetching(world, FETCH_MS)
    answer_update(world, world.sent(UpdateRaftVoterRequest), error)
    server = world.fetch_sent
    assert server.peer.node_id < 0
    world.answer_fetch(server, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=2)
    fetching(world, FETCH_MS)
    assert world.all_sent(UpdateRaftVoterRequest)


def test_an_update_waits_for_the_fetch_in_flight() -> None:
    world = follower(
        endpoints=(endpoint_of(OWN), ELSEWHERE), times=RaftTimes(fetch_timeout_ms=2000, request_timeout_ms=5000)
    )
    fetching(world, FETCH_MS - 500)
    sent = world.fetch_sent
    world.sleep(1000)
    assert not world.all_sent()
    world.answer_fetch(sent)
    assert world.receivers(UpdateRaftVoterRequest) == [2]


@pytest.mark.parametrize(
    ("error", "epoch", "leader", "expected"),
    [
        (NONE, EPOCH + 1, 3, NodeState("RaftFollower", EPOCH + 1, 3)),
        (ErrorCode.FENCED_LEADER_EPOCH, EPOCH + 1, 3, NodeState("RaftFollower", EPOCH + 1, 3)),
        (ErrorCode.FENCED_LEADER_EPOCH, EPOCH + 1, -1, NodeState("Unattached", EPOCH + 1)),
        (NONE, EPOCH - 1, 3, NodeState("RaftFollower", EPOCH, 2)),
    ],
)
def test_the_response_to_an_update_tells_of_the_leader(
    error: ErrorCode, epoch: int, leader: int, expected: NodeState
) -> None:
    world = follower(kraft_version=0)
    fetching(world, FETCH_MS)
    answer_update(world, world.sent(UpdateRaftVoterRequest), error, leader, epoch)
    assert world.seen == expected
    if expected.epoch > EPOCH and leader > 0:
        assert world.fetch_sent.peer.node_id == 3


def test_an_update_begins_the_fetch_timeout_anew() -> None:
    world = follower(kraft_version=0)
    fetching(world, FETCH_MS)
    sent = world.sent(UpdateRaftVoterRequest)
    world.sleep(FETCH_MS - 501)
    answer_update(world, sent)
    world.sleep(FETCH_MS - 1)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    world.sleep(1)
    assert world.seen.state == "Prospective"


# --- joining by oneself -----------------------------------------------------------------------------------------------

JOINING = RaftTimes(auto_join=True)


def test_a_controller_adds_itself() -> None:
    """It does not wait for the commit, which needs its own fetches."""
    world = follower(NEW, times=JOINING)
    fetching(world, FETCH_MS - 500)
    assert not world.all_sent(AddRaftVoterRequest)
    fetching(world, 500)
    sent = world.sent(AddRaftVoterRequest)
    request: Any = sent.request
    assert sent.peer.node_id == 2
    assert (request.cluster_id, request.voter_id, request.voter_directory_id) == (CLUSTER_ID, *key_of(NEW))
    assert [(each.name, each.host, each.port) for each in request.listeners] == [endpoint_of(NEW)]
    assert (request.ack_when_committed, request.timeout_ms) == (False, REQUEST_MS)
    world.answer(sent, AddRaftVoterResponse())
    fetch = world.fetch_sent
    assert fetch.peer.node_id == 2
    world.answer_fetch(fetch, control_of(0, EPOCH, LEVEL_1, voters_of(1, 2, 3, NEW).to_record()))
    assert world.quorum.is_voter
    fetching(world, 2 * FETCH_MS)
    assert not world.all_sent(AddRaftVoterRequest)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)


@pytest.mark.parametrize(
    "error", [NONE, TIMED_OUT, ErrorCode.DUPLICATE_VOTER, ErrorCode.UNKNOWN_SERVER_ERROR, None], ids=str
)
def test_a_controller_tries_again_while_it_is_no_voter(error: ErrorCode | None) -> None:
    """None is no response at all."""
    world = follower(NEW, times=JOINING)
    fetching(world, FETCH_MS)
    sent = world.sent(AddRaftVoterRequest)
    if error is None:
        world.fail(sent)
    else:
        world.answer(sent, AddRaftVoterResponse(error_code=error))
    fetching(world, FETCH_MS - 500)
    assert not world.all_sent(AddRaftVoterRequest)
    fetching(world, 1000)
    assert world.receivers(AddRaftVoterRequest) == [2]


@pytest.mark.parametrize("error", [NONE, TIMED_OUT, ErrorCode.DUPLICATE_VOTER])
def test_a_controller_waits_from_the_response_on(error: ErrorCode) -> None:
    """The leader has done what it can, or cannot now; it is not pressed."""
    world = follower(NEW, times=JOINING)
    fetching(world, FETCH_MS)
    sent = world.sent(AddRaftVoterRequest)
    world.sleep(1000)
    world.answer(sent, AddRaftVoterResponse(error_code=error))
    fetching(world, FETCH_MS - 500)
    assert not world.all_sent(AddRaftVoterRequest)
    fetching(world, 500)
    assert world.receivers(AddRaftVoterRequest) == [2]


def test_a_controller_with_a_new_disk_removes_its_former_self_first() -> None:
    world = NodeWorld(own=ReplicaKey(3, OTHER_DIRECTORY), epoch=EPOCH, leader=2, times=JOINING)
    fetching(world, FETCH_MS)
    sent = world.sent(RemoveRaftVoterRequest)
    request: Any = sent.request
    assert sent.peer.node_id == 2
    assert (request.cluster_id, request.voter_id, request.voter_directory_id) == (CLUSTER_ID, *key_of(3))
    world.answer(sent, RemoveRaftVoterResponse())
    fetching(world, FETCH_MS)
    sent = world.sent(RemoveRaftVoterRequest)
    world.answer(sent, RemoveRaftVoterResponse())
    world.answer_fetch(world.fetch_sent, control_of(0, EPOCH, LEVEL_1, voters_of(1, 2).to_record()))
    fetching(world, FETCH_MS)
    request = world.sent(AddRaftVoterRequest).request
    assert (request.voter_id, request.voter_directory_id) == (3, OTHER_DIRECTORY)


@pytest.mark.parametrize(
    "options",
    [
        {"times": RaftTimes()},
        {"times": JOINING, "may_vote": False},
        {"times": JOINING, "kraft_version": 0},
    ],
    ids=["not wanted", "a broker", "static voters"],
)
def test_who_does_not_add_itself(options: dict[str, Any]) -> None:
    world = follower(NEW, **options)
    fetching(world, 4 * FETCH_MS)
    assert not world.all_sent(AddRaftVoterRequest)
    assert world.node.deadline_ms > world.now


def test_who_shuts_down_does_not_add_itself() -> None:
    world = follower(NEW, times=JOINING)
    fetching(world, FETCH_MS - 500)
    world.shut_down()
    world.sleep(500)
    assert not world.all_sent(AddRaftVoterRequest)
