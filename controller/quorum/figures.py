"""The values of a node's quorum metrics: its Raft node, and the progress of its metadata.

Meanings are those of Kafka's MetadataLoaderMetrics and BrokerServerMetrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...metadata.types import FinalizedFeatures, LogPosition
from ..raft.driver import RaftDriver
from ..raft.figures import RaftFigures, raft_figures
from .metadata_version import FEATURE, KRAFT_VERSION, LOWEST


class QuorumFigures(NamedTuple):
    """The quorum as one node sees it."""

    raft: RaftFigures
    applied: LogPosition
    """Of the last record in the node's image; all -1 before there is one."""
    levels: Mapping[str, int]
    """Of finalized features, by name."""
    snapshots_loaded: int


def quorum_figures(
    driver: RaftDriver, applied: LogPosition, features: FinalizedFeatures | None, snapshots_loaded: int
) -> QuorumFigures:
    """As they are now. Before an image has features, ``metadata.version`` is the lowest that there is, as in Kafka."""
    raft = raft_figures(driver)
    levels = {FEATURE: LOWEST, **({} if features is None else features.levels), KRAFT_VERSION: raft.kraft_version}
    return QuorumFigures(raft, applied, levels, snapshots_loaded)
