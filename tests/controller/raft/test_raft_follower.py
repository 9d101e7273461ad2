"""The fetch loop of a follower or an observer: whom it asks and how often, what it appends and cuts, and what errors do to it."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from crc32c import crc32c

from ottla.base.errors import ErrorCode
from ottla.controller.raft.effects import AppendFetched, Flush, HighWatermarkAdvanced, LeaderChanged, Truncate
from ottla.controller.raft.election_file import NOBODY
from ottla.controller.raft.settings import RaftTimes
from ottla.controller.raft.voter_set import ListenerEndpoint, ReplicaKey
from ottla.log.metadata_snapshots import MetadataSnapshotId
from ottla.tests.controller.raft.helpers.node_world import NodeState, NodeWorld, Told
from ottla.tests.controller.raft.helpers.quorum_parts import (
    BOOTSTRAP,
    FETCH_MS,
    OWN,
    REQUEST_MS,
    address_of_node,
    batch_of,
)
from ottla.tests.simulation.raft.machine import CLUSTER_ID, LISTENER, endpoint_of, key_of
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.vote import VoteRequest

LEVELS = pytest.mark.parametrize("kraft_version", [0, 1])
EPOCH = 5
PATIENT = RaftTimes(fetch_timeout_ms=20_000, request_timeout_ms=500)
"""Many requests are given up before an election."""
ROLES = pytest.mark.parametrize("own", [OWN, 4], ids=["voter", "observer"])


def follower(own: int = OWN, **options: Any) -> NodeWorld:
    return NodeWorld(**{"own": key_of(own), "epoch": EPOCH, "leader": 2, **options})


# --- the request ------------------------------------------------------------------------------------------------------


@LEVELS
@pytest.mark.parametrize(
    ("log", "end"), [([], (0, 0)), ([(3, 1)], (3, 1)), ([(3, 2), (5, 2)], (5, 4))], ids=["empty", "old", "new"]
)
@ROLES
def test_a_fetch_says_where_the_log_ends(
    log: list[tuple[int, int]], end: tuple[int, int], own: int, kraft_version: int
) -> None:
    world = follower(own, log=log, kraft_version=kraft_version)
    sent = world.fetch_sent
    request: Any = sent.request
    asked = request.topics[0].partitions[0]
    assert sent.peer == (2, address_of_node(2))
    assert (request.cluster_id, request.replica_state.replica_id, asked.replica_directory_id) == (
        CLUSTER_ID,
        *key_of(own),
    )
    assert (asked.current_leader_epoch, asked.last_fetched_epoch, asked.fetch_offset) == (EPOCH, *end)
    assert asked.high_watermark == -1


def test_a_fetch_says_what_is_known_to_be_committed() -> None:
    world = follower(log=[(5, 6)])
    world.answer_fetch(world.fetch_sent, high_watermark=6)
    request: Any = world.fetch_sent.request
    assert request.topics[0].partitions[0].high_watermark == 6


@pytest.mark.parametrize(
    ("times", "max_wait_ms"),
    [(RaftTimes(), 500), (RaftTimes(fetch_timeout_ms=900), 300)],
    ids=["as Kafka's", "a third of a short fetch timeout"],
)
def test_a_fetch_has_the_sizes_and_times_of_the_settings(times: RaftTimes, max_wait_ms: int) -> None:
    world = follower(times=times._replace(fetch_max_bytes=1024))
    request: Any = world.fetch_sent.request
    assert (request.max_bytes, request.max_wait_ms) == (1024, max_wait_ms)


@ROLES
def test_one_fetch_is_in_flight(own: int) -> None:
    world = follower(own)
    first = world.fetch_sent
    world.sleep(REQUEST_MS - 1)
    assert not world.all_sent()
    world.answer_fetch(first)
    assert world.receivers(FetchRequest) == [2]


# --- the response -----------------------------------------------------------------------------------------------------


@LEVELS
@pytest.mark.parametrize(
    ("own", "may_vote", "flushes"),
    [(OWN, True, True), (4, True, True), (4, False, False)],
    ids=["voter", "controller that is no voter", "broker"],
)
def test_records_are_appended_and_flushed_before_the_next_fetch(
    own: int, may_vote: bool, flushes: bool, kraft_version: int
) -> None:
    """A fetch at an offset says that all below is on stable storage, except that of a broker."""
    world = follower(own, may_vote=may_vote, kraft_version=kraft_version)
    world.holds_flushes = True
    world.answer_fetch(world.fetch_sent, batch_of(0, 3, 2))
    assert (world.end_offset, world.batches) == (2, [(0, 3)])
    assert bool(world.news(Flush)) == flushes
    assert len(world.all_sent(FetchRequest)) == (0 if flushes else 1)
    if flushes:
        world.finish_flush()
        request: Any = world.fetch_sent.request
        assert request.topics[0].partitions[0].fetch_offset == 2
        assert world.flushed_offset == 2


@ROLES
def test_an_empty_response_leads_to_the_next_fetch(own: int) -> None:
    world = follower(own)
    world.answer_fetch(world.fetch_sent)
    assert not world.news(AppendFetched)
    assert world.receivers(FetchRequest) == [2]
    assert world.high_watermark == 0


@pytest.mark.parametrize(
    ("told", "expected"),
    [([-1], None), ([0], 0), ([1], 1), ([2], 2), ([9], 2), ([2, 1], 2), ([1, 2], 2)],
    ids=str,
)
def test_the_high_watermark_of_a_follower(told: list[int], expected: int | None) -> None:
    """As far as its log reaches, and never back."""
    world = follower(log=[(5, 2)])
    for high_watermark in told:
        world.answer_fetch(world.fetch_sent, high_watermark=high_watermark)
    assert world.high_watermark == expected


def test_the_controller_of_a_follower_is_told_what_is_committed() -> None:
    world = follower()
    world.answer_fetch(world.fetch_sent, batch_of(0, 5, 2), high_watermark=1)
    world.answer_fetch(world.fetch_sent, high_watermark=2)
    world.answer_fetch(world.fetch_sent, high_watermark=2)
    assert [each.high_watermark for each in world.news(HighWatermarkAdvanced)] == [1, 2]


def changed(position: int, layout: str, value: int) -> bytes:
    """A batch with another field in its header, and the CRC that fits to it."""
    data = bytearray(batch_of(0, 5, 2))
    struct.pack_into(layout, data, position, value)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


@pytest.mark.parametrize(
    ("records", "end"),
    [
        (batch_of(0, 3, 2) + batch_of(2, 5, 3), 5),
        (batch_of(0, 5, 10) + batch_of(10, 6, 10), 10),
        (batch_of(0, 6, 10), 0),
        (batch_of(0, 5, 2) + batch_of(2, 4, 2), 2),
        (batch_of(0, 5, 2) + batch_of(3, 5, 2), 2),
        (batch_of(1, 5, 2), 0),
        (batch_of(0, 5, 2)[:-1], 0),
        (batch_of(0, 5, 2) + batch_of(2, 5, 2)[:-1], 2),
        (batch_of(0, 5, 2) + batch_of(2, 5, 2)[:70], 2),
        (batch_of(0, 5, 2)[:-1] + b"?", 0),
        (batch_of(0, 5, 2) + batch_of(2, 5, 2)[:-1] + b"?", 2),
        (b"?" * 100, 0),
        (b"?", 0),
        (bytes(200), 0),
        (changed(23, ">i", -1), 0),
        (changed(16, ">b", 1), 0),
        (changed(16, ">b", 9), 0),
        (changed(8, ">i", -1), 0),
        (changed(8, ">i", 0), 0),
        (changed(8, ">i", 1 << 30), 0),
        (changed(0, ">q", -1), 0),
    ],
    ids=[
        "two batches",
        "the second of a later epoch",
        "of a later epoch",
        "the second of an earlier epoch",
        "a gap",
        "not at the end of the log",
        "cut off",
        "the second cut off",
        "the second barely begun",
        "damaged",
        "the second damaged",
        "no batch",
        "a byte",
        "zeros",
        "without records",
        "of an old format",
        "of an unknown format",
        "of negative size",
        "of no size",
        "of a size that nothing has",
        "at a negative offset",
    ],
)
def test_a_follower_appends_as_far_as_batches_are_whole_and_of_its_epoch(records: bytes, end: int) -> None:
    """KAFKA-18723. It goes on fetching from there; the leader is not to blame for a torn end."""
    world = follower()
    world.answer_fetch(world.fetch_sent, records)
    assert world.end_offset == end
    request: Any = world.fetch_sent.request
    assert request.topics[0].partitions[0].fetch_offset == end


@pytest.mark.parametrize("seed", range(100))
def test_whatever_a_leader_sends(seed: int) -> None:
    """Bytes by chance, or a batch with a few bytes changed by chance: nothing of it is appended."""
    chance = random.Random(seed)
    data = bytearray(batch_of(0, 5, 2) if seed % 2 else chance.randbytes(chance.randrange(1, 300)))
    for _ in range(3 if seed % 2 else 0):
        at = chance.randrange(16, len(data))
        data[at] ^= chance.randrange(1, 256)
    world = follower()
    world.answer_fetch(world.fetch_sent, bytes(data))
    assert world.end_offset == 0
    assert world.receivers(FetchRequest) == [2]


# --- divergence -------------------------------------------------------------------------------------------------------


@LEVELS
@pytest.mark.parametrize(
    ("diverging", "end"),
    [
        ((3, 2), 2),
        ((3, 3), 3),
        ((4, 3), 3),
        ((2, 2), 2),
        ((1, 9), 2),
        ((1, 1), 1),
        ((5, 5), 5),
        ((5, 99), 6),
        ((0, 0), 0),
        ((3, 0), 0),
    ],
    ids=str,
)
def test_a_follower_cuts_its_log_where_the_leaders_differs(
    diverging: tuple[int, int], end: int, kraft_version: int
) -> None:
    """The log has epoch 1 to offset 2, one record in each batch, epoch 3 to offset 3 and epoch 5 to offset 6."""
    world = follower(log=[(1, 1), (1, 1), (3, 1), (5, 1), (5, 1), (5, 1)], kraft_version=kraft_version)
    world.answer_fetch(world.fetch_sent, diverging=diverging)
    assert world.end_offset == end
    assert bool(world.news(Truncate)) == (end < 6)
    asked: Any = world.fetch_sent.request.topics[0].partitions[0]  # type: ignore[attr-defined]
    last_epoch = {0: 0, 1: 1, 2: 1, 3: 3}.get(end, 5)
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (end, last_epoch)


def test_what_is_committed_is_never_cut() -> None:
    world = follower(log=[(3, 1), (3, 1), (3, 1)])
    world.answer_fetch(world.fetch_sent, high_watermark=2)
    with pytest.raises(AssertionError):
        world.answer_fetch(world.fetch_sent, diverging=(3, 1))


def test_what_has_a_snapshot_is_never_cut() -> None:
    """After a restart it is all that is known to be committed."""
    world = follower(log=[(3, 1), (3, 1), (3, 1)], snapshots=[MetadataSnapshotId(2, 3)])
    with pytest.raises(AssertionError):
        world.answer_fetch(world.fetch_sent, diverging=(3, 1))


def test_other_records_take_the_place_of_those_cut_off() -> None:
    world = follower(log=[(3, 1), (3, 1)])
    world.answer_fetch(world.fetch_sent, diverging=(3, 1))
    world.answer_fetch(world.fetch_sent, batch_of(1, 5))
    assert world.batches == [(0, 3), (1, 5)]


# --- whom it asks -----------------------------------------------------------------------------------------------------


@LEVELS
@ROLES
def test_who_knows_no_leader_asks_a_bootstrap_server(own: int, kraft_version: int) -> None:
    world = NodeWorld(own=key_of(own), epoch=EPOCH, bootstrap=(3, 2), kraft_version=kraft_version)
    assert world.fetch_sent.peer == (BOOTSTRAP, address_of_node(3))


def test_without_bootstrap_servers_it_asks_the_static_voters() -> None:
    world = NodeWorld(own=key_of(4), kraft_version=0, voters=(1, 2, 3))
    assert world.fetch_sent.peer == (BOOTSTRAP, address_of_node(1))


def test_who_knows_no_voters_asks_a_bootstrap_server() -> None:
    world = NodeWorld(voters=(), epoch=3, bootstrap=(3,))
    sent = world.fetch_sent
    assert sent.peer.node_id == BOOTSTRAP
    world.answer_fetch(sent, error=ErrorCode.FENCED_LEADER_EPOCH, epoch=4, leader=3)
    assert world.seen == NodeState("RaftFollower", 4, 3)
    assert world.fetch_sent.peer.node_id == 3


@ROLES
@pytest.mark.parametrize(
    ("error", "epoch", "leader", "expected", "asked"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, 6, 2, NodeState("RaftFollower", 6, 2), 2),
        (ErrorCode.FENCED_LEADER_EPOCH, 6, NOBODY, NodeState("Unattached", 6), BOOTSTRAP),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 5, 2, NodeState("RaftFollower", 5, 2), 2),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 6, 2, NodeState("RaftFollower", 6, 2), 2),
        (ErrorCode.NONE, 5, 2, NodeState("RaftFollower", 5, 2), 2),
        (ErrorCode.NONE, 6, 2, NodeState("RaftFollower", 6, 2), 2),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, 4, 3, NodeState("Unattached", 5), BOOTSTRAP),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 4, 3, NodeState("Unattached", 5), BOOTSTRAP),
    ],
)
def test_what_a_bootstrap_server_says_of_the_leader(
    error: ErrorCode, epoch: int, leader: int, expected: NodeState, asked: int, own: int
) -> None:
    world = NodeWorld(own=key_of(own), epoch=EPOCH)
    world.answer_fetch(world.fetch_sent, error=error, epoch=epoch, leader=leader)
    assert world.seen == expected
    assert world.fetch_sent.peer.node_id == asked
    assert world.stored.epoch == expected.epoch


def test_the_first_fetch_may_bring_records_of_a_leader_that_was_not_known() -> None:
    world = NodeWorld(own=key_of(4), epoch=EPOCH)
    world.answer_fetch(world.fetch_sent, batch_of(0, 5, 2), high_watermark=2, leader=2)
    assert (world.seen, world.end_offset, world.high_watermark) == (NodeState("RaftFollower", EPOCH, 2), 2, 2)


def test_records_of_a_later_epoch_are_fetched_again() -> None:
    """The response is about the epoch that the node did not have when it asked."""
    world = NodeWorld(own=key_of(4), epoch=EPOCH)
    world.answer_fetch(world.fetch_sent, batch_of(0, 5, 2), epoch=6, leader=2)
    assert (world.seen, world.end_offset) == (NodeState("RaftFollower", 6, 2), 0)


def test_nobody_leads_says_the_bootstrap_server() -> None:
    """Another one is asked after a moment; the election timeout goes on."""
    world = NodeWorld()
    world.sleep(500)
    world.answer_fetch(world.fetch_sent, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=NOBODY)
    assert world.seen == NodeState("Unattached", 0)
    world.sleep(500)
    assert world.seen == NodeState("Prospective", 0)


@pytest.mark.parametrize("how", ["error", "failure", "top level"])
def test_a_bootstrap_server_that_fails_is_left_alone_for_a_moment(how: str) -> None:
    world = NodeWorld(own=key_of(4), bootstrap=(2, 3))
    sent = world.fetch_sent
    assert sent.peer == (-2, address_of_node(2))
    if how == "failure":
        world.fail(sent)
    elif how == "error":
        world.answer_fetch(sent, error=ErrorCode.UNKNOWN_SERVER_ERROR, leader=NOBODY)
    else:
        world.answer(sent, FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    sent = world.fetch_sent
    assert sent.peer == (-3, address_of_node(3))
    world.fail(sent)
    world.sleep(world.times.retry_backoff_ms - 1)
    assert not world.all_sent()
    world.sleep(1)
    assert world.receivers(FetchRequest) == [-2]


@pytest.mark.parametrize("chance", [0.0, 0.999], ids=["early", "late"])
@pytest.mark.parametrize(
    ("own", "voters", "turn"),
    [(1, (1, 2, 3), 0.0), (3, (1, 2, 3), 0.1), (5, (1, 2, 3, 4, 5), 0.2)],
    ids=["first", "last of three", "last of five"],
)
def test_a_leader_whose_process_is_gone_is_not_waited_for(
    own: int, voters: tuple[int, ...], turn: float, chance: float
) -> None:
    """Its connection ends, and then nothing listens at its address. Followers stand for election one after the other."""
    world = follower(own, voters=voters, bootstrap=(1 if own != 1 else 3,))
    world.answer_fetch(world.fetch_sent)
    world.chance.share = chance
    world.fail(world.fetch_sent)
    world.answer_fetch(world.fetch_sent, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=2)
    world.sleep(world.times.retry_backoff_ms)
    world.refuse(world.fetch_sent)
    world.sleep(world.times.fetch_timeout_ms * (0.025 * (1 + chance) + turn) - 1)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    world.sleep(2)
    assert world.seen == NodeState("Prospective", EPOCH, 2)


def test_a_leader_that_was_never_heard_of_has_the_whole_fetch_timeout() -> None:
    """It may be about to begin; and one that refuses this node only is not to be deposed again and again."""
    world = follower()
    world.refuse(world.fetch_sent)
    world.sleep(world.times.fetch_timeout_ms - 1)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    world.sleep(1)
    assert world.seen == NodeState("Prospective", EPOCH, 2)


def test_a_leader_that_is_back_is_followed_on() -> None:
    world = follower(bootstrap=(2,))
    world.answer_fetch(world.fetch_sent)
    world.refuse(world.fetch_sent)
    world.answer_fetch(world.fetch_sent)
    world.sleep(world.times.fetch_timeout_ms - 1)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)


@ROLES
@pytest.mark.parametrize("how", ["failure", "not available"])
def test_a_leader_that_fails_is_asked_about_at_a_bootstrap_server(how: str, own: int) -> None:
    world = follower(own, times=PATIENT, bootstrap=(3,))
    sent = world.fetch_sent
    if how == "failure":
        world.fail(sent)
    else:
        world.answer_fetch(sent, error=ErrorCode.BROKER_NOT_AVAILABLE, leader=NOBODY)
    other = world.fetch_sent
    assert other.peer == (BOOTSTRAP, address_of_node(3))
    world.answer_fetch(other, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=2)
    world.sleep(world.times.retry_backoff_ms)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    assert 2 in world.receivers(FetchRequest)


@ROLES
def test_a_leader_and_a_bootstrap_server_are_asked_in_turn_while_neither_answers(own: int) -> None:
    world = follower(own, times=PATIENT, bootstrap=(3,))
    assert world.receivers(FetchRequest) == [2]
    for peer in (BOOTSTRAP, 2, BOOTSTRAP):
        world.sleep(PATIENT.request_timeout_ms - 1)
        assert not world.all_sent()
        world.sleep(1)
        assert world.receivers(FetchRequest) == [peer]


@ROLES
def test_a_bootstrap_server_tells_of_a_new_leader(own: int) -> None:
    world = follower(own, times=PATIENT, bootstrap=(3,))
    late = world.fetch_sent
    world.sleep(PATIENT.request_timeout_ms)
    world.answer_fetch(world.fetch_sent, error=ErrorCode.FENCED_LEADER_EPOCH, epoch=6, leader=3)
    assert world.seen == NodeState("RaftFollower", 6, 3)
    assert world.fetch_sent.peer.node_id == 3
    world.answer_fetch(late, batch_of(0, 3, 2), epoch=5, leader=2)
    assert world.end_offset == 0


@ROLES
@pytest.mark.parametrize("first", ["the leader", "the bootstrap server"])
def test_two_late_responses_do_not_append_twice(first: str, own: int) -> None:
    """The second one was asked for at an offset that the log has no more."""
    world = follower(own, times=PATIENT, bootstrap=(2,))
    leader = world.fetch_sent
    world.sleep(PATIENT.request_timeout_ms)
    server = world.fetch_sent
    assert server.peer.node_id == BOOTSTRAP
    for sent in (leader, server) if first == "the leader" else (server, leader):
        world.answer_fetch(sent, batch_of(0, 3, 2))
    assert world.batches == [(0, 3)]


@ROLES
def test_a_late_response_of_a_bootstrap_server_does_not_cut_what_was_appended(own: int) -> None:
    world = follower(own, times=PATIENT, bootstrap=(2,), log=[(3, 1), (3, 1)])
    world.sleep(PATIENT.request_timeout_ms)
    late = world.sent(FetchRequest, to=BOOTSTRAP)
    world.forget()
    world.sleep(PATIENT.request_timeout_ms)
    world.answer_fetch(world.fetch_sent, batch_of(2, 5))
    world.answer_fetch(late, diverging=(3, 1))
    assert world.batches == [(0, 3), (1, 3), (2, 5)]


@ROLES
def test_a_leader_is_not_asked_while_a_bootstrap_server_is(own: int) -> None:
    """It may be the same node, and both would be asked for the same records."""
    world = follower(own, bootstrap=(3,))
    world.fail(world.fetch_sent)
    server = world.fetch_sent
    assert server.peer.node_id == BOOTSTRAP
    world.sleep(10 * world.times.retry_backoff_ms)
    world.vote(3, EPOCH, (0, 0), pre_vote=True)
    assert not world.all_sent()
    world.answer_fetch(server, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=2)
    assert world.receivers(FetchRequest) == [2]


def test_one_bootstrap_server_is_asked_at_a_time() -> None:
    world = NodeWorld(own=key_of(4), bootstrap=(2, 3))
    assert world.receivers(FetchRequest) == [-2]
    world.vote(2, 0, (0, 0), pre_vote=True)
    world.sleep(REQUEST_MS - 1)
    assert not world.all_sent()
    world.sleep(1)
    assert len(world.receivers(FetchRequest)) == 1


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_ID],
)
def test_an_unexpected_error_of_the_leader(error: ErrorCode) -> None:
    """It is asked again after a moment. Meanwhile its timeout goes on, and another server is asked who leads."""
    world = follower(times=RaftTimes(fetch_timeout_ms=1000, request_timeout_ms=50), bootstrap=(3,))
    world.answer_fetch(world.fetch_sent, error=error)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    assert world.receivers(FetchRequest) == [BOOTSTRAP]
    world.sleep(1000)
    assert world.seen.state == "Prospective"


def test_a_malformed_request_stops_the_node() -> None:
    world = follower()
    with pytest.raises(AssertionError):
        world.answer_fetch(world.fetch_sent, error=ErrorCode.INVALID_REQUEST)


def test_a_refused_cluster_stops_the_node() -> None:
    world = follower()
    with pytest.raises(AssertionError):
        world.answer(world.fetch_sent, FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))


@pytest.mark.parametrize("error", [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REQUEST])
def test_a_refused_request_is_made_again(error: ErrorCode) -> None:
    world = follower(bootstrap=(3,))
    world.answer(world.fetch_sent, FetchResponse(error_code=error))
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    assert world.receivers(FetchRequest) == [BOOTSTRAP]


def test_a_leader_of_another_cluster_of_two_leaders_stops_the_node() -> None:
    world = follower()
    with pytest.raises(AssertionError):
        world.answer_fetch(world.fetch_sent, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=3)


# --- timeouts ---------------------------------------------------------------------------------------------------------


def test_each_successful_fetch_begins_the_timeout_anew() -> None:
    world = follower()
    for _ in range(3):
        world.sleep(FETCH_MS - 1)
        world.answer_fetch(world.fetch_sent)
    world.sleep(FETCH_MS - 1)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    world.sleep(1)
    assert world.seen == NodeState("Prospective", EPOCH, 2)


@pytest.mark.parametrize("how", ["failure", "error", "older epoch", "bootstrap"])
def test_what_does_not_begin_the_timeout_anew(how: str) -> None:
    world = follower(bootstrap=(3,))
    world.sleep(FETCH_MS - 1)
    sent = world.fetch_sent
    if how == "failure":
        world.fail(sent)
    elif how == "error":
        world.answer_fetch(sent, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    elif how == "older epoch":
        world.answer_fetch(sent, epoch=4, leader=3)
    else:
        world.fail(sent)
        world.answer_fetch(world.fetch_sent, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=2)
    world.sleep(1)
    assert world.seen == NodeState("Prospective", EPOCH, 2)


@pytest.mark.parametrize("what", ["records", "diverging", "snapshot"])
def test_a_response_that_comes_too_late_is_ignored(what: str) -> None:
    world = follower(log=[(3, 1)])
    sent = world.fetch_sent
    world.sleep(FETCH_MS)
    assert world.seen.state == "Prospective"
    options: dict[str, Any] = {"diverging": {"diverging": (1, 0)}, "snapshot": {"snapshot": MetadataSnapshotId(9, 5)}}
    world.answer_fetch(sent, batch_of(1, 5) if what == "records" else b"", **options.get(what, {}))
    assert world.seen.state == "Prospective"
    assert (world.end_offset, world.high_watermark) == (1, None)
    assert [each.peer.node_id for each in world.pre_votes] == [2, 3]


def test_a_response_of_the_leader_before_is_ignored() -> None:
    world = follower()
    sent = world.fetch_sent
    assert world.begin(3, 6) == Told(ErrorCode.NONE, 6, 3)
    world.answer_fetch(sent, batch_of(0, 3, 2), epoch=5, leader=2)
    assert (world.seen, world.end_offset) == (NodeState("RaftFollower", 6, 3), 0)


def test_an_observer_waits_for_its_leader_for_ever() -> None:
    world = follower(4)
    world.sleep(20 * FETCH_MS)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    assert not world.all_sent(VoteRequest)


# --- leaders that announce themselves ---------------------------------------------------------------------------------


@LEVELS
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"epoch": 5},
        {"epoch": 5, "voted": key_of(3)},
        {"epoch": 5, "voted": key_of(OWN)},
        {"epoch": 4, "leader": 2},
        {"epoch": 4, "leader": OWN},
    ],
    ids=["new", "unattached", "voted for it", "candidate", "follower of another", "led before"],
)
def test_a_leader_announces_itself(options: dict[str, Any], kraft_version: int) -> None:
    """Its epoch is written down before it is answered, and a vote in this epoch is kept."""
    world = NodeWorld(kraft_version=kraft_version, **options)
    voted = world.seen.voted_id if "voted" in options and kraft_version else None
    world.forget()
    assert world.begin(3, 5) == Told(ErrorCode.NONE, 5, 3)
    assert world.seen[:3] == ("RaftFollower", 5, 3)
    if voted is not None:
        assert world.stored.voted_id == options["voted"].node_id
    assert (world.stored.epoch, world.stored.leader_id) == (5, 3)
    assert world.fetch_sent.peer.node_id == 3
    assert world.news(LeaderChanged) == [LeaderChanged(5, 3)]


def test_a_leader_that_announces_itself_again_changes_nothing() -> None:
    world = follower()
    sent = world.fetch_sent
    world.forget()
    assert world.begin(2, EPOCH) == Told(ErrorCode.NONE, EPOCH, 2)
    assert not world.told
    world.answer_fetch(sent, batch_of(0, 5))
    assert world.end_offset == 1


def test_a_leader_tells_more_of_its_addresses() -> None:
    """More than the voter set has: they are told to others, too."""
    world = follower()
    more = (endpoint_of(2), ListenerEndpoint("OTHER", "elsewhere", 9999))
    assert world.begin(2, EPOCH, endpoints=more) == Told(ErrorCode.NONE, EPOCH, 2)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    response = world.response(world.ask(world.fetch_request(3), listener="OTHER"))
    assert [(each.host, each.port) for each in response.node_endpoints] == [("elsewhere", 9999)]


def test_a_leader_that_is_no_voter_is_followed() -> None:
    """The voter set of this node may be old."""
    world = follower()
    world.forget()
    where = (ListenerEndpoint(LISTENER, "seventh", 9007),)
    assert world.begin(7, 6, endpoints=where) == Told(ErrorCode.NONE, 6, 7)
    assert world.fetch_sent.peer == (7, ("seventh", 9007))


def test_a_leader_from_before_version_1_does_not_say_where_it_is() -> None:
    world = follower()
    world.forget()
    assert world.begin(3, 6, endpoints=()) == Told(ErrorCode.NONE, 6, 3)
    assert world.fetch_sent.peer == (3, address_of_node(3))


@pytest.mark.parametrize("state", ["follower", "unattached", "leader", "candidate"])
def test_a_leader_of_an_older_epoch_is_refused(state: str) -> None:
    world = NodeWorld(epoch=EPOCH, leader=2 if state == "follower" else NOBODY)
    if state == "leader":
        world.become_leader()
    elif state == "candidate":
        world.become_candidate()
    before = world.seen
    assert world.begin(3, 4) == Told(ErrorCode.FENCED_LEADER_EPOCH, before.epoch, before.leader_id)
    assert world.seen == before


VOTERS_MEANT = {
    "this node": (key_of(OWN), ErrorCode.NONE),
    "nobody": (ReplicaKey(-1), ErrorCode.NONE),
    "another node": (key_of(10), ErrorCode.INVALID_VOTER_KEY),
    "another directory": (key_of(OWN)._replace(directory_id=b"another disk 456"), ErrorCode.INVALID_VOTER_KEY),
}


@pytest.mark.parametrize("meant", VOTERS_MEANT)
def test_the_voter_that_a_leader_means(meant: str) -> None:
    """The news counts though it is meant for another."""
    world = NodeWorld(epoch=4)
    key, error = VOTERS_MEANT[meant]
    assert world.begin(3, EPOCH, voter=key) == Told(error, EPOCH, 3)
    assert world.seen == NodeState("RaftFollower", EPOCH, 3)
