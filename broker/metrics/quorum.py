"""Metrics of a KRaft node: its Raft node, the metadata it has loaded, and its controller, active or not.

Each ``next`` makes one complete family, as in ``collector``. Without a quorum, or a controller, families have no samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import trio
from prometheus_client.core import Metric

from ...controller.quorum.active.figures import QuorumControllerFigures, RegistrationState
from ...controller.quorum.figures import QuorumFigures
from ...controller.quorum.metadata_version import FEATURE
from ...controller.quorum.supported_features import SUPPORTED
from ...controller.raft.figures import RaftFigures, RaftStateName
from ...controller.raft.metadata_log import TOPIC
from .families import quorum, quorum_control
from .families.family import Family
from .logs import LogFigures
from .samples import Samples, distributions, simple


def metadata_log(figures: QuorumFigures | None) -> list[LogFigures]:
    """The metadata log among the logs, by Kafka's name for it."""
    if figures is None:
        return []
    raft = figures.raft
    labels = (TOPIC, "0")
    return [LogFigures(labels, raft.log_bytes, raft.log_start_offset, raft.log_end_offset, raft.log_segments)]


def quorum_metrics(figures: QuorumFigures | None, idle: float) -> Iterator[Metric]:
    """``idle``: the share of the time in which the loop had nothing to do, 0 to 1."""
    values: dict[Family, float] = {}
    if figures is not None:
        values = {
            **_raft_values(figures.raft, trio.current_time()),
            quorum.RAFT_IDLE: idle,
            quorum.METADATA_VERSION: figures.levels[FEATURE],
            quorum.CURRENT_CONTROLLER: figures.raft.leader_id,
            quorum.SNAPSHOTS_LOADED: figures.snapshots_loaded,
        }
    samples: dict[Family, Samples] = {family: [((), value)] for family, value in values.items()}
    if figures is not None:
        samples[quorum.QUORUM_STATE] = [((name.value,), name is figures.raft.state) for name in RaftStateName]
        levels = figures.levels.items()
        samples[quorum.FINALIZED_LEVEL] = [((_camel_case(name),), level) for name, level in levels]
        samples[quorum.LOWEST_LEVEL] = [((_with_hyphens(name),), each.lowest) for name, each in SUPPORTED.items()]
        samples[quorum.HIGHEST_LEVEL] = [((_with_hyphens(name),), each.highest) for name, each in SUPPORTED.items()]
    for family in quorum.FAMILIES:
        if family not in _OF_BROKERS:
            yield simple(family, samples.get(family, []))


def _raft_values(raft: RaftFigures, now: float) -> Mapping[Family, float]:
    measures = raft.measures
    of_leader: dict[Family, float] = {}
    if raft.observers is not None and raft.has_uncommitted_voters is not None:
        of_leader = {quorum.OBSERVERS: raft.observers, quorum.UNCOMMITTED_VOTERS: raft.has_uncommitted_voters}
    return {
        quorum.QUORUM_LEADER: raft.leader_id,
        quorum.QUORUM_VOTE: raft.voted_id,
        quorum.QUORUM_EPOCH: raft.epoch,
        quorum.QUORUM_HIGH_WATERMARK: raft.high_watermark,
        quorum.METADATA_LOG_END: raft.log_end_offset,
        quorum.METADATA_LOG_EPOCH: raft.log_end_epoch,
        quorum.VOTERS: raft.voters,
        **of_leader,
        quorum.UNKNOWN_VOTERS: 0,
        quorum.COMMIT_TIME_AVERAGE: measures.commit_times.average(now),
        quorum.COMMIT_TIME_LARGEST: measures.commit_times.largest(now),
        quorum.ELECTION_TIME_AVERAGE: measures.election_times.average(now),
        quorum.ELECTION_TIME_LARGEST: measures.election_times.largest(now),
        quorum.APPENDED_RATE: measures.appended.per_second(now),
        quorum.FETCHED_RATE: measures.fetched.per_second(now),
        quorum.SNAPSHOT_BYTES: raft.snapshot_bytes,
        quorum.SNAPSHOT_AGE: raft.snapshot_age_ms,
    }


_OF_BROKERS = (
    quorum.APPLIED_OFFSET,
    quorum.APPLIED_TIMESTAMP,
    quorum.APPLIED_LAG,
    quorum.LOAD_ERRORS,
    quorum.APPLY_ERRORS,
    quorum.IGNORED_VOTERS_OF_BROKER,
)


def applied_metrics(figures: QuorumFigures | None, now_ms: int) -> Iterator[Metric]:
    """How far a broker has applied the metadata log; Kafka's controllers have these under other names."""
    values: tuple[float, ...] = ()
    if figures is not None:
        offset, _, timestamp = figures.applied
        values = (offset, timestamp, now_ms - timestamp, 0, 0, figures.raft.ignores_static_voters)
    for place, family in enumerate(_OF_BROKERS):
        yield simple(family, [((), values[place])] if values else [])


def controller_metrics(figures: QuorumControllerFigures | None, now_ms: int) -> Iterator[Metric]:
    samples: dict[Family, Samples] = {}
    if figures is not None:
        states = list(figures.brokers.values())
        values: dict[Family, float] = {
            quorum_control.FENCED_BROKERS: states.count(RegistrationState.FENCED),
            quorum_control.LEAVING_BROKERS: states.count(RegistrationState.CONTROLLED_SHUTDOWN),
            quorum_control.METADATA_ERRORS: figures.counts.failed_operations,
            quorum_control.APPLIED_OFFSET: figures.applied.offset,
            quorum_control.APPLIED_TIMESTAMP: figures.applied.timestamp,
            quorum_control.APPLIED_LAG: now_ms - figures.applied.timestamp,
            quorum_control.COMMITTED_OFFSET: figures.committed_offset,
            quorum_control.NEW_CONTROLLERS: figures.counts.new_leaders,
            quorum_control.TIMED_OUT_HEARTBEATS: 0,
            quorum_control.OPERATIONS_STARTED: figures.operations_started,
            quorum_control.OPERATIONS_TIMED_OUT: 0,
            quorum_control.IGNORED_VOTERS: figures.quorum.raft.ignores_static_voters,
            quorum_control.ELR_ELECTIONS: figures.metadata.elr_elections,
        }
        samples = {family: [((), value)] for family, value in values.items()}
        samples[quorum_control.BROKER_STATES] = [((str(each),), state) for each, state in figures.brokers.items()]
        samples[quorum_control.BROKER_SILENCE] = [((str(each),), ms) for each, ms in figures.silent_ms.items()]
    for family in quorum_control.FAMILIES:
        if family is quorum_control.OPERATION_TIMES:
            yield distributions(family, [] if figures is None else [((), figures.counts.operation_times)])
        else:
            yield simple(family, samples.get(family, []))


def _camel_case(feature: str) -> str:
    """As Kafka's MetadataLoaderMetrics has it: ``metadataVersion``."""
    first, *others = feature.split(".")
    return first + "".join(word.capitalize() for word in others)


def _with_hyphens(feature: str) -> str:
    """As Kafka's NodeMetrics has it: ``metadata-version``."""
    return feature.replace(".", "-")
