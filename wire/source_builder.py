"""A builder for the source text of one compiled function and the constants it uses."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, TypeGuard

from .schema import Array, Primitive, Struct, WireType

SMALL_ARRAY = 17
"""Arrays with fewer elements of fixed size have a ``Struct`` of their own, made once; others parse a format each time."""


@cache
def array_methods(code: str, method: str) -> tuple[Any, ...]:
    """``pack`` or ``unpack_from`` of arrays of one fixed-size type, by length, for lengths below ``SMALL_ARRAY``."""
    return tuple(getattr(struct.Struct(f">{count}{code}"), method) for count in range(SMALL_ARRAY))


class SourceBuilder:
    """Collects a function body; ``constant`` gives an object a name that the text can use."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = dict(namespace)
        self._lines: list[str] = []
        self._depth = 1
        self._variables = 0
        self._names: dict[Any, str] = {}

    def emit(self, line: str) -> None:
        self._lines.append("    " * self._depth + line)

    def indent(self) -> None:
        self._depth += 1

    def dedent(self) -> None:
        self._depth -= 1

    def variable(self) -> str:
        """A name that is not used yet."""
        self._variables += 1
        return f"v{self._variables}"

    def constant(self, value: Any, key: Any) -> str:
        """The name of ``value``; equal keys share one."""
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"c{len(self._names)}"
            self.namespace[name] = value
        return name

    def fixed(self, codes: str, method: str) -> str:
        """The name of ``struct.Struct(codes).method``, big-endian and packed."""
        return self.constant(getattr(struct.Struct(">" + codes), method), (codes, method))

    def compile(self, name: str, signature: str) -> Any:
        """Compile the function with the collected body."""
        text = f"def run({signature}):\n" + "\n".join(self._lines)
        exec(compile(text, f"<{name}>", "exec"), self.namespace)
        return self.namespace["run"]


def least_size(wire_type: WireType, version: int, flexible: bool, nullable: bool = False) -> int:
    """The smallest size of a value in bytes, to check a count of elements before memory is allocated for them."""
    if isinstance(wire_type, Primitive):
        if wire_type.code is not None:
            return struct.calcsize(">" + wire_type.code)
        return 1 if flexible else 2 if wire_type.name == "string" else 4
    if isinstance(wire_type, Array):
        return 1 if flexible else 4
    if nullable:
        return 1
    present = [spec for spec in wire_type.fields if version in spec.versions and spec.tag is None]
    total = sum(least_size(spec.type, version, flexible, version in spec.nullable) for spec in present)
    return max(1, total + flexible)


def is_struct(wire_type: WireType) -> TypeGuard[type[Struct]]:
    return isinstance(wire_type, type) and issubclass(wire_type, Struct)
