"""The check of requests that only the controller executes (NOT_CONTROLLER)."""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from .call import Call


def check_is_controller(call: Call) -> None:
    """Raises KafkaError NOT_CONTROLLER. As in Kafka this comes before rights are checked: the client is to ask elsewhere."""
    if not call.broker.cluster.is_controller:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")
