"""``ottla quotas describe | set | unset``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import kafka.errors

from ....security.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from ....security.connection_rates import CONNECTION_CREATION_RATE
from ....wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ....wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ..client import Admin, ClusterConnection, pairs
from ..nearest import no_choice, tell_of_like
from ..output import OutputColumn, print_rows
from ..running import ToolError, UsageError, refusal
from ..wire_request import WireRequest

COLUMNS = (
    OutputColumn("user"),
    OutputColumn("client_id"),
    OutputColumn("ip"),
    OutputColumn("quota"),
    OutputColumn("value", is_number=True),
)
NAMES = (
    PRODUCER_BYTE_RATE,
    CONSUMER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    CONTROLLER_MUTATION_RATE,
    CONNECTION_CREATION_RATE,
)
_TYPES = ("user", "client-id", "ip")
_DEFAULT = "<default>"
_VERSIONS = 0, 1
_EXACT, _IS_DEFAULT = 0, 1


@dataclasses.dataclass(frozen=True)
class QuotaEntityOptions:
    """Whose quotas: a user, a client id, both, or an address, each named or the default."""

    user: str | None
    user_default: bool
    client_id: str | None
    client_id_default: bool
    ip: str | None
    ip_default: bool

    def named(self) -> dict[str, str | None]:
        """The name by type, None for the default. Raises UsageError."""
        found: dict[str, str | None] = {}
        given = (self.user, self.user_default), (self.client_id, self.client_id_default), (self.ip, self.ip_default)
        for kind, (name, is_default) in zip(_TYPES, given, strict=True):
            if name is not None and is_default:
                raise UsageError(f"say either --{kind} or --{kind}-default")
            if name is not None or is_default:
                found[kind] = name
        if "ip" in found and len(found) > 1:
            raise UsageError("an address has quotas of its own: --ip goes with neither --user nor --client-id")
        return found


def describe(connection: ClusterConnection, entity: QuotaEntityOptions, *, as_json: bool) -> None:
    """A row for each quota. Raises ToolError."""
    components = [
        ComponentData(entity_type=kind, match_type=_IS_DEFAULT if name is None else _EXACT, match=name)
        for kind, name in entity.named().items()
    ]
    with closing(connection.admin()) as admin:
        answer = _ask(admin, DescribeClientQuotasRequest(components=components))
        _check(answer.error_code, answer.error_message)
        if not answer.entries:
            _tell_of_like(admin, entity.named())
    rows = []
    for entry in answer.entries:
        names = {part.entity_type: part.entity_name or _DEFAULT for part in entry.entity}
        rows += [(*(names.get(kind) for kind in _TYPES), value.key, _number(value.value)) for value in entry.values]
    print_rows(COLUMNS, sorted(rows, key=lambda row: [field or "" for field in row[:4]]), as_json=as_json)


def set_quotas(connection: ClusterConnection, entity: QuotaEntityOptions, settings: Sequence[str]) -> None:
    """Set quotas. Raises ToolError with the broker's refusal."""
    wanted: dict[str, float | None] = {}
    for name, value in pairs("ottla quotas set", settings).items():
        try:
            wanted[name] = float(value)
        except ValueError:
            raise UsageError(f"{name} is a number, not {value!r}") from None
    _alter(connection, entity, wanted)
    print(f"Set {', '.join(wanted)} of {_whose(entity.named())}.")


def unset_quotas(connection: ClusterConnection, entity: QuotaEntityOptions, names: Sequence[str]) -> None:
    """Unset quotas. Raises ToolError with the broker's refusal."""
    _alter(connection, entity, dict.fromkeys(names))
    print(f"Unset {', '.join(names)} of {_whose(entity.named())}.")


def _alter(connection: ClusterConnection, entity: QuotaEntityOptions, wanted: Mapping[str, float | None]) -> None:
    named = entity.named()
    if not named:
        raise UsageError("say whose quotas: --user, --client-id, both, or --ip, or the same with -default")
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise no_choice("quota", unknown[0], NAMES)
    whose = [EntityData(entity_type=kind, entity_name=name) for kind, name in named.items()]
    ops = [OpData(key=key, value=value or 0.0, remove=value is None) for key, value in wanted.items()]
    with closing(connection.admin()) as admin:
        if all(value is None for value in wanted.values()):
            _tell_of_like(admin, named)
        answer = _ask(admin, AlterClientQuotasRequest(entries=[EntryData(entity=whose, ops=ops)]))
    for entry in answer.entries:
        _check(entry.error_code, entry.error_message)


def _tell_of_like(admin: Admin, named: Mapping[str, str | None]) -> None:
    """Say which user, client id or address with quotas may have been meant, where the named one has none."""
    everything = _ask(admin, DescribeClientQuotasRequest(components=[]))
    for kind, name in named.items():
        parts = [part for entry in everything.entries or () for part in entry.entity if part.entity_type == kind]
        tell_of_like(f"{kind} {name} with quotas", name or "", [part.entity_name for part in parts if part.entity_name])


def _ask(admin: Admin, request: DescribeClientQuotasRequest | AlterClientQuotasRequest) -> Any:
    try:
        return admin.ask(WireRequest(request, *_VERSIONS))
    except kafka.errors.IncompatibleBrokerVersion:
        raise ToolError("the broker is too old for this: it has no requests for quotas (KIP-546)") from None


def _check(error_code: int, message: str | None) -> None:
    if error_code:
        raise ToolError(refusal(error_code, message))


def _whose(named: Mapping[str, str | None]) -> str:
    return ", ".join(f"{kind} {_DEFAULT if name is None else name}" for kind, name in named.items())


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() else value
