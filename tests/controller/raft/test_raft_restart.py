"""The state in which a node of a quorum begins, by its quorum-state, log and voters (``QuorumState.initialize``)."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.raft.effects import AppendControl, LeaderChanged, Persist
from ottla.controller.raft.election_file import NOBODY
from ottla.controller.raft.voter_set import ReplicaKey
from ottla.log.metadata_snapshots import MetadataSnapshotId
from ottla.tests.controller.raft.helpers.node_world import NodeState, NodeWorld
from ottla.tests.controller.raft.helpers.quorum_parts import BOOTSTRAP, ELECTION_MS, FETCH_MS, OWN, voters_of
from ottla.tests.simulation.raft.machine import key_of
from ottla.wire.messages.control_records import KRaftVersionRecord, LeaderChangeMessage
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.vote import VoteRequest

LEVELS = pytest.mark.parametrize("kraft_version", [0, 1])
OTHER_DIRECTORY = ReplicaKey(OWN, b"another disk 456")
OBSERVER = {"own": key_of(4)}
VOTERS = (KRaftVersionRecord(k_raft_version=1), voters_of(1, 2, 3).to_record())

STARTS: dict[str, tuple[dict[str, Any], NodeState]] = {
    "nothing": ({}, NodeState("Unattached", 0)),
    "an epoch": ({"epoch": 5}, NodeState("Unattached", 5)),
    "an epoch and a log of it": ({"epoch": 5, "log": [(5, 1)]}, NodeState("Unattached", 5)),
    "an epoch and a log of an earlier one": ({"epoch": 5, "log": [(3, 1)]}, NodeState("Unattached", 5)),
    "a vote": ({"epoch": 5, "voted": key_of(2)}, NodeState("Unattached", 5, NOBODY, 2)),
    "a vote for one that is no voter": ({"epoch": 5, "voted": key_of(4)}, NodeState("Unattached", 5, NOBODY, 4)),
    "a leader": ({"epoch": 5, "leader": 2}, NodeState("RaftFollower", 5, 2)),
    "a leader and a vote for it": ({"epoch": 5, "leader": 2, "voted": key_of(2)}, NodeState("RaftFollower", 5, 2, 2)),
    "a leader and a vote for another": (
        {"epoch": 5, "leader": 2, "voted": key_of(3)},
        NodeState("RaftFollower", 5, 2, 3),
    ),
    "a leader out of reach": ({"epoch": 5, "leader": 7}, NodeState("Unattached", 5, 7)),
    "a leader out of reach and a vote": (
        {"epoch": 5, "leader": 7, "voted": key_of(2)},
        NodeState("Unattached", 5, 7, 2),
    ),
    "its own leadership": ({"epoch": 5, "leader": OWN}, NodeState("Resigned", 5, OWN)),
    "its own candidacy": ({"epoch": 5, "voted": key_of(OWN)}, NodeState("RaftCandidate", 5)),
    "its own candidacy without a directory": ({"epoch": 5, "voted": ReplicaKey(OWN)}, NodeState("RaftCandidate", 5)),
    "less than the log": ({"epoch": 5, "log": [(7, 1)]}, NodeState("Unattached", 7)),
    "less than the log, and a vote": ({"epoch": 5, "voted": key_of(2), "log": [(7, 1)]}, NodeState("Unattached", 7)),
    "less than the log, and its leadership": ({"epoch": 5, "leader": OWN, "log": [(7, 1)]}, NodeState("Unattached", 7)),
    "no file but a log": ({"log": [(7, 1)]}, NodeState("Unattached", 7)),
    "no file but a snapshot": (
        {"snapshots": [MetadataSnapshotId(9, 7)], "log_start": MetadataSnapshotId(9, 7)},
        NodeState("Unattached", 7),
    ),
    "an observer": ({**OBSERVER, "epoch": 5}, NodeState("Unattached", 5)),
    "an observer and a vote": ({**OBSERVER, "epoch": 5, "voted": key_of(2)}, NodeState("Unattached", 5, NOBODY, 2)),
    "an observer and a leader": ({**OBSERVER, "epoch": 5, "leader": 2}, NodeState("RaftFollower", 5, 2)),
    "an observer that led": ({**OBSERVER, "epoch": 5, "leader": 4}, NodeState("Resigned", 5, 4)),
}


@LEVELS
@pytest.mark.parametrize("start", STARTS)
def test_how_a_node_begins(start: str, kraft_version: int) -> None:
    """What it begins with is written down, and a second start changes nothing."""
    options, expected = STARTS[start]
    world = NodeWorld(kraft_version=kraft_version, **options)
    assert world.seen == expected
    assert (world.stored.epoch, world.stored.leader_id) == (expected.epoch, expected.leader_id)
    voted_id = OWN if expected.state == "RaftCandidate" else expected.voted_id
    assert world.stored.voted_id == voted_id
    world.restart()
    assert world.seen == expected


def test_the_candidacy_of_a_former_disk_is_a_vote_for_another() -> None:
    world = NodeWorld(epoch=5, voted=OTHER_DIRECTORY)
    assert world.seen == NodeState("Unattached", 5, NOBODY, OWN)
    assert not world.vote(2, 5, (4, 99)).granted


def test_a_candidate_that_heard_of_a_leader_does_not_stand_again() -> None:
    """Kafka stands again; once the leader has written, others find its requests for votes malformed."""
    world = NodeWorld(epoch=5, leader=2, voted=key_of(OWN))
    assert world.seen == NodeState("RaftFollower", 5, 2, OWN)


@LEVELS
def test_the_file_names_directories_or_voters(kraft_version: int) -> None:
    world = NodeWorld(epoch=5, kraft_version=kraft_version)
    world.vote(2, 6, (5, 9))
    if kraft_version:
        assert (world.stored.voted_id, world.stored.voted_directory_id) == key_of(2)
        assert not world.stored.voters
    else:
        assert (world.stored.voted_id, world.stored.voted_directory_id) == ReplicaKey(2)
        assert world.stored.voters == (1, 2, 3)


@pytest.mark.parametrize(
    ("start", "requests"),
    [
        ("an epoch", [(FetchRequest, BOOTSTRAP)]),
        ("a leader", [(FetchRequest, 2)]),
        ("a leader out of reach", [(FetchRequest, BOOTSTRAP)]),
        ("its own leadership", [(EndQuorumEpochRequest, 2), (EndQuorumEpochRequest, 3)]),
        ("its own candidacy", [(VoteRequest, 2), (VoteRequest, 3)]),
        ("an observer", [(FetchRequest, BOOTSTRAP)]),
    ],
)
def test_what_a_node_asks_first(start: str, requests: list[tuple[type, int]]) -> None:
    world = NodeWorld(**STARTS[start][0])
    assert [(type(each.request), each.peer.node_id) for each in world.all_sent()] == requests


@LEVELS
def test_a_candidate_goes_on_with_its_election(kraft_version: int) -> None:
    """In the same epoch: it has voted, and may be elected."""
    world = NodeWorld(epoch=5, voted=key_of(OWN), log=[(3, 2)], kraft_version=kraft_version)
    first, second = world.votes
    asked: Any = first.request.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (asked.replica_epoch, asked.last_offset_epoch, asked.last_offset) == (5, 3, 2)
    world.answer_vote(second)
    assert world.seen == NodeState("RaftLeader", 5, OWN)
    change: LeaderChangeMessage = world.news(AppendControl)[0].messages[0][0]
    assert [each.voter_id for each in change.granting_voters] == [1, 3]


@LEVELS
def test_a_leader_that_was_restarted_does_not_lead_again_in_its_epoch(kraft_version: int) -> None:
    """It may have lost records, and others would get their offset and epoch (KAFKA-10527)."""
    world = NodeWorld(epoch=5, leader=OWN, log=[(5, 2)], kraft_version=kraft_version)
    world.append(1)
    assert world.end_offset == 2
    assert world.fetch(2, 2, 5).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not world.vote(2, 5, (4, 99)).granted
    assert [each for each in world.news(LeaderChanged) if each.leader_id == OWN] == []
    world.sleep(ELECTION_MS)
    assert world.seen == NodeState("Prospective", 6)
    for sent in world.pre_votes:
        if world.seen.state == "Prospective":
            world.answer_vote(sent)
    assert world.seen == NodeState("RaftCandidate", 7)


def test_a_leader_that_was_restarted_prefers_nobody() -> None:
    world = NodeWorld(epoch=5, leader=OWN)
    request: Any = world.sent(EndQuorumEpochRequest).request
    assert request.topics[0].partitions[0].preferred_candidates == []


def test_a_leader_that_was_restarted_votes_in_the_next_epoch() -> None:
    world = NodeWorld(epoch=5, leader=OWN)
    assert world.vote(2, 6, (5, 9)).granted
    assert world.seen == NodeState("Unattached", 6, NOBODY, 2)


@pytest.mark.parametrize(
    ("start", "after_ms"),
    [
        ("an epoch", ELECTION_MS),
        ("a vote", ELECTION_MS),
        ("a leader", FETCH_MS),
        ("a leader out of reach", ELECTION_MS),
    ],
)
def test_the_timeouts_of_a_start_are_whole(start: str, after_ms: int) -> None:
    world = NodeWorld(**STARTS[start][0])
    world.sleep(700)
    world.restart()
    world.sleep(after_ms - 1)
    assert world.seen == STARTS[start][1]
    world.sleep(1)
    assert world.seen.state == "Prospective"


# --- which voters count -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "voters", "kraft_version"),
    [
        ({"voters": (1, 2)}, (1, 2), 1),
        ({"voters": (1, 2), "kraft_version": 0}, (1, 2), 0),
        ({"voters": ()}, (), 0),
        ({"voters": (1, 2), "log": [(3, *VOTERS)]}, (1, 2, 3), 1),
        ({"voters": (1, 2), "kraft_version": 0, "log": [(3, *VOTERS)]}, (1, 2, 3), 1),
        ({"voters": (), "log": [(3, 1), (3, *VOTERS)]}, (1, 2, 3), 1),
        ({"log": [(3, *VOTERS), (3, voters_of(1, 2).to_record())]}, (1, 2), 1),
        (
            {"log": [(3, 9)], "snapshots": [MetadataSnapshotId(9, 3)], "log_start": MetadataSnapshotId(9, 3)},
            (1, 2, 3),
            1,
        ),
        (
            {
                "log": [(3, 9), (3, voters_of(2, 3).to_record())],
                "snapshots": [MetadataSnapshotId(9, 3)],
                "log_start": MetadataSnapshotId(9, 3),
            },
            (2, 3),
            1,
        ),
    ],
    ids=[
        "of the 0-0 checkpoint",
        "static",
        "none",
        "of the log before those of the checkpoint",
        "of the log before static ones",
        "of the log",
        "the newest of the log",
        "of a snapshot",
        "of the log behind a snapshot",
    ],
)
def test_the_voters_of_a_start(options: dict[str, Any], voters: tuple[int, ...], kraft_version: int) -> None:
    """Static voters count only while neither the log nor a snapshot has any."""
    world = NodeWorld(**options)
    assert world.quorum.voters.ids == voters
    assert world.quorum.kraft_version == kraft_version


def test_a_node_without_voters_waits_for_a_leader() -> None:
    """As one that was formatted without initial controllers."""
    world = NodeWorld(voters=(), bootstrap=(2,))
    world.sleep(10 * FETCH_MS)
    assert world.seen == NodeState("Unattached", 0)
    assert not world.all_sent(VoteRequest)


def test_a_log_that_ends_before_its_snapshot_begins_behind_it() -> None:
    """As after a crash in the midst of fetching it."""
    world = NodeWorld(epoch=5, log=[(3, 2)], snapshots=[MetadataSnapshotId(9, 4)])
    assert (world.quorum.log.start_offset, world.end_offset, world.quorum.log.end) == (9, 9, (4, 9))


def test_nothing_counts_as_flushed_after_a_start() -> None:
    """So a voter flushes before its first fetch, and does not fetch at an offset that a power cut could take back."""
    world = NodeWorld(epoch=5, leader=2, log=[(3, 2)])
    world.holds_flushes = True
    world.restart()
    assert world.is_flushing
    assert not world.all_sent(FetchRequest)
    world.finish_flush()
    assert world.receivers(FetchRequest) == [2]


@LEVELS
@pytest.mark.parametrize("start", ["an epoch", "a vote", "a leader", "its own leadership", "its own candidacy"])
def test_a_start_writes_nothing_that_is_there(start: str, kraft_version: int) -> None:
    world = NodeWorld(kraft_version=kraft_version, **STARTS[start][0])
    world.forget()
    world.restart()
    assert not world.news(Persist)


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_restart_after_each_step_of_an_election(kraft_version: int) -> None:
    """What was promised is kept, and what was only asked is forgotten."""
    world = NodeWorld(epoch=5, kraft_version=kraft_version)
    world.become_prospective()
    world.restart()
    assert world.seen == NodeState("Unattached", 5)
    world.become_candidate()
    world.restart()
    assert world.seen == NodeState("RaftCandidate", 6)
    for sent in world.votes:
        if world.seen.state == "RaftCandidate":
            world.answer_vote(sent)
    assert world.seen == NodeState("RaftLeader", 6, OWN)
    world.restart()
    assert world.seen == NodeState("Resigned", 6, OWN)
    world.sleep(ELECTION_MS - 1)
    world.begin(2, 7)
    world.restart()
    assert world.seen == NodeState("RaftFollower", 7, 2)
