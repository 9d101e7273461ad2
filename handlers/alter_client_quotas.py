"""AlterClientQuotas (key 49): set and remove quotas of users, client ids and IP addresses (KIP-546).

Behaviour: any broker writes them to the cluster's store, and all learn of it. An entry succeeds or fails by itself; its other
quotas, and a user's credentials, stay as they are. ``validate_only`` checks and changes nothing. An unknown key or type, an
empty name, an address together with a user or a client id, an address that is neither one nor a host name that can be looked
up, and a fraction where bytes or connections are counted are INVALID_REQUEST. Removing what is not set is a success.

Differences from Kafka: a value that is not a number, or a negative one of an address, is INVALID_REQUEST (Kafka stores the
former, and answers UNKNOWN_SERVER_ERROR to the latter); credentials cannot be removed by this API (Kafka removes any key of the
user's node).

Version notes: 1 is flexible.
"""

from __future__ import annotations

import ipaddress
import math
import socket
from collections.abc import Iterable

from ..base.errors import ErrorCode, KafkaError
from ..security.entities import IPS, EntityKind
from ..security.quota_entities import IP, NamedEntity, stored_entity
from ..security.quota_keys import QUOTA_KEYS
from ..wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
    ResponseEntryData,
)
from .call import Call

_EPSILON = 1e-6


async def handle(call: Call, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    await call.flush()
    results: dict[tuple[tuple[str, str | None], ...], ResponseEntryData] = {}
    for entry in request.entries:
        entity = {part.entity_type: part.entity_name for part in entry.entity}
        results[tuple(entity.items())] = await _alter(call, entity, entry, validate_only=request.validate_only)
    return AlterClientQuotasResponse(entries=list(results.values()))


async def _alter(call: Call, entity: NamedEntity, entry: EntryData, *, validate_only: bool) -> ResponseEntryData:
    try:
        stored = stored_entity(entity)
        if stored.kind is IPS and (address := entity[IP]) is not None:
            await _check_address(call, address)
        changes = _changes(stored.kind, entry.ops)
        if not validate_only:
            await call.broker.commands.change_quotas(stored, changes)
    except KafkaError as error:
        return _result(entity, error)
    return _result(entity, None)


async def _check_address(call: Call, address: str) -> None:
    """Raises KafkaError INVALID_REQUEST."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        if not await call.broker.workers.run(_is_host, address):
            message = f"{address} is not a valid IP or resolvable host."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message) from None


def _is_host(name: str) -> bool:
    try:
        return bool(socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return False


def _changes(kind: EntityKind, ops: Iterable[OpData]) -> dict[str, float | None]:
    """What is to be set, None for what is to be removed. Raises KafkaError INVALID_REQUEST."""
    keys = QUOTA_KEYS[kind]
    changes: dict[str, float | None] = {}
    for op in ops:
        if op.remove:
            if op.key in keys:
                changes[op.key] = None
        elif op.key not in keys:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {op.key}")
        else:
            changes[op.key] = _checked(op, keys[op.key], 0 if kind == IPS else None)
    return changes


def _checked(op: OpData, largest: int | None, smallest: int | None) -> float:
    """The value, as an int where only whole numbers are allowed. Raises KafkaError INVALID_REQUEST."""
    if not math.isfinite(op.value):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Configuration {op.key} must be a number")
    if largest is None:
        return op.value
    whole = int(op.value + _EPSILON)
    if abs(whole - op.value) > _EPSILON or whole > largest or (smallest is not None and whole < smallest):
        name = "INT" if smallest is not None else "LONG"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Configuration {op.key} must be a {name} value")
    return whole


def _result(entity: NamedEntity, error: KafkaError | None) -> ResponseEntryData:
    named = [EntityData(entity_type=entity_type, entity_name=name) for entity_type, name in entity.items()]
    if error is None:
        return ResponseEntryData(error_code=0, error_message=None, entity=named)
    return ResponseEntryData(error_code=error.code, error_message=error.message, entity=named)


def error_response(request: AlterClientQuotasRequest, error: KafkaError) -> AlterClientQuotasResponse:
    entities = [{part.entity_type: part.entity_name for part in entry.entity} for entry in request.entries]
    return AlterClientQuotasResponse(entries=[_result(entity, error) for entity in entities])
