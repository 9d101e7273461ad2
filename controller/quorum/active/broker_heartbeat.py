"""Processing of a broker's heartbeat: the requested state, the granted state, and the resulting records (KIP-631).

Source: ``processBrokerHeartbeat`` and ``maybeFenceOneStaleBroker`` of Kafka's ReplicationControlManager.
"""

from __future__ import annotations

from typing import NamedTuple

from ....base.errors import ErrorCode, KafkaError
from ....wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from .. import metadata_version
from . import broker_states
from .brokers import check_broker_epoch
from .context import OperationContext
from .heartbeats import BrokerControlState, BrokerHeartbeats
from .result import ControllerResult


class HeartbeatReply(NamedTuple):
    response: BrokerHeartbeatResponse
    is_in_controlled_shutdown: bool
    """The broker has to wait for every active broker to apply the records of this result."""


def process_heartbeat(
    context: OperationContext, request: BrokerHeartbeatRequest, heartbeats: BrokerHeartbeats
) -> ControllerResult[HeartbeatReply]:
    """Notes in ``heartbeats`` how far the broker has come; that it was heard of was noted before.

    Raises KafkaError STALE_BROKER_EPOCH for a registration that is unknown, or was replaced by another one.
    """
    broker_id = request.broker_id
    registration_offset = context.state.registration_offsets.get(broker_id)
    if registration_offset is None:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"Receive a heartbeat from broker {broker_id} before registration"
        )
    check_broker_epoch(context, broker_id, request.broker_epoch)
    current, following = heartbeats.next_state(
        request, registration_offset, has_leaderships=context.index.has_leaderships(broker_id)
    )
    records = []
    if current is not following:
        if following.is_fenced:
            records = broker_states.fence(context, broker_id)
        elif following is BrokerControlState.UNFENCED:
            records = broker_states.unfence(context, broker_id)
        else:
            records = broker_states.begin_controlled_shutdown(context, broker_id)
    if following is BrokerControlState.SHUTDOWN_NOW:
        # Kafka's controller keeps the session, and has a broker that is started again wait for its end.
        heartbeats.mark_replaceable(broker_id, request.broker_epoch)
    heartbeats.touch(broker_id, is_fenced=following.is_fenced, metadata_offset=request.current_metadata_offset)
    if metadata_version.has_directories(context.level):
        records += broker_states.lose_directories(context, broker_id, request.offline_log_dirs)
    if metadata_version.has_cordoned_directories(context.level):
        records += broker_states.cordon_directories(context, broker_id, request.cordoned_log_dirs)
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= registration_offset,
        is_fenced=following.is_fenced,
        should_shut_down=following is BrokerControlState.SHUTDOWN_NOW,
    )
    reply = HeartbeatReply(response, following is BrokerControlState.CONTROLLED_SHUTDOWN)
    return ControllerResult(records, reply, is_atomic=False)


def fence_stale_broker(context: OperationContext, heartbeats: BrokerHeartbeats, now_ms: int) -> ControllerResult[bool]:
    """Fence one broker whose session is over; True if there may be more.

    It is one at a time, so that the next one is fenced in the knowledge of this one: two that go together must not be elected
    in turn (KAFKA-13173). A broker that is fenced already is fenced again, as Kafka does it.
    """
    session = heartbeats.remove_expired(now_ms)
    if session is None:
        return ControllerResult([], response=False, is_atomic=False)
    broker = context.broker(session.broker_id)
    if broker is None:
        heartbeats.remove(session.broker_id)
    if broker is None or broker.epoch != session.broker_epoch:
        return ControllerResult([], response=True, is_atomic=False)
    return ControllerResult(broker_states.fence(context, session.broker_id), response=True, is_atomic=False)
