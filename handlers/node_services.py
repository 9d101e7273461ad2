"""The services of a node that its listeners use, broker or controller: settings, limits, rights, and the served APIs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from ..base.config import Config
    from ..base.loop_turns import LoopTurns
    from ..base.seams import Clock, Workers
    from ..controller.token_passwords import TokenPasswords
    from ..metadata.published import PublishedMetadata
    from ..metadata.types import FinalizedFeatures, VersionRange
    from ..security.authorizer import Authorizer
    from ..security.client_quotas import ClientQuotas
    from .table import ServedApis


@dataclasses.dataclass(slots=True, kw_only=True)
class NodeServices:
    """See the module."""

    node_id: int
    cluster_id: str
    config: Config
    clock: Clock
    workers: Workers
    metadata: PublishedMetadata
    client_quotas: ClientQuotas
    token_passwords: TokenPasswords | None
    """None where there are no delegation tokens."""
    authorizer: Authorizer | None
    """None where every client may do everything."""
    group_turns: LoopTurns
    """Where requests to coordinators of groups wait for their turn of the loop."""
    served: ServedApis
    """It may be replaced while the node runs; dispatch reads it with every request."""
    supported_features: Mapping[str, VersionRange] = dataclasses.field(default_factory=dict)
    """Those that a node of KRaft tells of, each with its levels."""
    large_decoding: trio.Lock = dataclasses.field(default_factory=trio.Lock)
    """Held while a large request is decoded (``broker.listeners.large_requests``)."""
    early_responses: list[Callable[[], None]] = dataclasses.field(default_factory=list)
    """What answers requests whose wait has just ended, before their tasks go on (``NodeCall``)."""

    @property
    def finalized_features(self) -> FinalizedFeatures | None:
        """Those that clients are told of; None where nobody has told of any."""
        return self.metadata.image.features
