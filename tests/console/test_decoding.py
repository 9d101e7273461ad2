"""Records are decoded as what they are said to be; what they are not is told, and nothing in them takes long or ends anything."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.console.avro import AvroSchema, SchemaError
from ottla.console.decoding import Decoding, SchemasError, read_decoding
from ottla.console.message_pack import read_message_pack
from ottla.console.trees import MOST_DEPTH, DecodeError, Number, indented_tree, safe_tree, tree_of_json


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def avro(schema: Any) -> AvroSchema:
    return AvroSchema(json.dumps(schema))


ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "who", "type": ["null", "string"]},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]}},
        {"name": "before", "type": ["null", "State"]},
        {"name": "token", "type": {"type": "fixed", "name": "Token", "size": 4}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": "double"}}},
        {"name": "part_of", "type": ["null", "Order"]},
        {"name": "raw", "type": "bytes"},
        {"name": "is_new", "type": "boolean"},
        {"name": "ratio", "type": "float"},
    ],
}


def order(**others: Any) -> dict[str, Any]:
    made = {
        "id": (1 << 63) - 1,
        "who": "ü",
        "state": "PAID",
        "before": None,
        "token": b"\0\1\2\3",
        "lines": [{"a": 1.5}, {}],
        "part_of": None,
        "raw": b"\xff",
        "is_new": True,
        "ratio": 0.5,
    }
    return made | others


def test_avro_of_every_kind_of_type() -> None:
    value = order(part_of=order(before="OPEN", who=None))
    assert avro(ORDER).read(written(ORDER, value)) == value


names = st.sampled_from([f"f{number}" for number in range(6)])
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=20),
    "string": st.text(max_size=20),
}


@st.composite
def schemas_and_values(draw: st.DrawFn, depth: int = 0) -> tuple[Any, Any]:
    kind = draw(st.sampled_from([*TYPES, *(("array", "map", "record") if depth < 3 else ())]))
    if kind in TYPES:
        return kind, draw(TYPES[kind])
    if kind == "record":
        fields = {name: draw(schemas_and_values(depth + 1)) for name in draw(st.lists(names, unique=True))}
        number = draw(st.integers(0, 1 << 30))
        schema = {
            "type": "record",
            "name": f"R{depth}_{number}",
            "fields": [{"name": name, "type": each[0]} for name, each in fields.items()],
        }
        return schema, {name: each[1] for name, each in fields.items()}
    primitive = draw(st.sampled_from([*TYPES]))
    if kind == "array":
        return {"type": "array", "items": primitive}, draw(st.lists(TYPES[primitive], max_size=5))
    return {"type": "map", "values": primitive}, draw(
        st.dictionaries(st.text(max_size=5), TYPES[primitive], max_size=5)
    )


@settings(max_examples=50)
@given(schemas_and_values())
def test_avro_that_fastavro_wrote(drawn: tuple[Any, Any]) -> None:
    schema, value = drawn
    try:
        data = written(schema, value)
    except fastavro.schema.SchemaParseException:  # a name that was drawn twice
        return
    assert avro(schema).read(data) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_an_order_or_refused(data: bytes) -> None:
    try:
        avro(ORDER).read(data)
    except DecodeError:
        pass


def test_logical_types_of_avro() -> None:
    def shown(schema: dict[str, Any], value: Any) -> Any:
        return avro(schema).read(written({k: v for k, v in schema.items() if k != "logicalType"}, value))

    assert shown({"type": "int", "logicalType": "date"}, 19000) == "2022-01-08"
    assert (
        shown({"type": "long", "logicalType": "timestamp-millis"}, 1_700_000_000_123) == "2023-11-14T22:13:20.123000Z"
    )
    assert shown({"type": "long", "logicalType": "timestamp-micros"}, (1 << 63) - 1) == (1 << 63) - 1
    assert shown({"type": "int", "logicalType": "time-millis"}, 3_600_000) == "01:00:00"
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}
    assert shown(decimal, (-12345678901234567890).to_bytes(16, "big", signed=True)) == "-123456789012345678.90"
    assert isinstance(shown(decimal, b"\1"), Number)
    assert Decimal(shown(decimal, b"\1")) == Decimal("0.01")


@pytest.mark.parametrize(
    ("schema", "data", "why"),
    [
        ({"type": "array", "items": "null"}, "feffffffffffffffff0100", "more than 200,000 values"),
        ("bytes", "feffffffffffffffff01", "the record has fewer"),
        ("string", "01", "the record has fewer"),
        ("string", "02ff", "not UTF-8"),
        ("long", "ffffffffffffffffffff01", "longer than 64 bits"),
        ("long", "ff", "ends within a number"),
        ("boolean", "02", "boolean"),
        ("long", "0202", "1 bytes follow"),
        (["null", "int"], "04", "no branch 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "02", "no symbol 1"),
        (
            {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]},
            "02" * 100_000,
            "nested deeper",
        ),
        ({"type": "record", "name": "L", "fields": [{"name": "itself", "type": "L"}]}, "00", "nested deeper"),
    ],
)
def test_hostile_avro_is_refused(schema: Any, data: str, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        avro(schema).read(bytes.fromhex(data))


@pytest.mark.parametrize(
    "schema", ["{", '"nothing"', "5", '{"type": "record"}', '{"type": "fixed", "name": "x"}', "[" * 100_000]
)
def test_what_is_no_schema_is_refused(schema: str) -> None:
    with pytest.raises(SchemaError, match="Avro schema"):
        AvroSchema(schema)


packable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=50)
@given(packable)
def test_message_pack_is_read_as_it_was_written(value: Any) -> None:
    assert read_message_pack(msgpack.packb(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_message_pack_or_refused(data: bytes) -> None:
    try:
        indented_tree(read_message_pack(data))
    except DecodeError:
        pass


def test_message_pack_beyond_json() -> None:
    data = msgpack.packb({5: 1, (1, 2): msgpack.Timestamp(1_700_000_000), "x": msgpack.ExtType(7, b"\1")})
    assert read_message_pack(data) == {
        "5": 1,
        "[1, 2]": "2023-11-14T22:13:20Z",
        "x": {"extension": 7, "data": b"\1"},
    }


@pytest.mark.parametrize(
    "data",
    [
        b"\x91" * 100_000,
        b"\x91" * (MOST_DEPTH + 1) + b"\xc0",
        b"\xdd\x7f\xff\xff\xff",
        b"\xdd\x00\x01\x00\x00" * 10_000,
        b"\xc1",
        b"\xc0\xc0",
    ],
)
def test_hostile_message_pack_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match=r"MessagePack|nested"):
        read_message_pack(data)


@settings(max_examples=50)
@given(
    st.recursive(
        st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
        max_leaves=20,
    )
)
def test_a_safe_tree_survives_a_reader_that_takes_numbers_for_doubles(value: Any) -> None:
    def same(one: Any, other: Any) -> bool:
        if isinstance(one, dict):
            return all(same(each, other[name]) for name, each in one.items())
        if isinstance(one, list):
            return all(map(same, one, other))
        return one == other or str(one) == other or (isinstance(other, str) and float(other) == one)

    text = json.dumps(safe_tree(tree_of_json(json.dumps(value))))
    assert same(value, json.loads(text, parse_int=float))


def test_the_digits_of_numbers_stay() -> None:
    text = '{"a": 9223372036854775807, "b": 1.10, "c": 1e400, "d": ' + "9" * 10_000 + "}"
    shown = indented_tree(tree_of_json(text))
    assert shown.splitlines()[1:4] == ['  "a": 9223372036854775807,', '  "b": 1.10,', '  "c": 1e400,']
    assert safe_tree(tree_of_json(text))["a"] == "9223372036854775807"
    assert safe_tree(tree_of_json(text))["c"] == "1e400"


def test_what_cannot_be_decoded_is_raw_with_why() -> None:
    decoding = Decoding({"t": avro("long")})
    assert decoding.shown(b"\x02", 1, "avro", "t")[:2] == ("tree", "1")
    assert decoding.shown((1 << 62).to_bytes(8, "big"), 8, "integer", "t").text == str(1 << 62)
    for show in ("json", "integer", "msgpack", "avro"):
        shown = decoding.shown(b"\xc1\xff\xff", 3, show, "t")
        assert shown.kind == "hex"
        assert "c1 ff ff" in shown.text
        assert shown.problem
    assert decoding.shown(b"{nonsense", 9, "json", "t").text == "{nonsense"
    assert "not JSON" in decoding.shown(b"{nonsense", 9, "json", "t").problem
    assert "Only the first 2 bytes" in decoding.shown(b"\x92\x01", 3, "msgpack", "t").problem
    assert "no Avro schema for other" in decoding.shown(b"\x02", 1, "avro", "other").problem
    assert decoding.shown(None, 0, "avro", "t").kind == "null"
    assert decoding.shown(b"", 0, "avro", "t").kind == "empty"
    assert decoding.shown(b"[" * 100_000, 100_000, "json", "t").problem


def test_schemas_are_files_of_topics_or_of_all(tmp_path: Path) -> None:
    (tmp_path / "any.avsc").write_text('"long"')
    (tmp_path / "orders.avsc").write_text('"string"')
    decoding = read_decoding([str(tmp_path / "any.avsc"), f"orders={tmp_path / 'orders.avsc'}"], None)
    assert decoding.tree(b"\x02", "avro", "t") == 1
    assert decoding.tree(b"\x02a", "avro", "orders") == "a"
    assert decoding.tree(b"\0\0\0\0\7\x04\x61\x62", "avro", "orders") == "ab", "framed for a registry that is not known"
    assert "avro" not in read_decoding([], None).shows
    (tmp_path / "no.avsc").write_text("{}")
    for schemas, registry, why in (
        ([str(tmp_path / "no.avsc")], None, "no.avsc"),
        (["missing.avsc"], None, "cannot read missing.avsc"),
        ([], "ftp://x", "not an address"),
        ([], "http://user:secret@x", "cannot have a user"),
        ([], "http://x:99999", "not an address"),
    ):
        with pytest.raises(SchemasError, match=why):
            read_decoding(schemas, registry)
