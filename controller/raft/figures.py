"""The values of a Raft node's metrics, as defined by Kafka's KafkaRaftMetrics and SnapshotEmitterMetrics."""

from __future__ import annotations

import enum
from typing import NamedTuple

import trio

from .driver import RaftDriver
from .election import Prospective, RaftCandidate, Resigned, Unattached
from .election_file import NOBODY
from .follower import RaftFollower
from .leader import RaftLeader
from .measures import RaftMeasures
from .quorum_state import QuorumState


class RaftStateName(enum.Enum):
    """The states by Kafka's names. One that has resigned is unattached there."""

    LEADER = "leader"
    PROSPECTIVE = "prospective"
    PROSPECTIVE_VOTED = "prospective-voted"
    CANDIDATE = "candidate"
    UNATTACHED_VOTED = "unattached-voted"
    FOLLOWER = "follower"
    OBSERVER = "observer"
    UNATTACHED = "unattached"


class RaftFigures(NamedTuple):
    """A Raft node at one moment. Ids are -1 while they are not known."""

    state: RaftStateName
    leader_id: int
    voted_id: int
    epoch: int
    high_watermark: int
    """The leader's, as far as this node has heard; -1 before it has."""
    log_start_offset: int
    log_end_offset: int
    log_end_epoch: int
    log_bytes: int
    """Of the segments, without snapshots."""
    log_segments: int
    voters: int
    observers: int | None
    """None where the node does not lead."""
    has_uncommitted_voters: bool | None
    """None where the node does not lead."""
    ignores_static_voters: bool
    kraft_version: int
    measures: RaftMeasures
    snapshot_bytes: int
    """Of the newest snapshot that the node has made itself; 0 before it has made one."""
    snapshot_age_ms: float
    """Since that snapshot was made; before the first one since the start."""


def raft_figures(driver: RaftDriver) -> RaftFigures:
    """As they are now, at a cost that does not depend on how much there is."""
    quorum, log, measures = driver.node.quorum, driver.storage.log, driver.measures
    state = quorum.state
    return RaftFigures(
        state_name(quorum),
        quorum.leader_id,
        _voted_id(quorum),
        quorum.epoch,
        -1 if quorum.leader_high_watermark is None else quorum.leader_high_watermark,
        log.start_offset,
        log.end_offset,
        log.last_epoch,
        log.size,
        log.segment_count,
        len(quorum.voters.voters),
        len(state.observers) if isinstance(state, RaftLeader) else None,
        quorum.has_uncommitted_voters if isinstance(state, RaftLeader) else None,
        quorum.ignores_static_voters,
        quorum.kraft_version,
        measures,
        measures.snapshot_bytes,
        (trio.current_time() - measures.snapshot_at) * 1000,
    )


def state_name(quorum: QuorumState) -> RaftStateName:
    """See ``RaftStateName``."""
    state = quorum.state
    match state:
        case RaftLeader():
            return RaftStateName.LEADER
        case Prospective():
            return RaftStateName.PROSPECTIVE if state.voted is None else RaftStateName.PROSPECTIVE_VOTED
        case RaftCandidate():
            return RaftStateName.CANDIDATE
        case RaftFollower():
            return RaftStateName.FOLLOWER if quorum.is_voter else RaftStateName.OBSERVER
        case Unattached() if state.voted is not None:
            return RaftStateName.UNATTACHED_VOTED
        case Unattached() | Resigned():
            return RaftStateName.UNATTACHED


def _voted_id(quorum: QuorumState) -> int:
    state = quorum.state
    if isinstance(state, RaftLeader | RaftCandidate):
        return quorum.key.node_id
    if isinstance(state, Resigned) or state.voted is None:
        return NOBODY
    return state.voted.node_id
