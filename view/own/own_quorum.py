"""The KRaft state of this broker as rows: metadata log, snapshots, voter changes, features, controllers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...base.errors import KafkaError
from ...base.seams import Workers
from ...controller.quorum.cluster import QuorumCluster
from ...controller.quorum.metadata_version import KRAFT_VERSION
from ...controller.quorum.supported_features import SUPPORTED
from ...controller.raft.driver import RaftDriver
from ...controller.raft.figures import state_name
from ...controller.raft.leader import RaftLeader
from ...controller.raft.quorum_state import QuorumState
from ...controller.raft.voter_set import VoterSet
from ...handlers.services import Services
from ...metadata.types import QuorumController
from ..quorum_rows import (
    FeatureRow,
    MetadataSnapshotRow,
    OwnQuorumRow,
    QuorumDetail,
    QuorumRow,
    RegisteredControllerRow,
    VoterChangeRow,
    describe_quorum_request,
    quorum_row,
    untold,
)

_RESPONSE_SECONDS = 2.0


def controller_of(services: Services) -> int:
    """The id of the node that is the controller; -1 where that is not known. Of a quorum it is the leader."""
    cluster = services.cluster
    return cluster.driver.node.leader_id if isinstance(cluster, QuorumCluster) else services.metadata.controller_id


async def quorum_detail(services: Services, cluster: QuorumCluster, workers: Workers) -> QuorumDetail:
    """What the leader tells, by the broker's own rights, and what the broker knows. A leader has two seconds to respond."""
    features = services.metadata.image.features
    levels = {} if features is None else features.levels
    return QuorumDetail(
        await _described(cluster),
        tuple(feature_rows({**levels, KRAFT_VERSION: cluster.driver.node.quorum.kraft_version})),
        await _own(services, cluster.driver, levels, workers),
    )


async def _described(cluster: QuorumCluster) -> QuorumRow:
    if cluster.driver.node.leader_address is None:
        return QuorumRow(None)
    try:
        return quorum_row(await cluster.ask_controller(describe_quorum_request(), _RESPONSE_SECONDS))
    except KafkaError as error:
        return untold(error)


def feature_rows(levels: Mapping[str, int]) -> Iterator[FeatureRow]:
    """Every feature that is finalized or that this broker supports."""
    for name in sorted({*levels, *SUPPORTED}):
        supported = SUPPORTED.get(name)
        lowest, highest = (None, None) if supported is None else supported
        yield FeatureRow(name, levels.get(name, 0), lowest, highest)


async def _own(services: Services, driver: RaftDriver, levels: Mapping[str, int], workers: Workers) -> OwnQuorumRow:
    quorum, log = driver.node.quorum, driver.storage.log
    snapshots = []
    for snapshot, size in list(quorum.log.snapshots.items()):
        facts = await workers.run(log.snapshot_facts, snapshot)
        if facts is not None:  # it may have been deleted meanwhile
            newest_ms = facts.last_contained_ms if facts.last_contained_ms > 0 else None
            snapshots.append(MetadataSnapshotRow(snapshot.end_offset, snapshot.epoch, size, newest_ms))
    image = services.metadata.image
    return OwnQuorumRow(
        quorum.key.node_id,
        state_name(quorum).value,
        quorum.leader_id if quorum.leader_id >= 0 else None,
        quorum.epoch,
        quorum.leader_high_watermark,
        log.start_offset,
        log.end_offset,
        log.size,
        log.segment_count,
        None if image.position is None else image.position.offset,
        tuple(snapshots),
        tuple(_changes(quorum)),
        tuple(_controller(each, levels) for _, each in sorted(image.quorum_controllers.items())),
    )


def _controller(controller: QuorumController, levels: Mapping[str, int]) -> RegisteredControllerRow:
    lacks = []
    for name, level in sorted(levels.items()):
        supported = controller.features.get(name)
        if level and (supported is None or not supported.lowest <= level <= supported.highest):
            lacks.append(f"{name} {level}")
    listeners = tuple((each.listener, each.host, each.port) for each in controller.endpoints)
    return RegisteredControllerRow(controller.controller_id, listeners, tuple(lacks))


def _changes(quorum: QuorumState) -> Iterator[VoterChangeRow]:
    """Of the voters, as far as this node's log has them; the leader also knows whom it is about to add."""
    if isinstance(quorum.state, RaftLeader) and (adding := quorum.state.adding) is not None and adding.offset is None:
        yield VoterChangeRow(adding.key.node_id, "is about to be added")
    if not quorum.has_uncommitted_voters:
        return
    before, after = quorum.log.quorum_at(quorum.log.quorum.offset - 1).voters or VoterSet(), quorum.voters
    for node_id in sorted({*before.ids, *after.ids}):
        old, new = before.voters.get(node_id), after.voters.get(node_id)
        if old is None:
            yield VoterChangeRow(node_id, "is being added")
        elif new is None:
            yield VoterChangeRow(node_id, "is being removed")
        elif old != new:
            yield VoterChangeRow(node_id, "is being updated")
