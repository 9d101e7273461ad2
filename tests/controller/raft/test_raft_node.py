"""A Raft node alone: what it does by itself, and what it makes of single responses."""

from __future__ import annotations

import math
import random

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.raft import effects, events, messages
from ottla.controller.raft.election import RaftCandidate, Resigned, Unattached
from ottla.controller.raft.election_file import ElectionState
from ottla.controller.raft.follower import RaftFollower
from ottla.controller.raft.leader import RaftLeader
from ottla.controller.raft.log_outline import LogOutline, QuorumEntry
from ottla.controller.raft.messages import KnownLeader
from ottla.controller.raft.node import RaftNode
from ottla.controller.raft.quorum_state import RaftIdentity
from ottla.controller.raft.settings import RaftTimes
from ottla.controller.raft.voter_set import ListenerEndpoint, QuorumVoter, ReplicaKey, VoterSet
from ottla.controller.raft.voters import ControllerAddress
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.record_codec import Record
from ottla.wire.records import build_batch

CLUSTER = "c"
LISTENER = "CONTROLLER"


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes([node_id]) * 16)


def endpoints(node_id: int) -> tuple[ListenerEndpoint, ...]:
    return (ListenerEndpoint(LISTENER, f"host-{node_id}", 9093),)


def voters(*node_ids: int) -> VoterSet:
    return VoterSet(QuorumVoter(key(each), endpoints(each), 0, 1) for each in node_ids)


def made(node_id: int, *voter_ids: int, log: LogOutline | None = None, may_vote: bool = True) -> RaftNode:
    """A node of a quorum of these voters; it is not started."""
    outline = log or LogOutline()
    outline.history = outline.history or [QuorumEntry(-1, 1, voters(*voter_ids))]
    identity = RaftIdentity(CLUSTER, key(node_id), endpoints(node_id), LISTENER, may_vote)
    bootstrap = [ControllerAddress(f"host-{each}", 9093) for each in voter_ids]
    return RaftNode(identity, RaftTimes(), outline, bootstrap, VoterSet(), random.Random(1))


def of(found: list[effects.RaftEffect], kind: type) -> list:
    return [effect for effect in found if isinstance(effect, kind)]


def follower_of(leader_id: int, *, epoch: int = 3) -> tuple[RaftNode, effects.SendRequest]:
    """A voter with an empty log that follows, and its first fetch."""
    node = made(1, 1, 2, 3)
    [sent] = of(node.start(0, ElectionState(epoch, leader_id)), effects.SendRequest)
    return node, sent


def batch(offset: int, epoch: int, count: int = 1) -> bytes:
    records = [Record(timestamp=0, value=b"x") for _ in range(count)]
    return bytes(build_batch(records, base_offset=offset, leader_epoch=epoch))


def fetched(records: bytes, epoch: int, high_watermark: int = -1) -> FetchResponse:
    leader = KnownLeader(epoch, 2, ControllerAddress("host-2", 9093))
    response = messages.fetch_response(leader, ErrorCode.NONE, log_start_offset=0, high_watermark=high_watermark)
    response.responses[0].partitions[0].records = records
    return response


def test_a_single_voter_leads_at_once_and_then_has_no_timers() -> None:
    node = made(1, 1)
    started = node.start(0, None)
    assert [effect.election.leader_id for effect in of(started, effects.Persist)][-1] == 1
    assert of(started, effects.LeaderChanged) == [effects.LeaderChanged(1, -1)]
    flushed = node.step(1, events.FlushFinished())
    assert of(flushed, effects.HighWatermarkAdvanced) == [effects.HighWatermarkAdvanced(3)]
    assert of(flushed, effects.LeaderChanged) == [effects.LeaderChanged(1, 1)]
    assert node.deadline_ms == math.inf
    assert node.step(1e9, events.Tick()) == []


def test_a_leader_counts_its_records_when_they_are_flushed() -> None:
    node = made(1, 1)
    node.start(0, None)
    node.step(1, events.FlushFinished())
    appended = node.step(2, events.AppendRequested(1, (events.PreparedBatch(batch(0, 0, 5), 5),)))
    assert [type(effect) for effect in appended] == [effects.Append, effects.Flush]
    assert of(node.step(3, events.FlushFinished()), effects.HighWatermarkAdvanced) == [effects.HighWatermarkAdvanced(8)]


def test_what_is_appended_during_a_flush_waits_for_the_next_one() -> None:
    node = made(1, 1)
    node.start(0, None)
    node.step(1, events.FlushFinished())
    node.step(2, events.AppendRequested(1, (events.PreparedBatch(batch(0, 0), 1),)))
    assert of(node.step(3, events.AppendRequested(1, (events.PreparedBatch(batch(0, 0), 1),))), effects.Flush) == []
    ended = node.step(4, events.FlushFinished())
    assert of(ended, effects.HighWatermarkAdvanced) == [effects.HighWatermarkAdvanced(4)]
    assert of(ended, effects.Flush) == [effects.Flush(5)]


def test_an_append_in_an_epoch_that_the_node_does_not_lead_is_refused() -> None:
    node, _ = follower_of(2)
    refused = node.step(1, events.AppendRequested(2, (events.PreparedBatch(batch(0, 0), 1),)))
    assert refused == [effects.AppendRefused(2)]


@pytest.mark.parametrize(
    ("election", "expected"),
    [
        pytest.param(ElectionState(3, 1), Resigned, id="it led"),
        pytest.param(ElectionState(3, 2), RaftFollower, id="another led"),
        pytest.param(ElectionState(3, -1, 1, key(1).directory_id), RaftCandidate, id="it stood"),
        pytest.param(ElectionState(3, 2, 1, key(1).directory_id), RaftFollower, id="it stood, and another won"),
        pytest.param(ElectionState(3, -1, 2, key(2).directory_id), Unattached, id="it voted for another"),
        pytest.param(ElectionState(3, 9), Unattached, id="another led, who is reached no more"),
        pytest.param(None, Unattached, id="nothing is known"),
    ],
)
def test_how_a_voter_starts(election: ElectionState | None, expected: type) -> None:
    node = made(1, 1, 2, 3)
    node.start(0, election)
    assert isinstance(node.quorum.state, expected)
    assert node.epoch == (3 if election else 0)


def test_a_quorum_state_older_than_the_log_is_replaced() -> None:
    node = made(1, 1, 2, 3, log=LogOutline(0, 5, 0, [(7, 0)]))
    started = node.start(0, ElectionState(3, 1))
    assert isinstance(node.quorum.state, Unattached)
    assert [effect.election.epoch for effect in of(started, effects.Persist)] == [7]


def test_a_follower_fetches_again_when_what_it_has_is_flushed() -> None:
    node, sent = follower_of(2)
    took = node.step(1, events.ResponseReceived(sent.request_id, fetched(batch(0, 3, 2), 3, 1)))
    assert [type(effect) for effect in took] == [effects.AppendFetched, effects.Flush, effects.HighWatermarkAdvanced]
    [again] = of(node.step(2, events.FlushFinished()), effects.SendRequest)
    assert isinstance(again.request, FetchRequest)
    assert again.request.topics[0].partitions[0].fetch_offset == 2


def test_an_observer_that_cannot_vote_does_not_flush() -> None:
    node = made(4, 1, 2, 3, may_vote=False)
    [sent] = of(node.start(0, ElectionState(3, 2)), effects.SendRequest)
    took = node.step(1, events.ResponseReceived(sent.request_id, fetched(batch(0, 3), 3)))
    assert [type(effect) for effect in took] == [effects.AppendFetched, effects.SendRequest]


def test_a_follower_appends_up_to_the_first_batch_of_a_later_epoch() -> None:
    """KAFKA-18723."""
    node, sent = follower_of(2)
    records = batch(0, 2) + batch(1, 3) + batch(2, 4)
    [appended] = of(node.step(1, events.ResponseReceived(sent.request_id, fetched(records, 3))), effects.AppendFetched)
    assert appended.end_offset == node.quorum.log.end_offset == 2
    assert bytes(appended.records) == batch(0, 2) + batch(1, 3)


@pytest.mark.parametrize("damage", ["byte", "torn", "gap"])
def test_a_follower_appends_up_to_the_first_damaged_batch(damage: str) -> None:
    second = bytearray(batch(2 if damage == "gap" else 1, 3))
    if damage == "byte":
        second[-1] ^= 1
    elif damage == "torn":
        del second[-5:]
    node, sent = follower_of(2)
    took = node.step(1, events.ResponseReceived(sent.request_id, fetched(batch(0, 3) + bytes(second), 3)))
    assert [effect.end_offset for effect in of(took, effects.AppendFetched)] == [1]
    assert isinstance(node.quorum.state, RaftFollower)


def test_a_late_response_is_dropped() -> None:
    node, sent = follower_of(2)
    node.step(1, events.RequestFailed(sent.request_id))
    assert of(node.step(2, events.ResponseReceived(sent.request_id, fetched(batch(0, 3), 3))), effects.Append) == []
    assert node.quorum.log.end_offset == 0


def test_a_node_that_knows_only_the_id_of_its_leader_follows_it_once_it_is_told_where_it_is() -> None:
    node = made(4, 1, 2, 3)
    node.quorum.log.history = []
    [sent] = of(node.start(0, ElectionState(3, 2)), effects.SendRequest)
    assert isinstance(node.quorum.state, Unattached)
    node.step(1, events.ResponseReceived(sent.request_id, fetched(b"", 3)))
    assert isinstance(node.quorum.state, RaftFollower)
    assert node.quorum.state.leader_id == 2


def test_a_controller_with_an_empty_disk_hears_that_its_former_self_leads() -> None:
    node = made(4, 1, 2, 3)
    [sent] = of(node.start(0, None), effects.SendRequest)
    leader = KnownLeader(5, 4, ControllerAddress("host-4", 9093))
    refusal = messages.fetch_response(leader, ErrorCode.NOT_LEADER_OR_FOLLOWER, log_start_offset=-1, high_watermark=-1)
    node.step(1, events.ResponseReceived(sent.request_id, refusal))
    assert isinstance(node.quorum.state, Unattached)
    assert (node.epoch, node.leader_id) == (5, -1)
    again = of(node.step(node.deadline_ms, events.Tick()), effects.SendRequest)
    assert [isinstance(each.request, FetchRequest) for each in again] == [True], "it asks others who leads now"


def test_votes_that_are_needed_make_a_leader() -> None:
    node = made(1, 1, 2, 3)
    node.start(0, None)
    asked = of(node.step(3000, events.Tick()), effects.SendRequest)
    assert [each.request.topics[0].partitions[0].pre_vote for each in asked] == [True, True]
    granted = messages.vote_response(KnownLeader(0, -1, None), ErrorCode.NONE, True)
    won = node.step(3001, events.ResponseReceived(asked[0].request_id, granted))
    kinds = [type(effect) for effect in won]
    assert kinds.index(effects.Persist) < kinds.index(effects.SendRequest)
    vote = of(won, effects.SendRequest)[0]
    granted = messages.vote_response(KnownLeader(1, -1, None), ErrorCode.NONE, True)
    leads = node.step(3002, events.ResponseReceived(vote.request_id, granted))
    assert isinstance(node.quorum.state, RaftLeader)
    kinds = [type(effect) for effect in leads]
    assert kinds.index(effects.Persist) < kinds.index(effects.AppendControl)


def test_a_voter_that_knows_no_pre_vote_is_asked_for_its_vote() -> None:
    node = made(1, 1, 2, 3)
    node.start(0, None)
    asked = of(node.step(3000, events.Tick()), effects.SendRequest)
    node.step(3001, events.RequestFailed(asked[0].request_id, ErrorCode.UNSUPPORTED_VERSION))
    assert isinstance(node.quorum.state, RaftCandidate)
    assert node.epoch == 1
