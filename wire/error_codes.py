"""Extraction of the error codes in a response, by one compiled function per response class, and of their messages.

They are the int16 fields ``error_code``, and the strings ``error_message``, of the response and of all structs in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from .schema import Array, Message, Struct, WireType
from .source_builder import SourceBuilder, is_struct

_FIELD = "error_code"
_MESSAGE = "error_message"

FindErrors = Callable[[Message], Sequence[int]]
"""Returns the error codes of a response other than NONE, in order."""


_finders: dict[type[Message], FindErrors] = {}


def error_finder(message_class: type[Message]) -> FindErrors:
    """The function that finds the errors in messages of this class."""
    find = _finders.get(message_class)
    if find is None:
        find = _finders[message_class] = _compile(message_class)
    return find


def error_messages(response: Struct, most: int = sys.maxsize) -> Iterator[str]:
    """The messages in a response, in order, of its first ``most`` structs."""
    pending, looked_into = [response], 0
    while pending and looked_into < most:
        struct = pending.pop()
        looked_into += 1
        inner: list[Struct] = []
        for spec in struct.fields:
            value = getattr(struct, spec.name)
            if spec.name == _MESSAGE and value:
                yield value
            elif isinstance(value, list):
                inner += [element for element in value if isinstance(element, Struct)]
        pending += reversed(inner)


def _compile(message_class: type[Message]) -> FindErrors:
    source = SourceBuilder({})
    source.emit("found = []")
    _look_into(source, message_class, "message")
    source.emit("return found")
    find: FindErrors = source.compile(f"errors of {message_class.__name__}", "message")
    return find


def _look_into(source: SourceBuilder, struct: type[Struct], name: str) -> None:
    for spec in struct.fields:
        if spec.name == _FIELD:
            source.emit(f"if {name}.{_FIELD}: found.append({name}.{_FIELD})")
    for spec in struct.fields:
        inner = _struct_in(spec.type)
        if inner is None or not _has_errors(inner):
            continue
        variable = source.variable()
        if isinstance(spec.type, Array):
            source.emit(f"for {variable} in {name}.{spec.name} or ():")
        else:
            source.emit(f"if ({variable} := {name}.{spec.name}) is not None:")
        source.indent()
        _look_into(source, inner, variable)
        source.dedent()


def _struct_in(wire_type: WireType) -> type[Struct] | None:
    """The type of a field, or of its elements, if it is a struct."""
    if isinstance(wire_type, Array):
        wire_type = wire_type.element
    return wire_type if is_struct(wire_type) else None


def _has_errors(struct: type[Struct]) -> bool:
    return any(
        spec.name == _FIELD or ((inner := _struct_in(spec.type)) is not None and _has_errors(inner))
        for spec in struct.fields
    )
