"""Builds the services of a controller's listeners, which follow the committed metadata."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..base.config import Config
from ..base.loop_turns import LoopTurns
from ..base.seams import Clock, Workers
from ..controller.configs.broker_configs import BrokerConfigs
from ..controller.quorum.active.committed_metadata import CommittedMetadata
from ..controller.quorum.active.node import ControllerNode
from ..controller.quorum.supported_features import SUPPORTED
from ..group_coordinator.group_configs import within_bounds
from ..handlers.controller.services import ControllerServices
from ..handlers.controller.table import SERVED_BY_CONTROLLERS
from ..handlers.table import guarded
from ..metadata.delta import ClusterDelta
from ..metadata.image import ClusterImage
from ..security.client_quotas import ClientQuotas
from ..security.quota_settings import ClientQuotaSettings
from .auth.access import make_authorizer, make_token_passwords
from .own_controller import OWN_NODE
from .quotas import follow_quotas

if TYPE_CHECKING:
    from ..security.authorizer import Authorizer


def controller_services(
    config: Config, clock: Clock, workers: Workers, cluster_id: str, controller: ControllerNode
) -> ControllerServices:
    """Call it before ``controller`` runs: a listener may be open while it is not known yet who may do what.

    Access rules, quotas and dynamic configs are in force as soon as the controller has caught up with the log.
    """
    metadata = controller.controller.metadata
    authorizer = make_authorizer(config, clock, OWN_NODE)
    if authorizer is not None:
        _follow_rules(metadata, authorizer)
    BrokerConfigs(config, metadata, controller.node_id, partial(within_bounds, config)).follow()
    client_quotas = ClientQuotas(config.settings(ClientQuotaSettings))
    follow_quotas(metadata, client_quotas)
    return ControllerServices(
        node_id=controller.node_id,
        cluster_id=cluster_id,
        config=config,
        clock=clock,
        workers=workers,
        metadata=metadata,
        group_turns=LoopTurns(clock.elapsed),
        client_quotas=client_quotas,
        token_passwords=make_token_passwords(config, metadata, clock),
        authorizer=authorizer,
        served=SERVED_BY_CONTROLLERS if authorizer is None else guarded(SERVED_BY_CONTROLLERS),
        supported_features=SUPPORTED,
        quorum_node=controller,
    )


def _follow_rules(metadata: CommittedMetadata, authorizer: Authorizer) -> None:
    """Until they are known only super users are let in."""

    def follow(delta: ClusterDelta, image: ClusterImage) -> None:
        authorizer.change(delta.acls)
        authorizer.is_loaded = True

    assert not metadata.is_loaded, "the controller runs already"
    authorizer.is_loaded = False
    metadata.publishers.append(follow)
