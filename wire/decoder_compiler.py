"""The compiler of message decoders: Python source text, generated and compiled once per message version.

Nested structs are inlined. Neighbouring fields of fixed size, and the length or tag count after them, are read by one
``unpack_from``. Every count and length is checked against the bytes that are left
before anything is allocated; reading past the end raises IndexError or struct.error, which ``codec`` translates.

A decoder is ``run(buf, pos, size) -> (message, position after it)``. ``buf`` is bytes; for a message that holds records it
is a memoryview, so that they need no copy. A counting decoder, for bytes that may be hostile, has a fourth parameter: the most
elements that all arrays of the message may have together.
"""

from __future__ import annotations

import struct
from typing import Any

from . import primitives
from .schema import Array, FieldSpec, Message, Primitive, Struct, WireType
from .source_builder import SMALL_ARRAY, SourceBuilder, array_methods, is_struct, least_size

_NAMESPACE: dict[str, Any] = {
    "new": object.__new__,
    "uvarint": primitives.read_uvarint,
    "unknown_tags": primitives.read_unknown_tags,
    "check_tags": primitives.check_tags,
    "bad_length": primitives.refuse_length,
    "bad_string": primitives.refuse_string,
    "bad_tag": primitives.refuse_tag,
    "bad_tags": primitives.refuse_tags,
    "too_many": primitives.refuse_elements,
    "unpack": struct.unpack_from,
}


def compile_decoder(message_class: type[Message], version: int, *, counts: bool = False) -> Any:
    """The decoder of ``message_class`` at ``version``; with ``counts`` a counting one."""
    is_flexible = version in message_class.flexible_versions
    compiler = _DecoderCompiler(version, is_flexible, message_class.holds_records, counts)
    if counts:
        compiler.source.emit("left = most")
    compiler.struct(message_class, "message")
    compiler.flush()
    compiler.source.emit("return message, pos")
    signature = "buf, pos, size, most" if counts else "buf, pos, size"
    return compiler.source.compile(f"decode {message_class.__name__} v{version}", signature)


class _DecoderCompiler:
    def __init__(self, version: int, flexible: bool, is_view: bool, counts: bool) -> None:
        self.source = SourceBuilder(_NAMESPACE)
        self._emit = self.source.emit
        self._version = version
        self._flexible = flexible
        self._is_view = is_view
        self._counts = counts
        self._pending: list[tuple[str, str]] = []

    def flush(self) -> None:
        """Emit one read for the fixed-size values collected so far."""
        if not self._pending:
            return
        codes = "".join(code for code, _ in self._pending)
        targets = ", ".join(target for _, target in self._pending)
        if codes == "B":
            self._emit(f"{targets} = buf[pos]")
        else:
            self._emit(f"{targets}, = {self.source.fixed(codes, 'unpack_from')}(buf, pos)")
        self._emit(f"pos += {struct.calcsize('>' + codes)}")
        self._pending.clear()

    def struct(self, cls: type[Struct], target: str) -> None:
        """Emit code that makes ``target`` a new ``cls`` and fills it; the last reads may stay pending."""
        self._emit(f"{target} = new({self.source.constant(cls, cls)})")
        tagged = []
        for spec in cls.fields:
            if self._version in spec.versions and spec.tag is None:
                continue
            self._emit(f"{target}.{spec.name} = {self._default(spec)}")
            if self._version in spec.versions:
                tagged.append(spec)
        self._emit(f"{target}.unknown_tagged_fields = ()")
        for spec in cls.fields:
            if self._version in spec.versions and spec.tag is None:
                self._field(cls, spec, target)
        if self._flexible:
            self._tag_section(cls, tagged, target)

    def _default(self, spec: FieldSpec) -> str:
        default = spec.make_default()
        if isinstance(default, Struct):
            return f"{self.source.constant(spec.type, spec.type)}()"
        return repr(default)

    def _field(self, cls: type[Struct], spec: FieldSpec, target: str) -> None:
        self._value(spec.type, self._version in spec.nullable, f"{target}.{spec.name}", f"{cls.__name__}.{spec.name}")

    def _value(self, wire_type: WireType, nullable: bool, target: str, label: str) -> None:
        if isinstance(wire_type, Array):
            self._sized("i", nullable, target, lambda n: self._array(wire_type.element, n, target, label))
        elif not isinstance(wire_type, Primitive):
            self._nested_struct(wire_type, nullable, target)
        elif wire_type.code is not None:
            self._pending.append((wire_type.code, target))
        else:
            code, string = ("h", label) if wire_type.name == "string" else ("i", None)
            self._sized(code, nullable, target, lambda n: self._bytes(wire_type.name, n, target, label), string)

    def _sized(self, code: str, nullable: bool, target: str, read: Any, string: str | None = None) -> None:
        """Emit the length, the null case and what ``read`` emits for the rest.

        ``string`` is the label of a string: flexible versions can encode longer ones than other versions, but must not. That is
        checked only where the length has more than one byte.
        """
        length = self.source.variable()
        self._pending.append(("B" if self._flexible else code, length))
        self.flush()
        if self._flexible:
            self._emit(f"if {length} > 127:")
            self._emit(f"    {length}, pos = uvarint(buf, pos - 1)")
            if string is not None:
                most = primitives.LONGEST_STRING
                self._emit(f"    if {length} > {most + 1}: bad_string({string!r}, {length} - 1)")
            self._emit(f"{length} -= 1")
        if not nullable:
            read(length)
            return
        # Null is -1 by now: a compact one is 0 on the wire, and every compact length was lowered by 1.
        self._emit(f"if {length} < 0:")
        self._emit(f"    {target} = None")
        self._emit("else:")
        self.source.indent()
        read(length)
        self.source.dedent()

    def _bytes(self, name: str, length: str, target: str, label: str) -> None:
        self._emit(f"end = pos + {length}")
        self._emit(f"if {length} < 0 or end > size: bad_length({label!r}, {length}, size - pos)")
        if name == "string":
            value = "str(buf[pos:end], 'utf-8')" if self._is_view else "buf[pos:end].decode()"
        elif name == "bytes" and self._is_view:
            value = "bytes(buf[pos:end])"
        else:
            value = "buf[pos:end]"
        self._emit(f"{target} = {value}")
        self._emit("pos = end")

    def _array(self, element: WireType, count: str, target: str, label: str) -> None:
        least = least_size(element, self._version, self._flexible)
        self._emit(f"if {count} < 0 or {count} * {least} > size - pos: bad_length({label!r}, {count}, size - pos)")
        if self._counts:
            self._emit(f"left -= {count}")
            self._emit("if left < 0: too_many(most)")
        if isinstance(element, Primitive) and element.code is not None:
            self._fixed_array(element.code, least, count, target)
            return
        elements, one = self.source.variable(), self.source.variable()
        self._emit(f"{target} = {elements} = []")
        self._emit(f"for _ in range({count}):")
        self.source.indent()
        self._value(element, False, one, f"element of {label}")
        self.flush()
        self._emit(f"{elements}.append({one})")
        self.source.dedent()

    def _fixed_array(self, code: str, size: int, count: str, target: str) -> None:
        if code == "16s":
            self._emit(f"{target} = [bytes(buf[at:at + 16]) for at in range(pos, pos + {count} * 16, 16)]")
        else:
            readers = self.source.constant(array_methods(code, "unpack_from"), ("unpack array", code))
            self._emit(f"if {count} < {SMALL_ARRAY}: {target} = [*{readers}[{count}](buf, pos)]")
            self._emit(f"else: {target} = [*unpack(f'>{{{count}}}{code}', buf, pos)]")
        self._emit(f"pos += {count} * {size}")

    def _nested_struct(self, cls: type[Struct], nullable: bool, target: str, is_tagged: bool = False) -> None:
        """A marker precedes a nullable struct: -1 or 1, but as the value of a tagged field 0 or 1."""
        inner = self.source.variable()
        if not nullable:
            self.struct(cls, inner)
            self._emit(f"{target} = {inner}")
            return
        marker = self.source.variable()
        self._pending.append(("B" if is_tagged else "b", marker))
        self.flush()
        self._emit(f"if {marker} {'== 0' if is_tagged else '< 0'}:")
        self._emit(f"    {target} = None")
        self._emit("else:")
        self.source.indent()
        self.struct(cls, inner)
        self.flush()
        self._emit(f"{target} = {inner}")
        self.source.dedent()

    def _tag_section(self, cls: type[Struct], tagged: list[FieldSpec], target: str) -> None:
        count = self.source.variable()
        self._pending.append(("B", count))
        self.flush()
        self._emit(f"if {count}:")
        self.source.indent()
        self._emit(f"if {count} > 127: {count}, pos = uvarint(buf, pos - 1)")
        if tagged:
            self._known_tags(cls, tagged, target, count)
        else:
            self._emit(f"{target}.unknown_tagged_fields, pos = unknown_tags(buf, pos, {count}, size)")
        self.source.dedent()

    def _known_tags(self, cls: type[Struct], tagged: list[FieldSpec], target: str, count: str) -> None:
        tag, stop = self.source.variable(), self.source.variable()
        self._emit(f"if {count} > {primitives.MOST_UNKNOWN_TAGS}: bad_tags({count})")
        self._emit(f"for _ in range({count}):")
        self.source.indent()
        self._emit(f"{tag}, pos = uvarint(buf, pos)")
        self._emit(f"{stop}, pos = uvarint(buf, pos)")
        self._emit(f"{stop} += pos")
        self._emit(f"if {stop} > size: bad_length('tagged field of {cls.__name__}', {stop} - pos, size - pos)")
        for spec in tagged:
            self._emit(f"if {tag} == {spec.tag}:")
            self.source.indent()
            if is_struct(spec.type):
                nullable = self._version in spec.nullable
                self._nested_struct(spec.type, nullable, f"{target}.{spec.name}", is_tagged=True)
            else:
                self._field(cls, spec, target)
            self.flush()
            self._emit(f"if pos != {stop}: bad_tag('{cls.__name__}', {tag}, pos - {stop})")
            self._emit("continue")
            self.source.dedent()
        self._emit(f"{target}.unknown_tagged_fields += (({tag}, bytes(buf[pos:{stop}])),)")
        self._emit(f"pos = {stop}")
        self.source.dedent()
        self._emit(f"check_tags({target}.unknown_tagged_fields)")
