"""The parts of a controller that its handlers use, put together by ``broker.controller_services``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ...controller.quorum.metadata_version import FEATURE, KRAFT_VERSION, LOWEST
from ...metadata.types import UNKNOWN_EPOCH, FinalizedFeatures
from ..node_services import NodeServices

if TYPE_CHECKING:
    from ...controller.quorum.active.committed_metadata import CommittedMetadata
    from ...controller.quorum.active.node import ControllerNode


@dataclasses.dataclass(slots=True, kw_only=True)
class ControllerServices(NodeServices):
    """One controller's parts. ``metadata`` is what ``quorum_node`` knows to be committed."""

    metadata: CommittedMetadata
    quorum_node: ControllerNode

    @property
    def finalized_features(self) -> FinalizedFeatures:
        """With the level of ``kraft.version``, which is not among the records of the metadata log."""
        features = self.metadata.image.features or FinalizedFeatures(UNKNOWN_EPOCH, {FEATURE: LOWEST})
        level = self.quorum_node.driver.node.quorum.kraft_version
        return features._replace(levels={**features.levels, KRAFT_VERSION: level}) if level else features
