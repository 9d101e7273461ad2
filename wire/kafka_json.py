"""Messages as the JSON that Apache Kafka's own converters produce.

Fields come in the order of their declaration, in camel case; bytes are base64, uuids Kafka's text form. A tagged field is
left out while it has its default. ``kafka_json_text`` is the compact text that Kafka's tools print.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from .schema import Array, Primitive, Struct, WireType, uuid_to_text

_CONTROL_ESCAPE = re.compile(r"\\u00[0-9a-f]{2}")


def kafka_json(message: Struct, version: int) -> dict[str, Any]:
    """The fields that ``version`` carries, under Kafka's names, as values that ``json`` takes."""
    result: dict[str, Any] = {}
    for spec in message.fields:
        value = getattr(message, spec.name)
        is_unset = spec.tag is not None and value == spec.make_default()
        if version in spec.versions and not is_unset:
            result[_camel_case(spec.name)] = _value(spec.type, value, version)
    return result


def kafka_json_text(value: Any) -> str:
    """The text of a value, without spaces; control characters are escaped in upper case hex, as Jackson does."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _CONTROL_ESCAPE.sub(lambda match: rf"\u{match[0][2:].upper()}", text)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _value(wire_type: WireType, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(wire_type, Array):
        return [_value(wire_type.element, element, version) for element in value]
    if not isinstance(wire_type, Primitive):
        return kafka_json(value, version)
    if wire_type.name == "uuid":
        return uuid_to_text(value)
    if wire_type.name in ("bytes", "records"):
        return base64.b64encode(bytes(value)).decode()
    return value
