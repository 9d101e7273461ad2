"""Registrations of brokers and controllers (KIP-631, KIP-919).

The epoch of a broker is the offset of the first record of its registration, which is known before it is written. That is the
RegisterBrokerRecord itself, unless changes of partitions that its previous life has left come first. A process that registers
again, as it does when a response was lost, keeps its epoch (KAFKA-16952). Source: Kafka's ClusterControlManager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....base.errors import ErrorCode, KafkaError
from ....metadata.types import LAST_RESERVED_DIRECTORY, PROTOCOL_NAMES, QuorumBroker
from ....wire.messages import broker_records
from ....wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ....wire.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from ....wire.messages.unregister_broker import UnregisterBrokerResponse
from ....wire.metadata_records import VersionedRecord
from ....wire.schema import uuid_to_text
from .. import metadata_version
from ..metadata_version import FEATURE, KRAFT_VERSION
from . import broker_states
from .context import OperationContext
from .heartbeats import BrokerHeartbeats
from .result import ControllerResult, bounded

TELLS_PREVIOUS_EPOCH = 3
"""The version of BrokerRegistration from which a broker says under which epoch it was stopped cleanly (KIP-966)."""
_UNKNOWN_EPOCH = -2
"""Of a broker that is new: no request has it."""


def register_broker(
    context: OperationContext,
    request: BrokerRegistrationRequest,
    heartbeats: BrokerHeartbeats,
    *,
    version: int,
    next_offset: int,
    kraft_version: int,
    now_ms: int,
) -> ControllerResult[BrokerRegistrationResponse]:
    """Register a broker. ``version`` is the request's, ``next_offset`` that of the next record of the log.

    Raises KafkaError INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION, BROKER_ID_NOT_REGISTERED, INVALID_REGISTRATION,
    UNSUPPORTED_VERSION. The result may be split into batches, because the registration itself is the last record: if the
    controller dies before it the broker registers again.
    """
    known = context.broker(request.broker_id)
    _check_identity(context, request, known, heartbeats, now_ms)
    has_directories = metadata_version.has_directories(context.level)
    if has_directories:
        _check_directories(context, request)
    _check_listeners(request.listeners)
    _check_features(context, request.features, kraft_version)
    record = broker_records.RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        rack=request.rack,
        end_points=_structs(broker_records.BrokerEndpoint, request.listeners, _ENDPOINT),
        features=_structs(broker_records.BrokerFeature, request.features, _FEATURE),
        log_dirs=list(request.log_dirs) if has_directories else [],
    )
    records: list[VersionedRecord] = []
    if known is not None and known.incarnation_id == request.incarnation_id:
        record.broker_epoch = known.epoch
        record.fenced = known.is_fenced
        record.in_controlled_shutdown = known.is_shutting_down
    else:
        was_clean = version >= TELLS_PREVIOUS_EPOCH and request.previous_broker_epoch == (
            _UNKNOWN_EPOCH if known is None else known.epoch
        )
        records = broker_states.end_previous_life(context, request.broker_id, was_clean=was_clean)
        record.broker_epoch = next_offset
    records.append((record, metadata_version.broker_record_version(context.level)))
    return ControllerResult(records, BrokerRegistrationResponse(broker_epoch=record.broker_epoch), is_atomic=False)


def unregister_broker(context: OperationContext, broker_id: int) -> ControllerResult[UnregisterBrokerResponse]:
    """Raises KafkaError BROKER_ID_NOT_REGISTERED, POLICY_VIOLATION."""
    broker = context.broker(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    records = bounded(broker_states.unregister(context, broker_id, broker.epoch))
    return ControllerResult(records, UnregisterBrokerResponse(), is_atomic=False)


def register_controller(
    context: OperationContext, request: ControllerRegistrationRequest
) -> ControllerResult[ControllerRegistrationResponse]:
    """Raises KafkaError UNSUPPORTED_VERSION, INVALID_REGISTRATION."""
    if not metadata_version.has_controller_registrations(context.level):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    _check_listeners(request.listeners)
    record = broker_records.RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=_structs(broker_records.ControllerEndpoint, request.listeners, _ENDPOINT),
        features=_structs(broker_records.ControllerFeature, request.features, _FEATURE),
    )
    return ControllerResult([(record, 0)], ControllerRegistrationResponse())


def check_broker_epoch(context: OperationContext, broker_id: int, broker_epoch: int) -> None:
    """Raises KafkaError STALE_BROKER_EPOCH if a request is not of the broker's present registration."""
    broker = context.broker(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if broker.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        )


def _check_identity(
    context: OperationContext,
    request: BrokerRegistrationRequest,
    known: QuorumBroker | None,
    heartbeats: BrokerHeartbeats,
    now_ms: int,
) -> None:
    cluster_id = context.settings.cluster_id
    if request.cluster_id != cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {cluster_id}, but got cluster ID {request.cluster_id}",
        )
    is_new_life = known is not None and known.incarnation_id != request.incarnation_id
    if known is not None and is_new_life and heartbeats.has_session(request.broker_id, known.epoch, now_ms):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted this should "
            "self-resolve once the heartbeat manager expires the broker's session.",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers.")


def _check_directories(context: OperationContext, request: BrokerRegistrationRequest) -> None:
    if not request.log_dirs:
        raise _invalid("No directories specified in request")
    if any(directory < LAST_RESERVED_DIRECTORY for directory in request.log_dirs):
        raise _invalid("Reserved directory ID in request")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise _invalid("Duplicate directory ID in request")
    for directory in request.log_dirs:
        for broker_id, broker in context.image.quorum_brokers.newest().items():
            if broker_id != request.broker_id and directory in broker.directories:
                raise _invalid(f"Broker {broker_id} is already registered with directory {uuid_to_text(directory)}")


def _check_listeners(listeners: Sequence[Any]) -> None:
    """A protocol without a name could not be replayed."""
    for listener in listeners:
        if listener.security_protocol not in PROTOCOL_NAMES:
            raise _invalid(f"There is no security protocol with the number {listener.security_protocol}")


def _check_features(context: OperationContext, features: Sequence[Any], kraft_version: int) -> None:
    """The broker must support every feature at its finalized level; one that it does not name it supports at 0 only."""
    image_features = context.image.features
    finalized = {**({} if image_features is None else image_features.levels), KRAFT_VERSION: kraft_version}
    named = {feature.name for feature in features}
    for feature in features:
        _check_range(feature.name, finalized, feature.min_supported_version, feature.max_supported_version)
    if FEATURE not in named:
        raise _invalid(f"Request features do not contain '{FEATURE}'")
    for name, level in finalized.items():
        if level and name not in named:
            _check_range(name, finalized, 0, 0)


def _check_range(name: str, finalized: Mapping[str, int], lowest: int, highest: int) -> None:
    level = finalized.get(name, 0)
    if not lowest <= level <= highest:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unable to register because the broker does not support finalized version {level} of {name}. "
            f"The broker wants a version between {lowest} and {highest}, inclusive.",
        )


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, why)


_ENDPOINT = ("name", "host", "port", "security_protocol")
_FEATURE = ("name", "min_supported_version", "max_supported_version")


def _structs(struct: Any, requested: Sequence[Any], fields: tuple[str, ...]) -> list[Any]:
    """The same fields in a record's own structs."""
    return [struct(**{field: getattr(each, field) for field in fields}) for each in requested]
