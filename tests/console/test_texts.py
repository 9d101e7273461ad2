"""Bytes and names are shown as what they are, and nothing of them is lost or changed: digits, order, what cannot be seen."""

from __future__ import annotations

import json
import random
import re

import pytest

from ottla.console import formats, texts


def test_json_keeps_its_digits_its_order_and_its_doubles() -> None:
    text = '{"b":9223372036854775807,"a":1.10,"a":[ ],"c":{},"d":[1,{"e":"x, {y}: \\"z\\""}]}'
    shown = texts.indented(text)
    assert shown == (
        '{\n  "b": 9223372036854775807,\n  "a": 1.10,\n  "a": [],\n  "c": {},\n'
        '  "d": [\n    1,\n    {\n      "e": "x, {y}: \\"z\\""\n    }\n  ]\n}'
    )


def test_any_json_is_the_same_afterwards() -> None:
    chance = random.Random(1)

    def value(depth: int) -> object:
        kind = chance.randrange(7 if depth else 5)
        if kind == 5:
            return [value(depth - 1) for _ in range(chance.randrange(4))]
        if kind == 6:
            return {
                chance.choice(["a", "{", '"', "\\", "é,"]) + str(n): value(depth - 1)
                for n in range(chance.randrange(4))
            }
        return [None, True, -1.5e300, 1 << 64, 'x"\\\n{[,:'][kind]

    for _ in range(300):
        given = [value(4)]
        shown = texts.indented(json.dumps(given, ensure_ascii=chance.random() < 0.5))
        assert shown is not None
        assert json.loads(shown) == given


@pytest.mark.parametrize("text", ["", "1", '"x"', "{", "{]", "[" * 100_000, '{"a":1}x', "[1" + "0" * 10_000 + "]"])
def test_what_is_no_object_stays_text(text: str) -> None:
    assert texts.indented(text) is None


@pytest.mark.parametrize(
    ("data", "size", "show", "kind", "text"),
    [
        (None, 0, "auto", "null", "null"),
        (b"", 0, "auto", "empty", "empty"),
        (b"abc", 3, "auto", "text", "abc"),
        (b'{"a":1}', 7, "text", "text", '{"a":1}'),
        (b'{"a":1}', 7, "auto", "json", '{\n  "a": 1\n}'),
        (b'{"a":1}', 9, "auto", "text", '{"a":1}'),
        (b"\xff\x00A", 3, "auto", "hex", "00000000  ff 00 41  ..A"),
        (b"abc", 3, "hex", "hex", "00000000  61 62 63  abc"),
        ("aé".encode()[:2], 3, "auto", "text", "a"),
        ("aé".encode()[:2], 2, "auto", "hex", "00000000  61 c3  a."),
    ],
)
def test_how_bytes_are_shown(data: bytes | None, size: int, show: str, kind: str, text: str) -> None:
    shown = texts.shown(data, size, show)
    assert (shown.kind, shown.text, shown.size) == (kind, text, size)
    assert shown.is_cut == (data is not None and len(data) < size)


def test_what_cannot_be_seen_stands_as_its_code() -> None:
    shown = str(texts.visible("a\0b\u202ec\u200bd\x1b[31m\u2028e<f>"))
    for code in ("\\0", "\\u{202e}", "\\u{200b}", "\\e", "\\u{2028}"):
        assert f'<span class="code">{code}</span>' in shown
    assert "&lt;f&gt;" in shown
    assert not any(unseen in shown for unseen in "\0\u202e\u200b\x1b\u2028")
    assert "ü 漢字 עברית 👍" in str(texts.visible("ü 漢字 עברית 👍"))
    assert "line\n\tline" in str(texts.visible("line\n\tline"))
    assert "\\u{d800}" in str(texts.visible("\ud800")), "which UTF-8 cannot have"


def test_numbers_and_times() -> None:
    assert formats.number((1 << 63) - 1) == "9,223,372,036,854,775,807"
    assert ">1.5 KiB<" in str(formats.nbytes(1536))
    assert "1,536 bytes" in str(formats.nbytes(1536))
    assert [str(formats.duration(ms)) for ms in (0, 999, 61_000, 7_200_000, 604_800_000, -1)] == [
        "0 ms",
        "999 ms",
        "1 min 1 s",
        "2 h",
        "7 d",
        "without end",
    ]
    assert str(formats.moment(1_700_000_000_123)) == (
        '<time datetime="2023-11-14T22:13:20.123Z">2023-11-14 22:13:20.123 UTC</time>'
    )
    for ms in ((1 << 63) - 1, 1 << 55):
        assert f"{ms} ms" in str(formats.moment(ms)), "which no calendar has"
    assert "ndash" in str(formats.moment(-1))


def test_json_is_coloured_by_what_its_parts_are() -> None:
    shown = texts.coloured('{\n  "a<b": "x: \u202e",\n  "n": [1.50, null]\n}')
    assert '<span class="k">&#34;a&lt;b&#34;</span>: <span class="s">&#34;x: <span class="code">' in shown
    assert '<span class="v">1.50</span>, <span class="v">null</span>' in shown
    assert "\u202e" not in shown


def test_a_long_id_is_shown_by_its_ends() -> None:
    member = "billing-eaef39ae-34e6-4a09-ad7e-c7884fc72488"
    assert re.sub("<[^>]*>", "", texts.shortened(member)) == "billing-eaef39…c72488"
    assert re.sub("<[^>]*>", "", texts.shortened("short")) == "short"
