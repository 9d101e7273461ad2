"""A record that was not edited comes out of a form's fields as it went into them, byte by byte."""

from __future__ import annotations

from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.console.questions import WrongQuestionError
from ottla.console.record_forms import MOST_EDITED, RecordContent, RecordPosition, content_of, fields_of, places_of

from .helpers.browsing import Page

contents = st.none() | st.binary(max_size=400) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))
names = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ["a=b", '"', '"x"', " a ", "", "a\nb", "\r", "\udcff", "hex:00", "ü", "a b"]
)
values = contents | st.sampled_from([b"hex:00", b"base64:AA==", b"a=b", b"=", b" ", b"\n", b"\r\n", b"\0"])


def as_browsers_do(text: str) -> str:
    """Through a textarea: the first line feed goes, a NUL becomes another character, lines end in CR LF on the way."""
    page = f"<textarea>\n{escape(text)}</textarea>"
    shown = "".join(Page(page).pieces).removeprefix("\n")
    sent = shown.replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
    return sent.replace("\r\n", "\n")


@settings(max_examples=200)
@given(values, values, st.lists(st.tuples(names, values), max_size=4))
def test_what_is_not_edited_comes_back(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    content = RecordContent(key, value, tuple(headers))
    fields = {name: as_browsers_do(text) for name, text in fields_of(content).items()}
    assert content_of(fields) == content


def test_what_fields_look_like() -> None:
    headers = (("trace", b"1"), ("trace", None), ("raw", b"\0\xff"), ("a=b", b"hex:x"))
    assert fields_of(RecordContent(None, b'{"a": 1}\n', headers)) == {
        "key_as": "null",
        "key": "",
        "value_as": "text",
        "value": '{"a": 1}\n',
        "headers": 'trace=1\ntrace\nraw=hex:00ff\n"a=b"=hex:6865783a78',
    }
    assert fields_of(RecordContent(b"", b"\r", ()))["key_as"] == "text"
    assert fields_of(RecordContent(b"", b"\r", ()))["value"] == "0d"
    assert fields_of(RecordContent(b"", bytes(300), ()))["value_as"] == "base64"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"value_as": "hex", "value": "0g"}, "value is not hexadecimal"),
        ({"key_as": "base64", "key": "A"}, "key is not base64"),
        ({"value_as": "json", "value": "{"}, "value is not JSON"),
        ({"value_as": "json", "value": "[" * 100_000}, "value is not JSON"),
        ({"value_as": "null", "value": "x"}, "is null, but"),
        ({"value_as": "xml"}, "not xml"),
        ({"headers": '"a" b'}, "something other than ="),
        ({"headers": "a=hex:0"}, "header a is not hexadecimal"),
        ({"value": "\ud800"}, "half of a character"),
    ],
)
def test_what_is_wrong_is_told(fields: dict[str, str], why: str) -> None:
    with pytest.raises(WrongQuestionError, match=why):
        content_of(fields)


def test_what_is_too_large_to_edit() -> None:
    with pytest.raises(WrongQuestionError, match="send them again as they are"):
        fields_of(RecordContent(None, b"x" * (MOST_EDITED + 1), ()))


def test_places_are_sorted_and_few() -> None:
    assert places_of(["1:5", "0:10", "0:9", "1:5"]) == [
        RecordPosition(0, 9),
        RecordPosition(0, 10),
        RecordPosition(1, 5),
    ]
    for wrong in (["x"], ["1"], ["-1:5"], ["1:5:6"], [f"0:{number}" for number in range(501)]):
        with pytest.raises(WrongQuestionError):
            places_of(wrong)
