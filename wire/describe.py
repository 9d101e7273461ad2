"""Messages and their layouts in readable form: a message as JSON, the fields of a version as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base.errors import KafkaError
from .records import iter_complete_batches
from .schema import Array, FieldSpec, Message, Primitive, Struct, WireType, uuid_to_text


def message_as_json(message: Struct, version: int) -> dict[str, Any]:
    """The fields that ``version`` carries, under their Python names, as values that ``json`` takes.

    Bytes are hex, uuids Kafka's text form, records a summary of their batches. Tagged fields that are not set are left out.
    """
    result: dict[str, Any] = {}
    for spec in message.fields:
        value = getattr(message, spec.name)
        is_unset = spec.tag is not None and value == spec.make_default()
        if version in spec.versions and not is_unset:
            result[spec.name] = _value_as_json(spec.type, value, version)
    for tag, data in message.unknown_tagged_fields:
        result[f"unknown_tag_{tag}"] = data.hex()
    return result


def _value_as_json(wire_type: WireType, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(wire_type, Array):
        return [_value_as_json(wire_type.element, element, version) for element in value]
    if not isinstance(wire_type, Primitive):
        return message_as_json(value, version)
    if wire_type.name == "uuid":
        return uuid_to_text(value)
    if wire_type.name == "bytes":
        return value.hex()
    return _records_as_json(value) if wire_type.name == "records" else value


_BATCH_SUMMARY = (
    "base_offset",
    "last_offset",
    "partition_leader_epoch",
    "record_count",
    "size",
    "compression",
    "is_transactional",
    "is_control",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "max_timestamp",
)


def _records_as_json(data: memoryview) -> dict[str, Any]:
    batches: list[dict[str, Any]] = []
    summary: dict[str, Any] = {"size": len(data), "batches": batches}
    try:
        batches.extend({name: getattr(batch, name) for name in _BATCH_SUMMARY} for batch in iter_complete_batches(data))
    except KafkaError as error:
        summary["error"] = str(error)
    return summary


def layout(message_class: type[Message], version: int) -> Iterator[str]:
    """A line for each field that ``version`` has, nested ones indented, tagged ones last."""
    flexible = "flexible" if version in message_class.flexible_versions else "not flexible"
    yield f"{message_class.__name__} v{version} ({flexible})"
    yield from _struct_layout(message_class, version, "  ")


def _struct_layout(struct: type[Struct], version: int, indent: str) -> Iterator[str]:
    present = [spec for spec in struct.fields if version in spec.versions]
    for spec in sorted(present, key=lambda spec: -1 if spec.tag is None else spec.tag):
        yield f"{indent}{spec.name}: {_type_name(spec.type)}{_remarks(spec, version)}"
        element = spec.type.element if isinstance(spec.type, Array) else spec.type
        if isinstance(element, type):
            yield from _struct_layout(element, version, indent + "  ")


def _type_name(wire_type: WireType) -> str:
    if isinstance(wire_type, Array):
        return f"array of {_type_name(wire_type.element)}"
    return wire_type.name if isinstance(wire_type, Primitive) else wire_type.__name__


def _remarks(spec: FieldSpec, version: int) -> str:
    remarks = []
    if spec.tag is not None:
        remarks.append(f"tag {spec.tag}")
    if version in spec.nullable:
        remarks.append("nullable")
    zero = spec.type.zero if isinstance(spec.type, Primitive) else []
    default = spec.make_default()
    if default != zero and not isinstance(default, Struct):
        remarks.append(f"default {'null' if default is None else default}")
    return f" ({', '.join(remarks)})" if remarks else ""
