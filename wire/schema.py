"""The declaration of messages: typed fields, version ranges, and decorators that turn a class into a wire struct.

A message is one class for all its versions::

    @request(key=ApiKey.FETCH, versions="0-18", flexible="12+")
    class FetchRequest(Message):
        max_bytes: int32 = field("3+", default=0x7FFFFFFF, ignorable=True)
        cluster_id: string | None = field("12+", default=None, tag=0, ignorable=True)

* The annotation gives the type, ``field`` the versions that carry it. Annotations are read when the class is made, so a
  module of declarations does not postpone their evaluation and puts a struct before the struct that holds it.
* ``X | None`` may be null wherever the field exists; ``nullable="7+"`` narrows that to some versions. The exception is a
  tagged struct: there None means "not on the wire", because Kafka does not write a tagged field that has its default.
* A field missing from a version keeps its default when decoded. Encoding a value other than the default into such a
  version is an error, unless the field is ``ignorable``: then it is dropped.
* ``unknown_tagged_fields`` are the tagged fields (KIP-482) this declaration does not know, kept for a round trip.

Every class gets slots, keyword-only construction, equality and a repr, as ``dataclasses`` would give it; but a broker
declares hundreds of structs when it starts and uses few of them, so ``__init__`` is compiled when it is first called.
The rules follow the README of Kafka's message generator.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import operator
from collections.abc import Callable
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

from .api_keys import ApiKey

if TYPE_CHECKING:
    from ..base.network import FileSlice

    RecordData = bytes | bytearray | memoryview | FileSlice
else:
    RecordData = object

ZERO_UUID = bytes(16)
_NO_DEFAULT: Any = object()


@dataclasses.dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type of the protocol."""

    name: str
    code: str | None
    """Its character in ``struct`` formats; None when its length varies."""
    zero: Any
    """The default of a field without one of its own."""


@dataclasses.dataclass(frozen=True, slots=True)
class Array:
    """A list."""

    element: WireType
    """A ``Primitive`` or a struct class."""


WireType: TypeAlias = "Primitive | Array | type[Struct]"

int8 = Annotated[int, Primitive("int8", "b", 0)]
int16 = Annotated[int, Primitive("int16", "h", 0)]
int32 = Annotated[int, Primitive("int32", "i", 0)]
int64 = Annotated[int, Primitive("int64", "q", 0)]
uint16 = Annotated[int, Primitive("uint16", "H", 0)]
uint32 = Annotated[int, Primitive("uint32", "I", 0)]
float64 = Annotated[float, Primitive("float64", "d", 0.0)]
uuid = Annotated[bytes, Primitive("uuid", "16s", ZERO_UUID)]
string = Annotated[str, Primitive("string", None, "")]
record_data = Annotated[RecordData, Primitive("records", None, None)]
"""Record batches: a memoryview of the frame when decoded; anything a connection can send when encoded."""

_PLAIN_TYPES: dict[Any, Primitive] = {
    bool: Primitive("bool", "?", False),
    bytes: Primitive("bytes", None, b""),
}

RawTaggedFields: TypeAlias = tuple[tuple[int, bytes], ...]


class Struct:
    """Base class of messages and of the structs in them."""

    __slots__ = ("unknown_tagged_fields",)
    fields: ClassVar[tuple[FieldSpec, ...]] = ()
    _values: ClassVar[operator.attrgetter[Any]] = operator.attrgetter("unknown_tagged_fields")
    """Returns the values of all fields; objects with equal values are equal."""
    if TYPE_CHECKING:
        unknown_tagged_fields: RawTaggedFields
    else:

        def __init__(self, **values: Any) -> None:
            cls = type(self)
            cls.__init__ = _compile_init(cls.fields)
            cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._values(self) == self._values(other))

    __hash__ = None  # type: ignore[assignment]  # as for every mutable class with __eq__

    def __repr__(self) -> str:
        shown = {spec.name: "[hidden]" if spec.secret else repr(getattr(self, spec.name)) for spec in self.fields}
        shown["unknown_tagged_fields"] = repr(self.unknown_tagged_fields)
        values = ", ".join(f"{name}={value}" for name, value in shown.items())
        return f"{type(self).__qualname__}({values})"


class Message(Struct):
    """A whole body: of a request, a response, or a versioned record."""

    __slots__ = ()
    api_key: ClassVar[int] = -1
    """The number of its API or, for a record of the metadata log or a coordinator, of its record type; -1 for neither."""
    valid_versions: ClassVar[range] = range(0)
    flexible_versions: ClassVar[range] = range(0)
    """Those with compact lengths and tagged fields (KIP-482)."""
    holds_records: ClassVar[bool] = False
    """Whether a field has record batches, which are not copied out of the frame."""
    decoders: ClassVar[dict[int, Any]] = {}
    """The compiled decoders by version, each made at its first use."""
    encoders: ClassVar[dict[int, Any]] = {}
    """The compiled encoders by version, each made at its first use."""


class FieldSpec(NamedTuple):
    """One field as the codec sees it."""

    name: str
    type: WireType
    versions: range
    """The versions that carry it; without an upper end where none is given."""
    nullable: range
    """The versions in which it may be null."""
    default: Any
    tag: int | None
    """The number of a tagged field (KIP-482); None for a field with its own place."""
    ignorable: bool
    """A version that does not carry it drops its value; otherwise a value other than the default is an error there."""
    secret: bool = False
    """``repr`` does not show its value."""

    @property
    def is_optional_struct(self) -> bool:
        """A tagged struct that is None in Python when it is not on the wire."""
        return self.tag is not None and isinstance(self.type, type) and not self.nullable

    def make_default(self) -> Any:
        """A fresh default value."""
        if self.default is _NO_DEFAULT:
            return [] if isinstance(self.type, Array) else self.type()  # type: ignore[operator]
        return self.default


@dataclasses.dataclass(frozen=True, slots=True)
class _FieldArguments:
    versions: str
    default: Any
    nullable: str | None
    tag: int | None
    ignorable: bool
    secret: bool


def field(
    versions: str = "0+",
    *,
    default: Any = _NO_DEFAULT,
    nullable: str | None = None,
    tag: int | None = None,
    ignorable: bool = False,
    secret: bool = False,
) -> Any:
    """One field of a struct; ``versions`` is ``"3"``, ``"3-7"`` or ``"3+"``.

    Without ``default`` it is the zero of its type: 0, False, empty, a struct of defaults. ``tag`` makes it a tagged field,
    ``secret`` hides its value in ``repr``.
    """
    return _FieldArguments(versions, default, nullable, tag, ignorable, secret)


_OPEN_END = 1 << 15


@functools.cache
def parse_versions(text: str | None) -> range:
    """``"3"``, ``"3-7"``, ``"3+"`` or None (no version) as a range."""
    if text is None:
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), _OPEN_END)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _wire_type(annotation: Any) -> tuple[WireType, bool]:
    """The type an annotation stands for, and whether it admits None."""
    if get_origin(annotation) in (Union, UnionType):
        (inner,) = (argument for argument in get_args(annotation) if argument is not type(None))
        return _wire_type(inner)[0], True
    if annotation in _PLAIN_TYPES:
        return _PLAIN_TYPES[annotation], False
    if get_origin(annotation) is list:
        return Array(_wire_type(get_args(annotation)[0])[0]), False
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return annotation, False
    primitive = annotation.__metadata__[0]
    assert isinstance(primitive, Primitive), annotation
    return primitive, False


def _field_spec(name: str, annotation: Any, given: _FieldArguments) -> FieldSpec:
    wire_type, admits_none = _wire_type(annotation)
    versions = parse_versions(given.versions)
    optional_struct = given.tag is not None and isinstance(wire_type, type) and given.nullable is None
    if given.nullable is not None:
        nullable = parse_versions(given.nullable)
    else:
        nullable = versions if admits_none and not optional_struct else range(0)
    default = given.default
    if default is _NO_DEFAULT and optional_struct:
        default = None
    if default is _NO_DEFAULT and isinstance(wire_type, Primitive):
        default = wire_type.zero
    return FieldSpec(name, wire_type, versions, nullable, default, given.tag, given.ignorable, given.secret)


_T = TypeVar("_T", bound=type[Struct])


def _with_slots(cls: _T) -> _T:
    specs = tuple(_field_spec(name, annotation, cls.__dict__[name]) for name, annotation in cls.__annotations__.items())
    names = tuple(spec.name for spec in specs)
    left_out = {*names, "__dict__", "__weakref__"}
    namespace = {name: value for name, value in vars(cls).items() if name not in left_out}
    values = operator.attrgetter(*names, "unknown_tagged_fields")
    namespace |= {"__slots__": names, "__qualname__": cls.__qualname__, "fields": specs, "_values": values}
    made: Any = type(cls)
    slotted: _T = made(cls.__name__, cls.__bases__, namespace)
    return slotted


def _compile_init(specs: tuple[FieldSpec, ...]) -> Any:
    """``__init__`` with a keyword for each field; mutable defaults are made anew for each object."""
    parameters, body, names = [], [], {"missing": _NO_DEFAULT}
    for number, spec in enumerate(specs):
        name, value = spec.name, spec.name
        if spec.default is _NO_DEFAULT:
            parameters.append(f"{name}=missing")
            names[f"make_{number}"] = list if isinstance(spec.type, Array) else spec.type
            value = f"make_{number}() if {name} is missing else {name}"
        else:
            parameters.append(f"{name}=default_{number}")
            names[f"default_{number}"] = spec.default
        body.append(f"    self.{name} = {value}\n")
    header = f"def __init__(self, *, {', '.join([*parameters, 'unknown_tagged_fields=()'])}):\n"
    exec(f"{header}{''.join(body)}    self.unknown_tagged_fields = unknown_tagged_fields\n", names)
    return names["__init__"]


_S = TypeVar("_S", bound=Struct)


def replace(value: _S, /, **changes: Any) -> _S:
    """A shallow copy with other values in some fields."""
    values = {spec.name: getattr(value, spec.name) for spec in value.fields}
    return type(value)(**{**values, "unknown_tagged_fields": value.unknown_tagged_fields, **changes})


@dataclass_transform(kw_only_default=True)
def struct(cls: _T) -> _T:
    """Make a declared class a struct, to be used in messages."""
    return _with_slots(cls)


def _holds_records(wire_type: WireType) -> bool:
    if isinstance(wire_type, Primitive):
        return wire_type.name == "records"
    if isinstance(wire_type, Array):
        return _holds_records(wire_type.element)
    return any(_holds_records(spec.type) for spec in wire_type.fields)


_M = TypeVar("_M", bound=type[Message])


@dataclass_transform(kw_only_default=True)
def message(*, versions: str, flexible: str | None = None, key: int = -1) -> Callable[[_M], _M]:
    """Make a declared class a message; ``flexible`` versions have compact lengths and tagged fields (None: no version does)."""

    def decorate(cls: _M) -> _M:
        made = _with_slots(cls)
        made.api_key = key
        made.valid_versions = parse_versions(versions)
        from_flexible = parse_versions(flexible)
        first = max(made.valid_versions.start, from_flexible.start) if from_flexible else made.valid_versions.stop
        made.flexible_versions = range(first, made.valid_versions.stop)
        made.decoders, made.encoders = {}, {}
        made.holds_records = any(_holds_records(spec.type) for spec in made.fields)
        return made

    return decorate


@dataclass_transform(kw_only_default=True)
def request(*, key: ApiKey, versions: str, flexible: str | None) -> Callable[[_M], _M]:
    """Make a declared class the body of a request."""
    return message(key=key, versions=versions, flexible=flexible)


@dataclass_transform(kw_only_default=True)
def response(*, key: ApiKey, versions: str, flexible: str | None) -> Callable[[_M], _M]:
    """Make a declared class the body of a response."""
    return message(key=key, versions=versions, flexible=flexible)


def uuid_to_text(value: bytes) -> str:
    """Kafka's text form of a uuid: base64url without padding, 22 characters."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes of ``uuid_to_text``. Raises ValueError for anything else."""
    try:
        value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError:
        value = b""
    if len(value) != 16 or uuid_to_text(value) != text:
        raise ValueError(f"not a Kafka uuid: {text!r}")
    return value
