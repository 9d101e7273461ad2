"""The filter bar of records: rows and parameters stand for each other, and what cannot be is said at its row and stays."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from ottla.console.filters import FilterRow, parameters_of, rows_of, sent_rows
from ottla.console.questions import WrongQuestionError
from ottla.wire.records import Record

from .helpers.browsing import browsing


@pytest.mark.parametrize(
    ("row", "parameter", "text"),
    [
        (("key", "equals", "hex:00ff"), "key", "hex:00ff"),
        (("value", "contains", " a "), "contains", " a "),
        (("header trace", "equals", "a=b"), "header", "trace=a=b"),
        (("header trace", "is there", ""), "header", "trace"),
        (("$.order['a=b'].id", "equals", "17"), "path", "$.order['a=b'].id = 17"),
        (("$.a", "is there", ""), "path", "$.a"),
    ],
)
def test_a_row_is_a_parameter_and_the_parameter_that_row(row: tuple[str, str, str], parameter: str, text: str) -> None:
    assert parameters_of([FilterRow(*row)]) == {parameter: text}
    assert rows_of({parameter: text}) == [FilterRow(*row, parameter)]


def test_an_old_address_with_two_signs_of_equality_is_shown_as_one_row() -> None:
    assert rows_of({"path": "$.a == 'x'"}) == [FilterRow("$.a", "equals", "'x'", "path")]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("key", "contains", "x"), "A filter of the key has one operator, equals."),
        (("value", "equals", "x"), "one operator, contains; a place in it, as $.order.id, also equals."),
        (("$.a", "contains", "x"), "A filter of $.a equals or is there."),
        (("header h", "contains", "x"), "A filter of header h equals or is there."),
        (("colour", "equals", "x"), "colour is not a field: key, value, header NAME"),
        (("header ", "equals", "x"), "is not a field"),
        (("", "equals", "x"), "Nothing is not a field"),
        (("key", "equals", ""), "The filter “key equals” needs a value."),
        (("key", "resembles", "x"), "not resembles."),
    ],
)
def test_what_no_filter_is(row: tuple[str, str, str], why: str) -> None:
    with pytest.raises(WrongQuestionError) as raised:
        parameters_of([FilterRow("value", "contains", "y"), FilterRow(*row)])
    assert why in str(raised.value)
    assert raised.value.field == "filter-1"


def test_two_of_a_kind_are_refused() -> None:
    with pytest.raises(WrongQuestionError, match="another filter of a JSON path") as raised:
        parameters_of([FilterRow("$.a", "is there"), FilterRow("$.b", "is there")])
    assert raised.value.field == "filter-1"


def test_rows_of_a_form_that_say_nothing_are_left_out() -> None:
    assert sent_rows([("from", "newest")]) is None
    sent = [
        ("field", "key"),
        ("operator", "equals"),
        ("operand", "k"),
        ("field", " "),
        ("operator", "contains"),
        ("operand", ""),
    ]
    assert sent_rows(sent) == [FilterRow("key", "equals", "k")]


async def test_the_bar_finds_and_its_address_says_what(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        for number in range(20):
            value = json.dumps({"order": {"id": number}, "shown": f"v{number}."}).encode()
            browser.put("t", Record(timestamp=1, key=b"k%d" % (number % 2), value=value))
        form = [("from", "oldest"), ("partition", ""), ("field", "key"), ("operator", "equals"), ("operand", "k1")]
        form += [
            ("field", "$.order.id"),
            ("operator", "equals"),
            ("operand", "17"),
            ("field", ""),
            ("operator", "contains"),
        ]
        answer = await browser.get(f"/topics/t/records?{urlencode([*form, ('operand', '')])}")
        assert answer.status == 303
        address = answer.headers["location"]
        assert parse_qs(urlsplit(address).query) == {"from": ["oldest"], "key": ["k1"], "path": ["$.order.id = 17"]}
        page = (await browser.get(address)).page
        assert re.findall(r"v\d+\.", page.text) == ["v17."]
        without = [str(each) for each in page.addresses() if each and each.startswith("?")]
        found = [re.findall(r"v\d+\.", (await browser.get(f"/topics/t/records{each}")).page.text) for each in without]
        assert [len(each) for each in found] == [1, 10], "without the key one record is found, without the path ten"


async def test_a_row_that_is_no_filter_stays_as_it_was_typed(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        form = [
            ("field", "value"),
            ("operator", "contains"),
            ("operand", "x"),
            ("field", "colour"),
            ("operator", "equals"),
        ]
        answer = await browser.get(f"/topics/t/records?{urlencode([*form, ('operand', 'red')])}")
        assert answer.status == 400
        assert answer.page.problems() == {
            "operand": "colour is not a field: key, value, header NAME, or a JSON path such as $.order.id."
        }
        typed = [
            each.get("value") for tag, each in answer.page.elements if tag == "input" and each.get("name") == "operand"
        ]
        assert typed == ["x", "red", ""]
