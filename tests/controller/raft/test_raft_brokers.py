"""A broker as a node of a quorum: it has no vote, follows as others do, and outlives what would stop a controller."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.raft import messages
from ottla.controller.raft.effects import DropSnapshot, FinishSnapshot, PeerRefused, Truncate
from ottla.controller.raft.election_file import NOBODY
from ottla.controller.raft.messages import KnownLeader
from ottla.controller.raft.settings import RaftTimes
from ottla.log.metadata_snapshots import MetadataSnapshotId
from ottla.tests.controller.raft.helpers.node_world import NodeState, NodeWorld
from ottla.tests.controller.raft.helpers.quorum_parts import (
    BOOTSTRAP,
    OWN,
    address_of_node,
    batch_of,
    snapshot_of,
    voters_of,
)
from ottla.tests.simulation.raft.machine import key_of
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest
from ottla.wire.messages.vote import VoteRequest

BROKER = 4
EPOCH = 5
REFUSAL_MS = 1000
PATIENT = RaftTimes(fetch_timeout_ms=20_000, request_timeout_ms=500)
LATER = MetadataSnapshotId(100, 4)


def broker(**options: Any) -> NodeWorld:
    """One that follows node 2."""
    return NodeWorld(**{"own": key_of(BROKER), "may_vote": False, "epoch": EPOCH, "leader": 2, **options})


def unattached(**options: Any) -> NodeWorld:
    return broker(leader=NOBODY, **options)


def refused(world: NodeWorld) -> tuple[int, ErrorCode]:
    """The only refusal so far."""
    (refusal,) = world.news(PeerRefused)
    world.forget()
    return refusal.peer.node_id, refusal.code


def asked_again_after(world: NodeWorld, peer: int = 2) -> float:
    """How long it takes until a peer is asked; all others respond that it leads."""
    began = world.now
    while True:
        for sent in world.all_sent():
            if sent.peer.node_id == peer:
                return world.now - began
            world.answer_fetch(sent, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=2)
        world.sleep(5)


# --- what would stop a controller -------------------------------------------------------------------------------------

REFUSALS: dict[str, tuple[ErrorCode, Any]] = {
    "another cluster": (ErrorCode.INCONSISTENT_CLUSTER_ID, None),
    "no right": (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None),
    "malformed": (ErrorCode.INVALID_REQUEST, None),
    "malformed for the partition": (ErrorCode.INVALID_REQUEST, {"error": ErrorCode.INVALID_REQUEST}),
    "a disk that fails": (ErrorCode.KAFKA_STORAGE_ERROR, {"error": ErrorCode.KAFKA_STORAGE_ERROR}),
    "another leader in the epoch": (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        {"error": ErrorCode.FENCED_LEADER_EPOCH, "leader": 3},
    ),
    "less than is committed": (ErrorCode.UNKNOWN_SERVER_ERROR, {"diverging": (5, 1)}),
    "a damaged batch": (ErrorCode.CORRUPT_MESSAGE, {"records": batch_of(2, 5)[:-1] + b"?"}),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_it_can_do_nothing_with_is_told_and_asked_for_again_slowly(what: str) -> None:
    """It keeps its log, its leader, and what it knows to be committed."""
    code, fields = REFUSALS[what]
    world = broker(log=[(5, 2)], bootstrap=(3,))
    world.answer_fetch(world.fetch_sent, high_watermark=2)
    sent = world.fetch_sent
    if fields is None:
        world.answer(sent, FetchResponse(error_code=code))
    else:
        world.answer_fetch(sent, **fields)
    assert (world.seen, world.end_offset, world.high_watermark) == (NodeState("RaftFollower", EPOCH, 2), 2, 2)
    assert not world.news(Truncate)
    assert [(each.peer.node_id, each.code) for each in world.news(PeerRefused)] == [(2, code)]
    assert REFUSAL_MS <= asked_again_after(world) <= REFUSAL_MS + 50


def test_a_controller_that_does_not_know_the_request_is_asked_again_slowly() -> None:
    world = broker(bootstrap=(3,))
    world.fail(world.fetch_sent, ErrorCode.UNSUPPORTED_VERSION)
    assert REFUSAL_MS <= asked_again_after(world) <= REFUSAL_MS + 50


def test_a_controller_that_stops_is_no_refusal() -> None:
    world = broker(bootstrap=(3,))
    world.answer(world.fetch_sent, FetchResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE))
    assert not world.news(PeerRefused)
    assert asked_again_after(world) < 50


@pytest.mark.parametrize("what", ["another place", "another snapshot", "below what is committed"])
def test_a_snapshot_that_is_not_the_one_that_is_due_is_begun_anew(what: str) -> None:
    world = broker(log=[(4, 200)] if what == "below what is committed" else [], bootstrap=(3,))
    if world.end_offset:
        world.answer_fetch(world.fetch_sent, high_watermark=150)
    world.answer_fetch(world.fetch_sent, snapshot=LATER)
    sent: Any = world.sent(FetchSnapshotRequest)
    data = snapshot_of(LATER, voters_of(1, 2, 3))
    other = MetadataSnapshotId(101, 4) if what == "another snapshot" else LATER
    world.answer_snapshot(sent, data, snapshot=other, size=len(data), position=3 if what == "another place" else 0)
    assert world.news(DropSnapshot) == [DropSnapshot(LATER)]
    assert not world.news(FinishSnapshot)
    assert refused(world) == (2, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert asked_again_after(world) >= REFUSAL_MS
    assert world.quorum.log.start_offset == 0


def test_a_snapshot_that_one_leader_has_begun_another_does_not_go_on_with() -> None:
    world = broker(bootstrap=(3,))
    world.answer_fetch(world.fetch_sent, snapshot=LATER)
    data = snapshot_of(LATER, voters_of(1, 2, 3))
    world.answer_snapshot(world.sent(FetchSnapshotRequest), data[:50], snapshot=LATER, size=len(data))
    world.answer_snapshot(
        world.sent(FetchSnapshotRequest), data[50:], snapshot=LATER, size=len(data), position=50, epoch=6, leader=3
    )
    assert world.news(DropSnapshot) == [DropSnapshot(LATER)]
    assert world.fetch_sent.peer.node_id == 3


# --- what it never does -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leader", [2, NOBODY], ids=["follower", "unattached"])
@pytest.mark.parametrize("kraft_version", [0, 1])
def test_it_does_not_vote_whatever_the_voters_are(kraft_version: int, leader: int) -> None:
    """A controller, in another process, may have its id; without a level of ``kraft.version`` only ids are known."""
    world = broker(own=key_of(OWN), kraft_version=kraft_version, leader=leader)
    world.sleep(30_000)
    assert world.seen == NodeState("RaftFollower" if leader == 2 else "Unattached", EPOCH, leader)
    assert not world.all_sent(VoteRequest)


def test_it_does_not_vote_though_it_was_a_voter_before_the_newest_change() -> None:
    """Its folder may be that of a node that was a controller, too."""
    world = unattached(own=key_of(OWN), log=[(5, voters_of(2, 3).to_record())])
    assert world.quorum.voters.ids == (2, 3)
    world.sleep(30_000)
    assert world.seen == NodeState("Unattached", EPOCH)
    assert not world.all_sent(VoteRequest)


def test_it_follows_a_controller_that_has_its_id() -> None:
    world = unattached(own=key_of(OWN), bootstrap=(1,))
    world.answer_fetch(world.fetch_sent, batch_of(0, 5, 2), high_watermark=2, leader=OWN)
    assert (world.seen, world.end_offset) == (NodeState("RaftFollower", EPOCH, OWN), 2)
    world.answer_fetch(world.fetch_sent, batch_of(2, 5))
    assert world.end_offset == 3


def test_it_has_nothing_to_resign_from() -> None:
    """Its folder may be that of a node that was a controller, too. The epoch is the quorum's, not the next one."""
    world = broker(own=key_of(BROKER), leader=BROKER)
    world.sleep(10_000)
    assert world.seen == NodeState("Unattached", EPOCH)
    assert world.stored.leader_id == NOBODY


# --- whom it asks -----------------------------------------------------------------------------------------------------


def test_a_leader_that_does_not_answer_is_left_alone_as_long_as_it_was_waited_for() -> None:
    world = broker(times=PATIENT, bootstrap=(3,))
    assert world.receivers(FetchRequest) == [2]
    world.sleep(PATIENT.request_timeout_ms)
    assert asked_again_after(world) == PATIENT.request_timeout_ms


def test_a_leader_that_did_not_answer_is_not_asked_when_it_leads_no_more() -> None:
    world = broker(times=PATIENT, bootstrap=(2, 3))
    world.forget()
    world.sleep(PATIENT.request_timeout_ms)
    world.answer_fetch(world.fetch_sent, error=ErrorCode.FENCED_LEADER_EPOCH, epoch=6, leader=NOBODY)
    assert world.seen == NodeState("Unattached", 6)
    for _ in range(10):
        sent = world.fetch_sent
        assert sent.peer.address == address_of_node(3)
        world.answer_fetch(sent, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=NOBODY)
        world.sleep(PATIENT.retry_backoff_ms)


def test_where_the_only_bootstrap_server_has_led_the_voters_are_asked() -> None:
    """Kafka's broker would ask it alone."""
    world = broker(times=PATIENT, bootstrap=(2,))
    world.forget()
    world.sleep(PATIENT.request_timeout_ms)
    sent = world.fetch_sent
    assert sent.peer == (1, address_of_node(1))
    world.answer_fetch(sent, error=ErrorCode.FENCED_LEADER_EPOCH, epoch=6, leader=3)
    assert world.seen == NodeState("RaftFollower", 6, 3)
    assert world.fetch_sent.peer.node_id == 3


def test_while_it_knows_nobody_it_asks_the_bootstrap_servers_and_no_voters() -> None:
    world = unattached(bootstrap=(3,))
    for _ in range(5):
        assert world.receivers(FetchRequest) == [BOOTSTRAP]
        world.sleep(world.times.request_timeout_ms)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, KnownLeader(4, 3, address_of_node(3))),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, KnownLeader(4, 3, address_of_node(3))),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, KnownLeader(EPOCH, NOBODY, None)),
        (ErrorCode.NONE, KnownLeader(EPOCH, 9, None)),
    ],
    ids=["an older epoch", "an epoch that is unknown there", "nobody leads", "a leader that cannot be reached"],
)
def test_a_response_that_does_not_help_is_not_followed_by_the_next_request_at_once(
    error: ErrorCode, told: KnownLeader
) -> None:
    """Nothing else would end that: a broker stands for no election."""
    world = unattached(bootstrap=(3,))
    world.answer(world.fetch_sent, messages.fetch_response(told, error, log_start_offset=0, high_watermark=0))
    assert world.seen == NodeState("Unattached", EPOCH)
    assert not world.all_sent()
    world.sleep(world.times.retry_backoff_ms)
    assert world.receivers(FetchRequest) == [BOOTSTRAP]


# --- what is committed ------------------------------------------------------------------------------------------------


def test_it_knows_how_far_the_leader_is_before_it_has_come_there_itself() -> None:
    world = broker()
    assert world.quorum.leader_high_watermark is None
    world.answer_fetch(world.fetch_sent, batch_of(0, 5, 2), high_watermark=-1)
    assert world.quorum.leader_high_watermark is None
    for told, known in ((9, 9), (7, 9), (-1, 9)):
        world.answer_fetch(world.fetch_sent, high_watermark=told)
        assert (world.quorum.leader_high_watermark, world.high_watermark) == (known, 2)


def test_who_names_a_snapshot_says_how_far_it_is() -> None:
    world = broker()
    world.answer_fetch(world.fetch_sent, snapshot=LATER, high_watermark=130)
    data = snapshot_of(LATER, voters_of(1, 2, 3))
    world.answer_snapshot(world.sent(FetchSnapshotRequest), data, snapshot=LATER, size=len(data))
    assert (world.quorum.leader_high_watermark, world.high_watermark) == (130, 100)
