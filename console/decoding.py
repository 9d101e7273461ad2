"""Decoding of record bytes: text, JSON, integers, MessagePack, Avro, or hexadecimal.

``auto`` is text, or JSON; with a schema registry also what it has a schema for; and hexadecimal where it is neither. Values of a
topic that has an Avro schema of its own are read by that (``of_values``), and are text or hexadecimal where they cannot be. What
cannot be read as it was asked for is shown raw, with why beside it. Whatever is in a record, reading it is bounded:
``MOST_DECODED`` bytes, and what ``trees`` and ``avro`` say of depth and number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.wording import how_to_install
from .texts import Shown, hexdump, shown
from .trees import DecodeError, Number, Tree, indented_tree, tree_of_json

if TYPE_CHECKING:  # of an extra that need not be installed
    from .avro import AvroSchema
    from .schema_registry import SchemaRegistry

MOST_DECODED = 1 << 20
_MOST_SCHEMAS_AT_ONCE = 20
_INTEGER_SIZES = (1, 2, 4, 8)
_OWN = "own"
"""``auto``, of values of a topic that has its own schema."""
_TREES = ("json", "integer", "msgpack", "avro", _OWN)


class SchemasError(Exception):
    """The given schemas or registry cannot be used. ``str()`` is one line."""


class Decoding:
    """The decoders of one console. ``schemas`` are given by topic, the one under "" for all others."""

    def __init__(self, schemas: Mapping[str, AvroSchema] | None = None, registry: SchemaRegistry | None = None) -> None:
        self._schemas = dict(schemas or {})
        self._registry = registry
        has_avro = bool(self._schemas) or registry is not None
        self.shows = ("auto", "text", "json", "integer", "hex", *_message_pack(), *(("avro",) if has_avro else ()))
        """The names of the decoders that are available."""

    def of_values(self, show: str, topic: str) -> str:
        """What the values of a topic are decoded as where ``show`` was asked for: what the other methods take for it."""
        return _OWN if show == "auto" and topic and topic in self._schemas else show

    # --- what has to be known first -----------------------------------------------------------------------------------

    def needed(self, data: bytes | None, show: str) -> int | None:
        """The number of a schema that is to be asked for before the data is decoded."""
        if self._registry is None or not data or show not in ("auto", "avro", _OWN):
            return None
        number = self._registry.number(data)
        return None if number is None or self._registry.is_known(number) else number

    async def prepare(self, some: Iterable[bytes | None], show: str) -> None:
        """Get the schemas that these need, at most ``_MOST_SCHEMAS_AT_ONCE`` of them."""
        if self._registry is not None:
            self._registry.forget_failures()
            numbers = {number for data in some if (number := self.needed(data, show)) is not None}
            await self._registry.load(sorted(numbers)[:_MOST_SCHEMAS_AT_ONCE])

    # --- decoding; may be called in a worker thread ------------------------------------------------------------------

    def tree(self, data: bytes, show: str, topic: str) -> Tree:
        """What is in it, for a filter or an export; where it is shown as text or auto, JSON is looked for. Raises DecodeError."""
        if len(data) > MOST_DECODED:
            raise DecodeError(f"Of records, {MOST_DECODED >> 20} MiB are decoded at most.")
        if show == "integer":
            return _integer(data)
        if show == "msgpack":
            from .message_pack import read_message_pack

            return read_message_pack(data)
        if show in ("avro", _OWN):
            return self._avro(data, topic)
        if show == "auto" and self._is_registered(data):
            assert self._registry is not None
            return self._registry.read(data)
        try:
            return tree_of_json(data.decode())
        except UnicodeDecodeError:
            raise DecodeError("This is not UTF-8, and so not JSON.") from None

    def is_json(self, data: bytes, show: str) -> bool:
        """Whether ``tree`` reads the data as JSON."""
        return show in ("text", "json", "hex") or (show == "auto" and not self._is_registered(data))

    def _is_registered(self, data: bytes) -> bool:
        return self._registry is not None and self._registry.number(data) is not None

    def _avro(self, data: bytes, topic: str) -> Tree:
        if self._registry is not None and self._is_registered(data):
            try:
                return self._registry.read(data)
            except DecodeError:
                if topic not in self._schemas:
                    raise  # else it may only look as if it were framed
        schema = self._schemas.get(topic) or self._schemas.get("")
        if schema is None and self._registry is not None:
            return self._registry.read(data)
        if schema is None:
            raise DecodeError(f"There is no Avro schema for {topic}.")
        try:
            return schema.read(data)
        except DecodeError:
            if data[:1] != b"\0" or len(data) < 5:
                raise
            return schema.read(data[5:])  # framed for a registry, which the console does not know

    def in_row(self, data: bytes | None, size: int, show: str, topic: str) -> Shown:
        """As ``shown``, but JSON is text unless it is asked for: a list of it in lines is too long to look at."""
        is_plain = show == "auto" and not (data is not None and self._is_registered(data))
        return self.shown(data, size, "text" if is_plain else show, topic)

    def shown(self, data: bytes | None, size: int, show: str, topic: str) -> Shown:
        """As it was asked for, or raw with why not. ``data`` may be the beginning only of what has ``size`` bytes."""
        is_registered = show == "auto" and data is not None and self._is_registered(data)
        if not data or not (show in _TREES or is_registered):
            return shown(data, size, show)
        if len(data) < size:
            why = f"Only the first {len(data):,} bytes are available, so it is not decoded."
            return shown(data, size, "text")._replace(problem=why)
        if show == "json":
            as_json = shown(data, size, "json")
            if as_json.kind == "json":
                return as_json
        try:
            return Shown("tree", indented_tree(self.tree(data, show, topic)), size, False)
        except DecodeError as error:
            is_text = show in ("json", _OWN)
            raw = shown(data, size, "text") if is_text else Shown("hex", hexdump(data), size, False)
            return raw._replace(problem=str(error))


def _integer(data: bytes) -> Tree:
    """As Kafka's serializers of Short, Integer and Long write it: the highest byte first, signed."""
    if len(data) not in _INTEGER_SIZES:
        raise DecodeError(f"An integer has 1, 2, 4 or 8 bytes, and this {len(data)}.")
    return Number(int.from_bytes(data, "big", signed=True))


def _message_pack() -> tuple[str, ...]:
    try:
        import msgpack  # noqa: F401
    except ImportError:
        return ()
    return ("msgpack",)


def read_decoding(schemas: Iterable[str], registry: str | None) -> Decoding:
    """What files, ``FILE`` or ``TOPIC=FILE``, and the address of a registry give. Reads files. Raises SchemasError."""
    given = list(schemas)
    if not given and registry is None:
        return Decoding()
    try:
        from .avro import AvroSchema, SchemaError
        from .schema_registry import SchemaRegistry
    except ImportError as error:
        raise SchemasError(f"reading Avro needs {how_to_install('console-formats')}: {error}") from None
    found: dict[str, AvroSchema] = {}
    for each in given:
        topic, has_topic, name = each.rpartition("=")
        try:
            found[topic if has_topic else ""] = AvroSchema(Path(name).read_text("utf-8"))
        except OSError as error:
            raise SchemasError(f"cannot read {name}: {error.strerror}") from None
        except (SchemaError, UnicodeDecodeError) as error:
            raise SchemasError(f"{name}: {error}") from None
    try:
        return Decoding(found, None if registry is None else SchemaRegistry(registry))
    except ValueError as error:
        raise SchemasError(str(error)) from None
