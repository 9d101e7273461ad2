"""DescribeClientQuotas (key 48): the quotas that are set, as far as they match filters (KIP-546).

Behaviour: a filter is for one type of entity: a name, the default, or anything of the type. The entity of a quota must have
each type that there is a filter for, and with ``strict`` no other. Without filters the response has all quotas, with ``strict``
none. Types given twice, and addresses together with users or client ids, are INVALID_REQUEST; types that do not exist are
UNSUPPORTED_VERSION.

Differences from Kafka: a kind of filter that does not exist, or one for a name without it, is INVALID_REQUEST (Kafka:
UNKNOWN_SERVER_ERROR); a stored value that is not a number is left out (Kafka: UNKNOWN_SERVER_ERROR for everything).

Version notes: 1 is flexible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..base.errors import ErrorCode, KafkaError
from ..security.entities import CLIENTS, IPS, USERS, order_of
from ..security.quota_entities import ENTITY_TYPES, IP, NamedEntity, named_entity
from ..security.quota_keys import QUOTA_KEYS
from ..wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from .call import Call

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2
_LISTED = (USERS, CLIENTS, IPS)


async def handle(call: Call, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    filters = _filters(request.components)
    quotas = call.broker.metadata.image.quotas
    entries = []
    for entity in sorted(quotas, key=lambda each: (_LISTED.index(each.kind), order_of(each.name))):
        named = named_entity(entity)
        if _matches(named, filters, strict=request.strict):
            limits = quotas[entity]
            values = [ValueData(key=key, value=limits[key]) for key in QUOTA_KEYS[entity.kind] if key in limits]
            parts = [EntityData(entity_type=entity_type, entity_name=name) for entity_type, name in named.items()]
            entries.append(EntryData(entity=parts, values=values))
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def _filters(components: Iterable[ComponentData]) -> dict[str, ComponentData]:
    """The filter of each type. Raises KafkaError."""
    filters: dict[str, ComponentData] = {}
    for component in components:
        kind = component.entity_type
        if kind in filters:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate {kind} filter component entity type")
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type")
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported")
        if component.match_type not in (_EXACT, _DEFAULT, _SPECIFIED):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected match type: {component.match_type}")
        if component.match_type == _EXACT and component.match is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Request specified a {kind} without its name")
        filters[kind] = component
    if IP in filters and len(filters) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination, IP filter component should not be used with user or clientId "
            "filter component.",
        )
    return filters


def _matches(entity: NamedEntity, filters: Mapping[str, ComponentData], *, strict: bool) -> bool:
    if strict and (entity.keys() - filters.keys()):
        return False
    return all(kind in entity and _is_meant(entity[kind], component) for kind, component in filters.items())


def _is_meant(name: str | None, component: ComponentData) -> bool:
    if component.match_type == _SPECIFIED:
        return True
    return name == (component.match if component.match_type == _EXACT else None)


def error_response(request: DescribeClientQuotasRequest, error: KafkaError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
