"""The broker epoch in a request of the controller: what was meant for this broker before it registered anew is refused."""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from .call import Call

UNCHECKED = -1


def check_broker_epoch(call: Call, broker_epoch: int) -> None:
    """Raises KafkaError STALE_BROKER_EPOCH.

    A higher epoch than the own one is right: the controller may know of a registration before the broker itself does
    (KIP-380, ``KafkaApis.isBrokerEpochStale``).
    """
    own = call.broker.broker_epoch()
    if broker_epoch != UNCHECKED and broker_epoch < own:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"the broker's epoch is {own}, not {broker_epoch}")
