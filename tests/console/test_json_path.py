"""A JSON path leads to one place of a value, and compares what is there; what is no path is refused, with where it is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.console.json_path import JsonPathError, read_condition
from ottla.console.trees import tree_of_json

VALUE = json.dumps(
    {
        "a": {"b": [{"c d": 5}, {"c d": "5"}]},
        "big": (1 << 63) - 1,
        "price": 1.5,
        "is it": True,
        "nothing": None,
        "text": "a = b",
        "it's": "x",
        "é": "ü",
        "list": [],
        "joined": "a && b",
        "quoted": "it's",
        "empty": "",
    }
)


@pytest.mark.parametrize(
    "path",
    [
        "$",
        "$.a",
        "$.a.b[0]['c d'] = 5",
        '$["a"].b[0]["c d"]==5.0',
        "$['a']['b'][1]['c d'] = 5",
        "$['a']['b'][1]['c d'] = \"5\"",
        "$.big=9223372036854775807",
        "$.price = 1.50",
        "$.price = 15e-1",
        "$['is it'] = true",
        "$.nothing",
        "$.nothing = null",
        "$.text = a = b",
        '$.text = "a = b"',
        "$['it\\'s'] = x",
        "$.é = ü",
        "$.price == 1.5",
        "$['is it']==true",
        "$['it\\'s'] == 'x'",
        "$['it\\'s']=='x'",
        "$['it\\'s'] == x",
        "$.text == 'a = b'",
        "$['a']['b'][1]['c d'] == '5'",
        '$.joined = "a && b"',
        "$.joined == 'a && b'",
        "$.quoted = 'it\\'s'",
        '$.empty = ""',
        "$.empty == ''",
    ],
)
def test_what_is_there_is_found(path: str) -> None:
    condition = read_condition(path)
    assert condition.holds(tree_of_json(VALUE))
    assert condition.may_hold(VALUE.encode())
    assert condition.may_hold(json.dumps(json.loads(VALUE), ensure_ascii=False).encode())


@pytest.mark.parametrize(
    "path",
    [
        "$.b",
        "$.a[0]",
        "$.a.b.c",
        "$.a.b[2]",
        "$.list[0]",
        "$.a = {}",
        "$.list = []",
        "$.a.b[0]['c d'] = \"5\"",
        "$.big = 9223372036854775806",
        "$.big = 9.223372036854776e18",
        "$['is it'] = 1",
        "$['is it'] = True",
        "$.nothing = ''",
        "$.a.b[0]['c d'] == '5'",
        "$['is it'] == 'true'",
        "$.nothing = 0",
        "$.price = 1.5000000000000000001",
        "$.price = 1e999999999999999999999",
        "$ = 5",
    ],
)
def test_what_is_not_there_is_not(path: str) -> None:
    assert not read_condition(path).holds(tree_of_json(VALUE))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a.b", "at character 1 $"),
        ("", "at the end $"),
        ("$.", "at the end a name"),
        ("$..a", "at character 3 a name"),
        ("$.*", "at character 3 a name"),
        ("$[*]", "at character 3 a number"),
        ("$[-1]", "at character 3 a number"),
        ("$[0:2]", "at character 4 ] should"),
        ("$[?(@.a)]", "at character 3 a number"),
        ("$['a]", "at the end ' should end"),
        ("$['a'", "at the end ] should"),
        ("$['a\\n']", "at character 6 a quote"),
        ("$[9999999999]", "a number from 0"),
        ("$.a b", "at character 4 a step"),
        ("$.a > 5", "at character 4 a step"),
        ("$.a >= 5", "at character 4 a step"),
        ("$.a != 5", "at character 4 a step"),
        ("$.a =", "at the end a value"),
        ("$.a == ", "at the end a value"),
        ("$.a === 5", "at character 7 a value should stand: there is no comparison but = and =="),
        ("$.a =~ b", "at character 6 a value should stand"),
        ("$.a => 5", "at character 6 a value should stand"),
        ("$.a = = 5", "at character 7 a value should stand"),
        ("$.a == 5 && $.b == 6", "at character 10 there is no &&"),
        ("$.a = b || c", "at character 9 there is no &&"),
        ("$.a == 'b' && $.c == 'd'", "at character 12 nothing should stand behind the value"),
        ("$" + ".a" * 101, "more than 100 steps"),
    ],
)
def test_what_is_no_path_is_refused_with_its_place(path: str, why: str) -> None:
    with pytest.raises(JsonPathError, match="is not a JSON path") as refused:
        read_condition(path)
    assert why in str(refused.value)


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def places(value: Any, path: str = "$") -> list[tuple[str, Any]]:
    """Every scalar of a value, and the path to it."""
    if isinstance(value, dict):
        quoted = {name: name.replace("\\", "\\\\").replace("'", "\\'") for name in value}
        return [each for name in value for each in places(value[name], f"{path}['{quoted[name]}']")]
    if isinstance(value, list):
        return [each for place, inner in enumerate(value) for each in places(inner, f"{path}[{place}]")]
    return [(path, value)]


@settings(max_examples=50)
@given(values, st.booleans())
def test_every_place_of_a_value_can_be_named(value: Any, is_escaped: bool) -> None:
    data = json.dumps(value, ensure_ascii=is_escaped).encode("utf-8", "surrogatepass")
    for path, scalar in places(value)[:100]:
        condition = read_condition(f"{path} = {json.dumps(scalar)}") if path.count("[") < 100 else None
        assert condition is not None
        assert condition.holds(tree_of_json(json.dumps(value)))
        assert condition.may_hold(data)


@given(st.text(), st.text())
def test_any_text_is_a_path_or_refused(path: str, value: str) -> None:
    try:
        condition = read_condition("$" + path)
    except JsonPathError:
        return
    condition.holds(value)
