"""The versions of the controller's requests to brokers, as set by ``inter.broker.protocol.version``."""

from __future__ import annotations

from typing import NamedTuple

from ....replication.inter_broker_protocol import InterBrokerProtocol

# The version from each name on (ControllerChannelManager, MetadataVersion).
_LEADER_AND_ISR = {"2.8-IV1": 5, "3.2-IV0": 6, "3.4-IV0": 7}
_UPDATE_METADATA = {"2.8-IV1": 7, "3.4-IV0": 8}
_STOP_REPLICA = {"2.8-IV1": 3, "3.4-IV0": 4}


class RequestVersions(NamedTuple):
    """The version of each request."""

    leader_and_isr: int
    update_metadata: int
    stop_replica: int


def request_versions(protocol: InterBrokerProtocol) -> RequestVersions:
    """The versions that every broker with this protocol understands."""
    return RequestVersions(*map(protocol.newest, (_LEADER_AND_ISR, _UPDATE_METADATA, _STOP_REPLICA)))
