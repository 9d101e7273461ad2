"""Changes to the quotas of users, clients and IP addresses (KIP-546; Kafka's ClientQuotaControlManager).

Only what changes something is written. An entity succeeds or fails as a whole, and by itself. A value that is no number is
refused, which Kafka stores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import ClusterImage
from ....security.entities import IPS, Entity
from ....security.quota_entities import IP, NamedEntity, stored_entity
from ....security.quota_keys import INT_MAX, QUOTA_KEYS
from ....wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    ResponseEntryData,
)
from ....wire.metadata_records import VersionedRecord
from ..snapshot_records import quota_record
from .result import ControllerResult, bounded

_EPSILON = 1e-6


def alter_client_quotas(
    image: ClusterImage, request: AlterClientQuotasRequest, is_host: Callable[[str], bool]
) -> ControllerResult[AlterClientQuotasResponse]:
    """``is_host``: whether a text is an IP address, or a name that could be looked up."""
    records: list[VersionedRecord] = []
    outcome: dict[tuple[tuple[str, str | None], ...], KafkaError | None] = {}
    for entry in request.entries:
        named = {part.entity_type: part.entity_name for part in entry.entity}
        key = tuple(sorted(named.items(), key=lambda each: each[0]))
        has_doubled_key = len({op.key for op in entry.ops}) < len(entry.ops)
        if key in outcome or has_doubled_key:
            outcome[key] = _invalid(f"Ignoring duplicate entity {_java_text(named)}")
            continue
        try:
            records += _changes(image, named, entry.ops, is_host)
        except KafkaError as error:
            outcome[key] = error
        else:
            outcome[key] = None
    entries = [_result(dict(key), error) for key, error in outcome.items()]
    return ControllerResult(
        [] if request.validate_only else bounded(records), AlterClientQuotasResponse(entries=entries)
    )


def _changes(
    image: ClusterImage, named: NamedEntity, ops: Sequence[OpData], is_host: Callable[[str], bool]
) -> list[VersionedRecord]:
    """Raises KafkaError INVALID_REQUEST."""
    entity = stored_entity(named)
    if entity.kind is IPS and (address := named[IP]) is not None and not is_host(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    current = image.quotas.get(entity, {})
    records: list[VersionedRecord] = []
    for op in ops:
        if op.remove:
            if op.key in current:
                records.append((quota_record(entity, op.key, None), 0))
            continue
        _check_value(entity, op.key, op.value)
        if current.get(op.key) != op.value:
            records.append((quota_record(entity, op.key, op.value), 0))
    return records


def _check_value(entity: Entity, key: str, value: float) -> None:
    """Raises KafkaError INVALID_REQUEST."""
    keys = QUOTA_KEYS[entity.kind]
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    if not value > 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    largest = keys[key]
    if largest is None:
        if math.isinf(value):
            raise _invalid(f"Quota {key} must be a number")
    elif value > largest:
        article = "an INT" if largest == INT_MAX else "a LONG"
        raise _invalid(f"Proposed value for {key} is too large for {article}.")
    elif value % 1.0 > _EPSILON:
        raise _invalid(f"{key} cannot be a fractional value.")


def _java_text(named: NamedEntity) -> str:
    """An entity as Kafka's messages have it."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in named.items())
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _result(named: NamedEntity, error: KafkaError | None) -> ResponseEntryData:
    return ResponseEntryData(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in named.items()],
    )


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
