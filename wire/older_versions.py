"""Downgrade of a message to an older version: the fields that the version lacks are reset to their defaults."""

from __future__ import annotations

from .schema import Array, Struct
from .source_builder import is_struct


def drop_later_fields(message: Struct, version: int) -> None:
    """Set the fields that ``version`` does not have to their defaults, in the message and in all structs in it."""
    for spec in message.fields:
        if version not in spec.versions:
            setattr(message, spec.name, spec.make_default())
            continue
        kind = spec.type.element if isinstance(spec.type, Array) else spec.type
        if is_struct(kind):
            value = getattr(message, spec.name)
            for each in value or () if isinstance(spec.type, Array) else (value,):
                if each is not None:
                    drop_later_fields(each, version)
