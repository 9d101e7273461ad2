"""The compiler of message encoders, one per message version; the counterpart of ``decoder_compiler``.

An encoder is ``run(message, chunks, parts)``: it appends bytes to ``chunks``, and where a records field begins it moves the
joined chunks to ``parts`` and puts the records there untouched. What is left in ``chunks`` at the end is the last part.
"""

from __future__ import annotations

import struct
from typing import Any

from . import primitives
from .schema import Array, FieldSpec, Message, Primitive, Struct, WireType
from .source_builder import SMALL_ARRAY, SourceBuilder, array_methods, is_struct

_NAMESPACE: dict[str, Any] = {
    "uvarint": primitives.write_uvarint,
    "short": primitives.SHORT_VARINTS,
    "tags": primitives.write_tags,
    "pack": struct.pack,
    "data_size": primitives.data_size,
    "bad_value": primitives.refuse_value,
    "no_tags": primitives.EMPTY_TAG_SECTION,
}


def compile_encoder(message_class: type[Message], version: int) -> Any:
    """The encoder of ``message_class`` at ``version``."""
    compiler = _EncoderCompiler(version, version in message_class.flexible_versions)
    compiler.source.emit("append = chunks.append")
    compiler.struct(message_class, "message")
    compiler.flush()
    return compiler.source.compile(f"encode {message_class.__name__} v{version}", "message, chunks, parts")


class _EncoderCompiler:
    def __init__(self, version: int, flexible: bool) -> None:
        self.source = SourceBuilder(_NAMESPACE)
        self._emit = self.source.emit
        self._version = version
        self._flexible = flexible
        self._append = "append"
        self._pending: list[tuple[str, str]] = []

    def flush(self) -> None:
        """Emit one pack for the fixed-size values collected so far."""
        if self._pending:
            self._emit(f"{self._append}({self._packed(self._pending)})")
            self._pending.clear()

    def _packed(self, values: list[tuple[str, str]]) -> str:
        codes = "".join(code for code, _ in values)
        arguments = ", ".join(expression for _, expression in values if expression)
        return f"{self.source.fixed(codes, 'pack')}({arguments})"

    def struct(self, cls: type[Struct], value: str) -> None:
        """Emit code that writes ``value``, a ``cls``; the last writes may stay pending."""
        tagged = []
        for spec in cls.fields:
            expression = f"{value}.{spec.name}"
            if self._version not in spec.versions:
                if not spec.ignorable:
                    label = f"{cls.__name__}.{spec.name}"
                    self._emit(f"if not ({self._is_default(spec, expression)}): bad_value({label!r}, {self._version})")
            elif spec.tag is not None:
                tagged.append(spec)
            else:
                self._value(spec.type, self._version in spec.nullable, expression)
        if self._flexible:
            self._tag_section(tagged, value)
        else:
            label = f"{cls.__name__}.unknown_tagged_fields"
            self._emit(f"if {value}.unknown_tagged_fields: bad_value({label!r}, {self._version})")

    def _is_default(self, spec: FieldSpec, expression: str) -> str:
        """An expression that is true when the field has its default."""
        default = spec.make_default()
        if is_struct(spec.type):
            equal = f"{expression} == {self.source.constant(spec.type(), ('default', spec.type))}"
            if spec.is_optional_struct:
                return f"{expression} is None or {equal}"
            return equal if default is not None else f"{expression} is None"
        if default is None:
            return f"{expression} is None"
        if isinstance(spec.type, Array):
            return f"{expression} is not None and not {expression}" if spec.nullable else f"not {expression}"
        return f"{expression} == {default!r}"

    def _value(self, wire_type: WireType, nullable: bool, expression: str) -> None:
        if isinstance(wire_type, Array):
            self._array(wire_type.element, nullable, expression)
        elif not isinstance(wire_type, Primitive):
            self._nested_struct(wire_type, nullable, expression)
        elif wire_type.code is not None:
            self._pending.append((wire_type.code, expression))
        elif wire_type.name == "records":
            self._records(nullable, expression)
        else:
            self._bytes(wire_type.name == "string", nullable, expression)

    def _length(self, code: str, length: str) -> None:
        """Emit a length that is in the variable ``length``, -1 for null."""
        if not self._flexible:
            self._pending.append((code, length))
            self.flush()
            return
        self._emit(f"{length} += 1")
        if not self._pending:
            self._emit(f"{self._append}(short[{length}] if {length} < 128 else uvarint({length}))")
            return
        self._emit(f"if {length} < 128: {self._append}({self._packed([*self._pending, ('B', length)])})")
        self._emit(f"else: {self._append}({self._packed(self._pending)} + uvarint({length}))")
        self._pending.clear()

    def _measured(self, nullable: bool, expression: str, value: str, convert: str, measure: str, nothing: str) -> str:
        """Emit ``value`` and the variable with its length; ``nothing`` stands in for null."""
        length = self.source.variable()
        self._emit(f"{value} = {expression}")
        if nullable:
            self._emit(f"if {value} is None: {value} = {nothing}; {length} = -1")
            self._emit(f"else: {convert}{length} = {measure}({value})")
        else:
            self._emit(f"{convert}{length} = {measure}({value})")
        return length

    def _bytes(self, is_text: bool, nullable: bool, expression: str) -> None:
        value = self.source.variable()
        convert = f"{value} = {value}.encode(); " if is_text else ""
        length = self._measured(nullable, expression, value, convert, "len", "b''")
        self._length("h" if is_text else "i", length)
        self._emit(f"{self._append}({value})")

    def _records(self, nullable: bool, expression: str) -> None:
        value = self.source.variable()
        length = self._measured(nullable, expression, value, "", "data_size", "None")
        self._length("i", length)
        self._emit(f"if {value} is not None:")
        self._emit("    parts.append(b''.join(chunks)); chunks.clear()")
        self._emit(f"    parts.append({value})")

    def _array(self, element: WireType, nullable: bool, expression: str) -> None:
        value = self.source.variable()
        length = self._measured(nullable, expression, value, "", "len", "()")
        self._length("i", length)
        if isinstance(element, Primitive) and element.code is not None:
            self._emit(f"if {value}: {self._append}({self._packed_elements(element.code, value)})")
            return
        one = self.source.variable()
        self._emit(f"for {one} in {value}:")
        self.source.indent()
        self._value(element, False, one)
        self.flush()
        self.source.dedent()

    def _packed_elements(self, code: str, value: str) -> str:
        if code == "16s":
            return f"b''.join({value})"
        packers = self.source.constant(array_methods(code, "pack"), ("pack array", code))
        size = f"len({value})"
        return f"{packers}[{size}](*{value}) if {size} < {SMALL_ARRAY} else pack(f'>{{{size}}}{code}', *{value})"

    def _nested_struct(self, cls: type[Struct], nullable: bool, expression: str, null_marker: int = -1) -> None:
        value = self.source.variable()
        self._emit(f"{value} = {expression}")
        if not nullable:
            self.struct(cls, value)
            return
        self._pending.append(("b", f"{null_marker} if {value} is None else 1"))
        self.flush()
        self._emit(f"if {value} is not None:")
        self.source.indent()
        self.struct(cls, value)
        self.flush()
        self.source.dedent()

    def _tag_section(self, tagged: list[FieldSpec], value: str) -> None:
        """Emit the tag section; if there are no tagged fields, it is a zero byte, packed with the fields before it."""
        pending = self._pending.copy()
        self._pending.clear()
        empty = [f"not {value}.unknown_tagged_fields"]
        empty += [f"({self._is_default(spec, f'{value}.{spec.name}')})" for spec in tagged]
        self._emit(
            f"if {' and '.join(empty)}: {self._append}({self._packed([*pending, ('x', '')]) if pending else 'no_tags'})"
        )
        self._emit("else:")
        self.source.indent()
        if pending:
            self._emit(f"{self._append}({self._packed(pending)})")
        fields = self.source.variable()
        self._emit(f"{fields} = [*{value}.unknown_tagged_fields]")
        for spec in tagged:
            self._tagged_field(spec, f"{value}.{spec.name}", fields)
        self._emit(f"{self._append}(tags({fields}))")
        self.source.dedent()

    def _tagged_field(self, spec: FieldSpec, expression: str, fields: str) -> None:
        outer, chunks = self._append, self.source.variable()
        self._emit(f"if not ({self._is_default(spec, expression)}):")
        self.source.indent()
        self._emit(f"{chunks} = []")
        self._append = f"{chunks}.append"
        if is_struct(spec.type):
            self._nested_struct(spec.type, self._version in spec.nullable, expression, null_marker=0)
        else:
            self._value(spec.type, self._version in spec.nullable, expression)
        self.flush()
        self._emit(f"{fields}.append(({spec.tag}, b''.join({chunks})))")
        self._append = outer
        self.source.dedent()
