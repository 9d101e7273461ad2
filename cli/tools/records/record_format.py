"""Output formats of records: values alone, or JSON lines; format strings are in ``format_template``.

JSON has a record per line. Bytes that are not UTF-8 stand base64-encoded under ``key_base64``, ``value_base64``, so that
``ottla produce --json`` writes back just what was read. Records that a share group has delivered have their ``delivery_count``.
"""

from __future__ import annotations

import base64
import json
from typing import Any


def value_line(record: Any) -> bytes:
    """The value and a line's end; a record without a value is an empty line."""
    return (record.value or b"") + b"\n"


def json_line(record: Any) -> bytes:
    """One JSON object and a line's end."""
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": "LogAppendTime" if record.timestamp_type == 1 else "CreateTime",
        **_text_or_base64("key", record.key),
        **_text_or_base64("value", record.value),
        "headers": [{"key": name, **_text_or_base64("value", value)} for name, value in record.headers],
    }
    if (delivery_count := getattr(record, "delivery_count", None)) is not None:
        fields["delivery_count"] = delivery_count
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def _text_or_base64(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}
